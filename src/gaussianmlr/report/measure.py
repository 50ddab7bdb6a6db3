"""What the report of a run measures: the data, its part, and the predictions of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr import metrics
from gaussianmlr.comparison.peers import NO_PEERS, Peers, measure_peers
from gaussianmlr.data import RankedData, RankedMNIST
from gaussianmlr.data.ranked_mnist.digits import describe_digits
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.sparse import SparseRankedData, dense_rows, made_dense
from gaussianmlr.errors import DataError
from gaussianmlr.inference.matching import Part, find_part, open_origin, ready
from gaussianmlr.methods import Reading
from gaussianmlr.metrics import Abstention
from gaussianmlr.model.calibration import BeforeAfter, Calibration, compare
from gaussianmlr.model.evaluate import Progress, read
from gaussianmlr.model.model import Model
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.normal import Significance
from gaussianmlr.report.counts import Confusion, confusion
from gaussianmlr.training.origin import read_origin

__all__ = ["Evidence", "Wanted", "find_evidence"]

IntArray = npt.NDArray[np.int64]
_CONFUSED = 500  # labels with a count for each pair
_PAIRS = 20_000_000  # probabilities of pairs in memory at a time


@dataclass(frozen=True)
class Wanted:
    """The data to measure a run on.

    Attributes
    ----------
    data : str or None
        As `gmlr evaluate` takes it; without it, the data of the run on its validation part.
    split, size, digits, threshold, tolerance, layout
        As in `measuring.find_part`.
    items : int
        Maximum number of instances; of more, a random sample is drawn.
    batch_size : int
        Instances per batch.
    peers : bool
        Whether to measure a constant order and, for tables, a forest on the same instances.

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
    layout: Layout | None = None
    peers: bool = True


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
        Its name.
    split : str
        Name of the part.
    rows : int array
        The measured instances of the part.
    reading : Reading
        Their uncalibrated predictions.
    truth : int array [N, K]
        Their true ranks.
    notes : tuple of str
        Remarks for the reader.
    own : bool
        Whether the data is that recorded by the run.
    peers : Peers
        Simple predictors on the same instances.
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
    peers: Peers = NO_PEERS

    @cached_property
    def prediction(self) -> Prediction:
        """The calibrated predictions."""
        return Prediction.from_reading(
            self.reading,
            self.model.labels,
            method=self.model.method.name,
            calibration=self.model.calibration,
            names=self.names,
            jnd=self.model.jnd,
            conformal=self.model.guarantees,
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the instances."""
        if isinstance(self.data, RankedData):
            assert self.data.ids is not None
            return tuple(self.data.ids[row] for row in self.rows)
        return tuple(f"{self.data.split} {row}" for row in self.rows)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The six metrics of the paper, as fractions."""
        truth = torch.from_numpy(self.truth)
        return metrics.evaluate(self.reading.scores.float(), truth, self._with_ties)

    @cached_property
    def tau_b(self) -> npt.NDArray[np.float64]:
        """Tau-b per instance."""
        scores, truth = self.reading.scores.float(), torch.from_numpy(self.truth)
        scores = scores if self._with_ties is None else self._with_ties.float()
        return np.asarray(metrics.kendall_tau_b(scores, truth, reduction="none"), dtype=np.float64)

    @property
    def _with_ties(self) -> torch.Tensor | None:
        """The predicted ranks of models that predict ties."""
        return None if self.prediction.tau is None else torch.tensor(self.prediction.ranks)

    @cached_property
    def confusion(self) -> Confusion:
        """Confusion of order: which labels are predicted in the wrong order, among those of `confused`."""
        return confusion(self.prediction.ranks[:, self.confused], self.truth[:, self.confused])

    @cached_property
    def confused(self) -> IntArray:
        """Columns of the labels whose confusion is counted: of many, those that are relevant most often."""
        often = (self.truth > 0).sum(0) + (self.prediction.ranks > 0).sum(0)
        return np.sort(np.argsort(-often, kind="stable")[:_CONFUSED])

    @property
    def paired(self) -> int:
        """Number of instances whose guarantees are evaluated: K^2 statements each must fit in memory."""
        return max(1, min(len(self.rows), _PAIRS // len(self.model.labels) ** 2))

    @cached_property
    def reliability(self) -> dict[str, BeforeAfter]:
        """Reliability of relevance and, for methods with sigma, of pairs; before and after calibration."""
        calibration = self.model.calibration or Calibration()
        return compare(self.reading, torch.from_numpy(self.truth), calibration)

    @cached_property
    def abstention(self) -> Abstention | None:
        """Coverage against accuracy; None for methods without sigma."""
        if self.prediction.raw is None:
            return None
        law = Significance(*self.prediction.raw)  # type: ignore[arg-type]  # arrays will do
        return metrics.abstention(law, self.truth)


def find_evidence(
    model: Model, folder: Path, wanted: Wanted, progress: Progress = lambda done, total: None
) -> Evidence:
    """Measure a model on the wanted data, or on the data recorded by its run.

    Raises
    ------
    DataError
        If there is no such data.
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
            layout=wanted.layout,
        )
        return _measured(model, part, wanted.data, wanted, progress, folder)
    origin = read_origin(folder)
    if origin is None:
        raise DataError("the run does not say which data it was trained on")
    part = open_origin(origin, model, folder, wanted.split)
    return replace(_measured(model, part, origin.data, wanted, progress, folder), own=True)


def _measured(
    model: Model, part: Part, name: str, wanted: Wanted, progress: Progress, folder: Path
) -> Evidence:
    total = len(part.data)
    if total == 0:
        raise DataError(f"{name}: no instance in the part {part.split!r}")
    # Shuffled, so that the first rows are a fair sample too.
    rows = np.random.default_rng(0).permutation(total)[: wanted.items]
    if isinstance(part.data, SparseRankedData):
        sample = part.data.subset(rows[: dense_rows(part.data)])
        part, rows = part._replace(data=made_dense(sample, "report")), np.arange(len(sample))
    data = ready(part.data, model)
    chosen = torch.from_numpy(rows)
    reading, truth = read(model, data, wanted.batch_size, rows=chosen, progress=progress)
    found = Evidence(model, part.data, name, part.split, rows, reading, truth.numpy(), _notes(part))
    return replace(found, peers=measure_peers(model, folder, data, chosen)) if wanted.peers else found


def _notes(part: Part) -> tuple[str, ...]:
    """Remarks on the data; digits by name, not by path."""
    if isinstance(part.data, RankedMNIST):
        source = describe_digits(part.data.digits, "test" if part.data.split == "test" else "train")
        return (f"drawn from {source['name']}",)
    return part.notes
