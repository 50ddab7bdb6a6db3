"""Rows that others add: measured here, from scores alone."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from gaussianmlr import DataError
from gaussianmlr.cli.main import app
from gaussianmlr.data import RankedMNIST
from gaussianmlr.metrics import evaluate
from gaussianmlr.paper.leaderboard import read_submissions, submit, write_leaderboard

NAME = "A | method *of* mine"


@pytest.fixture(scope="module")
def truth():
    return RankedMNIST("gray-b", "test", digits="embedded").recipes(np.arange(10_000)).ranks


def test_a_submission_is_measured_and_listed(tmp_path, truth):
    random = np.random.default_rng(0)
    scores = (truth - 0.5 + random.normal(size=truth.shape)).astype(np.float32)
    np.savez(tmp_path / "scores.npz", scores=scores)
    words = ["reproduce", "submit", "gray-b", str(tmp_path / "scores.npz"), "--name", NAME, "--by", "Me"]
    words += ["--link", "https://example.org/a", "--images", "5000", "--digits", "embedded"]
    words += ["--results", str(tmp_path)]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.exception
    (file,) = (tmp_path / "submissions").iterdir()
    made = json.loads(file.read_text())
    known = evaluate(scores, truth)
    for name, value in known.items():
        assert made["metrics"][name] == pytest.approx(100 * value, abs=1e-3)
    assert made["images_seen"] == 5000
    better = (truth - 0.5).astype(np.float32)
    np.savetxt(tmp_path / "scores.csv", better, delimiter=",")
    submit("gray-b", tmp_path / "scores.csv", tmp_path / "submissions", name="Perfect", digits="embedded")
    board = write_leaderboard(
        {}, read_submissions(tmp_path / "submissions"), tmp_path / "board.md"
    ).read_text()
    rows = [line for line in board.splitlines() if line.startswith("| ") and "method | by" not in line]
    rows = [row for row in rows if not row.startswith("| ---")]
    other = " (other digits than MNIST's)"  # these tests have the embedded ones
    assert [row.split(" | ")[0] for row in rows] == [
        f"| Perfect{other}",
        rf"| [A \| method \*of\* mine](https://example.org/a){other}",
    ]
    assert "| 100.00 |" in rows[0]
    with pytest.raises(DataError, match="exists; choose another name"):
        raise CliRunner().invoke(app, words).exception
    file.write_text(file.read_text().replace('"tau_b": ', '"tau_b": 9'))
    with pytest.raises(DataError, match="checksum is wrong"):
        read_submissions(tmp_path / "submissions")


@pytest.mark.parametrize(
    ("scores", "more", "message"),
    [
        (np.zeros((3, 10)), {}, r"scores of shape \[3, 10\]; expected \[10000, 10\]"),
        (np.full((10_000, 10), np.nan), {}, "row 0 holds .* expected finite numbers"),
        (np.zeros((10_000, 10)), {"name": " "}, "expected 1 to 80 characters"),
        (np.zeros((10_000, 10)), {"link": "javascript:alert(1)"}, "expected an address"),
        (np.zeros((10_000, 10), object), {}, "cannot be read"),
    ],
)
def test_what_cannot_be_submitted_leaves_nothing(scores, more, message, tmp_path):
    np.save(tmp_path / "scores.npy", scores)
    with pytest.raises(DataError, match=message):
        submit(
            "gray-b", tmp_path / "scores.npy", tmp_path / "s", **{"name": "one", "digits": "embedded", **more}
        )
    assert not (tmp_path / "s").exists()
    with pytest.raises(DataError, match="there is no set"):
        submit("grey", tmp_path / "scores.npy", tmp_path / "s", name="one")
