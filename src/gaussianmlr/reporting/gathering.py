"""What a report of a run measures: where the data is, which part of it, what the model says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr import metrics
from gaussianmlr.batches import batches
from gaussianmlr.calibration import BeforeAfter, Calibration, compare
from gaussianmlr.data import RankedData, RankedMNIST
from gaussianmlr.errors import DataError
from gaussianmlr.measuring import Part, find_part, ready
from gaussianmlr.methods import Reading
from gaussianmlr.metrics import Abstention
from gaussianmlr.model import Model
from gaussianmlr.origin import read_origin
from gaussianmlr.prediction import Prediction
from gaussianmlr.reporting.numbers import Confusion, confusion

__all__ = ["Evidence", "Wanted", "find_evidence"]

IntArray = npt.NDArray[np.int64]
_PAIRS = 20_000_000  # probabilities of pairs held at a time
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Wanted:
    """What somebody asks to be measured on.

    Attributes
    ----------
    data : str or None
        As `gmlr evaluate` takes it; without it, the data of the run on its validation part.
    split, size, digits, threshold, tolerance
        As in `measuring.find_part`.
    items : int
        Instances at most; of more, a sample is drawn.
    batch_size : int
        Instances at once.

    Examples
    --------
    >>> Wanted(data="photos/", split="test").items
    2000
    """

    data: str | None = None
    split: str | None = None
    size: int | None = None
    digits: str = "auto"
    threshold: float | None = None
    tolerance: float = 0.0
    items: int = 2_000
    batch_size: int = 64


@dataclass(frozen=True)
class Evidence:
    """A model on instances with known orders.

    Attributes
    ----------
    model : Model
        What was measured.
    data : RankedData or RankedMNIST
        The whole part.
    name : str
        What it is called.
    split : str
        Which part it is.
    rows : int array
        The instances of it that were measured.
    reading : Reading
        What the model says of them without calibration.
    truth : int array [N, K]
        Their true ranks.
    notes : tuple of str
        For people.
    own : bool
        Whether it is the data that the run recorded.
    """

    model: Model
    data: RankedData | RankedMNIST
    name: str
    split: str
    rows: IntArray
    reading: Reading
    truth: IntArray
    notes: tuple[str, ...]
    own: bool = False

    @cached_property
    def prediction(self) -> Prediction:
        """What the model says, calibrated as it is."""
        return Prediction.from_reading(
            self.reading,
            self.model.labels,
            method=self.model.method.name,
            calibration=self.model.calibration,
            names=self.names,
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the instances are called."""
        if isinstance(self.data, RankedData):
            assert self.data.ids is not None
            return tuple(self.data.ids[row] for row in self.rows)
        return tuple(f"{self.data.split} {row}" for row in self.rows)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The paper's six, as fractions."""
        return metrics.evaluate(self.reading.scores.float(), torch.from_numpy(self.truth))

    @cached_property
    def tau_b(self) -> npt.NDArray[np.float64]:
        """Of every instance."""
        scores, truth = self.reading.scores.float(), torch.from_numpy(self.truth)
        return np.asarray(metrics.kendall_tau_b(scores, truth, reduction="none"), dtype=np.float64)

    @cached_property
    def confusion(self) -> Confusion:
        """Which labels stand the wrong way round."""
        return confusion(self.prediction.ranks, self.truth)

    @property
    def paired(self) -> int:
        """Instances whose pairs are looked at: K^2 probabilities each must fit in memory."""
        return max(1, min(len(self.rows), _PAIRS // len(self.model.labels) ** 2))

    @cached_property
    def reliability(self) -> dict[str, BeforeAfter]:
        """Of relevance and, for methods with sigma, of pairs; before and after calibration."""
        calibration, truth = self.model.calibration or Calibration(), torch.from_numpy(self.truth)
        some = self.reading.rows(torch.arange(self.paired))
        return {
            **compare(self.reading, truth, calibration, of=("relevance",)),
            **compare(some, truth[: self.paired], calibration, of=("pairs",)),
        }

    @cached_property
    def abstention(self) -> Abstention | None:
        """Coverage against accuracy; none for methods without sigma."""
        if self.prediction.raw is None:
            return None
        some = self.prediction[: self.paired]
        return metrics.abstention(some.p_above, self.truth[: self.paired])


def find_evidence(
    model: Model, folder: Path, wanted: Wanted, progress: Progress = lambda done, total: None
) -> Evidence:
    """Measure a model on what is wanted, or on what its run recorded.

    Raises
    ------
    DataError
        Where there is no such data.
    """
    if wanted.data is not None:
        part = find_part(
            model,
            wanted.data,
            wanted.split,
            size=wanted.size,
            digits=wanted.digits,
            threshold=wanted.threshold,
            tolerance=wanted.tolerance,
        )
        return _measured(model, part, wanted.data, wanted, progress)
    origin = read_origin(folder)
    if origin is None:
        raise DataError("the run does not say which data it was trained on")
    found = _measured(model, origin.open(model, folder, wanted.split), origin.data, wanted, progress)
    return replace(found, own=True)


@torch.no_grad()
def _measured(model: Model, part: Part, name: str, wanted: Wanted, progress: Progress) -> Evidence:
    data, total = ready(part.data, model), len(part.data)
    if total == 0:
        raise DataError(f"{name}: no instance in the part {part.split!r}")
    # Drawn, so that the first of them are a fair sample too.
    rows = np.random.default_rng(0).permutation(total)[: wanted.items]
    readings, truth = [], []
    done = 0
    for batch in batches(data, torch.from_numpy(rows), wanted.batch_size):
        readings.append(model.read(batch.inputs, wanted.batch_size, calibrated=False))
        truth.append(batch.ranks)
        done += len(batch.ranks)
        progress(done, len(rows))
    reading, ranks = Reading.join(readings), torch.cat(truth).numpy()
    return Evidence(model, part.data, name, part.split, rows, reading, ranks, _notes(part))


def _notes(part: Part) -> tuple[str, ...]:
    """What to know about the data; digits by their name, not by the place they were found at."""
    if isinstance(part.data, RankedMNIST):
        from gaussianmlr.paper.canvas import describe_digits

        source = describe_digits(part.data.digits, "test" if part.data.split == "test" else "train")
        return (f"drawn from {source['name']}",)
    return part.notes
