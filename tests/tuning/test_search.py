"""Searches: what they see, what they repeat, what a kill leaves, what their best recipe is worth."""

import csv
import sqlite3

import numpy as np
import pytest

from gaussianmlr import DataError
from gaussianmlr.comparison.run import compare
from gaussianmlr.data.open import find_data
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.tuning.display import SearchDisplay
from gaussianmlr.tuning.files import measure_once, write_search
from gaussianmlr.tuning.search import Row, tune
from gaussianmlr.tuning.space import applied, space_of
from gaussianmlr.tuning.study import Study
from gaussianmlr.tuning.trials import Score, Trial, Work, measure, searched
from support.commanding import make_table

pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'gaussianmlr[tune]'")

QUICK = Recipe(backbone="mlp", epochs=4, batch_size=32, rate=0.003)
# Easy to beat: almost any rate and number of epochs is better.
WEAK = {
    "recipe": QUICK.replace(epochs=2, rate=3e-4),
    "folds": 2,
    "fixed": ["weight_decay", "batch_size", "head_settings", "backbone_settings"],
}


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "hikes.csv"
    make_table(120).to_csv(file, index=False)
    return file


def trials(found):
    """All of the trials but their time."""
    return [
        {name: value for name, value in row.items() if name != "seconds"} for row in found.to_dict()["trials"]
    ]


def test_no_trial_sees_the_test_rows(table, tmp_path):
    frame = make_table(120)
    frame["id"] = [f"hike {number}" for number in range(120)]  # folds are drawn by ids
    frame.to_csv(table, index=False)
    held = frame["split"] == "test"
    spoiled = frame.copy()
    for column in ("a", "b", "c", "d"):
        spoiled.loc[held, column] = 1e6
    spoiled.loc[held, "ranking"] = frame.loc[held, "ranking"].to_numpy()[::-1]
    assert not spoiled.equals(frame)
    spoiled.to_csv(tmp_path / "spoiled.csv", index=False)
    gone = frame[~held]
    gone.to_csv(tmp_path / "gone.csv", index=False)
    found = {
        name: tune(tmp_path / f"{name}.csv", out=tmp_path / name, recipe=QUICK, trials=3, folds=2)
        for name in ("hikes", "spoiled", "gone")
    }
    assert trials(found["hikes"]) == trials(found["spoiled"]) == trials(found["gone"])
    assert len({row.value for row in found["hikes"].rows}) == 3


def test_a_trial_is_measured_on_folds_as_in_a_comparison(table, tmp_path):
    """The same splits, recipe and seeds give the same tau-b through another door."""
    frame = make_table(90).drop(columns="split")
    frame.to_csv(table, index=False)
    found = tune(table, out=tmp_path / "search", recipe=QUICK, trials=1, folds=3)
    other = compare(table, ["gmlr:strong"], out=tmp_path / "cells", recipe=QUICK, seeds=1, folds=3)
    every = np.concatenate([np.array(cell.tau_b, float) for cell in other.cells])
    assert found.default.value == pytest.approx(every.mean(), abs=1e-6)
    assert found.default.standard_error == pytest.approx(every.std(ddof=1) / np.sqrt(90), abs=1e-6)


def test_the_validation_part_of_the_data_is_what_is_measured_on(table, tmp_path):
    frame = make_table(100)
    frame["split"] = np.repeat(["train", "val", "test", "elsewhere"], [60, 25, 10, 5])
    frame.to_csv(table, index=False)
    seen = searched(find_data(table))
    assert (len(seen), seen.splits) == (85, {"test": 25, "train": 60})
    work = Work(seen, None, 0, {}, "auto", seen.fingerprint(), tmp_path / "runs")
    (source,) = work.parts(QUICK)
    assert (len(source.train), len(source.validation), len(source.test)) == (48, 12, 25)
    assert source.test.ranks.tolist() == find_data(table).subset(np.arange(60, 85)).ranks.tolist()
    with pytest.raises(DataError, match="has its own validation part"):
        tune(table, out=tmp_path / "out", recipe=QUICK, folds=3)


def test_the_best_is_no_worse_than_the_default_which_is_trial_0(table, tmp_path):
    found = tune(table, out=tmp_path / "out", trials=5, **WEAK)
    assert found.rows[0].changes == {}
    assert found.best.value == max(row.value for row in found.rows if row.state == "complete")
    assert found.best.number > 0
    assert f"Best: trial {found.best.number}" in found.verdict()
    write_search(found, tmp_path / "out")
    best = applied(WEAK["recipe"], found.best.changes)
    assert Recipe.read(tmp_path / "out/best.json") == best == found.recipe
    assert set(found.best.changes) == {"rate", "epochs"}
    rows = list(csv.DictReader((tmp_path / "out/trials.csv").read_text().splitlines()))
    assert [float(row["tau_b"]) for row in rows if row["tau_b"]] == [
        row.value for row in found.rows if row.value is not None
    ]
    assert (tmp_path / "out/search.png").read_bytes().startswith(b"\x89PNG")
    with sqlite3.connect(tmp_path / "out/search.db") as base:
        assert base.execute("select count(*) from trials").fetchone() == (5,)


