"""Training in stages: which parts are trained, and which are frozen."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from gaussianmlr.errors import DataError
from gaussianmlr.methods.base import Stage


def begin_stage(model: nn.Module, stage: Stage, layers: Mapping[str, nn.Module]) -> None:
    """Prepare a network for a stage.

    A stage that trains everything puts the network in training mode and keeps what is already frozen. A
    stage of some outputs freezes all but the layers of these outputs and puts the rest in evaluation mode, so
    batch-norm statistics and dropout are frozen too.

    Parameters
    ----------
    model : nn.Module
        The whole network.
    stage : Stage
        The stage that begins.
    layers : mapping from str to nn.Module
        The part of the network that belongs to each output alone.

    Examples
    --------
    >>> layers = {"score": nn.Linear(2, 3), "threshold": nn.Linear(2, 3)}
    >>> network = nn.ModuleDict(layers)
    >>> begin_stage(network, Stage("thresholds", trains=("threshold",)), layers)
    >>> {name: layer.weight.requires_grad for name, layer in layers.items()}
    {'score': False, 'threshold': True}
    """
    if stage.trains is None:
        model.train()
        return
    missing = sorted(set(stage.trains) - set(layers))
    if missing:
        raise DataError(
            f"stage {stage.name!r} trains {missing}, but the network has layers for {sorted(layers)}"
        )
    model.eval()
    model.requires_grad_(False)
    for output in stage.trains:
        layers[output].train()
        layers[output].requires_grad_(True)
