"""Intervals, tests, claims and times from made-up cells, against naive arithmetic and scipy."""

import csv
import io

import numpy as np
import pytest
from scipy import stats

from gaussianmlr import DataError, metrics
from gaussianmlr.metrics.paired import crossed_t, holm
from gaussianmlr.paper import pairs
from gaussianmlr.paper.cells import Cell, read_cells, write_cell
from gaussianmlr.paper.claims import claims_of
from gaussianmlr.paper.claims_page import BEGIN, END, fill_page, to_markdown
from gaussianmlr.paper.evidence import Evidence
from gaussianmlr.paper.plans import SIX
from gaussianmlr.paper.tables import make_table, to_csv
from gaussianmlr.paper.tables import to_markdown as table_text
from gaussianmlr.paper.times import seconds_of
from gaussianmlr.paper.values import Values, measured, measures_of, read_values, thinned, write_values

COUNT = 120


def made_up(seed, noise, count=COUNT):
    """Scores that follow the ranks of the same instances, more or less."""
    ranks = np.random.default_rng(0).integers(0, 4, (count, 6)).astype(np.int16)
    scores = ranks - 0.5 + noise * np.random.default_rng(seed + 1).normal(size=ranks.shape)
    return Values(scores.astype(np.float32), ranks)


def facts_of(values, **more):
    found = {name: round(100 * value, 4) for name, value in measured(values).items()}
    return {"metrics": found, "images_seen": 64_000, "seconds": 640.0, **more}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The strong methods on gray-s with three seeds, worse from method to method; and one bare cell."""
    place = tmp_path_factory.mktemp("cells")
    for number, method in enumerate(("gmlr", "crpc", "lsep")):
        for seed in range(3):
            values = made_up(10 * number + seed, 0.4 + 0.3 * number)
            write_cell(place, Cell("gray-s", method, "strong", "cpu", seed), facts_of(values), values)
    bare = {"metrics": dict.fromkeys(("tau_b", "spearman_rho", "gamma", "f1"), 60.0), **{}}
    bare["metrics"] |= {"hamming_loss": 5.0, "max1_error": 1.0}
    write_cell(place, Cell("gray-s", "gmlr", "weak", "cpu"), {**bare, "images_seen": 1, "seconds": 1.0})
    return place


@pytest.fixture(scope="module")
def evidence(folder):
    return Evidence(read_cells(folder), folder)


def test_short_scores_have_the_metrics_of_the_long_ones(tmp_path):
    values = made_up(0, 0.5, 3000)
    close = values.scores.copy()
    close[::7, 1] = close[::7, 0] * np.float32(1 + 2e-7)  # shorter ones would tie
    close[5] = [1e-30, -1e-30, 0, 1e30, -1e38, 3e38]
    values = Values(close, values.ranks)
    facts = {"values": write_values(tmp_path / "one.npz", values)}
    back = read_values(tmp_path, facts)
    assert measured(back) == measured(values)
    np.testing.assert_allclose(back.scores, close, rtol=6e-4)
    assert (back.scores[::7] == close[::7]).all()
    assert facts["values"]["instances"] == 3000
    long = tmp_path / "long.npz"
    np.savez_compressed(long, scores=close, ranks=values.ranks)
    assert (tmp_path / "one.npz").stat().st_size < 0.75 * long.stat().st_size
    assert thinned(np.float32([[np.inf, -np.inf]])).tolist() == [[np.inf, -np.inf]]
    with pytest.raises(DataError, match="cannot be read"):
        read_values(tmp_path / "elsewhere", facts)
    assert read_values(tmp_path, {}) is None


def test_measures_are_ratios_of_sums():
    values = made_up(3, 0.8)
    found = {name: above.sum() / below.sum() for name, (above, below) in measures_of(values).items()}
    known = metrics.evaluate(values.scores, values.ranks)
    known["f1_instance"] = metrics.f1(values.scores, values.ranks, average="instance")
    known["positives_tau"] = metrics.positives_tau(values.scores, values.ranks)
    assert found == pytest.approx(known)


def test_intervals_of_a_table(evidence):
    rows = list(
        csv.DictReader(io.StringIO(to_csv(make_table("gray", evidence.landed, "cpu", evidence=evidence))))
    )
    named = {(row["dataset"], row["method"], row["supervision"], row["metric"]): row for row in rows}
    for metric in ("tau_b", "f1", "positives_tau"):
        row = named["gray-s", "gmlr", "strong", metric]
        assert float(row["low"]) < float(row["ours"]) < float(row["high"])
        assert row["seeds"] == "3"
    tau = [metrics.kendall_tau_b(*_parts(made_up(seed, 0.4)), reduction="none") for seed in range(3)]
    each = 100 * np.mean(tau, axis=0)
    width = float(named["gray-s", "gmlr", "strong", "tau_b"]["high"]) - float(
        named["gray-s", "gmlr", "strong", "tau_b"]["low"]
    )
    assert width == pytest.approx(2 * 1.96 * each.std(ddof=1) / np.sqrt(COUNT), rel=0.15)
    assert named["gray-s", "gmlr", "weak", "tau_b"]["low"] == ""
    text = table_text(make_table("gray", evidence.landed, "cpu", evidence=evidence))
    assert "| 95 % | [" in text
    assert "1 of the 4 rows that ran are from before cells kept per-instance values" in text


def _parts(values):
    return values.scores, values.ranks


def test_all_pairs_of_a_data_set(evidence):
    found = [one for one in pairs.differences(evidence, "cpu") if one.metric == "tau_b"]
    assert len(found) == 3
    known = {}
    for one in found:
        tables = []
        for seed in range(3):
            mine, theirs = (
                metrics.kendall_tau_b(
                    *_parts(made_up(10 * number + seed, 0.4 + 0.3 * number)), reduction="none"
                )
                for number in (("gmlr", "crpc", "lsep").index(cell.method) for cell in (one.one, one.other))
            )
            tables.append(100 * (mine - theirs))
        known[one.one.method, one.other.method] = crossed_t(tables)
        assert one.seeds == 3
        assert one.test.p == pytest.approx(known[one.one.method, one.other.method].p, rel=1e-6)
    adjusted = holm([test.p for test in known.values()])
    assert [one.adjusted for one in found] == pytest.approx(list(adjusted))
    text = pairs.to_markdown(evidence, "cpu")
    assert "### gray-s" in text
    assert "before cells kept per-instance values: gray-s: GaussianMLR weak." in text
    assert len(pairs.to_csv(evidence, "cpu").splitlines()) == 1 + 3 * len(pairs.METRICS)


def test_cells_of_other_instances_are_not_paired(folder, tmp_path):
    one, other = (Cell("gray-s", method, "strong", "cpu") for method in ("gmlr", "crpc"))
    values = made_up(0, 0.4)
    write_cell(tmp_path, one, facts_of(values), values)
    moved = Values(values.scores, np.roll(values.ranks, 1, 0))
    write_cell(tmp_path, other, facts_of(moved), moved)
    evidence = Evidence(read_cells(tmp_path), tmp_path)
    assert evidence.compare(one, other, "tau_b") is None
    assert list(pairs.differences(evidence, "cpu")) == []


def test_standings_count_sets_that_all_methods_ran_on():
    landed = {}
    random = np.random.default_rng(0)
    table = {}
    for dataset in pairs.NINE[:5]:
        table[dataset] = random.uniform(50, 99, 3)
        for (method, supervision), value in zip(SIX[3:], table[dataset]):
            landed[Cell(dataset, method, supervision, "cpu")] = {"metrics": {"tau_b": value}}
    landed.pop(Cell(pairs.NINE[4], "lsep", "strong", "cpu"))
    (found,) = pairs.standings(Evidence(landed), "cpu", "tau_b")
    assert found.sets == pairs.NINE[:4]
    naive = np.mean([stats.rankdata(-table[name]) for name in found.sets], axis=0)
    np.testing.assert_allclose(found.found.ranks, naive)


def cell_with(tau, dataset="gray-s", method="gmlr", supervision="strong", hl=1.0, **more):
    return Cell(dataset, method, supervision, "cpu"), {"metrics": {"tau_b": tau, "hamming_loss": hl}, **more}


def verdicts(cells):
    return {claim.title: claim.verdict for claim in claims_of(Evidence(dict(cells)))}


def probe(linearity, monotonicity=0.99, drift=0.01, follows=0.9, high=2.0):
    variance = {"follows": follows, "low": 1.0, "high": high}
    both = {"linearity": linearity, "monotonicity": monotonicity, "drift": drift, "variance": variance}
    return {"probes": {"adjusting": {"shown": "canonical", "raw": both, "canonical": both}}}


def test_verdicts_follow_the_cells():
    assert set(verdicts([]).values()) == {"untested"}
    order = "GaussianMLR is at least LSEP"
    ahead = [cell_with(90 + i / 9, name) for i, name in enumerate(pairs.NINE)]
    behind = [cell_with(88 + i / 7, name, "lsep") for i, name in enumerate(pairs.NINE)]
    assert verdicts([*ahead, *behind])[order] == "confirmed"
    turned = [
        (cell.at(method={"gmlr": "lsep", "lsep": "gmlr"}[cell.method]), facts)
        for cell, facts in [*ahead, *behind]
    ]
    assert verdicts(turned)[order] == "refuted"
    noise = [cell_with(90 + (-1) ** i, name, "lsep") for i, name in enumerate(pairs.NINE)]
    assert verdicts([*[cell_with(90, name) for name in pairs.NINE], *noise])[order] == "level"
    weak = [cell_with(60, supervision="weak"), cell_with(90)]
    assert verdicts(weak)["Strong beats weak"] == "confirmed"
    assert verdicts([cell_with(95, supervision="weak"), cell_with(90)])["Strong beats weak"] == "in part"


@pytest.mark.parametrize(
    ("numbers", "straight", "constant", "variance"),
    [
        ({"linearity": 0.995}, "confirmed", "confirmed", "confirmed"),
        ({"linearity": 0.95}, "in part", "confirmed", "confirmed"),
        ({"linearity": 0.7, "monotonicity": 0.8, "drift": 0.2}, "refuted", "in part", "confirmed"),
        ({"linearity": 0.995, "follows": -0.5}, "confirmed", "confirmed", "refuted"),
        ({"linearity": 0.995, "high": 0.5}, "confirmed", "confirmed", "in part"),
    ],
)
def test_verdicts_on_probes(numbers, straight, constant, variance):
    found = verdicts([cell_with(90, **probe(**numbers))])
    assert found["Scores are proportional to the significance"] == straight
    assert found["A constant digit keeps its score"] == constant
    assert found["Higher significance, higher variance"] == variance


def test_real_data_needs_more_than_noise_and_the_papers_split_counts_most():
    def cells(dataset, gaps):
        for seed, gap in enumerate(gaps):
            for method, tau in (("gmlr", 80 + gap), ("crpc", 80.0), ("lsep", 80.0)):
                cell = Cell(dataset, method, "strong", "cpu", seed)
                yield cell, {"metrics": {"tau_b": tau, "hamming_loss": 5.0}}

    title = "GaussianMLR is ahead on real data"
    assert verdicts(cells("nsid", [1.0, 1.1, 0.9, 1.0, 1.2]))[title] == "confirmed"
    assert verdicts(cells("nsid", [1.0, -1.1, 0.9, -1.0, 0.4]))[title] == "level"
    both = [*cells("nsid", [1.0, 1.1, 0.9]), *cells("nsid-test", [-1.0, -1.1, -0.9])]
    assert verdicts(both)[title] == "refuted"


def test_losses_are_compared_at_the_seeds_that_both_have():
    own = ("method_settings.balance=parts",)
    cells = {}
    for seed, (ours, theirs) in enumerate([(90.0, 80.0), (91.0, 82.5), (70.0, None)]):
        cell = Cell("gray-s", "gmlr", "strong", "cpu", seed)
        cells[cell] = {"metrics": {"tau_b": ours, "hamming_loss": 1.0 + seed}}
        if theirs is not None:
            cells[cell.at(settings=own)] = {"metrics": {"tau_b": theirs, "hamming_loss": 3.0 + seed}}
    text = to_markdown(Evidence(cells), "cpu")
    assert "| gray-s | 2 | 81.25 | 90.50 | 3.50 | 1.50 |" in text
    assert "| gray-b | 0 | not run | not run | not run | not run |" in text


def test_claims_name_what_was_not_run():
    text = to_markdown(Evidence(dict([cell_with(90)])), "cpu")
    assert "| gray-s | both, with the paper's linear head | not run | not run |" in text
    page = f"# A page\n{BEGIN}\nold\n{END}\nrest\n"
    filled = fill_page(page, text)
    assert filled.startswith("# A page\n")
    assert filled.endswith("rest\n")
    assert fill_page(filled, text) == filled
    with pytest.raises(DataError, match="the page has no lines"):
        fill_page("# A page", text)


def test_times_come_from_the_cells_most_alike():
    def ran(*words, seconds, images=64_000, **more):
        return Cell(*words, "cpu", **more), {"seconds": seconds, "images_seen": images}

    done = dict(
        [
            ran("gray-s", "gmlr", "strong", seconds=600.0),
            ran("gray-b", "gmlr", "strong", seconds=800.0),
            ran("gray-s", "crpc", "strong", seconds=1000.0),
            ran("color-s", "gmlr", "strong", seconds=1600.0),
            ran("nsid", "gmlr", "strong", seconds=90.0, images=255_840),
        ]
    )
    assert seconds_of(Cell("gray-s", "gmlr", "strong", "cpu", seed=1), done) == 600.0
    assert seconds_of(Cell("gray-s", "gmlr", "strong", "cpu", images=128_000), done) == 1200.0
    assert seconds_of(Cell("gray-s-mix", "gmlr", "weak", "cpu"), done) == 700.0
    assert seconds_of(Cell("color-b", "crpc", "strong", "cpu"), done) == 1600.0
    assert seconds_of(Cell("nsid", "crpc", "weak", "cpu"), done) == 90.0
    assert seconds_of(Cell("gray-s", "gmlr", "strong", "paper"), done) is None
