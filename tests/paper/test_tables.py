"""Tables from made-up cells against naive arithmetic; what is missing is said."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gaussianmlr.cli.main import app
from gaussianmlr.paper import pairs
from gaussianmlr.paper.cells import METRICS, Cell, read_cells, recipe_of, write_cell
from gaussianmlr.paper.claims_page import fill_page
from gaussianmlr.paper.claims_page import to_markdown as claims_text
from gaussianmlr.paper.evidence import Evidence
from gaussianmlr.paper.leaderboard import read_submissions, write_leaderboard
from gaussianmlr.paper.plans import TABLES, cells_of
from gaussianmlr.paper.published import published
from gaussianmlr.paper.tables import METHODS, Row, make_table, to_csv, to_latex, to_markdown

ROOT = Path(__file__).parents[2]
RECIPE = {"backbone": "fast", "head": "auto"}


def made_up(seed):
    return dict(zip(METRICS, np.random.default_rng(seed).uniform(0, 100, len(METRICS)).round(4).tolist()))


def facts(metrics, images=64_000):
    return {"metrics": metrics, "images_seen": images, "seconds": 1800.0, "recipe": RECIPE}


@pytest.fixture
def landed(tmp_path):
    """All of gray-s with three seeds, one method of gray-b, a variant; and a cell of another preset."""
    cells = [cell for cell in cells_of("gray", "cpu", seeds=3) if cell.dataset == "gray-s"]
    cells += [
        Cell("gray-b", "lsep", "weak", "cpu"),
        Cell("gray-s", "crpc", "strong", "cpu", reading="vote=published"),
    ]
    cells += [Cell("gray-s", "gmlr", "strong", "cpu", settings=("rate=0.01",))]
    for number, cell in enumerate(cells):
        write_cell(tmp_path / "cells", cell, facts(made_up(number)))
    write_cell(tmp_path / "cells", Cell("gray-s", "gmlr", "strong", "paper"), facts(made_up(999)))
    return tmp_path


def test_means_deviations_and_differences(landed):
    cells = read_cells(landed / "cells")
    rows = list(csv.DictReader(io.StringIO(to_csv(make_table("gray", cells, "cpu", seeds=3)))))
    assert len(rows) == 4 * 6 * 8
    for row in rows:
        values = [
            found["metrics"][row["metric"]]
            for cell, found in cells.items()
            if row["metric"] in found["metrics"]
            and (cell.dataset, cell.method, cell.supervision)
            == (row["dataset"], row["method"], row["supervision"])
            and cell.preset == "cpu"
            and not cell.settings
            and not cell.reading
        ]
        assert int(row["seeds"]) == len(values)
        if not values:
            assert row["ours"] == row["difference"] == ""
            continue
        assert float(row["ours"]) == pytest.approx(np.mean(values), abs=1e-4)
        if len(values) > 1:
            assert float(row["ours_std"]) == pytest.approx(np.std(values, ddof=1), abs=1e-4)
        assert row["low"] == ""  # cells without per-instance values
        assert float(row["difference"]) == pytest.approx(np.mean(values) - float(row["paper"]), abs=1e-3)


def test_fine_tuned_networks_stand_beside_frozen_ones():
    tuned = [cell for cell in cells_of("real", "cpu") if cell.settings]
    assert [(cell.dataset, cell.method, cell.supervision) for cell in tuned] == [
        ("nsid", method, "strong") for method in ("crpc", "lsep", "gmlr")
    ]
    recipe = recipe_of(tuned[0])
    assert (recipe.freeze, recipe.augment, recipe.backbone) == (1, "randaugment", "efficientnet-lite0")
    titles = [row.title for row in make_table("real", {}, "cpu").rows if row.cell.dataset == "nsid"]
    assert titles[-4:] == [
        "GaussianMLR strong",
        "CRPC strong (fine-tuned)",
        "LSEP strong (fine-tuned)",
        "GaussianMLR strong (fine-tuned)",
    ]
    longer = Row(tuned[2].at(settings=(*tuned[2].settings, "rate=0.01")), None, None, 1)
    assert longer.title == "GaussianMLR strong (fine-tuned, rate=0.01)"


def test_what_was_not_run_is_said(landed):
    table = make_table("gray", read_cells(landed / "cells"), "cpu", seeds=3)
    text = to_markdown(table)
    assert "Not run: 17 of 24 rows." in text
    assert "gray-b, LSEP weak: 1 of 3 seeds run." in text
    assert "7 of the 7 rows that ran are from before cells kept per-instance values" in text
    assert text.count("| not run |") > 17
    sections = text.split("## ")
    assert "not run" not in next(part for part in sections if part.startswith("gray-s\n"))
    assert r"not run & not run" in to_latex(table)


def test_the_best_of_ours_is_bold(landed):
    cells = read_cells(landed / "cells")
    table = make_table("gray", cells, "cpu", seeds=3)
    lines = [line for line in to_markdown(table).split("## gray-b")[0].splitlines() if "| ours |" in line]
    strong = [line.split("|")[3:9] for line in lines if " strong " in line]
    for column, sign in enumerate((1, 1, 1, -1, -1, 1)):
        values = [float(row[column].strip(" *").split(" ±")[0]) for row in strong]
        marked = [row[column].strip().startswith("**") for row in strong]
        best = max(range(3), key=lambda index: sign * values[index])
        assert marked == [index == best for index in range(3)]


def test_rivals_hold_readings_and_whatever_was_tried(landed):
    table = make_table("rivals", read_cells(landed / "cells"), "cpu")
    titles = [row.title for row in table.rows]
    assert titles.index("CRPC strong (vote=published)") == titles.index("CRPC strong") + 1
    assert "GaussianMLR strong (rate=0.01)" in titles
    assert "GaussianMLR strong (300,000 images)" in titles
    by_title = {row.title: row for row in table.rows}
    assert by_title["CRPC strong (vote=published)"].paper["tau_b"].mean == 64.09
    assert by_title["RankNet strong"].paper is None


def test_the_papers_numbers():
    """Spot checks of what is printed in each of its tables."""
    assert len(published()) == 78
    for key, metric, mean, std in (
        (("gray", "gray-b", "lsep", "strong"), "tau_b", 93.62, None),
        (("color", "color-s", "gmlr", "strong"), "tau_b", 94.18, None),
        (("small-change", "gray-s-small", "gmlr", "strong"), "f1", 99.52, None),
        (("real", "nsid", "gmlr", "strong"), "tau_b", 75.44, None),
        (("error-bars", "nsid", "gmlr", "strong"), "tau_b", 75.54, 0.4),
        (("error-bars", "avdp", "lsep", "strong"), "max1_error", 28.76, 1.4),
    ):
        assert published()[key][metric][:2] == (mean, std)


def test_tables_from_the_command_line_need_no_training(landed):
    words = ["reproduce", "tables", "--no-train", "--results", str(landed), "--work", str(landed / "runs")]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.exception
    for name in TABLES:
        for suffix in ("md", "tex", "csv"):
            assert (landed / "tables" / f"{name}-cpu.{suffix}").stat().st_size > 0
    real = (landed / "tables/real-cpu.md").read_text()
    assert "Not run: 15 of 15 rows." in real
    assert "not run: avdp_gmlr-strong_cpu_seed0 (give --avdp FOLDER)" in shown.stderr


def test_committed_tables_are_those_of_the_committed_cells(tmp_path):
    cells = read_cells(ROOT / "results/cells")
    evidence = Evidence(cells, ROOT / "results/cells")
    for name in TABLES:
        table = make_table(name, cells, "cpu", evidence=evidence)
        for suffix, write in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
            assert write(table) == (ROOT / f"results/tables/{name}-cpu.{suffix}").read_text("utf-8"), name
    tests = (ROOT / "results/tables/tests-cpu.md").read_text("utf-8")
    assert pairs.to_markdown(evidence, "cpu") == tests
    page = (ROOT / "docs/claims.md").read_text("utf-8")
    assert fill_page(page, claims_text(evidence, "cpu")) == page
    submissions = read_submissions(ROOT / "results/submissions")
    board = write_leaderboard(cells, submissions, tmp_path / "board.md")
    assert board.read_text("utf-8") == (ROOT / "results/leaderboard.md").read_text("utf-8")


def test_settings_are_escaped():
    cell = Cell("gray-s", "gmlr", "strong", "cpu", settings=("method_settings.a={'b#$': 1}|",))
    table = make_table("rivals", {cell: facts(made_up(0))}, "cpu")
    assert r"GaussianMLR strong (a=\{'b\#\$': 1\}\textbar{}) & ours &" in to_latex(table)
    assert r"| GaussianMLR strong (a={'b#$': 1}\|) | ours |" in to_markdown(table)


def _table(page, after):
    """The rows of a page's table whose head ends with a text."""
    text = (ROOT / page).read_text("utf-8").partition(after)[2].partition("\n\n")[0]
    return [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def _shown(facts):
    return [f"{facts['metrics'][name]:.2f}" for name in ("tau_b", "hamming_loss", "f1")]


RESULTS = "docs/results.md"


def test_the_page_of_results_tells_what_cells_hold():
    """Every row of its tables of Ranked MNIST is a cell beside the paper's number."""
    cells, paper = read_cells(ROOT / "results/cells"), published()
    sets = _table(RESULTS, "| GaussianMLR: tau-b | Hamming loss | F1 | CRPC: tau-b | LSEP: tau-b |")
    assert len(sets) >= 8
    for name, best, *ours in sets:
        dataset, images = name.split(" ")[0].strip(","), re.search(r"([\d,]+) images", name)
        images = None if images is None else int(images[1].replace(",", ""))
        assert ours[:3] == _shown(cells[Cell(dataset, "gmlr", "strong", "cpu", images=images)]), name
        for method, shown in zip(("crpc", "lsep"), ours[3:], strict=True):
            rival = cells.get(Cell(dataset, method, "strong", "cpu", images=images))
            assert shown == ("" if rival is None else _shown(rival)[0]), (name, method)
        printed = [row["tau_b"].mean for (_, one, _, _), row in paper.items() if one == dataset]
        assert best == f"{max(printed):.2f}", name
    methods = _table(RESULTS, "| ours: tau-b | Hamming loss | F1 |")
    assert len(methods) >= 3
    for name, printed, *ours in methods:
        method = {title: method for method, title in METHODS.items()}[re.split(",| with", name)[0]]
        assert ours == _shown(cells[Cell("gray-s", method, "strong", "cpu")]), name
        known = paper.get(("gray", "gray-s", method, "strong"))
        assert printed == (f"{known['tau_b'].mean:.2f}" if known else ""), name
    for dataset, head, count in (
        ("nsid-test", "| NSID, the paper's split: 400 test images, five seeds |", 6),
        ("nsid", "| NSID, cross-validated on its 1,599 training images, five seeds |", 3),
    ):
        rows = _scenes(cells, dataset)
        ours = [row for row in _table(RESULTS, head) if re.match(r"(GaussianMLR|CRPC|LSEP) ", row[0])]
        assert len(ours) == count
        for name, *shown in ours:
            measured = rows[re.match(r".*? (strong|weak)", name)[0]].ours
            assert measured["tau_b"].seeds == 5, name
            assert shown == [f"{measured[one].mean:.2f}" for one in ("tau_b", "hamming_loss", "f1")], name


def test_the_readme_tells_what_cells_hold():
    cells, paper = read_cells(ROOT / "results/cells"), published()
    scenes = _scenes(cells, "nsid-test")
    names = (ROOT / "README.md").read_text("utf-8").partition("| tau-b, percent |")[2].partition("|\n")[0]
    rows = {row[0]: row[1:] for row in _table("README.md", f"| tau-b, percent |{names}|")}
    assert list(rows) == ["paper's best", "GaussianMLR", "CRPC", "LSEP"]
    datasets = [name.strip().lower() for name in names.split("|")]
    assert len(datasets) == 10
    for place, dataset in enumerate(datasets):
        for title, method in (("GaussianMLR", "gmlr"), ("CRPC", "crpc"), ("LSEP", "lsep")):
            if dataset == "nsid":
                measured = scenes[f"{title} strong"].ours["tau_b"].mean
            else:
                measured = cells[Cell(dataset, method, "strong", "cpu")]["metrics"]["tau_b"]
            assert rows[title][place] == f"{measured:.2f}", (dataset, title)
        known = [row["tau_b"].mean for (_, one, _, _), row in paper.items() if one == dataset]
        assert rows["paper's best"][place] == f"{max(known):.2f}", dataset


def test_the_page_of_significances_tells_what_cells_hold():
    """Linearity along sequences; a star marks the shipped model, where the cell is from before the scale."""
    cells = read_cells(ROOT / "results/cells")
    rows = _table(
        "docs/significance.md",
        "| set | canonical mu | just noticeable differences | LSEP, raw f | CRPC, votes |",
    )
    assert len(rows) == 9
    for name, *shown in rows:
        found = {
            method: cells[Cell(name.strip(" *"), method, "strong", "cpu")]["probes"]["adjusting"]
            for method in ("gmlr", "lsep", "crpc")
        }
        known = [
            found["gmlr"]["canonical"],
            found["gmlr"].get("jnd"),
            *(found[one]["raw"] for one in ("lsep", "crpc")),
        ]
        assert (known[1] is None) == name.endswith("*")
        for one, number in zip(known, shown, strict=True):
            assert one is None or number == f"{one['linearity']:.3f}", name


def test_the_page_of_significances_tells_what_was_measured_on_scenes():
    by_label = json.loads((ROOT / "results/significance/scenes.json").read_text("utf-8"))["models"]
    text = (ROOT / "docs/significance.md").read_text("utf-8")
    head = next(line for line in text.splitlines() if line.startswith("| label | raw mu |"))
    names = [part.strip().replace("CRPC's", "crpc") for part in head.strip("|").split("|")[1:]]
    rows = _table("docs/significance.md", head)
    assert len(rows) == 9
    for label, *shown in rows:
        assert shown == [f"{by_label['preset cpu'][label][name]:.3f}" for name in names], label


def test_the_page_of_ties_tells_what_its_lines_hold():
    """Means over all five folds."""
    files = (ROOT / "results/ties").glob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    rows = _table("docs/ties.md", "| likelihood per pair, tau = 0 with rate -> learned | auto keeps |")
    assert len(rows) == 5
    for title, *shown in rows:
        table, share = re.fullmatch(r"(.+?)(?: \(TF-IDF\))? \((\d+) %\)", title).groups()

        def of(name, key, table=table):
            chosen = [one for one in lines if (one["table"], one["ranker"]) == (table, name)]
            assert sorted(one["fold"] for one in chosen) == [0, 1, 2, 3, 4], (table, name)
            return np.array([one[key] for one in sorted(chosen, key=lambda one: one["fold"])])

        def tau(name, of=of):
            return f"{100 * of(name, 'tau_b').mean():.1f}"

        def beside_first(name, of=of, tau=tau):
            gap = 100 * (of(name, "tau_b") - of("gmlr, tau = 0", "tau_b"))
            return f"{tau(name)} ({gap.mean():+.1f} ± {gap.std(ddof=1) / 5**0.5:.1f})"

        plain, learned = "gmlr, tau = 0", "gmlr, learned"
        likelihood = [f"{of(one, 'likelihood').mean():.3f}" for one in (plain, learned)]
        assert shown == [
            *(tau(plain), beside_first(learned), beside_first("gmlr, rounded")),
            *(tau(one) for one in ("ranknet", "ranknet, Rao-Kupper", "zlpr", "zlpr, Rao-Kupper")),
            tau("pl, exact ties"),
            " / ".join(f"{100 * of(learned, key).mean():.0f}" for key in ("precision", "recall")),
            " -> ".join(likelihood),
            f"{sum(one['gain'] > 0 for one in of(learned, 'ties'))} of 5",
        ], table
        assert int(share) == pytest.approx(100 * of(plain, "true_share").mean(), abs=0.51), table


def _scenes(cells, dataset):
    """Rows of the natural scenes by their titles."""
    table = "nsid-test" if dataset == "nsid-test" else "error-bars"
    return {row.title: row for row in make_table(table, cells, "cpu").rows if row.cell.dataset == dataset}


def _of_estimators(table, ranker):
    """Tau-b of a ranker on one table of results/estimators."""
    text = (ROOT / "results/estimators/README.md").read_text("utf-8").partition(f"\n## {table}\n")[2]
    row = next(line for line in text.splitlines() if line.startswith(f"| {ranker} | "))
    return row.split("|")[3].split("±")[0].strip()


def test_the_sentences_of_the_readme_tell_what_runs_gave():
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    said = text.partition("Why not just sort probabilities?")[2].partition("## More")[0]
    pairs = re.findall(r"(\d+\.\d+) on ([^(]+?) \((?:GaussianMLR )?(\d+\.\d+)\)", said)
    tables = {"emotion6": "emotion6", "features of photographs": "NSID", "Movie": "Movie"}
    assert [name for _, name, _ in pairs] == [*tables]
    for sorted_by_p, name, ours in pairs:
        assert sorted_by_p == _of_estimators(tables[name], "br"), name
        assert ours == _of_estimators(tables[name], "GaussianMLR (network)"), name
    cells = read_cells(ROOT / "results/cells")
    weak = cells[Cell("gray-s", "br", "weak", "cpu")]["metrics"]["tau_b"]
    strong = cells[Cell("gray-s", "gmlr", "strong", "cpu")]["metrics"]["tau_b"]
    assert f"gray-s {weak:.2f} ({strong:.2f})" in said
