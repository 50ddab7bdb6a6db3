"""Boosted trees with vector leaves as a module: XGBoost's files in, significances out, plain torch between.

XGBoost trains the trees; this module reads its UBJ files by itself. So no file of others reaches code that
trusts it, predictions need no further package, and a model of trees can be copied, pickled and exported.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gaussianmlr._utils.ubjson import read_ubjson
from gaussianmlr.errors import DataError
from gaussianmlr.methods.ties import raw_of

__all__ = ["MOST_BYTES", "Trees", "check_trees", "indicators", "targets_of", "width_of"]

MOST_BYTES = 1 << 30  # of all files of a model
_DEEPEST = 64  # levels of a tree
_MOST_TREES = 100_000  # of one file; as many rounds as a recipe may ask for
_AT_ONCE = 1 << 20  # nodes, or cells of indicators, that are held at once
_FLOATS = npt.NDArray[np.float32]
_INTS = npt.NDArray[np.int64]


class _Forest(NamedTuple):
    """The trees of one file, node by node."""

    roots: _INTS  # [trees]
    column: _INTS  # [nodes]
    threshold: _FLOATS
    missing_left: npt.NDArray[np.bool_]
    left: _INTS  # a leaf points at itself
    right: _INTS
    values: _FLOATS  # [nodes, outputs], zero within the trees
    gain: _FLOATS
    intercept: _FLOATS  # [outputs]
    depth: int


class Trees(nn.Module):
    """The mean of members, each of them boosted trees that XGBoost wrote as UBJ.

    Parameters
    ----------
    files : sequence of bytes
        One file per member.
    labels, channels : int
        Number of labels, and of coded columns of the table.
    categories : mapping of int to int, optional
        Number of categories of coded columns that hold category codes. They become indicators, see
        `indicators`.
    tau : Tensor [1] or [K], optional
        Thresholds of indifference, for methods that predict ties. They are weights, not in the files.

    Notes
    -----
    The means are the trees' outputs; all variances are one, which is the canonical gauge. A number goes left
    where it is below the threshold, a gap (NaN) where the training data says.
    """

    roots: Tensor
    column: Tensor
    threshold: Tensor
    missing_left: Tensor
    left: Tensor
    right: Tensor
    leaf: Tensor
    intercept: Tensor
    tau: Tensor | None

    def __init__(
        self,
        files: Sequence[bytes],
        *,
        labels: int,
        channels: int,
        categories: dict[int, int] | None = None,
        tau: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("tau", tau)
        if not files:
            raise DataError("expected one file of trees or more, got none")
        self.files, self.labels, self.channels = tuple(files), labels, channels
        self.categories = dict(categories or {})
        width = width_of(channels, self.categories)
        forests = [_read(file, targets_of(labels), width) for file in files]
        starts = np.cumsum([0, *(len(one.column) for one in forests)])[:-1]
        parts = {
            "roots": [one.roots + start for one, start in zip(forests, starts)],
            "column": [one.column for one in forests],
            "threshold": [one.threshold for one in forests],
            "missing_left": [one.missing_left for one in forests],
            "left": [one.left + start for one, start in zip(forests, starts)],
            "right": [one.right + start for one, start in zip(forests, starts)],
            "leaf": [one.values / len(forests) for one in forests],
        }
        for name, arrays in parts.items():  # not part of the weights: the files are
            self.register_buffer(name, torch.from_numpy(np.concatenate(arrays)), persistent=False)
        intercept = np.mean([one.intercept for one in forests], axis=0)
        self.register_buffer("intercept", torch.from_numpy(intercept), persistent=False)
        self.depth = max(one.depth for one in forests)
        self.importances = self._importances(forests, width)

    @property
    def members(self) -> int:
        """Number of files that are averaged."""
        return len(self.files)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Means and log-variances of coded rows [N, channels]; NaN is a gap."""
        if x.ndim != 2 or x.shape[1] != self.channels:
            raise DataError(f"expected rows of {self.channels} columns, got inputs of shape {list(x.shape)}")
        if torch.compiler.is_compiling():
            mu = self._means(x)
        else:  # a model of many trees takes no more memory than one of few
            rows = max(1, _AT_ONCE // max(len(self.roots), width_of(self.channels, self.categories)))
            mu = self.intercept.new_empty(len(x), self.labels)  # parts would break memory up
            for start in range(0, len(x), rows):
                mu[start : start + rows] = self._means(x[start : start + rows])
        found = {"mu": mu, "logvar": torch.zeros_like(mu)}
        if self.tau is not None:
            found["tau"] = raw_of(self.tau).expand(mu.shape[0], -1)
        return found

    def _means(self, x: Tensor) -> Tensor:
        x = indicators(x, self.categories)
        node = self.roots + torch.zeros_like(x[:, :1], dtype=torch.int64)  # any number of rows, exported too
        for _ in range(self.depth):
            value = x.gather(1, self.column[node])
            # By operations that onnxruntime has for truth values; a gap is not below any threshold.
            is_left = (value < self.threshold[node]) | (value.isnan() & self.missing_left[node])
            node = torch.where(is_left, self.left[node], self.right[node])
        if torch.compiler.is_compiling():  # ONNX has no sum of rows at places
            mu = self.intercept + self.leaf[node].sum(1)
        else:
            mu = self.intercept + nn.functional.embedding_bag(node, self.leaf, mode="sum")
        return mu[:, : self.labels]

    def _importances(self, forests: list[_Forest], width: int) -> npt.NDArray[np.float64]:
        """Mean gain of the splits on each coded column, with a sum of one."""
        gains, splits = np.zeros(width), np.zeros(width)
        for one in forests:
            inner = one.left != np.arange(len(one.left))
            gains += np.bincount(one.column[inner], one.gain[inner], width)
            splits += np.bincount(one.column[inner], minlength=width)
        owner = np.repeat(np.arange(self.channels), _widths(self.channels, self.categories))
        total = np.bincount(owner, gains, self.channels) / np.maximum(
            np.bincount(owner, splits, self.channels), 1
        )
        return total / total.sum() if total.sum() > 0 else total


def targets_of(labels: int) -> int:
    """Number of outputs of the trees: one per label, and two for a single label.

    XGBoost has vector leaves from two outputs on; the second one stays zero.

    Examples
    --------
    >>> targets_of(1), targets_of(5)
    (2, 5)
    """
    return max(2, labels)


def width_of(channels: int, categories: dict[int, int]) -> int:
    """Number of columns after `indicators`.

    Examples
    --------
    >>> width_of(3, {1: 4})
    6
    """
    return sum(_widths(channels, categories))


def indicators(x: Tensor, categories: dict[int, int]) -> Tensor:
    """Rows with one indicator per category in place of columns of category codes; a gap is a gap in all.

    Trees with vector leaves compare numbers only. An unknown code has no indicator.

    Examples
    --------
    >>> indicators(torch.tensor([[0.5, 1.0], [0.5, float("nan")]]), {1: 2})
    tensor([[0.5000, 0.0000, 1.0000],
            [0.5000,    nan,    nan]])
    """
    if not categories:
        return x
    parts, start = [], 0
    for column in sorted(categories):
        codes = x[:, column : column + 1]
        kinds = torch.arange(categories[column], dtype=x.dtype, device=x.device)
        parts += [x[:, start:column], torch.where(codes.isnan(), codes, (codes == kinds).to(x.dtype))]
        start = column + 1
    return torch.cat([*parts, x[:, start:]], 1)


def _widths(channels: int, categories: dict[int, int]) -> list[int]:
    return [categories.get(column, 1) for column in range(channels)]


def check_trees(file: bytes, targets: int, width: int) -> None:
    """Refuse a file that does not hold trees of so many outputs on so many columns, with a `DataError`."""
    _read(file, targets, width)


def _read(file: bytes, labels: int, width: int) -> _Forest:
    """The trees in a file, checked as a whole."""
    try:
        if len(file) > MOST_BYTES:
            raise ValueError(f"{len(file):,} bytes; expected at most {MOST_BYTES:,}")
        learner = read_ubjson(file)["learner"]
        param = learner["learner_model_param"]
        if param["num_feature"] != str(width) or param["num_target"] != str(labels):
            columns, targets = (str(param[name])[:20] for name in ("num_feature", "num_target"))
            raise ValueError(f"{columns} columns and {targets} labels; expected {width} and {labels}")
        base = param["base_score"]
        if len(base) > 64 * (labels + 1):
            raise ValueError(f"an intercept of {len(base):,} characters for {labels} labels")
        intercept = np.array(json.loads(base), dtype=np.float32)
        trees = learner["gradient_booster"]["model"]["trees"]
        if not isinstance(trees, list) or intercept.shape != (labels,) or not np.isfinite(intercept).all():
            raise ValueError("no list of trees, or no intercept per label")
        if len(trees) > _MOST_TREES:
            raise ValueError(f"{len(trees):,} trees; expected at most {_MOST_TREES:,}")
        return _joined([_tree(tree, labels, width) for tree in trees], intercept)
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)[:200]
        raise DataError(f"not trees that XGBoost wrote for this model: {reason}") from None


