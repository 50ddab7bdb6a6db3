"""The format of the extreme classification repository, against scikit-learn's reader and writer."""

import gzip

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from gaussianmlr.data import read_xmlc, write_xmlc
from gaussianmlr.errors import DataError


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    X = csr_array(random_array((40, 30), density=0.2, rng=rng))
    relevant = (rng.random((40, 25)) < 0.15).astype(int)
    relevant[7] = 0
    return X, relevant


def test_files_of_scikit_learn_are_read(tmp_path, drawn):
    X, relevant = drawn
    file = tmp_path / "train.svm"
    dump_svmlight_file(X, csr_array(relevant), str(file), multilabel=True, zero_based=True)
    found = read_xmlc(file, features=30, labels=25)
    np.testing.assert_allclose(found.X.toarray(), X.toarray())
    np.testing.assert_array_equal(found.y.toarray(), relevant)
    with (tmp_path / "packed.txt.gz").open("wb") as stream:
        stream.write(gzip.compress(b"40 30 25\n" + file.read_bytes()))
    packed = read_xmlc(tmp_path / "packed.txt.gz")
    assert (packed.X != found.X).nnz == (packed.y != found.y).nnz == 0


def test_scikit_learn_reads_what_is_written(tmp_path, drawn):
    X, relevant = drawn
    write_xmlc(tmp_path / "out.svm", X, relevant, header=False)
    matrix, labels = load_svmlight_file(
        str(tmp_path / "out.svm"), n_features=30, multilabel=True, zero_based=True
    )
    np.testing.assert_array_equal(matrix.toarray(), X.toarray())  # every digit
    assert [set(map(int, row)) for row in labels] == [set(np.flatnonzero(row)) for row in relevant]


def test_orders_come_back(tmp_path):
    X = csr_array([[0.1, 0.0], [0.0, 1 / 3], [2.0, 5e-324]])
    ranks = csr_array([[0, 1, 3, 2], [0, 0, 0, 0], [1, 0, 0, 2]])
    write_xmlc(tmp_path / "out.txt", X, ranks)
    assert (tmp_path / "out.txt").read_text().splitlines()[:3] == ["3 2 4", "2,3,1 0:0.1", f" 1:{1 / 3!r}"]
    found = read_xmlc(tmp_path / "out.txt", ordered=True)
    np.testing.assert_array_equal(found.X.toarray(), X.toarray())
    np.testing.assert_array_equal(found.y.toarray(), ranks.toarray())
    tied = read_xmlc(tmp_path / "out.txt")
    np.testing.assert_array_equal(tied.y.toarray(), (ranks.toarray() > 0).astype(int))
    with pytest.raises(DataError, match="unknown labels"):
        write_xmlc(tmp_path / "never.txt", X, csr_array([[-1, 1, 0, 0]] * 3))
    assert not (tmp_path / "never.txt").exists()


def test_every_problem_is_told_with_its_line(tmp_path):
    lines = ["3 4 5", "1,1 0:1", "2,x 0:1", "0 0:one", "0 1:2 1:3", "7 9:1", "", "1 0:nan", "1 0"]
    (tmp_path / "bad.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as error:
        read_xmlc(tmp_path / "bad.txt")
    for part in (
        "line 2: a label is there twice in [1, 1]",
        "line 3: 'x'; expected a whole number",
        "line 4: '0:one'; expected COLUMN:VALUE",
        "line 5: '1:3'; expected COLUMN:VALUE with a finite number, each column once",
        "line 7: empty",
        "line 8: '0:nan'",
        "line 9: '0'",
        "label 7: expected labels from 0 to 4",
        "column 9: expected columns from 0 to 3",
        "line 1: 3 instances; there are 7",
    ):
        assert part in str(error.value)
    (tmp_path / "none.txt").write_text("0 4 5\n")
    with pytest.raises(DataError, match="no instance"):
        read_xmlc(tmp_path / "none.txt")
