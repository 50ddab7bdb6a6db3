"""Comparisons: the same splits for all, nothing learned from the test part, every cell once."""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from filelock import FileLock
from PIL import Image
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.seals import seal, unseal
from gaussianmlr.comparison.participants import Classic, Network, Outcome, contenders_of
from gaussianmlr.comparison.run import compare
from gaussianmlr.data import from_arrays
from gaussianmlr.data.loading import fetch
from gaussianmlr.errors import DataError
from gaussianmlr.model.recipe import Recipe

QUICK = Recipe(backbone="mlp", epochs=2, batch_size=16)


def make_data(count=60, seed=0, **more):
    x = np.random.default_rng(seed).normal(size=(count, 3)) * [1, 10, 100] + [0, 5, -200]
    hidden = (x - [0, 5, -200]) / [1, 10, 100]
    ranks = np.where(hidden > 0, hidden.argsort(1).argsort(1) + 1, 0)
    return from_arrays(x, ranks, **more)


@dataclass
class Spy:
    """Keeps what it is given, and scores by chance."""

    name: str = "spy"
    method: str = "spy"
    supervision: str = "weak"
    tasks: list = field(default_factory=list)

    def describe(self, recipe):
        return {"kind": "spy", "seed": recipe.seed}

    def run(self, task):
        self.tasks.append(task)
        ranks = fetch(task.source.test, list(range(len(task.source.test))))[1]
        scores = torch.from_numpy(np.random.default_rng(len(self.tasks)).normal(size=tuple(ranks.shape)))
        self.last = scores
        return Outcome(scores, None, ranks, 0.5, {})


class Nearest:
    """The order of the nearest training instance."""

    def __init__(self, seed):
        self.seed = seed

    def __repr__(self):
        return "Nearest()"

    def fit(self, X, ranks):
        self.known, self.index = ranks, NearestNeighbors(n_neighbors=1).fit(X)

    def decision_function(self, X):
        distance, where = self.index.kneighbors(X)
        self.least = distance.min()
        return self.known[where[:, 0]]


def rows(part, inputs, data):
    """The numbers of the data's rows that a part holds, found by their values before scaling."""
    raw = part.inputs.numpy() * np.array(inputs["scaling"]["std"]) + np.array(inputs["scaling"]["mean"])
    apart = np.abs(raw[:, None] - data.features).max(2)
    assert (apart.min(1) < 1e-3).all()
    return set(apart.argmin(1).tolist())


@pytest.mark.parametrize("folds", [None, 3])
def test_no_instance_is_learned_from_and_tested_on(tmp_path, folds):
    data, one, other = make_data(), Spy(), Spy("other")
    compare(data, [one, other], out=tmp_path, seeds=2, folds=folds, recipe=QUICK)
    assert len(one.tasks) == 2 * (folds or 1)
    whole = set(range(60))
    tests = []
    for mine, theirs in zip(one.tasks, other.tasks):
        assert mine.recipe == theirs.recipe
        source = mine.source
        parts = [rows(part, source.inputs, data) for part in (source.train, source.validation, source.test)]
        again = theirs.source
        assert parts == [
            rows(part, again.inputs, data) for part in (again.train, again.validation, again.test)
        ]
        assert sum(map(len, parts)) == len(whole)
        assert set.union(*parts) == whole
        # the mean and deviation of columns are those of the part that is trained on
        known = data.features[sorted(parts[0])]
        assert source.inputs["scaling"]["mean"] == pytest.approx(known.mean(0))
        tests.append(parts[2])
    if folds is not None:
        assert set.union(*tests[:folds]) == whole


def test_cells_hold_what_was_measured(tmp_path):
    spy = Spy()
    found = compare(make_data(), [spy], out=tmp_path, seeds=1, recipe=QUICK)
    file = json.loads((tmp_path / "cells" / "spy_seed0.json").read_text())
    ranks = spy.tasks[0].source.test.ranks.numpy()
    scores = np.maximum(spy.last.numpy(), 0)  # what is not predicted relevant ties
    wanted = [stats.kendalltau(*pair).statistic for pair in zip(scores, ranks)]
    assert file["tau_b"] == pytest.approx(np.nan_to_num(wanted))
    assert file["metrics"]["tau_b"] == pytest.approx(np.nan_to_num(wanted).mean())
    assert set(file["metrics"]) == {"tau_b", "spearman_rho", "gamma", "hamming_loss", "max1_error", "f1"}
    assert file["sizes"] == {"train": 38, "validation": 10, "test": 12}
    assert (file["seed"], file["fold"], file["seconds"]) == (0, None, 0.5)
    assert {"gaussianmlr", "torch", "python"} <= set(file["versions"])
    assert found.cells[0].metrics == file["metrics"]


