"""The check: every problem of a set at once, its statistics, a plot, and exit codes scripts can use."""

import json
import random
import re
import shutil
import subprocess
import sys
import time
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
import pytest
import scipy.io
from PIL import Image

from gaussianmlr import DataError
from gaussianmlr.data import RankedMNIST, check, export_sets
from gaussianmlr.data.checks.slips import _mistyped
from gaussianmlr.data.open import find_data
from support.fakes import avdp, nsid, picture
from support.shared import needs

pytestmark = pytest.mark.slow

SPLITS = {"train": 4, "validation": 1, "test": 2}


def found(report, severity="error"):
    return [f"{problem.kind}: {problem}" for problem in report.problems if problem.severity == severity]


def test_every_problem_of_a_table(tmp_path):
    rows = [
        "id,x,y,z,ranking,split",
        "p,1,7,0.5,sky > sea,train",
        "q,2,7,0.1,sky >,train",
        "r,,7,0.2,sky > moon,train",
        "s,4,7,hot,sea > sea,test",
        "t,1,7,0.5,sky,test",
        "u,6,7,0.9,sky = sea,train",
        "v,6,7,0.9,sky,train",
        "p,8,7,0.3,sky,test",
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows) + "\n")
    report = check(path, labels=["sky", "sea", "snow"])
    assert found(report) == [
        "order: row 1 (id 'q'): 'sky >': empty bucket at the end; a label must stand there",
        "order: row 2 (id 'r'): 'sky > moon': label 'moon' is not one of ['sea', 'sky', 'snow']",
        "order: row 3 (id 's'): 'sea > sea': label 'sea' stands above and below itself; name each label once",
        "feature: row 3 (id 's'): 'hot' in column 'z'; expected a number, or categories with --categories "
        "'z', in Python kinds={'z': 'category'}",
        "duplicate: row 7: id 'p' is also in row 0; several rankers need a column 'ranker'",
        "leak: row 't': is the same as 'p', but in 'test' instead of 'train'",
    ]
    assert found(report, "warning") == [
        "feature: column 'y': is 7 in every row",
        "duplicate: row 'v': is the same as 'u'",
        "label: label 'sky': applies to every instance; there is nothing to learn but its place",
        "label: label 'snow': never applies",
    ]
    assert not report.ok
    assert report.statistics["instances"] == 4
    assert report.statistics["labels"]["sea"]["relevant"] == 2
    assert "6 errors, 4 warnings" in repr(report)


def test_categories_that_training_has_not(tmp_path):
    rows = ["x,city,ranking,split", *(f"{row},Rome,sky,train" for row in range(5))]
    (tmp_path / "t.csv").write_text(
        "\n".join([*rows, "6,,sea,test", "7,Oslo,sky,test", "8,Rome,sea,test"]) + "\n"
    )
    report = check(tmp_path / "t.csv")
    assert found(report, "warning") == [
        "feature: column 'city': 1 test rows hold categories that no training row has, such as 'Oslo'"
    ]
    assert report.statistics["columns"] == [{"name": "city", "kind": "category", "gaps": 1, "categories": 2}]


