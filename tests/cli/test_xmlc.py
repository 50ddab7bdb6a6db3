"""Files of sparse rows and labels on the command line, as real processes, against scipy and scikit-learn."""

import gzip
import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from gaussianmlr import load, metrics
from gaussianmlr.data import read_xmlc, sparse, write_xmlc
from gaussianmlr.data.inputs import scaled
from gaussianmlr.data.open import find_data
from gaussianmlr.data.sparse import SparseRankedData, made_dense
from gaussianmlr.errors import DataError
from gaussianmlr.orders import to_ranks
from support.commanding import gmlr

pytestmark = pytest.mark.slow

LABELS, COLUMNS, POSITIVES = 320, 60, 3


def made(count, seed):
    """Three labels per row, told by the columns of their number, larger for the more significant one."""
    rng = np.random.default_rng(seed)
    places = np.stack([rng.choice(COLUMNS, POSITIVES, replace=False) for _ in range(count)]).ravel()
    rows, ranks = np.repeat(np.arange(count), POSITIVES), np.tile([3, 2, 1], count)
    X = csr_array((ranks / 3.0, (rows, places)), shape=(count, COLUMNS))
    return X, csr_array((ranks, (rows, places * 5)), shape=(count, LABELS))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xmlc")
    write_xmlc(folder / "train.txt", *made(500, 1))
    write_xmlc(folder / "test.txt", *made(60, 2), header=False)
    (folder / "test.txt.gz").write_bytes(gzip.compress((folder / "test.txt").read_bytes()))
    return folder


@pytest.fixture(scope="module")
def run(files):
    found = gmlr(
        *("train", files / "train.txt", "--out", files / "run", "--order-separator", ","),
        *("--backbone", "mlp", "--epochs", 30, "--set", "rate=0.01"),
    )
    assert found.returncode == 0, found.stderr
    assert "320 labels" in found.stderr
    return files / "run"


def test_the_data_stays_sparse_and_is_what_was_written(files):
    data = find_data(files / "train.txt")
    X, y = made(500, 1)
    assert isinstance(data, SparseRankedData)
    assert (data.features != X).nnz == 0
    assert ((data.ranks.matrix > 0) != (y > 0)).nnz == 0
    subset = data.subset(np.arange(500) % 7 == 0)
    assert subset.orders()[0] == to_ranks_text(y[[0]])
    assert subset.fingerprint() != data.fingerprint() == find_data(files / "train.txt").fingerprint()


def to_ranks_text(y):
    return " = ".join(str(place) for place in np.flatnonzero(y.toarray()[0]))


def test_what_needs_dense_data_has_it_up_to_a_size(files, run, monkeypatch):
    data = find_data(files / "train.txt")
    dense = made_dense(data, "compare")
    X, y = made(500, 1)
    np.testing.assert_array_equal(dense.features, X.toarray())
    np.testing.assert_array_equal(dense.ranks, (y.toarray() > 0).astype(int))
    assert (dense.labels, dense.ids, dense.feature_names) == (data.labels, data.ids, data.feature_names)
    monkeypatch.setattr(sparse, "MOST_DENSE", 499 * (LABELS + COLUMNS))
    with pytest.raises(DataError, match=r"compare has all of 500 instances x 320 labels .* at most 499 such"):
        made_dense(data, "compare")


def test_reports_and_guarantees_of_sparse_data(files, run, tmp_path):
    found = gmlr("report", run, "--out", tmp_path / "report.html")  # on its own validation rows
    assert found.returncode == 0, found.stderr
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "all 100 instances" in text
    out = tmp_path / "model"
    found = gmlr("calibrate", run, files / "test.txt", "--out", out, "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["rows"] == 60


def test_check_counts_and_names_problems(files, tmp_path):
    found = gmlr("data", "check", files / "train.txt", "--json", "--order-separator", ",")
    report = json.loads(found.stdout)
    statistics, (_, y) = report["statistics"], made(500, 1)
    relevant = np.asarray((y > 0).sum(axis=0)).ravel()
    assert (found.returncode, report["kind"], statistics["instances"]) == (0, "xmlc", 500)
    assert [one["relevant"] for one in statistics["labels"].values()] == relevant.tolist()
    assert (statistics["features"], statistics["ties"], statistics["empty"]) == (COLUMNS, 0, 0)
    broken = tmp_path / "broken.txt"
    broken.write_text("3 4 5\n1,1 0:1\n7 0:1\n2 0:x\n")
    found = gmlr("data", "check", broken)
    assert found.returncode == 1
    for told in ("line 2: a label is there twice", "line 3: label '7'; expected", "line 4: '0:x'"):
        assert told in found.stdout
    assert "Traceback" not in found.stderr


def test_evaluate_measures_what_the_library_does(files, run):
    found = gmlr("evaluate", run, files / "test.txt.gz", "--order-separator", ",", "--json")
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    X, y = read_xmlc(files / "test.txt.gz", ordered=True, features=COLUMNS, labels=LABELS)
    model = load(run / "model")
    scores = model.read(scaled(X.toarray(), model.inputs)).scores
    expected = metrics.evaluate(scores, y.toarray())
    assert told["instances"] == 60
    assert told["metrics"]["tau_b"] == pytest.approx(float(expected["tau_b"]), abs=1e-4)
    assert told["metrics"]["tau_b"] > 0.5


@pytest.mark.parametrize("form", ["xmlc", "jsonl", "csv", "text"])
def test_predict_writes_the_most_significant_labels(files, run, tmp_path, form):
    model, (X, _) = load(run / "model"), made(60, 2)
    expected = model.predict(scaled(X, model.inputs))
    best = expected.top_places(10)
    out = tmp_path / f"found.{form}"
    found = gmlr("predict", run, files / "test.txt.gz", "--top", 10, "--format", form, "--out", out)
    assert found.returncode == 0, found.stderr
    if form == "xmlc":
        scores, _ = load_svmlight_file(str(out), n_features=LABELS, multilabel=True, zero_based=True)
        read = read_xmlc(out, ordered=True, features=LABELS, labels=LABELS)
        given, ranks = read.X.toarray(), read.y.toarray()
        np.testing.assert_allclose(given, scores.toarray())
        for row, places in enumerate(best):
            assert {*np.flatnonzero(given[row])} == {*places}
            np.testing.assert_allclose(given[row, places], expected.significance[row, places], rtol=1e-4)
            relevant = [place for place in places if expected.ranks[row, place] > 0]
            assert [ranks[row, place] for place in relevant] == [*range(len(relevant), 0, -1)]
    elif form == "jsonl":
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert [[*line["labels"]] for line in lines] == [[str(place) for place in row] for row in best]
        kept = to_ranks([line["order"] for line in lines], model.labels).ranks
        assert ((kept > 0) <= (expected.ranks > 0)).all()
    else:
        text = out.read_text().splitlines()
        assert len(text) == 60 + (form == "csv")
        assert len(out.read_bytes()) < 60 * 10 * 120  # not a number per label
