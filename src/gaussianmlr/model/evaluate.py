"""The one loop that runs a network over data without training it, and the metrics computed on top of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from gaussianmlr.data.loading import Batch, Order, RankedSet, batches, fetch
from gaussianmlr.data.streaming.shuffle import InOrder
from gaussianmlr.methods import Reading
from gaussianmlr.metrics import PaperMetrics
from gaussianmlr.model.calibration import Calibration, compare
from gaussianmlr.model.model import Model
from gaussianmlr.model.quick import quickened
from gaussianmlr.nn.backbones.converted import FEWEST
from gaussianmlr.nn.ensembles import one_of
from gaussianmlr.nn.work import evaluating

__all__ = ["evaluate", "evaluate_calibration", "measure", "outputs", "read", "readings"]

Progress = Callable[[int, int], None]
_SAMPLE = 5_000  # instances kept for calibration: two numbers need no more
_CELLS, _FEWEST = 1 << 23, 100  # instances x labels of that sample at most, and instances at least


@torch.no_grad()
def outputs(
    network: nn.Module,
    data: RankedSet,
    batch_size: int = 256,
    *,
    rows: Tensor | None = None,
    workers: int = 0,
    rank: int = 0,
    world: int = 1,
    forward: Callable[[Tensor], Any] | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[Any, Batch]]:
    """The outputs of a network in evaluation mode, batch by batch, with the batch.

    Parameters
    ----------
    network : nn.Module
        Its modules return to their modes at the end.
    data : RankedSet
        The instances.
    batch_size : int
        Instances per batch, over all processes together.
    rows : Tensor, optional
        The instances to use, in this order; all of them by default.
    workers : int
        Number of loading processes.
    rank, world : int
        Index of this process, and number of processes.
    forward : callable, optional
        Maps inputs on the network's device to outputs, in place of the network.
    progress : callable, optional
        Called with the numbers of finished and of all instances.

    Examples
    --------
    >>> from gaussianmlr.data.loading import Arrays
    >>> data = Arrays(torch.zeros(5, 2), torch.ones(5, 3, dtype=torch.int64))
    >>> [list(found.shape) for found, batch in outputs(nn.Linear(2, 3), data, 4)]
    [[4, 3], [1, 3]]
    """
    order: Order = InOrder(len(data)) if rows is None else rows
    device = one_of(network).device
    done = 0
    with evaluating(network):
        for batch in batches(data, order, batch_size, rank=rank, world=world, workers=workers):
            if len(batch.ranks):
                yield (forward or network)(batch.inputs.to(device)), batch
            done += batch.whole
            if progress is not None:
                progress(done, len(order))


def readings(
    model: Model, data: RankedSet, batch_size: int = 256, *, calibrated: bool = False, **options: Any
) -> Iterator[tuple[Reading, Tensor]]:
    """What a model says of each batch, and the true ranks, both in main memory; options as of `outputs`."""
    rows = options.get("rows")
    some: Order = InOrder(len(data)) if rows is None else rows
    reader = model
    if len(some) >= FEWEST:
        reader = quickened(model, fetch(data, some[0:8].tolist())[0])

    def forward(inputs: Tensor) -> Reading:
        return reader.read(inputs, batch_size, calibrated=calibrated)

    for reading, batch in outputs(model.network, data, batch_size, forward=forward, **options):
        yield reading, batch.ranks


def read(model: Model, data: RankedSet, batch_size: int = 256, **options: Any) -> tuple[Reading, Tensor]:
    """What a model says of all instances, and their true ranks; options as of `readings`."""
    parts, ranks = zip(*readings(model, data, batch_size, **options))
    return Reading.join(parts), torch.cat(ranks)


def evaluate(model: Model, data: RankedSet, batch_size: int = 256, workers: int = 0) -> dict[str, float]:
    """The paper's six metrics of a model on data, by the names of its tables, as fractions."""
    return measure(model, data, batch_size, workers).metrics


def values_of(measures: PaperMetrics) -> dict[str, float]:
    """The metrics as numbers."""
    return {name: float(value) for name, value in measures.compute().items()}


class Measured(NamedTuple):
    """Metrics of all instances, and the uncalibrated readings and true ranks of a sample of them."""

    metrics: dict[str, float]
    reading: Reading
    truth: Tensor


def measure(
    model: Model, data: RankedSet, batch_size: int = 256, workers: int = 0, progress: Progress | None = None
) -> Measured:
    """Metrics of a model and an evenly spaced sample of up to 5,000 readings, from one pass over the data.

    Beyond 1,677 labels the sample is smaller, so that its memory does not grow with their number.
    """
    some = torch.zeros(len(data), dtype=torch.bool)
    count = min(len(data), _SAMPLE, max(_FEWEST, _CELLS // len(model.labels)))
    some[torch.linspace(0, len(data) - 1, count).round().long()] = True
    measures, kept, truth = PaperMetrics(), [], []
    masks = torch.split(some, batch_size)
    found = readings(model, data, batch_size, workers=workers, progress=progress)
    for (reading, ranks), mask in zip(found, masks):
        calibrated = model.calibration.apply(reading) if model.calibration else reading
        measures.update(reading.scores.float(), ranks, calibrated.ranks)
        kept.append(reading.rows(mask))
        truth.append(ranks[mask])
    return Measured(values_of(measures), Reading.join(kept), torch.cat(truth))


def calibration_errors(
    reading: Reading, truth: Tensor, calibration: Calibration
) -> dict[str, dict[str, float]]:
    """Expected calibration errors of relevance and, for methods with sigma, of pairs."""
    return {
        name: {"before": round(both.ece_before, 5), "after": round(both.ece_after, 5)}
        for name, both in compare(reading, truth, calibration).items()
    }


def evaluate_calibration(
    model: Model, data: RankedSet, batch_size: int = 256, *, progress: Progress | None = None
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """The metrics of `evaluate`, and expected calibration errors before and after calibration.

    The errors are those of relevance and, for methods with sigma, of pairs. For large data they are
    computed from an evenly spaced sample of 5,000 instances. A model without calibration has the same
    errors before and after.

    Parameters
    ----------
    model : Model
        The model to measure.
    data : RankedSet
        Instances that it was neither trained nor calibrated on.
    batch_size : int
        Instances per batch.
    progress : callable, optional
        Called with the numbers of finished and of all instances.

    Examples
    --------
    >>> from gaussianmlr.data.loading import Arrays
    >>> from gaussianmlr.model import Recipe, build
    >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    >>> data = Arrays(x, (x > 0) * (x.argsort(1).argsort(1) + 1))
    >>> recipe, inputs = Recipe(backbone="mlp"), {"kind": "table", "channels": 2}
    >>> model = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs)
    >>> {what: sorted(errors) for what, errors in evaluate_calibration(model, data)[1].items()}
    {'relevance': ['after', 'before'], 'pairs': ['after', 'before']}
    """
    metrics, reading, truth = measure(model, data, batch_size, progress=progress)
    return metrics, calibration_errors(reading, truth, model.calibration or Calibration())
