"""Files of trees as somebody who forges them would write them: UBJSON, in a dozen lines."""

import json
import struct

import numpy as np

_LETTERS = {"u1": "U", "i4": "l", "i8": "L", "f4": "d"}


def ubj(value):
    """A value as UBJSON; bytes stand for themselves."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    if isinstance(value, str):
        return b"S" + _name(value)
    if isinstance(value, list):
        return b"[" + b"".join(map(ubj, value)) + b"]"
    if isinstance(value, np.ndarray):
        kind = _LETTERS[value.dtype.str[1:]].encode()
        return b"[$" + kind + b"#" + ubj(value.size) + value.astype(value.dtype.newbyteorder(">")).tobytes()
    return b"{" + b"".join(_name(name) + ubj(one) for name, one in value.items()) + b"}"


def _name(text):
    return ubj(len(text.encode())) + text.encode()


def complete_tree(levels, labels, rows=None):
    """A tree that splits on column 0 at all levels, with values for each leaf, or for fewer of them."""
    leaves, inner = 2**levels, 2**levels - 1
    places = np.arange(inner)
    left = np.concatenate([2 * places + 1, np.full(leaves, -1)]).astype("i4")
    right = np.concatenate([2 * places + 2, np.arange(leaves) % (rows or leaves)]).astype("i4")
    count = inner + leaves
    return {
        "left_children": left,
        "right_children": right,
        "split_indices": np.zeros(count, "i4"),
        "default_left": np.zeros(count, "u1"),
        "split_type": np.zeros(count, "u1"),
        "split_conditions": np.zeros(count, "f4"),
        "loss_changes": np.zeros(count, "f4"),
        "leaf_weights": np.ones((rows or leaves) * labels, "f4"),
    }


def trees_file(trees, labels, columns, **more):
    """A file of trees; `more` replaces the parameters of the learner."""
    parameters = {"base_score": json.dumps([0.0] * labels), "num_feature": str(columns)}
    learner = {
        "gradient_booster": {"model": {"trees": trees}},
        "learner_model_param": {**parameters, "num_target": str(labels), **more},
    }
    return ubj({"learner": learner})
