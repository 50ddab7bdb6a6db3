"""Files that were made to hurt: bombs, pipes, endless lines, huge numbers, damaged bytes."""

import gzip
import io
import json
import os
import random
import signal
import struct
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io

from gaussianmlr import DataError
from gaussianmlr._utils import bounded as _bounded
from gaussianmlr.data import RankedData, check, from_arrays, read_image, read_mat, read_nsid, read_table
from gaussianmlr.data.open import find_data, open_data
from gaussianmlr.data.readers.matlab import load_mat
from gaussianmlr.estimators.gaussian import GaussianMLR
from gaussianmlr.inference.streams import Bad, Item, stream
from gaussianmlr.model.recipe import Recipe

INPUTS = {
    "kind": "table",
    "channels": 2,
    "columns": ["x", "y"],
    "scaling": {"mean": [0.0, 0.0], "std": [1.0, 1e-6]},
}
LONG = "n" * 300


@pytest.fixture(autouse=True)
def no_waiting():
    """A test that waits for a pipe fails instead."""

    def stop(*_):
        raise TimeoutError("still waiting")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def short(monkeypatch):
    """Lines of a megabyte are too long."""
    monkeypatch.setattr(_bounded, "LONGEST_LINE", 1 << 20)


@pytest.fixture
def small(monkeypatch):
    """Bombs of a megabyte are bombs, too."""
    monkeypatch.setattr(_bounded, "_FREE", 1 << 16)


def packed(path, head, unit, times):
    with gzip.open(path, "wb") as file:
        file.write(head)
        for _ in range(times):
            file.write(unit)
    return path


@pytest.mark.parametrize(("head", "line"), [(b"", 1), (b"x,ranking\n", 2), (b"x,ranking\n1,sky\n", 3)])
def test_a_line_without_end(tmp_path, short, head, line):
    file = packed(tmp_path / "a.csv.gz", head, b"a" * 1000, 5_000)
    expected = rf"a\.csv\.gz: line {line} is longer than 1,048,576 bytes"
    for read in (read_table, check, find_data):
        with pytest.raises(DataError, match=expected):
            read(file)
    with pytest.raises(DataError, match=expected if line == 1 else r"line|no columns"):
        list(stream([file], INPUTS))


def test_a_line_without_end_at_its_real_size(tmp_path):
    file = packed(tmp_path / "a.csv.gz", b"x,ranking\n", b"a" * 1_000_000, 80)
    with pytest.raises(DataError, match=r"line 2 is longer than 67,108,864 bytes"):
        read_table(file)


def test_lines_without_end(tmp_path, small):
    file = packed(tmp_path / "a.csv.gz", b"x,ranking\n", b"1,sky > sea\n" * 1000, 40)
    with pytest.raises(DataError, match=r"unpacks to more than .* bytes, 100 times its size or more"):
        read_table(file)
    plain = tmp_path / "a.csv"
    plain.write_bytes(gzip.decompress(file.read_bytes()))
    assert len(read_table(plain)) == 40_000  # what is not packed hides nothing


def test_a_cell_without_end(tmp_path, small):
    file = packed(tmp_path / "a.csv.gz", b'x,ranking\n1,"', b"\n" * 1000, 2_000)
    with pytest.raises(DataError, match="100 times its size"):
        read_table(file)


def test_json_lines_and_standard_input_without_end(tmp_path, short):
    (tmp_path / "a.jsonl").write_text('{"x": "' + "a" * 2_000_000)
    for read in (read_table, lambda path: list(stream([path], INPUTS))):
        with pytest.raises(DataError, match=r"line 1 is longer than 1,048,576 bytes"):
            read(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match="standard input: line 2 is longer"):
        list(stream(["-"], INPUTS, io.StringIO("x,y\n" + "1" * 2_000_000)))


def test_columns_without_end(tmp_path):
    (tmp_path / "a.csv").write_text("x" + "," * 1_100_000 + "\n")
    with pytest.raises(DataError, match=r"1,100,000 columns; expected at most 1,000,000"):
        read_table(tmp_path / "a.csv")


