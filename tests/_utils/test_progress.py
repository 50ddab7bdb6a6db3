"""Without a terminal, long work prints a line every few seconds."""

import pytest

from gaussianmlr._utils import progress
from gaussianmlr._utils.progress import ConsoleWatcher


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_features_print_what_is_done_and_the_time_left(clock, capsys):
    watcher = ConsoleWatcher()
    for done in range(8, 160, 8):
        watcher.features(done, 160)
        clock[0] += 2
    watcher.features(160, 160)
    lines = capsys.readouterr().err.splitlines()
    # Every 10 seconds, at 0.25 seconds per instance: 112 left after the sixth batch.
    assert lines[0] == "features: 48 of 160, 0:28 left"
    assert [line.split(",")[0] for line in lines[1:3]] == ["features: 88 of 160", "features: 128 of 160"]
    assert lines[-1].startswith("features of 160 instances are there")


def test_short_work_and_quiet_watchers_print_nothing(clock, capsys):
    watcher = ConsoleWatcher()
    watcher.measured(64, 128)
    watcher.measured(128, 128)
    silent = ConsoleWatcher(quiet=True)
    for done in range(100):
        silent.predicted(done)
        clock[0] += 20
    assert capsys.readouterr().err == ""


def test_predictions_are_counted(clock, capsys):
    watcher = ConsoleWatcher()
    for done in (64, 128, 192):
        watcher.predicted(done)
        clock[0] += 6
    assert capsys.readouterr().err == "predicted 192\n"