def test_networks_and_classic_rivals(tmp_path):
    classic = Classic("nearest", Nearest)
    said = []
    found = compare(make_data(120), ["gmlr", classic], out=tmp_path, seeds=2, recipe=QUICK, say=said.append)
    assert found.contenders == ("gmlr:strong", "nearest")
    assert len(found.cells) == 4
    assert found.mean("nearest") > 0.4  # it learned, and zero is its threshold
    gmlr = found.of("gmlr:strong")[1]
    assert gmlr.about["recipe"]["method_settings"] == {"supervision": "strong"}
    assert (gmlr.about["recipe"]["seed"], gmlr.facts["epochs"]) == (1, 2)
    assert 0 <= gmlr.metrics["ece"] <= 1
    assert "ece" not in found.cells[1].metrics
    for seed in (0, 1):
        assert len({cell.parts for cell in found.cells if cell.seed == seed}) == 1
    assert len({cell.parts for cell in found.cells}) == 2
    assert said[0].startswith("[1/4] gmlr:strong, seed0: tau-b ")
    assert not (tmp_path / "runs").exists()
    # more contenders and seeds are added; what is there is not trained again
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    more = compare(make_data(120), ["gmlr", classic, Spy()], out=tmp_path, seeds=3, recipe=QUICK)
    after = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert len(more.cells) == 9
    assert before.items() <= after.items()
    assert more.of("gmlr:strong")[:2] == found.of("gmlr:strong")


def test_a_classic_rival_never_meets_its_test_instances(tmp_path):
    made = []

    def make(seed):
        made.append(Nearest(seed))
        return made[-1]

    compare(make_data(), [Classic("nearest", make)], out=tmp_path, seeds=2, recipe=QUICK)
    used = [one.least for one in made if hasattr(one, "least")]
    assert len(used) == 2
    assert min(used) > 1e-6  # an instance it had learned would be at no distance


def test_weights_of_instances_reach_classic_rivals(tmp_path):
    seen = []

    class Weighed(Nearest):
        def fit(self, X, ranks, sample_weight):
            seen.append(sample_weight)
            super().fit(X, ranks)

    data = make_data(weights=np.arange(60) % 3 + 1.0, split=["train"] * 30 + ["val"] * 10 + ["test"] * 20)
    compare(data, [Classic("nearest", Weighed)], out=tmp_path, seeds=1, recipe=QUICK)
    assert seen[0] == pytest.approx([1, 2, 3] * 10 + [2] * 10)


def test_the_classic_rivals_of_tables(tmp_path):
    found = compare(make_data(), ["forest", "neighbours", "dummy"], out=tmp_path, seeds=1, recipe=QUICK)
    assert found.ranking[-1] == "dummy"  # knows nothing of the inputs
    assert found.mean("forest") > found.mean("dummy") + 0.1
    assert all("ece" in cell.metrics for cell in found.cells)
    assert found.cells[0].about == {"kind": "classic", "estimator": "CalibratedRanker(random_state=0)"}
    with pytest.raises(DataError, match="forest takes tables, not pictures"):
        contenders_of(["forest"], tables=False)
    assert not {"forest", "dummy"} & {one.name for one in contenders_of(["all"], tables=False)}


def test_a_cut_training_goes_on_and_ends_the_same(tmp_path):
    data = make_data()
    whole = compare(data, ["gmlr", "lsep"], out=tmp_path / "whole", seeds=1, recipe=QUICK)

    class Cut(Watcher):
        steps = 0

        def step(self, loss):
            self.steps += 1
            if self.steps == 4:  # in the second epoch of the first cell
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(data, ["gmlr", "lsep"], out=tmp_path / "cut", seeds=1, recipe=QUICK, watcher=Cut())
    assert (tmp_path / "cut" / "runs" / "gmlr-strong_seed0" / "checkpoint.pt").exists()
    assert not list((tmp_path / "cut").glob("cells/*"))
    again = compare(data, ["gmlr", "lsep"], out=tmp_path / "cut", seeds=1, recipe=QUICK)
    for mine, theirs in zip(again.cells, whole.cells):
        assert (mine.metrics, mine.tau_b) == (theirs.metrics, theirs.tau_b)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipe": QUICK.replace(epochs=3)}, r"has epochs = 2, not 3; choose another folder"),
        ({"recipe": QUICK.replace(backbone_settings={"width": 8})}, r"has width = None, not 8"),
        ({"data": make_data(seed=1)}, r"is of other data; choose another folder"),
        ({"folds": 3}, r"has folds = None, not 3"),
    ],
)
def test_another_comparison_is_refused(tmp_path, changes, message):
    base = {"data": make_data(), "contenders": [Spy()], "out": tmp_path, "seeds": 1, "recipe": QUICK}
    compare(**base)
    with pytest.raises(DataError, match=message):
        compare(**{**base, **changes})
    compare(**base | {"recipe": QUICK.replace(checkpoint_minutes=1.0)})  # changes no result


