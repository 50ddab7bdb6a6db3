"""Nothing half-written."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from gaussianmlr import DataError, files


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
    code = (
        "import sys, time; from gaussianmlr import files\n"
        "with files.aside(sys.argv[1]) as part:\n"
        "    part.write_text('half of'); print('ready', flush=True); time.sleep(60)"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    run.wait()
    run.stdout.close()
    time.sleep(0.01)
    assert target.read_text() == "old"


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
