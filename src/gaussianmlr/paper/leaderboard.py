"""A leaderboard of Ranked MNIST that others can add a row to.

A submission is one JSON file: the scores of the test images are read once, the metrics are computed here from
the true ranks, and only they are kept, with the checksum of the scores.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.tables import markdown, markdown_table
from gaussianmlr._version import __version__
from gaussianmlr.comparison.cells import cell_files, read_sealed, write_sealed
from gaussianmlr.data import SETTINGS, RankedMNIST
from gaussianmlr.data.ranked_mnist.digits import describe_digits, load_digits
from gaussianmlr.data.ranked_mnist.idx import OFFICIAL
from gaussianmlr.data.readers.arrays import load_npz
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.paper.cells import METRICS
from gaussianmlr.paper.evidence import Landed
from gaussianmlr.paper.tables import HEADS, Row
from gaussianmlr.paper.values import Values, measured

__all__ = ["Submission", "read_submissions", "submit", "write_leaderboard"]

TEST = 10_000  # images
_SHOWN = (*METRICS, "f1_instance", "positives_tau")


@dataclass(frozen=True)
class Submission:
    """A method on the test images of a set; metrics in percent.

    Attributes
    ----------
    dataset, name : str
        The set and the method.
    by, link : str
        Who made it, and where it is described.
    images_seen : int or None
        Training images, all epochs together.
    metrics : dict of float
        The paper's six, F1 per instance and tau-b among positives.
    digits, scores : str
        MD5 of the test digits, SHA-256 of the scores.
    """

    dataset: str
    name: str
    metrics: dict[str, float]
    digits: str
    scores: str
    by: str = ""
    link: str = ""
    images_seen: int | None = None
    made_with: str = field(default=f"gaussianmlr {__version__}")

    def __post_init__(self) -> None:
        if self.dataset not in SETTINGS:
            raise DataError(f"there is no set {shorten(self.dataset)}; known are {', '.join(SETTINGS)}")
        if not self.name.strip() or len(self.name) > 80:
            raise DataError(f"the name is {shorten(self.name)}; expected 1 to 80 characters")
        if self.link and not re.match(r"https?://\S+$", self.link):
            raise DataError(
                f"the link is {shorten(self.link)}; expected an address that begins with https://"
            )
        if missing := [name for name in METRICS if name not in self.metrics]:
            raise DataError(f"no number for the metric {missing[0]!r}")


def submit(
    dataset: str,
    scores: str | Path,
    folder: Path,
    *,
    name: str,
    by: str = "",
    link: str = "",
    images_seen: int | None = None,
    digits: str = "auto",
) -> Path:
    """Measure scores of the test images of a set, and write the submission.

    Parameters
    ----------
    dataset : str
        A Ranked MNIST set.
    scores : path-like
        NPY, NPZ (array ``scores``) or CSV of numbers [10,000, 10], row i for test image i, column d for digit
        d. A digit is said to be there if its score is above zero.
    folder : Path
        Folder of the submissions.
    name, by, link, images_seen
        As of `Submission`.
    digits : str
        Where the digits are, as in `load_digits`; the page marks rows of others than MNIST's.
    """
    if dataset not in SETTINGS:
        raise DataError(f"there is no set {shorten(dataset)}; known are {', '.join(SETTINGS)}")
    found = _read_scores(Path(scores))
    unseen = load_digits("test", digits)
    test = RankedMNIST(dataset, "test", size=TEST, digits=unseen)
    if found.shape != (TEST, len(test.labels)):
        raise DataError(
            f"{scores}: scores of shape {list(found.shape)}; expected [{TEST}, {len(test.labels)}], a row "
            "per test image"
        )
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found).all(1))[0])
        raise DataError(f"{scores}: row {row} holds {found[row].tolist()}; expected finite numbers")
    ranks = test.recipes(np.arange(TEST)).ranks.astype(np.int16)
    metrics = {key: round(100 * value, 4) for key, value in measured(Values(found, ranks)).items()}
    digest = hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()
    md5 = describe_digits(unseen, "test")["md5"]
    made = Submission(dataset, name.strip(), metrics, md5, digest, by.strip(), link, images_seen)
    file = folder / f"{dataset}_{_slug(made.name)}.json"
    if file.exists():
        raise DataError(f"{file} exists; choose another name, or remove it")
    write_sealed(file, asdict(made), indent=2)
    return file


def _read_scores(file: Path) -> npt.NDArray[np.float32]:
    try:
        if file.suffix.lower() == ".csv":
            return np.loadtxt(file, delimiter=",", dtype=np.float32, ndmin=2)
        if file.suffix.lower() == ".npz":
            return np.asarray(load_npz(file)["scores"], dtype=np.float32)
        with file.open("rb") as stream:
            return np.asarray(np.load(stream, allow_pickle=False), dtype=np.float32)
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise DataError(
            f"{file} cannot be read ({error}); expected an NPY, an NPZ with the array 'scores', or "
            "a CSV of numbers"
        ) from None


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "method"


def read_submissions(folder: Path) -> list[Submission]:
    """All submissions of a folder."""
    return [read_sealed(Submission, file)[0] for file in cell_files(folder)]


def write_leaderboard(landed: Landed, submissions: Iterable[Submission], file: Path) -> Path:
    """Write the page: per set, the finished cells and the submissions by tau-b."""
    rows: dict[str, list[tuple[float, list[str]]]] = {name: [] for name in SETTINGS}
    for cell, facts in landed.items():
        data = facts.get("data", {})
        if cell.dataset in rows and data.get("test_images") == TEST and _is_mnist(data):
            title = f"{Row(cell, None, None, 1).title}, preset {cell.preset}, seed {cell.seed}"
            numbers = facts["metrics"]
            about = [markdown(title), "this repository", f"{facts['images_seen']:,}"]
            rows[cell.dataset].append((numbers["tau_b"], [*about, *_numbers(numbers)]))
    for one in submissions:
        title = f"[{markdown(one.name)}]({one.link})" if one.link else markdown(one.name)
        if one.digits != OFFICIAL["test", "images"].raw_md5:
            title += " (other digits than MNIST's)"
        seen = "" if one.images_seen is None else f"{one.images_seen:,}"
        about = [title, markdown(one.by), seen]
        rows[one.dataset].append((one.metrics["tau_b"], [*about, *_numbers(one.metrics)]))
    lines = [
        "# Leaderboard of Ranked MNIST",
        "",
        f"{TEST:,} test images per set, drawn from MNIST's test digits; percent, HL and M-1: smaller is "
        "better. A row of your own:",
        "",
        "    gmlr reproduce submit gray-s scores.npz --name 'My method' --by 'Who' --link https://example.org",
        "    gmlr reproduce leaderboard",
        "",
        "The first command reads scores [10,000, 10] of the test images (above zero: the digit is there), "
        "computes the metrics and writes a JSON file to `submissions/`; the second writes this page. Please "
        "do not choose anything by these numbers: validation images are endless.",
    ]
    head = ["method", "by", "training images", *(HEADS[name][0] for name in _SHOWN)]
    for dataset, found in rows.items():
        ordered = [row for _, row in sorted(found, key=lambda one: -one[0])]
        lines += ["", f"## {dataset}", "", *markdown_table(head, ordered, texts=2)]
    write_text(file, "\n".join(lines) + "\n")
    return file


def _is_mnist(data: dict[str, dict[str, dict[str, str]]]) -> bool:
    return data.get("digits", {}).get("test", {}).get("name", "").startswith("MNIST")


def _numbers(metrics: dict[str, float]) -> list[str]:
    return [f"{metrics[name]:.2f}" if name in metrics else "-" for name in _SHOWN]