def _tree(tree: dict[str, Any], labels: int, width: int) -> _Forest:
    names = ("left_children", "right_children", "split_indices", "default_left", "split_type")
    left, right, column, missing, kind = (_whole(tree, name) for name in names)
    threshold, gain = (_real(tree, name) for name in ("split_conditions", "loss_changes"))
    leaves = _real(tree, "leaf_weights").reshape(-1, labels)
    count = len(left)
    if not count or {len(one) for one in (right, column, missing, kind, threshold, gain)} != {count}:
        raise ValueError("nodes of different numbers")
    inner, places = left >= 0, np.arange(count)
    if kind[inner].any():
        raise ValueError("a split by categories; expected thresholds")
    if ((column[inner] < 0) | (column[inner] >= width)).any():
        raise ValueError(f"a split on a column that is none of {width}")
    children = np.concatenate([left[inner], right[inner]])
    # Each node but the root is the child of one, an earlier one: no circle, and no longer way round.
    if (children <= np.tile(places[inner], 2)).any() or not _each_once(children - 1, count - 1):
        raise ValueError("children that make no tree")
    which = right[~inner]
    if not _each_once(which, len(leaves)):  # so the values below are at most twice what the file holds
        raise ValueError("leaves that do not have one row of values each")
    values = np.zeros((count, labels), np.float32)
    values[~inner] = leaves[which]
    if not (np.isfinite(values).all() and np.isfinite(threshold[inner]).all() and np.isfinite(gain).all()):
        raise ValueError("a number that is not finite")
    depth, nodes = 0, np.flatnonzero(inner[:1])
    while len(nodes):
        if (depth := depth + 1) > _DEEPEST:
            raise ValueError(f"a tree of more than {_DEEPEST} levels")
        nodes = np.concatenate([left[nodes], right[nodes]])
        nodes = nodes[inner[nodes]]
    return _Forest(
        np.zeros(1, np.int64),
        np.where(inner, column, 0),
        threshold,
        missing.astype(bool),
        np.where(inner, left, places),
        np.where(inner, right, places),
        values,
        gain * inner,
        np.zeros(0, np.float32),
        depth,
    )


