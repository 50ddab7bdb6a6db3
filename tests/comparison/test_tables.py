"""Tables and verdicts of a comparison: parsed back, against numpy and scipy."""

import csv
import io
import itertools
import json
import math
import re

import numpy as np
import pytest
from scipy import stats

from gaussianmlr.comparison.cells import Cell
from gaussianmlr.comparison.plot import ComparisonDisplay
from gaussianmlr.comparison.tables import to_csv, to_latex, to_markdown
from gaussianmlr.comparison.verdict import Comparison
from gaussianmlr.errors import DataError
from gaussianmlr.metrics.paired import holm

METRICS = ("tau_b", "spearman_rho", "gamma", "hamming_loss", "max1_error", "f1")


def make(levels, runs=4, *, one_test=False, noise=0.01, instances=30, without_ece=(), data="a_b.csv"):
    """A comparison whose contenders have given levels of tau-b, with the runs' noise in common."""
    generator = np.random.default_rng(0)
    shared = generator.normal(size=(runs, instances)) * 0.2
    cells = []
    for name, level in levels.items():
        method, _, supervision = name.partition(":")
        for run in range(runs):
            each = level + shared[run] * (not one_test) + noise * generator.normal(size=instances)
            metrics = {metric: float(generator.random()) for metric in METRICS}
            metrics |= {"tau_b": float(each.mean())}
            if name not in without_ece:
                metrics["ece"] = float(generator.random())
            sizes = {"train": 90, "validation": 30, "test": instances}
            cells.append(
                Cell(name, method, supervision or "strong", run, None, metrics, each.tolist(), 1.0, sizes,
                     versions={"torch": "2"})
            )  # fmt: skip
    return Comparison(data, tuple(levels), tuple(cells), one_test)


@pytest.fixture
def three():
    return make({"lsep:weak": 0.3, "gm_lr:strong": 0.6, "d|ummy": 0.1}, without_ece=("d|ummy",))


def wanted(comparison, name, metric):
    values = [100 * cell.metrics[metric] for cell in comparison.cells if cell.contender == name]
    return f"{np.mean(values):.2f}", f"{np.std(values, ddof=1):.2f}"


def best(comparison, metric):
    pick = min if metric in ("hamming_loss", "max1_error", "ece") else max
    means = {
        name: float(wanted(comparison, name, metric)[0])
        for name in comparison.contenders
        if metric in comparison.of(name)[0].metrics
    }
    return pick(means, key=means.get)


def test_markdown_parses_back(three):
    text = to_markdown(three)
    table = [line for line in text.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]
    assert {len(row) for row in table} == {9}
    assert table[0][1:8] == [
        "tau-b ↑", "rho ↑", "gamma ↑", "Hamming loss ↓", "Max-1 error ↓", "F1 ↑", "calibration error ↓"
    ]  # fmt: skip
    assert [row[0].replace("\\", "") for row in table[2:]] == ["gm_lr:strong", "lsep:weak", "d|ummy"]
    for row in table[2:]:
        name = row[0].replace("\\", "")
        for metric, cell in zip((*METRICS, "ece"), row[1:8]):
            if metric == "ece" and name == "d|ummy":
                assert cell == "-"
                continue
            assert cell.strip("*").split(" ± ") == list(wanted(three, name, metric))
            assert cell.startswith("**") == (name == best(three, metric))
    assert table[2][8] == "best"
    assert "gm\\_lr:strong wins: its tau-b is better" in text


def printed(text):
    """What LaTeX prints for a text; no character with a meaning may be left without its backslash."""
    words = {
        "backslash": "\\",
        "asciitilde": "~",
        "asciicircum": "^",
        "less": "<",
        "greater": ">",
        "bar": "|",
    }
    assert not re.search(r"(?<!\\)[&%$#_~^<>|]", text)
    return re.sub(
        r"\\text([a-z]+)\{\}|\\([&%$#_{}])", lambda found: words[found[1]] if found[1] else found[2], text
    )


def test_every_character_survives_escaping():
    name = r"a\b~c^d<e>f|g&h%i$j#k_l{m}n*o`p[q]"
    found = make({name: 0.6, "b": 0.3}, data=f"{name}.csv")
    row = to_latex(found).split(r"\midrule")[1].strip().splitlines()[0]
    assert printed(row.partition(" & $")[0]) == name
    assert printed(re.search(r"\\caption\{(.*?): ", to_latex(found))[1]) == f"{name}.csv"
    title, *_, row = to_markdown(found).partition(f"| ---:{' | ---:' * 7} |\n")
    cell = re.split(r"(?<!\\)\|", row)[1].strip()
    for shown in (title.partition("\n")[0].removeprefix("# Comparison on ").removesuffix(".csv"), cell):
        assert re.sub(r"\\([\\|*_`<\[&~])", r"\1", shown) == name
        assert not re.search(r"[|*_`<\[&~]", re.sub(r"\\.", "", shown))


