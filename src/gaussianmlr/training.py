"""The engine: one `train` for the command line, the estimator and the paper's tables.

Devices, processes, precision and loggers are Lightning Fabric's; the loop is here, because runs must
stop anywhere, go on bit for bit, and walk through the stages of a method.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gaussianmlr._stage import StageParts, make_schedule, reduced, validate
from gaussianmlr.backbones import refresh_statistics
from gaussianmlr.backbones.layout import laid_out, lay_out
from gaussianmlr.batches import Batch, RankedSet, as_input, batch_count, batches, epoch_order, fetch
from gaussianmlr.checkpoints import RunFolder, Standing, worth
from gaussianmlr.errors import DataError
from gaussianmlr.logs import Logs
from gaussianmlr.losses import Weights
from gaussianmlr.methods import Method, begin_stage
from gaussianmlr.optimisers import make_optimiser
from gaussianmlr.recipe import Recipe

__all__ = ["Result", "Watcher", "train"]

_REFRESHED = 512  # instances that batch-norm statistics are computed from before an evaluation


class Watcher:
    """What a run tells while it goes on; the base says nothing. Methods may be overridden."""

    def begin(self, stage: str, epoch: int, epochs: int, steps: int, done: int) -> None:
        """An epoch begins, or goes on after `done` of its steps."""

    def step(self, loss: float) -> None:
        """A step is done."""

    def end(self, row: dict[str, Any]) -> None:
        """An epoch has ended, with its measures."""

    def features(self, done: int, total: int) -> None:
        """Of a frozen backbone's features, so many are there before training begins."""

    def note(self, text: str) -> None:
        """Something worth a line."""


@dataclass(frozen=True)
class Result:
    """A trained network and how it went.

    Attributes
    ----------
    network : nn.Module
        The best epoch's weights.
    history : list of dict
        One row an epoch.
    images : int
        Training instances seen.
    seconds : float
        Time spent, over all parts of an interrupted run.
    interrupted : bool
        Whether it was stopped before its end; the same call goes on.
    """

    network: nn.Module
    history: list[dict[str, Any]]
    images: int
    seconds: float
    interrupted: bool = False


def train(
    network: nn.Module,
    method: Method,
    recipe: Recipe,
    data: RankedSet,
    validation: RankedSet | None,
    *,
    folder: RunFolder | None = None,
    fabric: Fabric | None = None,
    groups: Callable[[float, float], list[dict[str, Any]]] | None = None,
    weights: Weights | None = None,
    logs: Logs | None = None,
    watcher: Watcher | None = None,
) -> Result:
    """Train a network by a method's stages.

    Parameters
    ----------
    network : nn.Module
        Gives a method's outputs as a dict; its `layers` are the parts that belong to single outputs.
    method : Method
        Loss, reading, stages.
    recipe : Recipe
        Settings.
    data, validation : RankedSet
        What is trained on, and what the best epoch is chosen by; without the latter the last is kept.
    folder : RunFolder, optional
        Where the run can be taken up again after any interruption.
    fabric : Fabric, optional
        Devices and processes; one CPU or GPU without it.
    groups : callable, optional
        Gives the optimiser's parameter groups from a rate and the backbone's factor.
    weights : Weights, optional
        Of labels and of orders, in the losses of training and validation; metrics know none.
    logs : Logs, optional
        Is handed a row an epoch.
    watcher : Watcher, optional
        Is told what happens.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.batches import Arrays
    >>> from gaussianmlr.model import build
    >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    >>> recipe = Recipe(backbone="mlp", method="br", epochs=3)
    >>> network, method = build(recipe, 2, {"kind": "table", "channels": 2})
    >>> result = train(network, method, recipe, Arrays(x, (x > 0).long()), None)
    >>> result.history[-1]["train_loss"] < result.history[0]["train_loss"]
    True
    """
    if len(data) == 0 or (validation is not None and len(validation) == 0):
        raise DataError("expected at least one instance to train on and one to validate on")
    if fabric is None:
        fabric = Fabric(accelerator="auto", devices=1, precision=recipe.precision)
        fabric.launch()
    run = _Run(network, method, recipe, data, validation, folder, fabric, groups, watcher or Watcher())
    if weights is not None:
        run.weighted = {"weights": weights}
    if logs is not None and fabric.is_global_zero:
        run.logs = logs
    status = "failed"
    try:
        result = run.go()
        status = "failed" if result.interrupted else "success"
    finally:
        run.logs.close(status)
    return result