def test_a_table_of_which_nothing_is_left(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,ranking\n1,sky >\nred,> sky\n")
    report = check(path)
    assert len(report.errors) == 3
    assert report.data is None
    assert report.statistics == {}
    assert "3 errors, no warnings" in repr(report)
    with pytest.raises(DataError, match="nothing to draw"):
        report.plot(tmp_path / "a.png")


def folder_with_problems(folder):
    for number in range(4):
        picture(folder / f"{number}.png", number)
    shutil.copy(folder / "0.png", folder / "copy.png")
    shutil.copy(folder / "1.png", folder / "twin.png")
    (folder / "cut.jpg").write_bytes(b"\xff\xd8\xff\xe0 nothing more")
    (folder / "empty.png").touch()
    (folder / "text.png").write_text("hello")
    frames = [Image.new("L", (4, 4), level) for level in (0, 255)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    names = ["0.png", "1.png", "2.png", "3.png", "copy.png", "twin.png", "cut.jpg", "empty.png", "text.png"]
    names += ["moving.gif", "none.png", "../out.png"]
    split = ["test" if name == "copy.png" else "train" for name in names]
    ranking = ["sky > sea" if number % 2 else "sea" for number in range(len(names))]
    ranking[2] = "sky > > sea"
    frame = pd.DataFrame({"image": names, "ranking": ranking, "split": split})
    pd.concat([frame, frame[3:4]]).to_csv(folder / "manifest.csv", index=False)
    return folder


def test_every_problem_of_a_folder_of_pictures(tmp_path):
    report = check(folder_with_problems(tmp_path / "set"), workers=3)
    assert found(report) == [
        "order: row 2 (id '2.png'): 'sky > > sea': empty bucket before '>'; a label must stand there",
        "duplicate: row 12: id '3.png' is also in row 3; several rankers need a column 'ranker'",
        "image: none.png: does not exist",
        "image: ../out.png: leads out of the folder; keep pictures below it or allow_outside=True",
        "image: cut.jpg: damaged or cut off: Truncated File Read",
        "image: empty.png: is empty (0 bytes); expected a picture",
        "image: text.png: is not a picture; expected PNG, JPEG, GIF, BMP, TIFF, WEBP or PPM",
        "leak: image 'copy.png': is the same as '0.png', but in 'test' instead of 'train'",
    ]
    assert found(report, "warning")[:2] == [
        "image: moving.gif: holds 2 pictures; the first is used",
        "duplicate: image 'twin.png': is the same as '1.png'",
    ]
    assert str(tmp_path) not in "".join(found(report))


def test_pictures_beyond_the_limit(tmp_path):
    picture(tmp_path / "a.png", 0)
    (tmp_path / "list.csv").write_text("image,ranking\na.png,sky\n")
    assert check(tmp_path / "list.csv").kind == "images"
    report = check(tmp_path / "list.csv", max_pixels=100)
    assert found(report) == ["image: a.png: 16 x 12 pixels; expected at most 100 pixels"]


def test_rankers_and_their_agreement(tmp_path):
    frame = pd.DataFrame({"id": list("ppqqrr"), "ranker": [1, 2] * 3, "x": [1, 1, 2, 2, 3, 3]})
    frame["ranking"] = ["a > b", "a > b", "b > a", "b > a", "c", "c"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    report = check(tmp_path / "t.csv")
    assert report.ok
    agreed = report.statistics["rankers"]["agreement"]
    assert agreed["pairwise_tau_b"] == pytest.approx(1)
    assert agreed["tau_b_of_ranker"] == {"1": pytest.approx(1), "2": pytest.approx(1)}
    assert agreed["reliability_of_ranker"] == {"1": pytest.approx(1), "2": pytest.approx(1)}
    assert "two rankers: tau-b 100.0" in repr(report)
    assert "reliability of rankers (1 = typical): from 1.00" in repr(report)
    alone = frame.iloc[[0, 3, 4]]
    alone.to_csv(tmp_path / "t.csv", index=False)
    assert check(tmp_path / "t.csv").statistics["rankers"]["agreement"] is None


def test_the_sets_of_the_paper(tmp_path):
    nsid(
        tmp_path / "n", [[(2, 3), (2,)], [(9,), (9,)], [(), ()]], {"train": [1, 1], "test": [2, 3]}, [1, 2, 3]
    )
    (tmp_path / "n" / "images" / "2.jpg").write_bytes(b"")
    report = check(tmp_path / "n")
    assert report.kind == "nsid"
    assert found(report) == [
        "split: config.json: image 1 is in 'train' and in 'train'",
        "image: 2: is empty (0 bytes); expected a picture",
    ]
    assert report.notes == ("image 3 left out: no label is relevant after aggregation (mean_rank)",)
    avdp(
        tmp_path / "a",
        {"d": {"train": [["x.jpg", [1]], ["y.jpg", [1, 1]]], "test": [["z.jpg", [2]]]}},
        ["x.jpg"],
    )
    shutil.copy(tmp_path / "a" / "x.jpg", tmp_path / "a" / "z.jpg")
    archive = shutil.make_archive(str(tmp_path / "avdp"), "tar", tmp_path / "a")
    report = check(archive)
    assert report.kind == "avdp"
    assert found(report) == [
        "order: d/train[1]: ['y.jpg', [1, 1]]: class 1 is named twice",
        "leak: image 'd/z.jpg': is the same as 'd/x.jpg', but in 'test' instead of 'train'",
    ]


def test_label_distributions(tmp_path):
    features = np.arange(8.0).reshape(4, 2)
    degrees = [[0.5, 0.5, 0], [0, 1, 0], [0.2, 0.8, 0], [0, 0.4, 0.6]]
    scipy.io.savemat(tmp_path / "t.mat", {"features": features, "labels": degrees})
    report = check(tmp_path / "t.mat", labels=["a", "b", "c"])
    assert report.ok
    assert report.statistics["ties"] == 1
    assert found(report, "warning") == [
        "label: label 'b': applies to every instance; there is nothing to learn but its place"
    ]


@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_every_problem_of_a_file_of_arrays(tmp_path, kind):
    features = np.arange(40.0).reshape(20, 2)
    features[2, 0], features[3:17, 1] = np.nan, np.inf
    degrees = np.tile([0.5, 0.5, 0], (20, 1))
    degrees[0] = [0, 0, 1]
    degrees[19, 0] = np.nan
    path = tmp_path / f"t.{kind}"
    if kind == "mat":
        scipy.io.savemat(path, {"features": features, "labels": degrees})
    else:
        np.savez(path, features=features, ranks=degrees, labels=["a", "b", "c"])
    report = check(path, threshold=0.0)
    assert [problem.where for problem in report.errors] == [
        f"column 'label:{'1' if kind == 'mat' else 'a'}'",
        *(f"row {row}" for row in range(3, 17)),
    ]
    assert report.statistics["instances"] == 5
    assert report.data.labels == (("1", "2", "3") if kind == "mat" else ("a", "b", "c"))
    (tmp_path / "u.npz").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot be read as NPZ"):
        check(tmp_path / "u.npz")


@pytest.mark.parametrize(
    ("name", "message"),
    [("none", "does not exist"), ("a.doc", "expected a folder, an archive or a table"), ("", "no data set")],
)
def test_what_is_no_data_set(tmp_path, name, message):
    (tmp_path / "a.doc").write_text("x")
    with pytest.raises(DataError, match=message):
        check(tmp_path / name)


@pytest.mark.parametrize(("labels", "rankers"), [(4, 3), (45, 0), (1, 0)])
def test_the_plot_is_a_picture_with_something_on_it(tmp_path, labels, rankers):
    random = np.random.default_rng(0)
    names = [f"label:a rather long name {number}" for number in range(labels)]
    frame = pd.DataFrame(random.integers(-1, 4, (60, labels)), columns=names)
    frame.insert(0, "x", np.repeat(np.arange(60 // max(rankers, 1)), max(rankers, 1)))
    if rankers:
        frame["id"], frame["ranker"] = frame["x"], np.tile(range(rankers), 60 // rankers)
    frame.to_csv(tmp_path / "t.csv", index=False)
    report = check(tmp_path / "t.csv")
    report.plot(tmp_path / "plots" / "t.png")
    with Image.open(tmp_path / "plots" / "t.png") as image:
        assert image.format == "PNG"
        assert image.width >= 1200
        colours = {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}
    assert {(0, 0x72, 0xB2), (0x8C, 0xCB, 0xEF), (255, 255, 255)} <= colours


def gmlr(*arguments, cwd):
    command = [
        sys.executable,
        "-W",
        "error::UserWarning",
        "-m",
        "gaussianmlr",
        "data",
        "check",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


def test_exit_codes_and_output_of_the_command(tmp_path):
    (tmp_path / "good.csv").write_text("x,ranking\n1,sky > sea\n2,sun\n3,sea > sun\n")
    (tmp_path / "bad.csv").write_text("x,ranking\n1,sky\n2,sky >\n")
    (tmp_path / "flat.csv").write_text("x,ranking\n1,sky\n1,sea\n")
    good = gmlr("good.csv", "--json", "--plot", "good.png", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "plot: good.png\n")
    report = json.loads(good.stdout)
    assert report["ok"]
    assert report["statistics"]["positives"]["histogram"] == {"1": 1, "2": 2}
    assert (tmp_path / "good.png").stat().st_size > 10_000
    bad = gmlr("bad.csv", cwd=tmp_path)
    assert bad.returncode == 1
    assert "error: row 1: 'sky >': empty bucket at the end" in bad.stdout
    assert gmlr("flat.csv", cwd=tmp_path).returncode == 0
    assert gmlr("flat.csv", "--strict", cwd=tmp_path).returncode == 1
    none = gmlr("none.csv", cwd=tmp_path)
    assert (none.returncode, none.stdout) == (2, "")
    assert none.stderr == "gmlr: none.csv: does not exist; expected a folder, an archive or a table\n"
    labels = gmlr("good.csv", "--labels", "sky, sea", cwd=tmp_path)
    assert labels.returncode == 1
    assert "label 'sun' is not one of ['sea', 'sky']" in labels.stdout


def test_the_published_scenes():
    report = check(needs("nsid", "images").parent)
    assert report.ok
    assert report.statistics["instances"] in (1599, 1999)  # with or without the images of the test part
    assert report.statistics["rankers"]["agreement"]["against_rest"]["tau_b"] == pytest.approx(0.85, abs=0.01)


@pytest.mark.parametrize("to", ["npz", "parquet"])
def test_exports_of_our_own(tmp_path, to):
    sets = [RankedMNIST("gray-s", split, size=size, digits="embedded") for split, size in SPLITS.items()]
    folder = export_sets(sets, tmp_path / "out", to)
    report = check(folder)
    assert report.kind == "export"
    assert report.ok
    assert report.statistics["instances"] == 7
    assert report.statistics["splits"] == SPLITS
    ranks = np.concatenate([one.batch(range(len(one))).ranks for one in sets])
    for label, counted in report.statistics["labels"].items():
        assert counted["relevant"] == (ranks[:, int(label)] > 0).sum()
    assert repr(report).splitlines()[:2] == [
        f"{folder}: an export of Ranked MNIST",
        "7 instances: train 4, validation 1, test 2",
    ]
    with pytest.raises(DataError, match="an export of Ranked MNIST that holds no picture files"):
        find_data(folder)
    shutil.copy(folder / f"test.{to}", folder / f"validation.{to}")  # another size, and the test's pictures
    assert [line for line in found(check(folder)) if "about.json says 1" in line]
    broken = (folder / f"train.{to}").read_bytes()
    (folder / f"train.{to}").write_bytes(broken[: len(broken) // 2])
    said = found(check(folder))
    assert len(said) == 2
    assert said[0].startswith("split: split 'train': cannot be read: ")


@pytest.mark.parametrize("to", ["npz", "parquet"])
def test_an_export_whose_test_data_was_trained_on(tmp_path, to):
    sets = [RankedMNIST("gray-s", split, size=2, digits="embedded") for split in ("train", "test")]
    folder = export_sets(sets, tmp_path / "out", to)
    shutil.copy(folder / f"train.{to}", folder / f"test.{to}")
    assert found(check(folder)) == [
        f"leak: image 'test {number}': is the same as 'train {number}', but in 'test' instead of 'train'"
        for number in range(2)
    ]


def test_one_of_a_kind(tmp_path):
    (tmp_path / "t.csv").write_text("x,ranking\n1,sky > sea\n")
    assert "1 instance of 1 feature\n" in repr(check(tmp_path / "t.csv"))


def table(path, rankings, **columns):
    frame = pd.DataFrame({"x": np.arange(float(len(rankings))), "ranking": rankings, **columns})
    frame.to_csv(path, index=False)
    return path


def test_splits_that_training_does_not_know(tmp_path):
    split = np.resize(["train", "Val", "dev", "test", "tset"], 200)
    report = check(table(tmp_path / "t.csv", np.resize(["sky > sea", "sea"], 200), split=split))
    assert found(report, "warning")[-1:] == [
        "split: split: 40 of 200 instances are in 'tset', which training leaves out; known are train, val, "
        "valid, dev, validation, test"
    ]
    split[split == "tset"] = "valid"
    assert not [
        line
        for line in found(check(table(tmp_path / "t.csv", ["a"] * 200, split=split)), "warning")
        if "split" in line
    ]


@pytest.mark.parametrize(
    ("usual", "single", "message"),
    [
        ("service > price", "servcie", "label 'servcie': is it 'service'? (applies 1 times, the other 199)"),
        (
            "very good service",
            "very god servce = very good servce",
            "label 'very good servce': is it 'very good service'? (applies 1 times, the other 199)",
        ),
        (
            "price",
            "Price",
            "label 'Price': differs from 'price' in case or spaces alone (applies 1 times, the other 199)",
        ),
        (
            "sea side",
            "seaside",
            "label 'seaside': differs from 'sea side' in case or spaces alone "
            "(applies 1 times, the other 199)",
        ),
        ("a > b", "a < b", "label 'a < b': '<' is no order sign; write '>' and, for ties, '='"),
        ("a > b", "a; b", "label 'a; b': ';' is no order sign; write '>' and, for ties, '='"),
        ("a > b", "a -> b", "label 'a -': '->' is no order sign; write '>' and, for ties, '='"),
    ],
)
def test_labels_that_were_probably_mistyped(tmp_path, usual, single, message):
    path = table(tmp_path / "t.csv", [usual] * 100 + [single] + [usual] * 99)
    assert [line for line in found(check(path), "warning") if "every instance" not in line] == [
        f"label: {message}"
    ]
    labels = sorted({*check(path).data.labels})
    assert not [line for line in found(check(path, labels=labels), "warning") if message in line]


def test_a_missing_column_is_listed_beside_other_problems(tmp_path):
    (tmp_path / "t.csv").write_text('height,seen\n"1,234",sky\n"2,100",sea\n')
    first, second = found(check(tmp_path / "t.csv"), "error")
    assert "'1,234' may be 1.234 or 1234" in first
    assert second.startswith("table: t.csv: no column 'ranking' and none that starts with 'label:'")
    (tmp_path / "u.csv").write_text('height,ranking\n"1,234",sky >\n"2,100",> sea\n')
    assert not [line for line in found(check(tmp_path / "u.csv"), "error") if "no row" in line]


@pytest.mark.parametrize("label", ["none", "None", "nothing", "n/a"])
def test_labels_that_say_that_none_applies(tmp_path, label):
    path = table(tmp_path / "t.csv", ["a > b"] * 10 + [label] * 5)
    said = f"label: label {label!r}: is read as a label; if it means that none applies, leave the cell empty"
    assert said in found(check(path), "warning")


@pytest.mark.parametrize(
    ("usual", "single"),
    [
        ("a1", "a2"),
        ("cat", "car"),
        ("type A", "type B"),
        ("category 1", "category 2"),
        ("female", "male"),
        ("happy", "unhappy"),
        ("hiking", "biking"),
        ("adult", "age < 18"),
        ("grade A", "grade A-"),
    ],
)
def test_labels_that_are_meant(tmp_path, usual, single):
    assert found(check(table(tmp_path / "t.csv", [usual] * 199 + [single])), "warning") == []


def test_alike_labels_that_are_both_frequent(tmp_path):
    assert found(check(table(tmp_path / "t.csv", ["service"] * 100 + ["services"] * 20)), "warning") == []
    assert found(check(table(tmp_path / "t.csv", ["service"] * 5 + ["services"])), "warning") == []


def test_no_warnings_about_what_could_not_be_read(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,ranking\n3/4/24,1,sky\n5/6/24,1,sea\n1/2/24,2,sea\n")
    report = check(tmp_path / "t.csv")
    assert len(report.errors) == 1
    assert found(report)[0].startswith("feature: column 'a': holds dates such as '3/4/24'")
    assert found(report, "warning") == []
    (tmp_path / "t.csv").write_text("a,label:sky,label:sea\n1,yes,1\n2,no,0\n3,yes,1\n")
    report = check(tmp_path / "t.csv")
    assert found(report) == ["order: column 'label:sky': 'yes' in row 0; expected numbers"]
    assert found(report, "warning") == []


def test_orders_without_anything_to_learn_from(tmp_path):
    (tmp_path / "t.csv").write_text("ranking\nsky\nsea\n")
    report = check(tmp_path / "t.csv")
    assert found(report) == [
        "feature: t.csv: holds orders alone; expected feature columns or pictures to learn from"
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--labels", "price,price"), "labels must differ, but ['price'] occur more than once"),
        (("--labels", ""), "an empty label among ['']; every label needs a name"),
        (("--tolerance", "-1"), "tolerance is -1.0; expected a finite number >= 0"),
        (("--threshold", "nan"), "threshold is nan; expected a finite number"),
    ],
)
def test_mistakes_in_options_are_said_once(tmp_path, words, message):
    table(tmp_path / "t.csv", ["price"] * 20)
    done = gmlr("t.csv", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"gmlr: {message}\n")


def test_manifests_below_a_folder(tmp_path):
    for name in ("one", "two"):
        picture(tmp_path / "sets" / name / "a.png", 0)
        (tmp_path / "sets" / name / "manifest.csv").write_text("image,ranking\na.png,sky\n")
    message = r"holds one/manifest\.csv, two/manifest\.csv; name the one to read"
    for read in (check, find_data):
        with pytest.raises(DataError, match=message):
            read(tmp_path / "sets")
    (tmp_path / "sets" / "two" / "manifest.csv").unlink()
    archive = shutil.make_archive(str(tmp_path / "sets"), "zip", tmp_path / "sets")
    for path in (tmp_path / "sets", archive):
        assert check(path).notes == find_data(path).notes == ("read one/manifest.csv",)
    shutil.copy(tmp_path / "sets" / "one" / "manifest.csv", tmp_path / "sets" / "two")
    assert check(tmp_path / "sets" / "one").notes == find_data(tmp_path / "sets" / "one").notes == ()


def slips_by_comparing_all(counts, rare):
    """Every pair of labels, by difflib: the rule that the index of slips stands for."""
    words = {label: re.findall(r"[^\W\d_]+", label.casefold()) for label in counts}

    def near(label, other):
        pairs = [(one, two) for one, two in zip(words[label], words[other]) if one != two]
        if len(words[label]) != len(words[other]) or len(pairs) != 1:
            return False
        (one, two) = pairs[0]
        if min(len(one), len(two)) < 4 or one[0] != two[0] or abs(len(one) - len(two)) > 1:
            return False
        cut = {one[:at] + one[at + 1 :] for at in range(len(one))} | {one}
        other_cut = {two[:at] + two[at + 1 :] for at in range(len(two))} | {two}
        matched = SequenceMatcher(None, one, two, autojunk=False).ratio()
        return bool(cut & other_cut) and matched >= 0.8

    found = {}
    for label in counts:
        if 0 < counts[label] <= rare:
            often = [o for o in counts if counts[o] >= 10 * counts[label] and near(label, o)]
            if often:
                found[label] = {o for o in often if counts[o] == max(counts[o] for o in often)}
    return found


def test_slips_are_those_that_comparing_all_pairs_finds():
    rng = random.Random(5)
    roots = ["mountain", "fountain", "desert", "dessert", "snow", "river bank", "step 1", "step 2", "Wolke"]
    counts = {root: 100 + number for number, root in enumerate(roots)}
    for _ in range(600):
        text = list(rng.choice(roots))
        at = rng.randrange(len(text))
        how = rng.randrange(4)
        if how == 0:
            del text[at]
        elif how == 1:
            text.insert(at, rng.choice("aeiounrst"))
        elif how == 2:
            text[at] = rng.choice("aeiounrst")
        else:
            text.insert(rng.randrange(len(text)), text.pop(at))
        counts.setdefault("".join(text), rng.choice([1, 1, 2, 60]))
    wanted = slips_by_comparing_all(counts, 2)
    got = dict(_mistyped(counts, 2))
    assert len(wanted) > 100
    assert set(got) >= set(wanted)
    assert all(got[label] in others for label, others in wanted.items())
    extra = {label: other for label, other in got.items() if label not in wanted}
    # difflib misses common letters of some words with a letter that was moved
    assert len(extra) <= len(wanted) // 20


@pytest.mark.parametrize("style", ["words", "numbered", "alike"])
def test_five_thousand_labels_are_checked_in_seconds(tmp_path, style):
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrst"
    labels = {
        "words": ["".join(rng.choices(letters, k=8)) for _ in range(5_000)],
        "numbered": [f"label {number}" for number in range(5_000)],
        "alike": [f"mountain{chr(0x4E00 + number)}" for number in range(5_000)],
    }[style]
    rows = [f"{number},{' > '.join(rng.sample(labels, 3))}" for number in range(2_000)]
    rows += [f"{number},{labels[0]} > {labels[number % 50]}x" for number in range(2_000, 2_100)]
    (tmp_path / "t.csv").write_text("\n".join(["x,ranking", *rows]) + "\n")
    began = time.process_time()
    report = check(tmp_path / "t.csv")
    repr(report)
    assert time.process_time() - began < 5
    assert report.statistics["instances"] == 2_100


def test_bad_rows_among_many_listed_labels(tmp_path):
    labels = [f"label{number}" for number in range(5_000)]
    rows = [f"{number},label{number} > other" for number in range(2_000)]
    (tmp_path / "t.csv").write_text("\n".join(["x,ranking", *rows, "1,label1"]) + "\n")
    began = time.process_time()
    report = check(tmp_path / "t.csv", labels=labels)
    assert time.process_time() - began < 5
    assert len(report.errors) == 2_000
    assert str(report.errors[7]).startswith("row 7: 'label7 > other': label 'other' is not one of ['label0',")


def test_cells_of_megabytes_are_shown_shortened(tmp_path):
    long = "a" * 2_000_000
    rows = ["1,sky", f"2,{long} > sky", f"{long},sky", f"3,{long} {long} >", "4,sea", f"5,sea > {long}b"]
    (tmp_path / "t.csv").write_text("\n".join(["x,ranking", *rows]) + "\n")
    began = time.process_time()
    report = check(tmp_path / "t.csv")
    assert len(repr(report)) < 3_000
    assert time.process_time() - began < 5
    assert [problem.where for problem in report.errors] == ["row 3", "row 2"]
    assert max(len(str(problem)) for problem in report.problems) < 300
