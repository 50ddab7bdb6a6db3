"""`gmlr predict`: every kind of input and output, bad instances among good ones, nothing half-written."""

import io
import itertools
import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from gaussianmlr import DataError
from gaussianmlr.cli.main import app
from gaussianmlr.data.inputs import scaled
from gaussianmlr.data.open import open_data
from gaussianmlr.inference.predict import predict
from gaussianmlr.inference.streams import Bad, Item, stream
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.model import Model, build, load
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.normal import canonical
from gaussianmlr.orders.partial import partial_text
from gaussianmlr.training.fit import fit
from support.commanding import LABELS, gmlr, make_table

COLUMNS = ["a", "b", "c", "d"]


def trained(method, tmp):
    make_table().to_csv(tmp / "table.csv", index=False)
    source = open_data(tmp / "table.csv")
    recipe = Recipe(method=method, backbone="mlp", epochs=8, batch_size=16, rate=0.01)
    fit(recipe, source.train, None, labels=source.labels, inputs=source.inputs, out=tmp / "run")
    return tmp / "run" / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return trained("gmlr", tmp_path_factory.mktemp("gmlr"))


@pytest.fixture
def table(tmp_path):
    frame = make_table(30, seed=9)[COLUMNS]
    frame.insert(0, "id", [f"row {number}" for number in range(30)])
    frame.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


def inside(*arguments, text=None):
    return CliRunner().invoke(app, ["predict", *map(str, arguments)], input=text)


@pytest.mark.slow
def test_rows_through_a_pipe(model, table):
    rows = table.read_text().splitlines()
    rows.insert(5, "odd,1,2,3")
    done = gmlr("predict", model, "-", "--format", "jsonl", "--batch-size", "7", text="\n".join(rows) + "\n")
    assert done.returncode == 1
    assert done.stderr == "skipped 4: 4 cells; expected 5, as in the header\n1 skipped\n"
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["name"] for row in found] == [f"row {number}" for number in range(30)]
    loaded = load(model)
    reading = loaded.read(scaled(pd.read_csv(table)[COLUMNS].to_numpy(), loaded.inputs))
    mu, sigma = canonical(reading.mu, reading.sigma)
    for label, name in enumerate(LABELS):
        assert [row["labels"][name]["significance"] for row in found] == pytest.approx(
            mu[:, label].tolist(), rel=1e-3, abs=1e-4
        )
        assert [row["labels"][name]["sigma"] for row in found] == pytest.approx(
            sigma[:, label].tolist(), rel=1e-4
        )
    for row in found:
        ranked = sorted(LABELS, key=lambda name: -row["labels"][name]["significance"])
        assert row["order"] == " > ".join(name for name in ranked if row["labels"][name]["rank"] > 0)
        assert all((row["labels"][name]["p_relevant"] > 0.5) == (name in row["order"]) for name in LABELS)


def test_every_format_says_the_same(model, table, tmp_path):
    frames = {}
    for form in ("csv", "parquet"):
        done = inside(model, table, "--out", tmp_path / f"found.{form}")
        assert done.exit_code == 0, done.output
        file = tmp_path / f"found.{form}"
        frames[form] = pd.read_csv(file) if form == "csv" else pd.read_parquet(file)
    assert list(frames["csv"].columns[:3]) == ["name", "order", "rank:sea"]
    assert len(frames["csv"].columns) == 2 + 4 * 3
    pd.testing.assert_frame_equal(
        frames["csv"].fillna({"order": ""}), frames["parquet"], check_dtype=False, rtol=1e-5
    )
    lines = inside(model, table).stdout.splitlines()
    read = [[name, order or "(none)"] for name, order in frames["parquet"][["name", "order"]].values.tolist()]
    assert [line.split("\t") for line in lines] == read
    assert "(none)" in {order for _, order in read}
    objects = [json.loads(line) for line in inside(model, table, "--format", "jsonl").stdout.splitlines()]
    assert [row["order"] for row in objects] == frames["parquet"]["order"].tolist()