def test_folders_that_are_no_comparison(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(DataError, match="is not empty and does not hold a comparison"):
        compare(make_data(), [Spy()], out=tmp_path, recipe=QUICK)
    (tmp_path / "plan.json").write_text("[]")
    (tmp_path / "cells").mkdir()
    with pytest.raises(DataError, match=r"plan.json is not the plan"):
        compare(make_data(), [Spy()], out=tmp_path, recipe=QUICK)


def test_cells_that_were_changed_are_refused(tmp_path):
    again = {
        "data": make_data(),
        "contenders": [Spy(), Spy("b")],
        "out": tmp_path,
        "seeds": 1,
        "recipe": QUICK,
    }
    compare(**again)
    file = tmp_path / "cells" / "spy_seed0.json"
    text = file.read_text()
    file.write_text(text[:-40])
    with pytest.raises(DataError, match=r"spy_seed0.json is not a cell: .* remove it"):
        compare(**again)
    fields = unseal(json.loads(text))
    file.write_text(text.replace('"seed": 0', '"seed": 7', 1))
    with pytest.raises(DataError, match=r"spy_seed0.json is not a cell: its checksum is wrong.* remove it"):
        compare(**again)
    file.write_text(json.dumps(seal(fields | {"parts": "others"})))
    with pytest.raises(DataError, match="are not of the same parts of the data"):
        compare(**again)
    file.write_text(json.dumps(fields | {"seed": 7}))  # cells of the first versions have no checksum
    with pytest.raises(DataError, match="has seed = 7, not 0"):
        compare(**again)


def test_cells_of_before_a_field_was_added_still_count(tmp_path):
    again = {"data": make_data(), "contenders": ["gmlr", "br"], "out": tmp_path, "seeds": 1, "recipe": QUICK}
    first = compare(**again)
    for file in [tmp_path / "plan.json", *(tmp_path / "cells").glob("*.json")]:
        facts = unseal(json.loads(file.read_text()))
        recipe = facts["recipe"] if "recipe" in facts else facts["about"]["recipe"]
        del recipe["later_epochs"]
        file.write_text(json.dumps(facts))
    assert [cell.metrics for cell in compare(**again).cells] == [cell.metrics for cell in first.cells]
    recipe["epochs"] = 9
    file.write_text(json.dumps(facts))
    with pytest.raises(DataError, match="has epochs = 9, not 2; remove it to train it again"):
        compare(**again)


def test_pictures_are_compared_at_the_size_of_the_backbone(tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    lines = ["image,ranking"]
    for number in range(12):
        Image.new("L", (40, 30), 20 * number).save(pictures / f"{number}.png")
        lines.append(f"{number}.png,{'sky > sea' if number % 2 else 'sea'}")
    (pictures / "manifest.csv").write_text("\n".join(lines))
    spy, recipe = Spy(), Recipe(backbone_settings={"widths": [4, 4], "blocks": [1]})
    for out, options, side in (("own", {}, 224), ("said", {"image_size": 32}, 32)):
        compare(pictures, [spy], out=tmp_path / out, recipe=recipe, seeds=1, **options)
        assert fetch(spy.tasks[-1].source.test, [0])[0].shape == (1, 1, side, side)
        opening = json.loads((tmp_path / out / "plan.json").read_text())["opening"]
        assert (opening["image_size"], opening["channels"]) == (side, 1)


def test_a_plan_without_cells_can_be_replaced(tmp_path):
    with pytest.raises(DataError, match="size is for Ranked MNIST"):
        compare(make_data(), [Spy()], out=tmp_path, recipe=QUICK, size=9)
    assert len(compare(make_data(), [Spy()], out=tmp_path, recipe=QUICK, seeds=1).cells) == 1


def test_one_process_a_folder(tmp_path):
    with FileLock(tmp_path / ".lock"), pytest.raises(DataError, match="another process is at work"):
        compare(make_data(), [Spy()], out=tmp_path, recipe=QUICK)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot write to the folder"):
        compare(make_data(), [Spy()], out=tmp_path / "file", recipe=QUICK)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_names_of_contenders():
    names = [one.name for one in contenders_of(["all"])]
    assert {"gmlr:strong", "gmlr:weak", "br:weak", "pl:strong", "forest", "neighbours", "dummy"} <= set(names)
    assert "br:strong" not in names
    assert len(names) == len(set(names))
    found = contenders_of(["gmlr", "gmlr:strong", "gaussianmlr.methods.lsep:Lsep:weak", "crpc:both"], "weak")
    assert [one.name for one in found] == [
        "gmlr:weak",
        "gmlr:strong",
        "gaussianmlr.methods.lsep:Lsep:weak",
        "crpc:strong",
        "crpc:weak",
    ]


@pytest.mark.parametrize(
    ("names", "supervision", "message"),
    [
        (["gmrl"], None, "no contender 'gmrl'; known are br, crpc, gmlr"),
        (["br:strong"], None, "method 'br' takes supervision 'weak', not 'strong'"),
        (["gmlr"], "some", "supervision is 'strong', 'weak' or 'both', not 'some'"),
        (["gmlr:stong"], None, "'gmlr:stong': the supervision is 'strong', 'weak' or 'both', not 'stong'"),
        ([], None, "expected one contender or more"),
    ],
)
def test_contenders_that_there_are_not(names, supervision, message):
    with pytest.raises(DataError, match=message):
        contenders_of(names, supervision)


def test_settings_of_a_method_are_for_that_method_alone():
    recipe = QUICK.replace(method="gmlr", method_settings={"bound": 9.0, "supervision": "strong"})
    settings = [
        Network(*who).describe(recipe)["recipe"]["method_settings"] for who in (("gmlr", "weak"), ("lsep",))
    ]
    assert settings == [{"bound": 9.0, "supervision": "weak"}, {"supervision": "strong"}]
    with pytest.raises(DataError, match="no setting 'bond'"):
        Network("gmlr").describe(recipe.replace(method_settings={"bond": 9.0}))


def test_folds_beside_an_own_test_part(tmp_path):
    data = make_data(split=["train"] * 40 + ["test"] * 20)
    with pytest.raises(DataError, match="has its own test part"):
        compare(data, [Spy()], out=tmp_path / "no", folds=3, recipe=QUICK)
    found = compare(data, [Spy()], out=tmp_path / "yes", seeds=2, recipe=QUICK)
    assert found.one_test
    assert [cell.sizes["test"] for cell in found.cells] == [20, 20]


def test_ranked_mnist_brings_its_own_parts(tmp_path):
    options = {"size": 12, "digits": "embedded"}
    found = compare("gray-s", [Spy()], out=tmp_path, seeds=2, recipe=QUICK, **options)
    assert [cell.sizes for cell in found.cells] == [{"train": 12, "validation": 2, "test": 2}] * 2
    assert found.one_test
    assert found.setup().startswith("gray-s: 2 seeds, the data's own test part")
    with pytest.raises(DataError, match="has size = 12, not 18"):
        compare("gray-s", [Spy()], out=tmp_path, seeds=2, recipe=QUICK, **options | {"size": 18})
    # Digits may have come, or gone, since the first seed was done.
    file = tmp_path / "cells" / "spy_seed0.json"
    file.write_text(json.dumps(seal(unseal(json.loads(file.read_text())) | {"parts": "other digits"})))
    with pytest.raises(DataError, match="not of the same parts"):
        compare("gray-s", [Spy()], out=tmp_path, seeds=2, recipe=QUICK, **options)


@pytest.mark.parametrize("weights", [{"order_weight": 2.0}, {"order_weight": 2.0, "label_weights": {"0": 2}}])
def test_weights_that_a_method_cannot_use_are_refused_before_the_first_is_trained(tmp_path, weights):
    spy = Spy()
    with pytest.raises(DataError, match="order_weight = 2"):
        compare(make_data(), [spy, "gmlr", "br"], out=tmp_path, seeds=1, recipe=QUICK.replace(**weights))
    assert not spy.tasks
    for name in ("gmlr", "lsep", "crpc", "zlpr", "ranknet"):
        Network(name).describe(QUICK.replace(**weights))


def test_many_labels_are_refused_before_the_first_is_trained(tmp_path):
    rng = np.random.default_rng(0)
    data = from_arrays(rng.normal(size=(20, 2)), np.eye(20, 2_000, dtype=int))
    with pytest.raises(DataError, match=r"crpc .* 2,001,000 for 2,000 labels; .* \(1,999 labels\)"):
        compare(data, ["gmlr", "crpc"], out=tmp_path / "out", recipe=Recipe(backbone="mlp", epochs=10_000))
    assert not (tmp_path / "out").exists()
