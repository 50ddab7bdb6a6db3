"""The engine: one `train` for the command line, the estimator and the paper's tables.

Devices, processes, precision and loggers are Lightning Fabric's; the loop is here, because runs must
stop anywhere, resume bit for bit, and follow the stages of a method.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.swa_utils import AveragedModel

from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.signals import on_interrupt
from gaussianmlr.data.loading import Batch, Order, RankedSet, as_input, batch_count, batches, fetch, order_of
from gaussianmlr.errors import DataError
from gaussianmlr.losses import Weights
from gaussianmlr.methods import Method, begin_stage
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.backbones import refresh_statistics
from gaussianmlr.nn.backbones.memory_format import laid_out, lay_out
from gaussianmlr.nn.backbones.texts import uncut
from gaussianmlr.training.loggers import Logs
from gaussianmlr.training.optimisers import make_optimiser
from gaussianmlr.training.run_folder import RunFolder, Standing, worth
from gaussianmlr.training.stage import StageParts, make_schedule, moving_average, reduced, validate

__all__ = ["Result", "train"]

_REFRESHED = 512  # instances that batch-norm statistics are computed from before an evaluation


@dataclass(frozen=True)
class Result:
    """A trained network and its training history.

    Attributes
    ----------
    network : nn.Module
        The best epoch's weights.
    history : list of dict
        One row per epoch.
    images : int
        Number of training instances seen.
    seconds : float
        Training time, over all parts of an interrupted run.
    interrupted : bool
        Whether it was stopped before its end; the same call resumes.
    unproven : bool
        Whether it had finished before, with best weights that have no checksum.
    """

    network: nn.Module
    history: list[dict[str, Any]]
    images: int
    seconds: float
    interrupted: bool = False
    unproven: bool = False


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
        Returns the outputs of the method as a dict; `layers` are its parts that belong to single outputs.
    method : Method
        Loss, reading, stages.
    recipe : Recipe
        Settings.
    data, validation : RankedSet
        Training data, and data to choose the best epoch; without validation data the last one is kept.
    folder : RunFolder, optional
        Folder from which an interrupted run resumes.
    fabric : Fabric, optional
        Devices and processes; one CPU or GPU without it.
    groups : callable, optional
        Returns the optimiser's parameter groups for a rate and the backbone's factor.
    weights : Weights, optional
        Weights of labels and orders in the training and validation losses; metrics are not weighted.
    logs : Logs, optional
        Receives one row per epoch.
    watcher : Watcher, optional
        Receives the progress.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.data.loading import Arrays
    >>> from gaussianmlr.model.model import build
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
        self.weighted: dict[str, Weights] = {}  # methods from other packages may not support weights

    def go(self) -> Result:
        self.fabric.seed_everything(self.recipe.seed, verbose=False)
        if self.folder is not None and self.fabric.is_global_zero:
            self.folder.check_space(sum(p.numel() for p in self.network.parameters()))
        if self.recipe.channels_last:
            lay_out(self.network)
        found = self.folder.load() if self.folder is not None else None
        unproven = found is not None and found[0].finished and found[0].best_sha256 is None
        if found is not None:
            self.standing = at = found[0]
            if self.folder is not None:
                self.best = self.folder.load_best(self.standing, self.network.state_dict())
            if not at.finished:
                self.watcher.note(
                    f"resuming at stage {at.stage + 1}, epoch {at.epoch + 1}, step {at.batch + 1}"
                )
        self.logs.write(self.standing.history)  # the last row, if the run ended before it was logged
        with on_interrupt(self._stop):
            state = None if found is None else found[1]
            while not self.standing.finished and not self.stopping:
                try:
                    self._stage(self.standing.stage, state)
                except RuntimeError:
                    if not self.stopping:
                        raise
                    raise KeyboardInterrupt from None  # the signal ended the loading processes, too
                state = None
        if self.best is not None:
            self.network.load_state_dict(self.best)
        self.network.eval()
        at = self.standing
        return Result(self.network, at.history, at.images, at.seconds, self.stopping, unproven)

    def _stop(self) -> None:
        self.stopping = True
        self.watcher.note("stopping after this step; again to stop at once")

    def _stage(self, number: int, state: dict[str, Any] | None) -> None:
        stage = self.method.stages[number]
        layers = getattr(self.network, "layers", {})
        begin_stage(self.network, stage, layers)
        for later in self.method.stages[number + 1 :]:  # layers that are trained in a later stage
            for output in later.trains or ():
                layers[output].requires_grad_(False)
        optimiser, schedule = self._optimiser()
        average = None
        if self.recipe.average is not None:
            average = AveragedModel(
                self.network,
                multi_avg_fn=moving_average(self.recipe.average),
                use_buffers=True,
            )
        wrapped, moved = self.fabric.setup(self.network, optimiser)
        parts = StageParts(self.network, wrapped, moved, schedule, average)
        standing = self.standing
        if state is not None:
            self._resume(parts, state)
        # Checked before an epoch, so that a run interrupted at the end of its patience does not continue.
        while standing.epoch < self.recipe.epochs_of(number) and not self._out_of_patience():
            self._epoch(number, parts)
            if self.stopping:
                self._save(parts)
                return
        standing.stage, standing.epoch, standing.batch = number + 1, 0, 0
        standing.best_value = standing.best_epoch = None
        standing.finished = standing.stage == len(self.method.stages)
        if not standing.finished and self.best is not None:
            self.network.load_state_dict(self.best)  # a stage starts from the best weights of the one before
        self._save(parts)

    def _resume(self, parts: StageParts, state: dict[str, Any]) -> None:
        try:
            parts.load(state, begins=self.standing.epoch == self.standing.batch == 0)
        except (RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
            if self.folder is None:
                raise
            raise self.folder.damaged(f"it does not fit the network ({str(error).splitlines()[0]})") from None

    def _epoch(self, number: int, parts: StageParts) -> None:
        standing, recipe, stage = self.standing, self.recipe, self.method.stages[number]
        epochs = recipe.epochs_of(number)
        self.watcher.begin(stage.name, standing.epoch, epochs, self.steps, standing.batch)
        order = order_of(self.data, recipe.seed, number, standing.epoch)
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
                outputs = parts.wrapped(uncut(x, self.network))
                found = self.method.loss(
                    outputs, ranks[piece::pieces], stage=stage, reduction="none", **self.weighted
                )
                if weights is not None:
                    found = found * weights[piece::pieces]
                # Processes average their gradients, so a share is weighted by its part of the batch.
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
                "check the inputs for NaN, or lower the rate"
            )
        return value

    def _refresh(self, network: nn.Module, order: Order) -> None:
        """Recompute the batch-norm statistics for the current weights, from a few hundred instances."""
        size = self.recipe.batch_size
        starts = range(0, min(len(order) // size * size, _REFRESHED), size)
        now = self._passes()
        inputs = (as_input(fetch(self.data, order[at : at + size].tolist(), now)[0]) for at in starts)
        refresh_statistics(
            network, (laid_out(self.fabric.to_device(x), self.recipe.channels_last) for x in inputs)
        )

    def _remember(self, row: dict[str, Any], keep: nn.Module) -> None:
        """Keep the weights of the epoch if it is the best so far."""
        only = len(self.method.stages) == 1
        value = worth(row, self.recipe.select, only=only, ordered=self.ordered)
        if self.standing.best_value is not None and value <= self.standing.best_value:
            return
        self.standing.best_value, self.standing.best_epoch = value, int(row["epoch"])
        self.best = {name: tensor.detach().cpu().clone() for name, tensor in keep.state_dict().items()}
        if self.folder is not None and self.fabric.is_global_zero:
            self.folder.save_best(self.standing, self.best)

    def _passes(self) -> int:
        """Number of passes over the data before this one, including earlier stages."""
        return sum(map(self.recipe.epochs_of, range(self.standing.stage))) + self.standing.epoch

    def _out_of_patience(self) -> bool:
        stale = self.standing.epoch - (self.standing.best_epoch or 0)
        if self.recipe.patience is None or self.standing.epoch == 0 or stale < self.recipe.patience:
            return False
        self.watcher.note(f"no improvement for {stale} epochs: stopping early")
        return True

    def _save(self, parts: StageParts) -> None:
        if self.folder is not None and self.fabric.is_global_zero:
            self.folder.save(self.standing, parts.state())
        self.fabric.barrier()

    def _agreed(self, stop: bool, device: torch.device) -> bool:
        """Whether any process was asked to stop, so that all stop at the same step."""
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