def test_latex_parses_back(three):
    text = to_latex(three)
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip()
    rows = [line.removesuffix(r" \\").split(" & ") for line in body.splitlines()]
    assert {len(row) for row in rows} == {9}
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", text)
    assert len(columns[1]) == 9
    assert [row[0] for row in rows] == [r"gm\_lr:strong", "lsep:weak", r"d\textbar{}ummy"]
    for row in rows:
        name = printed(row[0])
        for metric, cell in zip((*METRICS, "ece"), row[1:8]):
            if metric == "ece" and name == "d|ummy":
                assert cell == "--"
                continue
            found = re.fullmatch(r"\$(\\mathbf\{)?([\d.]+)\}? \\pm ([\d.]+)\$", cell)
            assert (found[2], found[3]) == wanted(three, name, metric)
            assert (found[1] is not None) == (name == best(three, metric))
    assert r"a\_b.csv" in text
    assert text.count("{") == text.count("}")
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert text.replace(r"\$", "").count("$") % 2 == 0


def test_csv_parses_back(three):
    rows = list(csv.DictReader(io.StringIO(to_csv(three))))
    assert len(rows) == 20  # seven metrics of two, six of one
    for row in rows:
        mean, std = wanted(three, row["contender"], row["metric"])
        assert (f"{float(row['value']):.2f}", f"{float(row['std']):.2f}") == (mean, std)
        assert row["runs"] == "4"
        assert (row["p"] != "") == (row["metric"] == "tau_b" and row["contender"] != "gm_lr:strong")
    assert {(row["method"], row["supervision"]) for row in rows} == {
        ("gm_lr", "strong"), ("lsep", "weak"), ("d|ummy", "strong")
    }  # fmt: skip


def test_a_single_run_has_no_spread():
    found = make({"gmlr:strong": 0.6, "lsep:weak": 0.3}, runs=1, one_test=True)
    assert "±" not in to_markdown(found)
    assert r"\pm" not in to_latex(found)
    assert {row["std"] for row in csv.DictReader(io.StringIO(to_csv(found)))} == {""}
    described = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(described)["contenders"][0]["metrics"]["tau_b"]["std"] is None
    assert "it compares these trained models, not their methods" in found.verdict.test


def test_p_values_are_adjusted_for_all_pairs():
    found = make({"a": 0.50, "b": 0.49, "c": 0.47, "d": 0.30}, runs=6, noise=0.05)
    names, p = list(found.ranking), []
    assert names == ["a", "b", "c", "d"]
    values = {name: np.array([cell.metrics["tau_b"] for cell in found.of(name)]) for name in names}
    for one, other in itertools.combinations(names, 2):
        d = values[one] - values[other]
        t = d.mean() / math.sqrt((1 / 6 + 30 / 120) * d.var(ddof=1))
        p.append(2 * stats.t.sf(abs(t), 5))
    adjusted = holm(p)[:3]  # the first three pairs are those of the best
    assert [one.other for one in found.verdict.against] == ["b", "c", "d"]
    assert [one.adjusted for one in found.verdict.against] == pytest.approx(adjusted)
    assert [one.p for one in found.verdict.against] == pytest.approx(p[:3])


@pytest.mark.parametrize("one_test", [True, False])
def test_verdicts_are_honest(one_test):
    clear = make({"a": 0.6, "b": 0.3, "c": 0.2}, one_test=one_test).verdict
    assert (clear.best, clear.beaten, clear.level) == ("a", ("b", "c"), ())
    assert clear.text() == "a wins: its tau-b is better than that of every other contender beyond noise."
    noise = make({"a": 0.5, "b": 0.5, "c": 0.5}, one_test=one_test, noise=0.3).verdict
    assert noise.beaten == ()
    assert noise.text().startswith(f"No winner: {noise.best} has the largest mean tau-b, but is not better")
    mixed = make({"a": 0.5, "b": 0.5, "c": 0.1}, one_test=one_test, noise=0.05).verdict
    assert mixed.beaten == ("c",)
    assert "It is better beyond noise than c; no clear difference from " in mixed.text()
    assert (
        make({"a": 0.5}, one_test=one_test).verdict.text()
        == "a is the only contender: there is nothing to compare it with."
    )


def test_instances_without_a_known_label_do_not_count():
    found = make({"a": 0.6, "b": 0.3}, one_test=True)
    for cell in found.cells:
        cell.tau_b[3] = None
    assert "4 seeds and 29 test instances" in found.verdict.test
    assert found.difference("a", "b").p < 1e-6


def test_the_picture_shows_the_numbers(three, tmp_path):
    display = ComparisonDisplay.from_comparison(three).plot()
    assert len(display.axes_) == 7
    first = display.axes_[0]
    assert [label.get_text() for label in first.get_yticklabels()] == list(three.ranking)
    drawn = [container.lines[0].get_xdata()[0] for container in first.containers]
    assert drawn == pytest.approx([100 * three.mean(name) for name in three.ranking])
    bars = [container.lines[2][0].get_segments()[0][:, 0] for container in first.containers]
    spread = [100 * three.summary(name, "tau_b").std for name in three.ranking]
    assert [(bar[1] - bar[0]) / 2 for bar in bars] == pytest.approx(spread)
    assert len(display.axes_[6].containers) == 2  # one contender has no probabilities
    display.save(tmp_path / "all.png")
    assert (tmp_path / "all.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_picture_on_axes_of_ones_own(three):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = ComparisonDisplay.from_comparison(three, ["f1"]).plot(ax)
    assert display.figure_ is ax.figure
    assert ax.get_title() == "F1"
    with pytest.raises(DataError, match="expected 7 axes, one per metric, got 1"):
        ComparisonDisplay.from_comparison(three).plot(ax)
    with pytest.raises(DataError, match="no metric 'f2'"):
        ComparisonDisplay.from_comparison(three, ["f2"])
