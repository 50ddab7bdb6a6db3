"""The store: histories of several people, undo, labels that are added, threads and processes."""

import sqlite3
import subprocess
import sys
import threading

import pytest

from gaussianmlr.apps.annotate import Found, Store, read_items, read_labels
from gaussianmlr.errors import DataError

LABELS = ("sea", "sky", "sun > moon")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store", create=True) as made:
        made.bring(Found("text", "poems", {f"p{number}": f"poem {number}" for number in range(5)}), LABELS)
        yield made


def test_every_commit_waits_for_the_disk(store):
    assert store._rows("PRAGMA journal_mode") == [("wal",)]
    assert store._rows("PRAGMA synchronous") == [(2,)]  # FULL


def test_answers_of_two_people_stand_side_by_side_and_undo_touches_ones_own(store):
    ann, bob = store.person("Ann").id, store.person("Bob").id
    store.answer(1, ann, [["sky"], ["sun > moon", "sea"]], token="a1", note="cloudy", seconds=3.5)
    store.answer(1, bob, [["sea"]], token="b1")
    store.answer(1, ann, [["sea"], ["sky"]], token="a2")
    assert [(one.person, one.ranking) for one in store.answers(1)] == [(ann, "sea > sky"), (bob, "sea")]
    assert store.undo(ann).ranking == "sea > sky"
    assert [one.ranking for one in store.answers(1)] == ['sky > sea = "sun > moon"', "sea"]
    assert store.answers(1, ann)[0].note == "cloudy"
    store.undo(ann)
    assert [one.person for one in store.answers(1)] == [bob]
    assert store.undo(ann) is None
    assert [undone for _, undone in store.history(1, ann)] == [True, True]


def test_a_request_that_is_sent_twice_counts_once(store):
    ann = store.person("Ann").id
    first = store.answer(1, ann, [["sea"]], token="same")
    assert store.answer(1, ann, [["sea"]], token="same") == first
    assert len(store.history(1, ann)) == 1
    with pytest.raises(DataError, match="another answer"):
        store.answer(2, ann, [["sea"]], token="same")


def test_names_differ_by_more_than_capitals_and_spaces(store):
    assert store.person("  Ann\tLee ") == store.person("ann lee")
    for bad in ("", "   ", "x" * 81, "a\x00b"):
        with pytest.raises(DataError, match="expected a name"):
            store.person(bad)


def test_waiting_is_what_one_has_not_seen_the_most_unsure_first(store):
    ann, bob = store.person("Ann").id, store.person("Bob").id
    store.answer(2, ann, None, token="skip")
    assert [item.id for item in store.waiting(ann)] == [1, 3, 4, 5]
    assert [item.id for item in store.waiting(bob, 2)] == [1, 2]
    store.suggest([(4, "sea", 2.0), (5, "sky", 3.0), (1, "", 0.1)], "model")
    assert [item.id for item in store.waiting(ann)] == [5, 4, 1, 3]
    store.answer(5, bob, [["sky"]], token="b")
    assert [item.id for item in store.waiting(ann, wanted=1)] == [4, 1, 3]
    assert store.done(ann) == (0, 1)
    assert store.done(bob) == (1, 0)
    store.forget_suggestions()
    assert store.suggestion(4) is None


def test_labels_can_be_added_and_never_taken_away(store):
    found = Found("text", "poems", {"p0": "poem 0", "new": "poem"})
    store.bring(found, ("mist", "sky", "sea", "sun > moon"))
    assert store.labels == (*LABELS, "mist")
    assert [item.name for item in store.items()] == ["p0", "new"]  # the others are asked no more
    assert len(store.items(everything=True)) == 6
    with pytest.raises(DataError, match=r"'sea'.*not removed"):
        store.bring(found, ("mist", "sky", "sun > moon"))
    with pytest.raises(DataError, match="'text', not 'row'"):
        store.bring(Found("row", "t", {}), store.labels)