def test_probabilities_with_and_without_calibration(model, table, tmp_path):
    hot = load(model)
    hot.calibration = Calibration(relevance=1000.0, pairs=2.0)
    hot.save(tmp_path / "hot")
    shown = {}
    for name, arguments in {
        "plain": (model, table),
        "on": (tmp_path / "hot", table),
        "off": (tmp_path / "hot", table, "--uncalibrated"),
    }.items():
        done = inside(*arguments, "--format", "csv")
        assert done.exit_code == 0, done.output
        shown[name] = pd.read_csv(io.StringIO(done.stdout))
    pd.testing.assert_frame_equal(shown["off"], shown["plain"])
    certain = (shown["plain"]["p_relevant:sky"] - 0.5).abs()
    assert ((shown["on"]["p_relevant:sky"] - 0.5).abs() < certain).all()
    assert shown["on"]["order"].equals(shown["plain"]["order"])


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "tsv", "csv.gz", "npz"])
def test_every_kind_of_table(model, table, tmp_path, kind):
    frame, file = pd.read_csv(table), tmp_path / f"again.{kind}"
    if kind == "parquet":
        frame.to_parquet(file, row_group_size=4)
    elif kind == "jsonl":
        frame.to_json(file, orient="records", lines=True, double_precision=15)
    elif kind == "npz":
        np.savez(file, features=frame[COLUMNS].to_numpy())
    else:
        frame.to_csv(file, index=False, sep="\t" if kind == "tsv" else ",")
    wanted = [line.split("\t")[1] for line in inside(model, table).stdout.splitlines()]
    done = inside(model, file)
    assert done.exit_code == 0
    assert [line.split("\t")[1] for line in done.stdout.splitlines()] == wanted


def test_bad_rows_are_named(model):
    rows = ['{"id": 1, "a": 1, "b": 2, "c": 3, "d": 4}', "{", "[1]", '{"a": 1, "b": null, "c": 1, "d": 1}']
    done = inside(model, "-", text="\n".join([*rows, '{"a": 1}', '{"a": NaN}']))
    assert done.exit_code == 1
    assert done.stdout.startswith("1\t")
    for said in (
        "skipped 1: '{' is not JSON",
        "skipped 2: [1]; expected an object",
        "no 'b'",
        "note: column 'b': a gap counts as the mean, since the training rows had none (1 row)",
        "4 skipped",
    ):
        assert said in done.stderr


def test_stopping_leaves_nothing_half_written(model, table, tmp_path):
    table.write_text(table.read_text() + "last,1,2,3,four\n")
    out = tmp_path / "found.csv"
    out.write_text("of before")
    done = inside(model, table, "--out", out, "--on-error", "stop", "--batch-size", "4")
    assert str(done.exception) == "last: 'four' in column 'd'; expected a number"
    assert out.read_text() == "of before"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["found.csv", "new.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("MODEL", "nowhere.csv"), "nowhere.csv: does not exist"),
        (("MODEL", "WRONG"), r"no columns \['c', 'd'\]; it has \['a', 'b'\]"),
        (("MODEL", "TABLE", "--format", "parquet"), "parquet needs a file"),
        (("MODEL", "TABLE", "--out", "found.xyz"), "does not say its format"),
        (("MODEL", "TABLE", "--confidence", "1.5"), "expected a confidence above 0.5 and below 1"),
        (("MODEL", "TABLE", "--out", "TABLE"), "is what is read; choose another name for --out"),
        (("nowhere", "TABLE"), "no model at nowhere"),
    ],
)
def test_what_cannot_be_predicted_is_said(model, table, tmp_path, arguments, message):
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n")
    places = {"MODEL": model, "TABLE": table, "WRONG": tmp_path / "wrong.csv"}
    with pytest.raises(DataError, match=message):
        raise inside(*(places.get(argument, argument) for argument in arguments)).exception


def test_what_never_ends_is_predicted_as_it_comes(model):
    loaded = load(model)
    rows = itertools.chain(["a,b,c,d\n"], itertools.repeat("1,2,3,4\n"))
    found = predict(loaded, stream(["-"], loaded.inputs, rows), batch_size=5)
    assert [batch.names[0] for batch in itertools.islice(found, 3)] == ["0", "5", "10"]


@pytest.mark.parametrize("method", ["gmlr", "ranknet"])
def test_what_is_barely_relevant_has_more_than_half(method):
    inputs = {"kind": "table", "channels": 2}
    recipe = Recipe(method=method, backbone="mlp")
    model = Model(*build(recipe, 2, inputs), ("a", "b"), recipe, inputs)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.zero_()
        for layer in model.network.layers.values():
            list(layer.parameters())[-1].fill_(1e-12)  # the bias of every output
    (found,) = predict(model, [Item("one", torch.zeros(2))])
    assert found.orders == ["a = b"]
    assert (found.values["p_relevant"] > 0.5).all()


