"""The parts of a training stage: network, optimiser, schedule, average and their state; validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

from gaussianmlr.data.loading import RankedSet
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Weights
from gaussianmlr.methods import Method
from gaussianmlr.metrics import PaperMetrics
from gaussianmlr.model.evaluate import outputs, values_of
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.backbones.memory_format import laid_out


@dataclass
class StageParts:
    """The parts of a stage, and their state for a checkpoint."""

    network: nn.Module
    wrapped: Any
    optimiser: Any
    schedule: LRScheduler
    average: AveragedModel | None

    def kept(self) -> nn.Module:
        """The network whose weights are kept: the average, if there is one."""
        if self.average is None:
            return self.network
        kept: nn.Module = self.average.module
        return kept

    def state(self) -> dict[str, Any]:
        """Everything needed to resume at the next step."""
        found = {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
        }
        if torch.cuda.is_available():
            found["random_cuda"] = torch.cuda.get_rng_state_all()
        if self.average is not None:
            found["average"] = self.average.state_dict()
        return found

    def load(self, state: dict[str, Any], *, begins: bool) -> None:
        """Load a state; at the beginning of a stage, its optimiser state is that of the stage before."""
        self.network.load_state_dict(state["network"])
        torch.set_rng_state(state["random"])
        if "random_cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["random_cuda"])
        if begins:
            return
        self.optimiser.load_state_dict(state["optimiser"])
        self.schedule.load_state_dict(state["schedule"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])


def make_schedule(optimiser: Optimizer, recipe: Recipe, steps: int, epochs: int) -> LRScheduler:
    """The rate of every step of a stage, by the recipe."""
    if recipe.schedule == "one-cycle":
        rates: Sequence[float] = [group["lr"] for group in optimiser.param_groups]
        return torch.optim.lr_scheduler.OneCycleLR(
            optimiser,
            max_lr=list(rates),
            total_steps=max(2, steps * epochs),
            pct_start=recipe.rise,
            cycle_momentum=False,
        )
    factor = recipe.decay if recipe.schedule == "exponential" else 1.0
    return torch.optim.lr_scheduler.StepLR(optimiser, step_size=steps * recipe.decay_every, gamma=factor)


def moving_average(decay: float) -> Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]:
    r"""The moving average of weights, with the decay :math:`\min(d, (1 + n) / (10 + n))` after n updates.

    With a constant decay, the first weights would keep a share of :math:`d^n`: a twentieth after 300 steps of
    0.99, which pulls short trainings back to where they began.

    Examples
    --------
    >>> mean = torch.zeros(1)
    >>> for number in range(1, 30):
    ...     moving_average(0.99)([mean], [torch.ones(1)], number)
    >>> bool(mean > 0.999)
    True
    """

    @torch.no_grad()
    def update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Tensor | int) -> None:
        updates = int(count)
        share = 1.0 - min(decay, (1 + updates) / (10 + updates))
        for average, value in zip(averages, values):
            if average.is_floating_point():
                average.lerp_(value.to(average.dtype), share)
            else:  # the number of batches that batch norm has seen
                average.copy_(value)

    return update


def reduced(fabric: Fabric, value: Tensor, how: str) -> Tensor:
    """A value over all processes: its mean or sum."""
    found = fabric.all_reduce(value, reduce_op=how)
    assert isinstance(found, Tensor)
    return found


@torch.no_grad()
def validate(
    network: nn.Module,
    method: Method,
    stage: str,
    data: RankedSet,
    recipe: Recipe,
    fabric: Fabric,
    weighted: Mapping[str, Weights],
) -> tuple[dict[str, float], bool]:
    """Loss and metrics of a network on validation data, and whether any instance orders two labels."""

    def forward(inputs: Tensor) -> Any:
        with fabric.autocast():
            return network(laid_out(inputs, recipe.channels_last))

    measures = PaperMetrics().to(fabric.device)
    sums = torch.zeros(3, dtype=torch.float64, device=fabric.device)
    for found, batch in outputs(
        network,
        data,
        recipe.batch_size,
        rank=fabric.global_rank,
        world=fabric.world_size,
        workers=recipe.workers,
        forward=forward,
    ):
        ranks = fabric.to_device(batch.ranks)
        losses = method.loss(found, ranks, stage=stage, reduction="none", **weighted).double()
        weights = None if batch.weights is None else fabric.to_device(batch.weights).double()
        sums[0] += losses.sum() if weights is None else losses @ weights
        sums[1] += len(ranks) if weights is None else weights.sum()
        sums[2] += (ranks.amax(1) > ranks.masked_fill(ranks < 0, ranks.max()).amin(1)).sum()
        scores = method.read(found).scores.float()
        if not bool(scores.isfinite().all()):
            raise DataError("the outputs of the network are not finite; lower the rate")
        measures.update(scores, ranks)
    sums = reduced(fabric, sums, "sum")
    return {"loss": float(sums[0] / sums[1].clamp(min=1e-12)), **values_of(measures)}, bool(sums[2] > 0)
