"""Nothing half-written."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from gaussianmlr import DataError
from gaussianmlr._utils import files, leftovers


def test_a_file_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "a" / "b.txt"
    files.write_text(target, "first\n")
    files.write_bytes(target, b"second")
    assert target.read_bytes() == b"second"
    assert [path.name for path in target.parent.iterdir()] == ["b.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_trace(tmp_path, error):
    target = tmp_path / "b.txt"
    target.write_text("old")

    def fail():
        with files.aside(target) as part:
            part.write_text("half of")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]


def test_a_folder_appears_as_a_whole(tmp_path):
    with files.aside(tmp_path / "made") as part:
        part.mkdir()
        (part / "x").write_text("x")
        assert not (tmp_path / "made").exists()
    assert (tmp_path / "made" / "x").read_text() == "x"


def test_a_failed_folder_is_swept_away(tmp_path):
    def fail():
        with files.aside(tmp_path / "made") as part:
            part.mkdir()
            (part / "x").write_text("x")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_writing_nothing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), files.aside(tmp_path / "made"):
        pass


def test_files_have_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    files.write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_killed_process_leaves_the_old_file(tmp_path):
    target = tmp_path / "b.txt"
    target.write_text("old")
    with writing(target) as run:
        run.kill()
        run.wait()
    assert target.read_text() == "old"


@contextlib.contextmanager
def writing(target):
    """A process that has written half of a file."""
    code = (
        "import sys, time; from gaussianmlr import files\n"
        "with files.aside(sys.argv[1]) as part:\n"
        "    part.write_text('half of'); print('ready', flush=True); time.sleep(600)"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True)
    try:
        assert run.stdout.readline() == "ready\n"
        yield run
    finally:
        run.kill()
        run.wait()
        run.stdout.close()


def hidden(folder):
    return sorted(file.name for file in folder.iterdir() if file.name.startswith("."))


def test_what_a_dead_process_left_is_removed_at_the_next_writing(tmp_path):
    with writing(tmp_path / "a.txt") as living, writing(tmp_path / "b.txt") as dying:
        assert len(hidden(tmp_path)) == 2
        os.kill(living.pid, signal.SIGSTOP)  # it does nothing, and lives
        dying.kill()  # not yet waited for: a process that is dead, and whose id is still taken
        while pathlib.Path(f"/proc/{dying.pid}/stat").read_text().split()[2] != "Z":
            time.sleep(0.01)
        files.write_text(tmp_path / "c.txt", "whole")
        assert [name.split(".")[1] for name in hidden(tmp_path)] == ["a"]
        os.kill(living.pid, signal.SIGCONT)
    with files.held(tmp_path):  # the next run in the same folder
        assert hidden(tmp_path) == [".lock"]
    assert (tmp_path / "c.txt").read_text() == "whole"


@pytest.mark.parametrize(
    ("name", "goes"),
    [
        (".a.csv.{place}-{pid}-{started}-0123ab.part", False),  # this process
        (".a.csv.{place}-{pid}-7-0123ab.part", True),  # another process of before, with the id of this one
        (".a.csv.{place}-4194999-7-0123ab.part", True),  # an id that Linux does not give
        (".a.csv.deadbeef-4194999-7-0123ab.part", "old"),  # of another machine, container or boot
        (".a.csv.0123456789ab.part", "old"),  # of a version that did not say whose
        (".a.csv.part", False),
        ("a.csv.{place}-4194999-7-0123ab.part", False),
        (".a.csv.{place}-4194999-7-0123ab.partial", False),
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_only_what_nobody_needs_is_removed(tmp_path, name, goes, kind):
    place, pid, started, _ = leftovers.temporary(tmp_path / "x").name.split(".")[2].split("-")
    for age in (0, 3_600, 90_000):
        part = tmp_path / name.format(place=place, pid=pid, started=started)
        part.mkdir() if kind == "folder" else part.write_text("half")
        if kind == "folder":
            (part / "inner").write_text("half")
            os.utime(part / "inner", (time.time() - age,) * 2)
        os.utime(part, (time.time() - age,) * 2)
        leftovers.sweep(tmp_path)
        assert part.exists() is not (age > 86_400 if goes == "old" else goes)
        leftovers.remove(part)


def test_a_folder_is_replaced_only_where_it_is_asked_for(tmp_path):
    def write(text, **how):
        with files.aside(tmp_path / "made", **how) as part:
            part.mkdir()
            (part / "x").write_text(text)

    write("first")
    with pytest.raises(OSError, match="not empty"):
        write("second")
    assert (tmp_path / "made" / "x").read_text() == "first"
    write("third", replace=True)
    assert (tmp_path / "made" / "x").read_text() == "third"
    assert [file.name for file in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_folder_is_not_lost_when_a_process_dies_while_it_replaces_it(tmp_path, stage):
    """The process ends itself between the two renames, or after them and before the old one is removed."""
    patch = {
        "before": "pathlib.Path.replace = lambda *_: os._exit(9)",
        "after": "files.remove = lambda *_: os._exit(9)",
    }
    code = (
        "import os, pathlib, sys; from gaussianmlr import files\n"
        "def write(text):\n"
        "    with files.aside(pathlib.Path(sys.argv[1]), replace=True) as part:\n"
        "        part.mkdir(); (part / 'x').write_text(text)\n"
        f"write('old')\n{patch[stage]}\nwrite('new')"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "made")]).returncode == 9
    assert (tmp_path / "made").exists() is (stage == "after")
    leftovers.sweep(tmp_path)
    assert (tmp_path / "made" / "x").read_text() == {"before": "old", "after": "new"}[stage]
    assert [file.name for file in tmp_path.iterdir()] == ["made"]


def test_names_as_long_as_the_system_allows(tmp_path):
    for name in ("x" * 255, "ü" * 127):
        files.write_text(tmp_path / name, "whole")
        assert (tmp_path / name).read_text() == "whole"


def test_links_stay_links_and_pipes_get_what_was_written(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    files.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_text()))
    reader.start()
    files.write_text(tmp_path / "pipe", "through")
    reader.join(10)
    assert found == ["through"]
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["link", "pipe", "target"]


def test_a_file_does_not_take_the_place_of_a_folder(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(DataError, match="photos is a folder; expected the name of a file"):
        files.write_text(tmp_path / "photos", "text")
    assert [file.name for file in tmp_path.iterdir()] == ["photos"]