@pytest.mark.parametrize(
    ("order", "what"),
    [
        ([["sea"], ["sea"]], "stands above and below itself"),
        ([["fog"]], "fog"),
        ([[]], "bucket"),
    ],
)
def test_orders_that_are_none_are_refused_and_leave_nothing(store, order, what):
    ann = store.person("Ann").id
    with pytest.raises(DataError, match=what):
        store.answer(1, ann, order, token="bad")
    assert store.answers() == []


def test_who_or_what_is_unknown_is_refused(store):
    with pytest.raises(DataError, match="no item 77"):
        store.answer(77, store.person("Ann").id, [], token="x")
    for ask in (lambda: store.answer(1, 9, [], token="x"), lambda: store.waiting(9), lambda: store.done(9)):
        with pytest.raises(DataError, match="no person 9"):
            ask()


def test_many_threads_lose_nothing(store):
    people = [store.person(f"person {number}").id for number in range(4)]

    def work(person):
        for item in range(1, 6):
            store.answer(item, person, [["sea"], ["sky"]], token=f"{person}-{item}")

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.answers()) == 20


def test_what_is_saved_survives_a_process_that_dies_at_once(store):
    code = (
        "import os, sys\n"
        "from gaussianmlr.apps.annotate import Store\n"
        "store = Store(sys.argv[1])\n"
        "store.answer(3, store.person('Cy').id, [['sky']], token='c')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, store.folder], capture_output=True)
    assert done.returncode == -9, done.stderr
    assert [one.ranking for one in store.answers(3)] == ["sky"]


def test_changes_together_happen_all_or_not_at_all(store):
    def half():
        with store.together():
            store.person("Ann")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert store.people() == []


def test_stores_that_are_none_give_one_clear_error(tmp_path):
    with pytest.raises(DataError, match="no store of answers"):
        Store(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="is a file"):
        Store(tmp_path / "file", create=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(DataError, match="run is not empty and holds no store of answers"):
        Store(tmp_path / "run", create=True)
    assert [one.name for one in (tmp_path / "run").iterdir()] == ["run.json"]
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "answers.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(DataError, match=r"answers\.sqlite: cannot be used"):
        Store(broken, create=True)
    other = tmp_path / "other"
    other.mkdir()
    connection = sqlite3.connect(other / "answers.sqlite")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(DataError, match="is no store of answers"):
        Store(other, create=True)


def test_labels_files(tmp_path):
    file = tmp_path / "labels.txt"
    file.write_bytes("\ufeff# scenes\nsky\n\n sea of clouds \n".encode())
    assert read_labels(file) == ("sky", "sea of clouds")
    for text, what in [
        ("\n# nothing\n", "holds no label"),
        ("sky\nsky\n", r"labels\.txt: labels must differ"),
    ]:
        file.write_text(text)
        with pytest.raises(DataError, match=what):
            read_labels(file)
    file.write_bytes(b"sk\xff")
    with pytest.raises(DataError, match="not UTF-8"):
        read_labels(file)
    with pytest.raises(DataError, match="does not exist"):
        read_labels(tmp_path / "none.txt")


def test_items_of_tables(tmp_path):
    table = tmp_path / "hikes.csv"
    table.write_text("id,height,place,ranking,ranker\na,3.5,Alps,sky,x\na,3.5,Alps,sea,y\nb,,Harz,,x\n")
    found = read_items(table)
    assert found.kind == "row"
    assert found.items == {"a": {"height": 3.5, "place": "Alps"}, "b": {"height": None, "place": "Harz"}}
    (tmp_path / "list.csv").write_text("image\nnone.jpg\n")
    with pytest.raises(DataError, match=r"none\.jpg' does not exist"):
        read_items(tmp_path / "list.csv")
    with pytest.raises(DataError, match="does not exist"):
        read_items(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no pictures"):
        read_items(tmp_path / "empty")