def _each_once(places: _INTS, count: int) -> bool:
    """Whether these are the places from 0 up to a count, each of them once."""
    return np.array_equal(np.sort(places), np.arange(count))


def _joined(trees: list[_Forest], intercept: _FLOATS) -> _Forest:
    """The trees of a file in a row; without any, one leaf of zeros."""
    if not trees:
        zero = np.zeros(1, np.int64)
        number = np.zeros(1, np.float32)
        values = np.zeros((1, len(intercept)), np.float32)
        return _Forest(zero, zero, number, zero.astype(bool), zero, zero, values, number, intercept, 0)
    starts = np.cumsum([0, *(len(one.column) for one in trees)])[:-1]

    def chained(name: str, *, moved: bool = False) -> Any:
        shifts = starts if moved else np.zeros_like(starts)
        return np.concatenate(
            [getattr(one, name) + start if moved else getattr(one, name) for one, start in zip(trees, shifts)]
        )

    return _Forest(
        chained("roots", moved=True),
        chained("column"),
        chained("threshold"),
        chained("missing_left"),
        chained("left", moved=True),
        chained("right", moved=True),
        chained("values"),
        chained("gain"),
        intercept,
        max(one.depth for one in trees),
    )


def _whole(tree: dict[str, Any], name: str) -> _INTS:
    found = np.asarray(tree[name])
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"{name} are not whole numbers")
    return found.astype(np.int64)


def _real(tree: dict[str, Any], name: str) -> _FLOATS:
    found = np.asarray(tree[name])
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iuf"):
        raise ValueError(f"{name} are not numbers")
    return found.astype(np.float32)
