"""Trees as a module, against XGBoost's own predictions; files of others are checked before they are used."""

import copy
import pickle

import numpy as np
import pytest
import torch
import xgboost

from gaussianmlr import DataError
from gaussianmlr._utils.ubjson import read_ubjson
from gaussianmlr.nn.trees import Trees, indicators
from support.memory import peak_of
from support.ubj import complete_tree, trees_file


def booster(rows=300, columns=5, labels=3, rounds=8, seed=0):
    """Trees of another objective, with gaps in the data."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    y = np.stack([np.nan_to_num(x[:, label]) + rng.normal(size=rows) for label in range(labels)], 1)
    settings = {
        "tree_method": "hist",
        "multi_strategy": "multi_output_tree",
        "max_depth": 4,
        "base_score": [0.5, -1.0, 2.0][:labels],
        "disable_default_eval_metric": 1,
        "nthread": 1,
    }
    made = xgboost.train(
        settings,
        xgboost.DMatrix(x, label=y),
        rounds,
        obj=lambda found, _: (found - y, np.ones_like(found)),
    )
    return made, x


@pytest.fixture(scope="module")
def made():
    found = [booster(seed=seed) for seed in (0, 1)]
    return [one for one, _ in found], found[0][1], [bytes(one.save_raw("ubj")) for one, _ in found]


def test_outputs_are_those_of_xgboost(made):
    boosters, x, files = made
    trees = Trees(files, labels=3, channels=5)
    wanted = np.mean([one.predict(xgboost.DMatrix(x), output_margin=True) for one in boosters], 0)
    found = trees(torch.from_numpy(x))
    np.testing.assert_allclose(found["mu"].numpy(), wanted, atol=2e-6)
    assert not found["logvar"].any()
    for other in (copy.deepcopy(trees), pickle.loads(pickle.dumps(trees)), trees.double()):
        np.testing.assert_allclose(other(torch.from_numpy(x).double())["mu"].numpy(), wanted, atol=2e-6)


def test_importances_are_the_mean_gains_of_xgboost(made):
    boosters, _, files = made
    found = Trees(files[:1], labels=3, channels=5).importances
    gains = boosters[0].get_score(importance_type="gain")
    wanted = np.array([gains.get(f"f{column}", 0.0) for column in range(5)])
    np.testing.assert_allclose(found, wanted / wanted.sum(), rtol=1e-5)


def test_decoded_files_are_what_xgboost_writes_as_json(made):
    import json

    raw = json.loads(made[0][0].save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    for mine, theirs in zip(read_ubjson(made[2][0])["learner"]["gradient_booster"]["model"]["trees"], raw):
        for name in ("left_children", "right_children", "split_indices", "split_conditions", "leaf_weights"):
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-6, atol=1e-40)


def test_categories_become_indicators(made):
    x = torch.tensor([[0.5, 2.0, 7.0], [0.5, float("nan"), 7.0], [0.5, 9.0, 7.0]])
    found = indicators(x, {1: 3})
    assert found[0].tolist() == [0.5, 0, 0, 1, 7]
    assert found[2].tolist() == [0.5, 0, 0, 0, 7]
    assert found[1].isnan().tolist() == [False, True, True, True, False]
    trees = Trees(made[2][:1], labels=3, channels=3, categories={1: 3})
    plain = Trees(made[2][:1], labels=3, channels=5)
    assert torch.equal(trees(x)["mu"], plain(found)["mu"])


@pytest.mark.parametrize(
    ("labels", "channels", "message"),
    [(4, 5, "5 columns and 3 labels; expected 5 and 4"), (3, 6, "5 columns and 3 labels; expected 6 and 3")],
)
def test_trees_of_another_table_are_refused(made, labels, channels, message):
    with pytest.raises(DataError, match=message):
        Trees(made[2], labels=labels, channels=channels)


def test_rows_of_another_width_are_refused(made):
    with pytest.raises(DataError, match=r"rows of 5 columns, got inputs of shape \[2, 4\]"):
        Trees(made[2], labels=3, channels=5)(torch.zeros(2, 4))


def test_damaged_files_are_refused_or_give_finite_numbers(made):
    """Cuts, flipped bytes and large lengths: an error of data, or trees that predict; never a crash."""
    rng, file = np.random.default_rng(0), made[2][0]
    x, refused = torch.from_numpy(made[1][:5]), 0
    for case in range(600):
        data = bytearray(file)
        if case % 3 == 0:
            data = data[: rng.integers(len(data))]
        else:
            for _ in range(rng.integers(1, 4)):
                data[rng.integers(len(data))] = rng.integers(256)
        try:
            mu = Trees([bytes(data)], labels=3, channels=5)(x)["mu"]
        except DataError as error:
            refused += "not trees that XGBoost wrote for this model" in str(error)
        else:
            assert bool(mu.isfinite().all())
    assert refused > 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "1 bytes expected at 0"),
        (b"[$d#L\x00\x00\x00\x7f\xff\xff\xff\xff", "a length of"),
        (b"[" * 100, "more than 32 levels"),
        (b"Zx", "bytes after the end"),
        (b"{i\x01aQ}", "no kind 'Q'"),
    ],
)
def test_ubjson_within_bounds(data, message):
    with pytest.raises(ValueError, match=message):
        read_ubjson(data)


def test_a_forged_file_that_is_well_formed_is_read():
    """The control of the next test: the same writer, without a fault."""
    trees = Trees([trees_file([complete_tree(3, 4)] * 2, 4, 3)], labels=4, channels=3)
    assert trees(torch.zeros(2, 3))["mu"].tolist() == [[2.0] * 4] * 2


_MANY = 2_000_000
FORGED = {
    "leaves that share a row": (lambda: trees_file([complete_tree(12, 5_000, rows=1)], 5_000, 3), "leaves"),
    "two parents": (lambda: trees_file([_with_two_parents()], 4, 3), "children that make no tree"),
    "too deep": (lambda: trees_file([_chain(65)], 4, 3), "more than 64 levels"),
    "empty lists": (lambda: trees_file(b"[" + b"[]" * (_MANY // 2) + b"]", 4, 3), "too many values"),
    "empty objects": (lambda: trees_file(b"[" + b"{}" * (_MANY // 2) + b"]", 4, 3), "too many values"),
    "nulls": (lambda: trees_file(b"[" + b"Z" * _MANY + b"]", 4, 3), "too many values"),
    "a long intercept": (
        lambda: trees_file([], 4, 3, base_score="[" + "1," * _MANY + "1]"),
        "an intercept of 4,000,003 characters",
    ),
    "a deep intercept": (
        lambda: trees_file([], 4, 3, base_score="[" * 200),
        "recursion|no intercept|Expecting",
    ),
    "a long number": (lambda: trees_file([], 4, 3, num_feature="9" * _MANY), "9999 columns and 4 labels"),
}


def _with_two_parents():
    tree = complete_tree(2, 4)
    tree["right_children"][0] = 1  # both children of the root are node 1
    return tree


def _chain(levels):
    """A tree whose left children are leaves, and whose right children continue."""
    tree = complete_tree(1, 4)
    inner = np.arange(levels)
    left = np.stack([2 * inner + 1, np.full(levels, -1)], 1).ravel()
    right = np.stack([2 * inner + 2, inner], 1).ravel()
    tree["left_children"] = np.append(left, -1).astype("i4")
    tree["right_children"] = np.append(right, levels).astype("i4")
    for name in ("split_indices", "default_left", "split_type", "split_conditions", "loss_changes"):
        tree[name] = np.zeros(2 * levels + 1, tree[name].dtype)
    return tree | {"leaf_weights": np.ones(4 * (levels + 1), "f4")}


@pytest.mark.parametrize("name", FORGED)
def test_forged_files_cost_what_they_hold(name):
    """Well-formed UBJSON that would take many times its size, or a message as long as the file."""
    make, message = FORGED[name]
    data = make()

    def read():
        with pytest.raises(DataError, match=message) as caught:
            Trees([data], labels=5_000 if "share" in name else 4, channels=3)
        assert len(str(caught.value)) < 300

    assert peak_of(read) < 100 + 5 * len(data) / 1e6


@pytest.mark.slow
def test_many_trees_take_no_more_memory_than_few():
    """10,000 trees and 8,000 rows are 640 MB of places alone; nodes are held for some rows at a time."""
    trees = Trees([trees_file([complete_tree(0, 2)] * 10_000, 2, 3)], labels=2, channels=3)
    x = torch.zeros(8_000, 3)
    assert peak_of(lambda: trees(x)) < 300
    assert torch.equal(trees(x)["mu"], torch.full((8_000, 2), 10_000.0))