def test_a_method_without_sigma(tmp_path):
    model = trained("lsep", tmp_path)
    frame = pd.read_csv(io.StringIO(inside(model, tmp_path / "table.csv", "--format", "csv").stdout))
    assert "score:sky" in frame
    assert "sigma:sky" not in frame
    assert ((frame["score:sky"] > 0) == (frame["rank:sky"] > 0)).all()
    with pytest.raises(DataError, match="the method lsep has no sigma"):
        raise inside(model, tmp_path / "table.csv", "--confidence", "0.9").exception


def test_partial_orders_never_contradict_orders(model, table):
    found = [
        json.loads(line)
        for line in inside(model, table, "--format", "jsonl", "--confidence", "0.8").stdout.splitlines()
    ]
    named = 0
    for row in found:
        for chain in row["partial"].partition("?")[0].split(";"):
            labels = [label.strip() for label in chain.split(">") if label.strip()]
            ranks = [row["labels"][label]["rank"] for label in labels]
            assert ranks == sorted(ranks, reverse=True)
            assert all(row["labels"][label]["p_relevant"] >= 0.8 for label in labels)
            named += len(labels)
    assert named > 10


def test_partial_texts():
    above = np.zeros((4, 4), bool)
    every, none, scores = np.ones(4, bool), np.zeros(4, bool), np.array([4.0, 3.0, 2.0, 1.0])
    assert partial_text(above, every, every, "abcd", scores) == "a; b; c; d"
    assert partial_text(above, none, none, "abcd", scores) == ""
    assert partial_text(above, none, every, ["a>", "b", "c", "d"], scores) == '? "a>" ? b ? c ? d'
    line = np.triu(np.ones((4, 4), bool), 1)
    assert partial_text(line, every, every, "abcd", scores) == "a > b > c > d"
    assert partial_text(line, np.array([1, 0, 1, 0], bool), every, "abcd", scores) == "a > c ? b ? d"
    line[0, 1] = False
    assert partial_text(line, every, every, "abcd", scores) == "a > c; b > c; c > d"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    (folder / "deep").mkdir()
    for number in range(6):
        colour = ("red", "blue")[number % 2]
        Image.new("RGB", (40, 30 + number), colour).save(folder / "deep" / f"{number}.png")
    orders = ["fire > sea", "sea > fire"] * 3
    rows = {"image": [f"deep/{number}.png" for number in range(6)], "ranking": orders}
    pd.DataFrame(rows).to_csv(folder / "manifest.csv", index=False)
    return folder


@pytest.mark.slow
def test_pictures_from_training_to_prediction(photos, tmp_path):
    run = tmp_path / "run"
    settings = ["--image-size", "32", "--epochs", "2", "--set", "batch_size=4", "--quiet", "--json"]
    done = CliRunner().invoke(app, ["train", str(photos), "--out", str(run), *settings])
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(app, ["evaluate", str(run), str(photos), "--split", "all"])
    assert "all, 6 instances" in shown.stdout
    shutil.copytree(photos, tmp_path / "photos")
    broken = tmp_path / "photos" / "deep" / "3.png"
    broken.write_bytes(broken.read_bytes()[:60])
    done = inside(run, tmp_path / "photos")
    assert done.exit_code == 1
    assert f"skipped {broken}: damaged or cut off" in done.stderr
    assert [line.split("\t")[0][-5:] for line in done.stdout.splitlines()] == [
        f"{number}.png" for number in (0, 1, 2, 4, 5)
    ]
    one = inside(run, photos / "deep" / "0.png", photos / "manifest.csv", "--format", "csv")
    frame = pd.read_csv(io.StringIO(one.stdout))
    assert list(frame["name"]) == [str(photos / "deep" / "0.png"), *(f"deep/{i}.png" for i in range(6))]
    assert frame.loc[0, "significance:sea"] == pytest.approx(frame.loc[1, "significance:sea"], abs=1e-4)
    (tmp_path / "out.csv").write_text(f"image\n../photos\n{photos}/deep/0.png\n")
    assert "2 skipped" in inside(run, tmp_path / "out.csv").stderr


def test_a_model_that_does_not_say_how_files_are_read():
    with pytest.raises(DataError, match="does not say how image files become its inputs"):
        next(stream(["-"], {"kind": "image", "channels": 3}, io.StringIO("")))


def test_without_anybody_to_tell_the_first_bad_instance_raises(model):
    with pytest.raises(DataError, match="odd: no reason"):
        next(predict(load(model), [Bad("odd", "no reason")]))
