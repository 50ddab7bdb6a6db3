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
from gaussianmlr.data.ranked_mnist.settings import SETTINGS
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
    """Tau-b of a ranker on one table of results/estimators, in percent: one number per seed from 0 to 4."""
    lines = (ROOT / f"results/estimators/{table.lower()}.jsonl").read_text("utf-8").splitlines()
    runs = [run for run in map(json.loads, lines) if run["ranker"] == ranker and run["seed"] < 5]
    assert sorted(run["seed"] for run in runs) == [*range(5)]
    return np.array([100 * run["metrics"]["tau_b"] for run in runs])


def _tau(cells, dataset, method="gmlr", supervision="strong", **changes):
    return cells[Cell(dataset, method, supervision, "cpu", **changes)]["metrics"]["tau_b"]


def _people():
    """Tau-b of each person against the other nine, as the table of the paper's split prints it."""
    table = (ROOT / "results/tables/nsid-test-cpu.md").read_text("utf-8")
    return re.search(r"People, each against the other nine \(mean of ten\): tau-b (\S+),", table)[1]


def _ahead(cells):
    """How far CRPC is ahead of GaussianMLR over the nine sets."""
    return float(np.mean([_tau(cells, name, "crpc") - _tau(cells, name) for name in SETTINGS]))


def _holds(text, phrases, others=()):
    """A text has all phrases, and no number with decimals besides."""
    text = " ".join(text.split())
    for phrase in phrases:
        assert phrase in text, phrase
        text = text.replace(phrase, "", 1)
    assert {*re.findall(r"\d+\.\d+", text)} <= {*others}


def test_the_sentences_of_the_readme_tell_what_runs_gave():
    cells = read_cells(ROOT / "results/cells")
    sorted_by_p = {
        name: (_of_estimators(table, "br").mean(), _of_estimators(table, "GaussianMLR (network)").mean())
        for name, table in (("emotion6", "emotion6"), ("photographs", "NSID"), ("Movie", "Movie"))
    }
    numbers = {name: tuple(f"{number:.1f}" for number in pair) for name, pair in sorted_by_p.items()}
    (emotion, ours), (photos, our_photos), (movie, our_movie) = numbers.values()
    gray = f"{_tau(cells, 'gray-s', 'br', 'weak'):.2f}", f"{_tau(cells, 'gray-s'):.2f}"
    phrases = [
        f"people agree with one another at {_people()}.",
        f"{_ahead(cells):.2f} ahead over the nine other sets",
        f"{emotion} on emotion6 (GaussianMLR: {ours})",
        f"{photos} on features of photographs ({our_photos})",
        f"{movie} on Movie, where every label applies ({our_movie})",
        f"{gray[0]} on gray-s ({gray[1]})",
        "one seed and a small network that saw 64,000 images",
        "the paper's split, five seeds",
    ]
    text = (ROOT / "README.md").read_text("utf-8")
    _holds(text.partition("## Results")[2].partition("Tau-b is 100")[2], phrases)
    for method in ("gmlr", "crpc", "lsep"):
        seen = {cells[Cell(name, method, "strong", "cpu")]["images_seen"] for name in SETTINGS}
        assert seen == {64_000}, method
    scenes = _scenes(cells, "nsid-test")
    assert all(
        scenes[f"{title} strong"].ours["tau_b"].seeds == 5 for title in ("GaussianMLR", "CRPC", "LSEP")
    )
    for name in SETTINGS:
        recipe = cells[Cell(name, "gmlr", "strong", "cpu")]["recipe"]
        assert recipe["method_settings"]["balance"] == "comparisons", name


def test_which_method_when_tells_what_runs_gave():
    cells, scenes = (
        read_cells(ROOT / "results/cells"),
        _scenes(read_cells(ROOT / "results/cells"), "nsid-test"),
    )
    mean = {
        table: {
            name: f"{_of_estimators(table, ranker).mean():.1f}"
            for name, ranker in (
                ("gmlr", "GaussianMLR"),
                ("network", "GaussianMLR (network)"),
                ("grades", "CatBoost grades"),
                ("constant", "DummyRanker"),
                ("br", "br"),
            )
        }
        for table in ("Painting", "emotion6", "Movie")
    }
    networks = [
        _of_estimators("emotion6", name).mean()
        for name in ("GaussianMLR (network)", "ranknet", "crpc", "lsep", "zlpr", "pl")
    ]
    movie, painting = mean["Movie"], mean["Painting"]
    spread = _of_estimators("Painting", "GaussianMLR").std(ddof=1)
    of_scenes = [
        f"{title} {scenes[f'{title} strong'].ours['tau_b'].mean:.2f}"
        for title in ("GaussianMLR", "LSEP", "CRPC")
    ]
    phrases = [
        f"on Movie ({movie['br']})",
        f"(Movie: {movie['gmlr']}, networks alone {movie['network']}, boosted grades {movie['grades']})",
        f"(emotion6: {min(networks):.1f} to {max(networks):.1f} whatever the loss",
        f"Painting, 224 rows: {painting['gmlr']}, a constant order {painting['constant']}, "
        f"and seeds differ by {spread:.1f}",
        f"{', '.join(of_scenes)}, people {_people()}; the paper's ResNet18 "
        f"{published()[('error-bars', 'nsid', 'gmlr', 'strong')]['tau_b'].mean}",
        f"gray-s: {_tau(cells, 'gray-s'):.2f}, with the paper's linear head "
        f"{_tau(cells, 'gray-s', settings=('head=linear',)):.2f}",
        f"CRPC is {_ahead(cells):.2f} ahead over the nine sets",
        f"gray-s {_tau(cells, 'gray-s', supervision='weak'):.2f} instead of {_tau(cells, 'gray-s'):.2f}",
    ]
    _holds((ROOT / "docs/comparison.md").read_text("utf-8"), phrases)


def test_the_frequent_questions_tell_what_runs_gave():
    scenes = _scenes(read_cells(ROOT / "results/cells"), "nsid-test")
    above = {}
    for table in ("Painting", "emotion6", "NSID"):
        best = _of_estimators(table, "GaussianMLR")
        above[table] = (
            f"{best.mean() - _of_estimators(table, 'DummyRanker').mean():.1f}",
            f"{best.std(ddof=1):.1f}",
        )
    emotion = [_of_estimators("emotion6", name).mean() for name in ("DummyRanker", "GaussianMLR")]
    phrases = [
        f"agree with one another at {_people()}, and our model with them at "
        f"{scenes['GaussianMLR strong'].ours['tau_b'].mean:.2f}",
        f"a constant order has {emotion[0]:.1f} and the best methods {emotion[1]:.1f}",
        f"{above['Painting'][0]} with 224 rows (the table Painting; seeds differ by {above['Painting'][1]})",
        f"{above['emotion6'][0]} with 1,584 rows (emotion6; {above['emotion6'][1]})",
        f"{above['NSID'][0]} with 1,279 photographs and frozen networks ({above['NSID'][1]})",
    ]
    others = ("4.0", "0.9", "0.1")  # a licence, and levels of confidence
    _holds((ROOT / "docs/faq.md").read_text("utf-8"), phrases, others)