def test_arrays_that_unpack_to_much(tmp_path, small):
    zeros = np.zeros((1000, 1000))
    pq.write_table(pa.table({f"c{n}": np.zeros(200_000) for n in range(4)}), tmp_path / "a.parquet")
    np.savez_compressed(tmp_path / "a.npz", features=zeros, ranks=np.ones((1000, 2), int))
    scipy.io.savemat(tmp_path / "a.mat", {"features": zeros, "labels": zeros}, do_compression=True)
    for name in ("a.parquet", "a.npz", "a.mat"):
        with pytest.raises(DataError, match=rf"{name}: unpacks to [\d,]+ bytes; expected at most"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"x":' * 200_000, '{"x": "\\ud800", "ranking": "a"}'])
def test_json_lines_that_nothing_can_be_done_with(tmp_path, text):
    (tmp_path / "a.jsonl").write_text('{"x": 1, "y": 2, "ranking": "sky"}\n' + text + "\n")
    with pytest.raises(DataError, match=r"1 of 2 lines of .* are not JSON objects"):
        read_table(tmp_path / "a.jsonl")
    good, bad = stream([tmp_path / "a.jsonl"], INPUTS)
    assert isinstance(good, Item)
    assert isinstance(bad, Bad)
    assert len(bad.reason) < 300


def test_pipes_and_devices_are_not_waited_for(tmp_path):
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.npz", "a.mat", "a.zip", "a.toml", "a.png"):
        os.mkfifo(tmp_path / name)
    no_file = "is a pipe or device, not a regular file; expected"
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.npz", "a.mat", "a.zip"):
        for read in (check, find_data):
            with pytest.raises(DataError, match=no_file):
                read(tmp_path / name)
        with pytest.raises(DataError, match=no_file):
            list(stream([tmp_path / name], INPUTS))
    with pytest.raises(DataError, match=no_file):
        Recipe.read(tmp_path / "a.toml")
    with pytest.raises(DataError, match=no_file):
        Recipe.read("/dev/zero")
    with pytest.raises(DataError, match="not a regular file; expected a picture"):
        read_image(tmp_path / "a.png")
    (tmp_path / "manifest.csv").write_text("image,ranking\na.png,sky\n")
    with pytest.raises(DataError, match=r"a\.png: is a pipe or device; expected a picture"):
        find_data(tmp_path / "manifest.csv")
    data = RankedData([[1]], ["sky"], images=[tmp_path / "a.png"], split=["train"])
    with pytest.raises(DataError):
        open_data(data)


@pytest.mark.parametrize("name", [LONG, f"{LONG}.csv", f"{LONG}.zip", "a\0b.csv"])
def test_names_that_no_file_can_have(tmp_path, name):
    for read in (
        check,
        find_data,
        read_table,
        read_image,
        Recipe.read,
        lambda path: list(stream([path], INPUTS)),
    ):
        with pytest.raises(DataError, match=r"File name too long|embedded null byte"):
            read(tmp_path / name)


def test_a_picture_of_a_long_name_is_a_problem_of_its_row(tmp_path):
    (tmp_path / "manifest.csv").write_text(f"image,ranking\n{LONG}.png,sky\n")
    report = check(tmp_path)
    assert [problem.message for problem in report.errors] == ["is not a path: File name too long"]


def test_names_of_columns_and_ids_have_a_length(tmp_path):
    (tmp_path / "a.csv").write_text(f"{'x' * 2000},ranking\n1,sky\n")
    with pytest.raises(
        DataError, match=r"the name of a column has 2,000 characters, 'x+\.\.\.; expected at most"
    ):
        read_table(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text(f"x,id,ranking\n1,{'i' * 5000},sky\n2,b,sea\n3,c,sky\n")
    report = check(tmp_path / "b.csv")
    assert [str(problem)[:12] for problem in report.errors] == ["row 0: 'iiii"]
    assert len(str(report.errors[0])) < 150
    assert report.data.ids == ("b", "c")


HUGE = [("1e308", r"1e\+308"), ("-1e308", r"-1e\+308"), ("1e101", r"1e\+101")]


@pytest.mark.parametrize(("number", "shown"), HUGE)
def test_numbers_that_would_overflow_are_named(tmp_path, number, shown):
    expected = "is too large; expected a magnitude below 1e.100"
    (tmp_path / "a.csv").write_text(f"x,y,ranking\n1,2,sky\n3,4,sea\n5,{number},sky\n")
    with pytest.raises(DataError, match=rf"row 2: {shown} in column 'y' {expected}"):
        read_table(tmp_path / "a.csv")
    with pytest.raises(DataError, match=rf"row 1: {shown} in column 0 {expected}"):
        from_arrays([[1.0], [float(number)]], [["a"], ["b"]])
    frame = pd.DataFrame({"x": [1.0, float(number)], "y": [1.0, 2.0]})
    with pytest.raises(DataError, match=rf"row 1: {shown} in column 'x' {expected}"):
        GaussianMLR(epochs=1).fit(frame, ["a", "b"])
    found = list(stream(["-"], INPUTS, io.StringIO(f"x,y\n1,2\n{number},0\n")))
    assert isinstance(found[0], Item)
    assert found[1] == Bad(
        "1", f"{float(number):g} in column 'x' is too large; expected a magnitude below 1e+100"
    )


def test_whole_numbers_beyond_every_float(tmp_path):
    digits = "9" * 400
    (tmp_path / "a.csv").write_text(f"x,y,ranking\n1,2,sky\n{digits},4,sea\n5,6,sky\n")
    (tmp_path / "a.jsonl").write_text(
        f'{{"x": 1, "y": 2, "ranking": "sky"}}\n{{"x": {digits}, "y": 2, "ranking": "sea"}}\n'
    )
    for name in ("a.csv", "a.jsonl"):
        with pytest.raises(DataError, match=r"row 1: .*in column 'x'"):
            read_table(tmp_path / name)
        assert [type(one) for one in stream([tmp_path / name], INPUTS)][:2] == [Item, Bad]


def test_what_overflows_once_it_is_standardised(tmp_path):
    (found,) = stream(["-"], INPUTS, io.StringIO("x,y\n1,1e13\n"))
    far = "1e+13 in column 'y' is 1e+19 standard deviations from the mean of the training data"
    assert found.reason == f"{far}, which is too large; expected a magnitude below 1e+18"


def test_weights_that_would_overflow(tmp_path):
    (tmp_path / "a.csv").write_text("x,weight,ranking\n1,1e38,sky\n2,1,sea\n3,1,sky\n")
    with pytest.raises(DataError, match=r"row 0: 1e\+38 in column 'weight' is too large"):
        read_table(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"row 0: weight 1e\+38; expected a number from 0 to 1e\+30"):
        from_arrays([[1.0], [2.0]], [["a"], ["b"]], weights=[1e38, 1])


def test_the_largest_numbers_that_are_read_can_be_learned_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) * [1e99, 1e-5]
    y = [["a", "b"] if row[0] > 0 else ["b"] for row in X]
    model = GaussianMLR(epochs=2, n_members=1, hidden=8, random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    far = [[1e99, 1e12]]  # 1e17 standard deviations
    assert np.isfinite(model.predict_full(far).scores).all()


NUMBERS = [
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.float32,
    np.float64,
]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("packed", [False, True])
def test_matlab_files_are_read_as_scipy_reads_them(tmp_path, kind, packed):
    rng = np.random.default_rng(1)
    structs = np.zeros((2, 2), dtype=[("label", "O"), ("note", "O")])
    for place in np.ndindex(2, 2):
        structs["label"][place] = rng.integers(0, 9, (3, 4)).astype(kind)
        structs["note"][place] = "a text"
    about = {
        "a": rng.integers(0, 100, (3, 5)).astype(kind),
        "text": "hello",
        "cube": rng.integers(0, 100, (2, 3, 4)).astype(kind),
        "one": np.array([[7]], dtype=kind),
        "none": np.zeros((0, 3)),
        "pic": structs,
        "cell": np.array([1, "b"], dtype=object),
    }
    scipy.io.savemat(tmp_path / "a.mat", about, do_compression=packed)
    oracle = scipy.io.loadmat(tmp_path / "a.mat")
    found = load_mat(tmp_path / "a.mat", ["a", "cube", "one", "none", "pic"])
    for name in ("a", "cube", "one", "none"):
        assert found[name].dtype == oracle[name].dtype
        assert found[name].shape == oracle[name].shape
        assert (found[name] == oracle[name]).all()
    for ours, theirs in zip(found["pic"].flat, oracle["pic"].flat):
        assert (ours["label"] == theirs["label"]).all()
        assert ours["note"] is None
    with pytest.raises(DataError, match=r"a\.mat: 'cell' is a cell array; expected a matrix of numbers"):
        load_mat(tmp_path / "a.mat", ["cell"])


def nested_cells(depth):
    """A MATLAB file of cells in cells, which ends a process that reads it by recursion."""
    parts, size = [struct.pack("<II", 14, 0)], 8
    for level in reversed(range(depth)):
        name = b"features" if level == 0 else b""
        body = 16 + 16 + 8 + len(name) + size
        head = struct.pack("<II4I2I2i2I", 14, body, 6, 8, 1, 0, 5, 8, 1, 1, 1, len(name))
        parts.append(head + name)
        size = body + 8
    return b"MATLAB 5.0".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49) + b"".join(reversed(parts))


def test_cells_in_cells(tmp_path):
    (tmp_path / "a.mat").write_bytes(nested_cells(200_000))
    with pytest.raises(DataError, match=r"'features' is a cell array"):
        load_mat(tmp_path / "a.mat", ["features"])
    with pytest.raises(DataError, match=r"no matrix 'labels'|is a cell array"):
        read_mat(tmp_path / "a.mat")


def originals():
    """Small files of every kind that is read."""
    frame = pd.DataFrame(
        {
            "id": [f"r{n}" for n in range(6)],
            "x": np.arange(6) + 0.5,
            "y": np.arange(6) ** 2,
            "ranking": ["sky > sea", "sea", "sky = sea > tree", "tree", "sky ? sea", ""],
            "split": ["train"] * 4 + ["test"] * 2,
            "weight": 1.0,
        }
    )
    grades = frame[["x", "y"]].assign(**{"label:a": [1, 2, 0, 0, 1, 2], "label:b": [0, 1, 1, 2, 0, -1]})
    found = {}
    for name, table in (("t", frame), ("g", grades)):
        found[f"{name}.csv"] = table.to_csv(index=False).encode()
        found[f"{name}.tsv"] = table.to_csv(index=False, sep="\t").encode()
        found[f"{name}.csv.gz"] = gzip.compress(found[f"{name}.csv"])
        found[f"{name}.jsonl"] = table.to_json(orient="records", lines=True).encode()
        table.to_parquet(whole := io.BytesIO())
        found[f"{name}.parquet"] = whole.getvalue()
    arrays = {"features": np.eye(4), "ranks": np.array([[1, 0], [0, 1], [2, 1], [1, 1]])}
    np.savez(whole := io.BytesIO(), **arrays, labels=np.array(["a", "b"]))
    found["a.npz"] = whole.getvalue()
    for packed_too in (False, True):
        degrees = {"features": np.eye(4), "labels": np.eye(4)[:, :2]}
        scipy.io.savemat(whole := io.BytesIO(), degrees, do_compression=packed_too)
        found[f"a{packed_too:d}.mat"] = whole.getvalue()
    scipy.io.savemat(whole := io.BytesIO(), {"features": np.eye(4), "labels": np.eye(4)}, format="4")
    found["old.mat"] = whole.getvalue()
    with zipfile.ZipFile(whole := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("splitted_labels.json", json.dumps({"houses": {"train": [["a.jpg", [9, 2, -1]]]}}))
        archive.writestr("a.jpg", b"no picture")
    found["a.zip"] = whole.getvalue()
    pictures = np.zeros((1, 2), dtype=[("label", "O")])
    for number in range(2):
        pictures["label"][0, number] = np.array([[2, 1, 10, 3, 4, 5, 6, 7, 8, 9]] * 2)
    scipy.io.savemat(whole := io.BytesIO(), {"pic": pictures})
    found["pic_scene.mat"] = whole.getvalue()
    return found


PIECES = [
    b"", b"\0", b"\xff\xfe", b'"', b"\n", b"\r", b",", b"\t", b"1e308", b"-1e309", b"9" * 400, b"nan", b"inf",
    b">", b"=", b"?", b"\\", b"\xed\xa0\x80", b"{", b"[", b"null", b"true", b"\xef\xbb\xbf", b"-1",
    b'"\\ud800"', b"[[[[", b"\x1f\x8b", b"\xff" * 8, b"\0" * 16, b"ranking", b"label:a",
]  # fmt: skip


def damaged(data, rng):
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        at = rng.randrange(len(found) + 1)
        until = at + rng.randrange(1, 40)
        how = rng.randrange(6)
        if how == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del found[at:]
        elif how == 2:
            found[at:at] = rng.choice(PIECES)
        elif how == 3:
            found[at:until] = rng.choice(PIECES)
        elif how == 4:
            found[at:until] = bytes(len(found[at:until]))
        else:
            found[at:at] = found[at:until]
    return bytes(found)


def read_all(path):
    report = check(path)
    json.dumps(report.to_dict(), allow_nan=False)
    repr(report)


@pytest.mark.filterwarnings("ignore")  # of pandas, about what the bytes happen to look like
@pytest.mark.parametrize("name", originals())
def test_damaged_files_are_refused_by_name(tmp_path, monkeypatch, name):
    monkeypatch.setenv("GAUSSIANMLR_CACHE", str(tmp_path / "cache"))
    original, rng = originals()[name], random.Random(name)
    file = tmp_path / name
    readers = [read_all, lambda path: open_data(find_data(path))]
    if name == "pic_scene.mat":
        readers = [lambda path: read_nsid(path.parent, orders_only=True)]
    elif not name.endswith(".zip"):
        wanted = {"kind": "table", "channels": 4} if name.endswith(("npz", "mat")) else INPUTS
        readers.append(lambda path: list(stream([path], wanted)))
    messages = []
    for _ in range(60):
        file.write_bytes(damaged(original, rng))
        for read in readers:
            try:
                read(file)
            except DataError as error:
                messages.append(str(error))
    assert len(messages) > 10
    assert max(map(len, messages)) < 5_000
