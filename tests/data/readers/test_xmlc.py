"""The format of the extreme classification repository, against scikit-learn's reader and writer."""

import gzip

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from gaussianmlr.data import read_xmlc, write_xmlc
from gaussianmlr.data.open import find_data
from gaussianmlr.data.readers.xmlc import row_of, xmlc_lines
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
    lines = [
        "3 4 5",
        "1,1 0:1",
        "2,x 0:1",
        "0 0:one",
        "0 1:2 1:3",
        "7 9:1",
        "",
        "1 0:nan",
        "1 0",
        "1 4:1",
    ]
    (tmp_path / "bad.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as error:
        read_xmlc(tmp_path / "bad.txt")
    for part in (
        "line 2: a label is there twice in [1, 1]",
        "line 3: label 'x'; expected whole numbers from 0 to 4",
        "line 4: '0:one'; expected COLUMN:VALUE",
        "line 5: '1:3'; expected COLUMN:VALUE with a finite number, each column once",
        "line 7: empty",
        "line 8: '0:nan'",
        "line 9: '0'; expected COLUMN:VALUE",
        "line 6: label '7'; expected whole numbers from 0 to 4",
        "line 10: column '4'; expected whole numbers from 0 to 3",
        "line 1: 3 instances; there are 9",
    ):
        assert part in str(error.value)
    (tmp_path / "long.txt").write_text("1 0:1\n" + "7" * 5_000 + " 0:1\n")
    with pytest.raises(
        DataError, match=r"line 2: label '7+\.\.\.; expected whole numbers from 0 to 9,999,999"
    ):
        read_xmlc(tmp_path / "long.txt")
    (tmp_path / "none.txt").write_text("0 4 5\n")
    with pytest.raises(DataError, match="no instance"):
        read_xmlc(tmp_path / "none.txt")


@pytest.mark.parametrize("header", [True, False])
def test_instances_without_labels_and_columns_come_back(tmp_path, header):
    X, ranks = np.zeros((5, 3)), np.zeros((5, 4), dtype=int)
    X[2], ranks[2], ranks[3] = [1, 0, 2], [0, 2, 1, 0], [1, 0, 0, 0]
    write_xmlc(tmp_path / "out.txt", X, ranks, header=header)
    found = read_xmlc(tmp_path / "out.txt", ordered=True, features=3, labels=4)
    np.testing.assert_array_equal(found.X.toarray(), X)
    np.testing.assert_array_equal(found.y.toarray(), ranks)
    told = find_data(tmp_path / "out.txt", labels="abcd", features="xyz")  # found by what it holds
    assert told.orders() == ["", "", "b = c", "a", ""]
    with pytest.raises(
        DataError, match="1 problem in .*\n  line 3: label '2'" if not header else "4 labels; expected 2"
    ):
        find_data(tmp_path / "out.txt", labels="ab", features="xyz")
    rows = [row_of(line, 3).toarray()[0].tolist() for line in xmlc_lines(tmp_path / "out.txt")]
    assert rows == X.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff2 3 5\n4,1 0:0.5 2:1\n 1:2\n",
        "2 3 5\r\n4,1 0:0.5 2:1 \r\n 1:2\t\r\n\r\n",
        "4,1 0:.5 2:1\n1:2\n\n\n",
    ],
)
def test_files_as_editors_leave_them_are_read(tmp_path, text):
    file = tmp_path / "out.txt"
    file.write_text(text, encoding="utf-8", newline="")
    found = read_xmlc(file, ordered=True, features=3, labels=5)
    assert found.X.toarray().tolist() == [[0.5, 0, 1], [0, 2, 0]]
    assert found.y.toarray().tolist() == [[0, 1, 0, 0, 2], [0] * 5]
    assert [row_of(line, 3).nnz for line in xmlc_lines(file)] == [2, 1]


def test_what_cannot_be_an_instance_is_refused_wherever_it_is_read(tmp_path):
    file = tmp_path / "bad.txt"
    file.write_text("4,1 0:1\n\n3 0:1\n")
    with pytest.raises(DataError, match="line 2: empty"):
        read_xmlc(file)
    lines = list(xmlc_lines(file))
    assert len(lines) == 3
    with pytest.raises(DataError, match="empty; expected labels and COLUMN:VALUE"):
        row_of(lines[1], 3)
    for header in ("2 99999999999999 5", "2 3 99999999999999"):  # names alone would fill the memory
        file.write_text(f"{header}\n1 0:1\n1 0:1\n")
        with pytest.raises(DataError, match="at most 10,000,000 columns and labels"):
            read_xmlc(file)
    file.write_bytes(b"1 0:1\n\xe9 0:1\n")
    with pytest.raises(DataError, match=r"bad\.txt, near line 1: .*0xe9"):
        read_xmlc(file)


def test_only_what_can_be_read_again_is_written(tmp_path):
    entries = csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    write_xmlc(tmp_path / "out.txt", entries, [[1]])
    assert read_xmlc(tmp_path / "out.txt").X.toarray().tolist() == [[2, 0, 4]]
    assert entries.indices.tolist() == [2, 0, 2]
    for bad in (np.nan, np.inf):
        with pytest.raises(DataError, match="expected finite"):
            write_xmlc(tmp_path / "never.txt", [[bad]], [[1]])