def test_every_default_is_in_its_space(table):
    data = find_data(table)
    for recipe in (
        QUICK.replace(model="auto"),
        QUICK.replace(batch_size=24, weight_decay=0.5, backbone_settings={"width": 100, "depth": 5}),
        QUICK.replace(weight_decay=0.0),  # has no logarithm
        Recipe(backbone="text:minilm", freeze="all", head="linear", head_settings={"dropout": 0.7}),
        Recipe(backbone="fast", fresh=True),
    ):
        for one in space_of(recipe, data):
            inside = one.default in one.choices if one.choices else one.low <= one.default <= one.high
            assert inside, one
            assert applied(recipe, {one.name: one.default})
    names = [one.name for one in space_of(QUICK.replace(model="auto"), data)]
    assert "trees.depth" in names
    assert "trees.depth" not in [one.name for one in space_of(QUICK, data)]
    assert "epochs" not in [one.name for one in space_of(Recipe(fresh=True))]
    assert "weight_decay" not in [one.name for one in space_of(QUICK.replace(weight_decay=0.0))]


def test_bad_trials_are_stopped_and_the_default_never(tmp_path):
    study = Study(tmp_path / "s.db", QUICK, space_of(QUICK))
    stopped = {}
    for number in range(12):
        trial = study.next()
        assert trial.number == number
        value = 0.1 if number in (0, 11) else 0.5 + number / 100
        stopped[number] = study.heard(trial, 0, value)
        study.tell(trial, Score(value, 0.01, [value], 10, 1.0, pruned=stopped[number]))
    assert [number for number, stop in stopped.items() if stop] == [11]


def test_a_trial_that_cannot_be_trained_does_not_end_a_search(table, tmp_path):
    seen = searched(find_data(table))
    work = Work(seen, 2, 0, {}, "auto", seen.fingerprint(), tmp_path)
    wrong = QUICK.replace(label_weights={"moon": 2.0})
    assert "moon" in measure(work, Trial(1, wrong), lambda step, value: False)
    with pytest.raises(DataError, match="moon"):
        measure(work, Trial(0, wrong), lambda step, value: False)


def test_the_test_part_is_looked_at_once_and_last(table, tmp_path):
    found = tune(table, out=tmp_path / "out", trials=3, **WEAK)
    metrics = measure_once(found, find_data(table), tmp_path / "out")
    assert list(metrics) == ["default", "best"]
    assert metrics["best"] != metrics["default"]
    again = tune(table, out=tmp_path / "out", trials=3, **WEAK)
    assert again.rows == found.rows
    with pytest.raises(DataError, match="after a look at the test part no trial may follow"):
        tune(table, out=tmp_path / "out", trials=4, **WEAK)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trials": 0}, "trials is 0; expected 1 or more"),
        ({"timeout": -1.0}, "timeout is -1; expected seconds above 0"),
        ({"folds": 0}, "folds is 0; expected 1 or more"),
        ({"fixed": ["speed"]}, "no field 'speed' in a recipe to be fixed"),
        ({"seed": 1}, "has seed = 0, not 1; choose another folder"),
        ({"recipe": QUICK.replace(batch_size=16)}, "has batch_size = 32, not 16"),
        ({"data": "other.csv"}, "is of other data; choose another folder"),
    ],
)
def test_mistakes_are_said_before_anything_is_trained(table, tmp_path, settings, message):
    make_table(100, seed=5).to_csv(tmp_path / "other.csv", index=False)
    tune(table, out=tmp_path / "out", recipe=QUICK, trials=1, folds=2)
    data = tmp_path / settings.get("data", "hikes.csv")
    given = {"recipe": QUICK, "folds": 2, "trials": 1, **settings}
    given.pop("data", None)
    with pytest.raises(DataError, match=message):
        tune(data, out=tmp_path / "out", **given)


@pytest.mark.slow
def test_a_search_over_ranked_mnist_draws_other_images_to_choose_the_epoch(tmp_path):
    recipe = Recipe(backbone="fast", epochs=1, batch_size=16, backbone_settings={"widths": [8, 16, 16]})
    found = tune("gray-s-small", out=tmp_path, recipe=recipe, trials=2, size=48, digits="embedded")
    assert [row.state for row in found.rows] == ["complete"] * 2
    setting = find_data("gray-s-small")
    source = next(
        Work(setting, None, 0, {"size": 48, "digits": "embedded"}, "auto", _print(setting)).parts(recipe)
    )
    assert (len(source.train), len(source.validation), len(source.test)) == (48, 8, 8)
    assert source.test.split == source.validation.split == "validation"
    assert not (source.test[0][0] == source.validation[0][0]).all()


def _print(setting):
    from gaussianmlr.data.open import open_data

    return open_data(setting, size=48, digits="embedded").fingerprint


def test_a_missing_optuna_is_one_message(tmp_path, monkeypatch):
    monkeypatch.setattr("gaussianmlr._utils.extras.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"needs optuna: pip install 'gaussianmlr\[tune\]'"):
        Study(tmp_path / "s.db", QUICK, space_of(QUICK))


def test_what_is_no_storage_is_refused(tmp_path):
    (tmp_path / "s.db").write_bytes(b"not of SQLite" * 100)
    with pytest.raises(DataError, match=r"s\.db is not the storage of a search"):
        Study(tmp_path / "s.db", QUICK, space_of(QUICK))


def test_the_legend_covers_no_trial():
    values = [0.8, 0.75, 0.82, 0.3, -0.03]
    rows = [Row(number, "complete", value, 0.02, 1.0, {}) for number, value in enumerate(values)]
    display = SearchDisplay([*rows, Row(5, "pruned", None, None, 1.0, {})]).plot()
    display.ax_.figure.draw_without_rendering()
    assert display.ax_.get_legend().get_window_extent().y1 < display.ax_.get_window_extent().y0