class _Run:
    def __init__(
        self,
        network: nn.Module,
        method: Method,
        recipe: Recipe,
        data: RankedSet,
        validation: RankedSet | None,
        folder: RunFolder | None,
        fabric: Fabric,
        groups: Callable[[float, float], list[dict[str, Any]]] | None,
        watcher: Watcher,
    ) -> None:
        self.network, self.method, self.recipe = network, method, recipe
        self.data, self.validation, self.folder, self.fabric = data, validation, folder, fabric
        self.groups = groups or (lambda rate, _: [{"params": list(network.parameters()), "lr": rate}])
        self.watcher = watcher if fabric.is_global_zero else Watcher()
        self.steps = batch_count(len(data), recipe.batch_size)
        self.standing = Standing()
        self.best: dict[str, Tensor] | None = None
        self.ordered = True  # whether any validation instance orders two labels
        self.stopping = False
        self.logs = Logs(None, None)
        self.weighted: dict[str, Weights] = {}  # methods from outside need not know of weights

    def go(self) -> Result:
        self.fabric.seed_everything(self.recipe.seed, verbose=False)
        if self.folder is not None and self.fabric.is_global_zero:
            self.folder.check_space(sum(p.numel() for p in self.network.parameters()))
        if self.recipe.channels_last:
            lay_out(self.network)
        found = self.folder.load() if self.folder is not None else None
        if found is not None:
            self.standing = found[0]
            self.best = self.folder.load_best() if self.folder is not None else None
            if not self.standing.finished:
                at = self.standing
                self.watcher.note(
                    f"going on at stage {at.stage + 1}, epoch {at.epoch + 1}, step {at.batch + 1}"
                )
        self.logs.write(self.standing.history)  # the last row, where it was cut between the two
        with self._stop_on_interrupt():
            state = None if found is None else found[1]
            while not self.standing.finished and not self.stopping:
                self._stage(self.standing.stage, state)
                state = None
        if self.best is not None:
            self.network.load_state_dict(self.best)
        self.network.eval()
        standing = self.standing
        return Result(self.network, standing.history, standing.images, standing.seconds, self.stopping)

    def _stage(self, number: int, state: dict[str, Any] | None) -> None:
        stage = self.method.stages[number]
        layers = getattr(self.network, "layers", {})
        begin_stage(self.network, stage, layers)
        for later in self.method.stages[number + 1 :]:  # layers that wait for a stage of their own
            for output in later.trains or ():
                layers[output].requires_grad_(False)
        optimiser, schedule = self._optimiser()
        average = None
        if self.recipe.average is not None:
            average = AveragedModel(
                self.network,
                multi_avg_fn=get_ema_multi_avg_fn(self.recipe.average),  # type: ignore[no-untyped-call]
                use_buffers=True,
            )
        wrapped, moved = self.fabric.setup(self.network, optimiser)
        parts = StageParts(self.network, wrapped, moved, schedule, average)
        standing = self.standing
        if state is not None:
            parts.load(state, begins=standing.epoch == standing.batch == 0)
        # Asked before an epoch, not after: a run that was cut at the end of its patience has ended.
        while standing.epoch < self.recipe.epochs_of(number) and not self._out_of_patience():
            self._epoch(number, parts)
            if self.stopping:
                self._save(parts)
                return
        standing.stage, standing.epoch, standing.batch = number + 1, 0, 0
        standing.best_value = standing.best_epoch = None
        standing.finished = standing.stage == len(self.method.stages)
        if not standing.finished and self.best is not None:
            self.network.load_state_dict(self.best)  # a stage stands on the best of the one before
        self._save(parts)

    def _epoch(self, number: int, parts: StageParts) -> None:
        standing, recipe, stage = self.standing, self.recipe, self.method.stages[number]
        epochs = recipe.epochs_of(number)
        self.watcher.begin(stage.name, standing.epoch, epochs, self.steps, standing.batch)
        order = epoch_order(len(self.data), recipe.seed, number, standing.epoch)
        device, world = self.fabric.device, self.fabric.world_size
        started = saved = time.monotonic()
        shares = batches(
            self.data,
            order,
            recipe.batch_size,
            first=standing.batch,
            rank=self.fabric.global_rank,
            world=world,
            epoch=self._passes(),
            workers=recipe.workers,
        )
        for batch in shares:
            loss = self._step(batch, stage.name, parts)
            standing.batch += 1
            standing.images += batch.whole
            standing.loss_sum += loss * batch.whole
            self.watcher.step(loss)
            now = time.monotonic()
            if self._agreed(self.stopping, device):
                self.stopping = True
                standing.seconds += now - started
                return
            if now - saved > 60 * recipe.checkpoint_minutes and world == 1:
                standing.seconds += now - started
                self._save(parts)
                started = saved = time.monotonic()
        row: dict[str, Any] = {"stage": stage.name, "epoch": standing.epoch + 1}
        row["train_loss"] = standing.loss_sum / len(self.data)
        row["rate"] = parts.optimiser.param_groups[0]["lr"]
        keep = parts.kept()
        self._refresh(keep, order)
        if self.validation is not None:
            measured, self.ordered = validate(
                keep, self.method, stage.name, self.validation, recipe, self.fabric, self.weighted
            )
            row |= measured
        standing.seconds += time.monotonic() - started
        row |= {"images": standing.images, "seconds": round(standing.seconds, 3)}
        standing.history.append(row)
        standing.epoch, standing.batch, standing.loss_sum = standing.epoch + 1, 0, 0.0
        self._remember(row, keep)
        self._save(parts)
        self.logs.write(standing.history)
        self.watcher.end(row)

    def _step(self, batch: Batch, stage: str, parts: StageParts) -> float:
        recipe, fabric = self.recipe, self.fabric
        inputs, ranks = fabric.to_device(batch.inputs), fabric.to_device(batch.ranks)
        weights = None if batch.weights is None else fabric.to_device(batch.weights)
        pieces = max(1, min(recipe.accumulate, len(inputs)))
        total = torch.zeros((), device=fabric.device)
        parts.optimiser.zero_grad()
        for piece in range(pieces):
            with fabric.no_backward_sync(parts.wrapped, enabled=piece < pieces - 1):
                x = laid_out(inputs[piece::pieces], recipe.channels_last)
                outputs = parts.wrapped(x)
                found = self.method.loss(
                    outputs, ranks[piece::pieces], stage=stage, reduction="none", **self.weighted
                )
                if weights is not None:
                    found = found * weights[piece::pieces]
                # Processes average their gradients, so a share counts by its part of the whole batch.
                loss = found.sum() * (fabric.world_size / batch.whole)
                fabric.backward(loss)
                total += loss.detach()
        if recipe.clip is not None:
            fabric.clip_gradients(
                parts.wrapped, parts.optimiser, max_norm=recipe.clip, error_if_nonfinite=False
            )
        parts.optimiser.step()
        parts.schedule.step()
        if parts.average is not None:
            parts.average.update_parameters(self.network)
        value = float(reduced(fabric, total, "mean"))
        if value != value:
            raise DataError(
                f"the loss became NaN in epoch {self.standing.epoch + 1}, step {self.standing.batch + 1}; "
                "look for NaN in the inputs, or lower the rate"
            )
        return value

    def _refresh(self, network: nn.Module, order: Tensor) -> None:
        """Give batch norms the statistics of the weights as they are, from a few hundred instances."""
        size = self.recipe.batch_size
        starts = range(0, min(len(order) // size * size, _REFRESHED), size)
        now = self._passes()
        inputs = (as_input(fetch(self.data, order[at : at + size].tolist(), now)[0]) for at in starts)
        refresh_statistics(
            network, (laid_out(self.fabric.to_device(x), self.recipe.channels_last) for x in inputs)
        )

    def _remember(self, row: dict[str, Any], keep: nn.Module) -> None:
        """Keep the weights of the epoch where it is the best so far."""
        only = len(self.method.stages) == 1
        value = worth(row, self.recipe.select, only=only, ordered=self.ordered)
        if self.standing.best_value is not None and value <= self.standing.best_value:
            return
        self.standing.best_value, self.standing.best_epoch = value, int(row["epoch"])
        self.best = {name: tensor.detach().cpu().clone() for name, tensor in keep.state_dict().items()}
        if self.folder is not None and self.fabric.is_global_zero:
            self.folder.save_best(self.best)

    def _passes(self) -> int:
        """Passes over the data before this one, those of earlier stages too."""
        return sum(map(self.recipe.epochs_of, range(self.standing.stage))) + self.standing.epoch

    def _out_of_patience(self) -> bool:
        stale = self.standing.epoch - (self.standing.best_epoch or 0)
        if self.recipe.patience is None or self.standing.epoch == 0 or stale < self.recipe.patience:
            return False
        self.watcher.note(f"no better epoch for {stale}: stopping early")
        return True

    def _save(self, parts: StageParts) -> None:
        if self.folder is not None and self.fabric.is_global_zero:
            self.folder.save(self.standing, parts.state())
        self.fabric.barrier()

    def _agreed(self, stop: bool, device: torch.device) -> bool:
        """Whether any process was asked to stop: all stop at the same step."""
        if self.fabric.world_size == 1:
            return stop
        return bool(reduced(self.fabric, torch.tensor(float(stop), device=device), "sum") > 0)

    def _optimiser(self) -> tuple[Optimizer, LRScheduler]:
        recipe = self.recipe
        groups = [
            {**group, "params": [p for p in group["params"] if p.requires_grad]}
            for group in self.groups(recipe.rate, recipe.backbone_rate)
        ]
        groups = [group for group in groups if group["params"]]
        if not groups:
            raise DataError("nothing is left to train: every layer is frozen")
        optimiser = make_optimiser(recipe, self.network, groups)
        return optimiser, make_schedule(optimiser, recipe, self.steps, recipe.epochs_of(self.standing.stage))

    @contextmanager
    def _stop_on_interrupt(self) -> Iterator[None]:
        """The first Ctrl-C stops at the next step, with everything saved; the second at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def stop(*_: Any) -> None:
            self.stopping = True
            signal.signal(signal.SIGINT, before)
            self.watcher.note("stopping after this step; once more stops at once")

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
