"""Which parts of a backbone are trained, and at which rate."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from gaussianmlr.errors import DataError
from gaussianmlr.nn.backbones.base import Backbone
from gaussianmlr.nn.backbones.texts import Texts

Freeze = Literal["none", "all"] | int


def freeze(backbone: Backbone, mode: Freeze) -> None:
    """Freeze a backbone, all of it, or all but its last stages.

    Frozen parts have no gradients and stay in evaluation mode, including batch-norm statistics, even if the
    whole network is put in training mode. A later call replaces an earlier one.

    Parameters
    ----------
    backbone : Backbone
        The backbone, changed in place.
    mode : {"none", "all"} or int
        What is frozen; a number n leaves the last n stages trainable.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> backbone = backbones.make("resnet18", channels=1)
    >>> backbones.freeze(backbone, 1)
    >>> sorted({name.split(".")[0] for name, p in backbone.named_parameters() if p.requires_grad})
    ['layer4']
    """
    stages = backbone.stages()
    if mode not in ("none", "all") and (isinstance(mode, bool | str) or not 0 < mode <= len(stages)):
        raise DataError(
            f"freeze is {mode!r}; expected 'none', 'all' or a number of stages up to {len(stages)}"
        )
    count = {"none": 0, "all": len(stages)}.get(str(mode), len(stages) - mode if isinstance(mode, int) else 0)
    backbone.requires_grad_(count < len(stages))
    for index, stage in enumerate(stages):
        stage.requires_grad_(index >= count)
    backbone.frozen = count
    backbone.train(backbone.training)


def parameter_groups(
    model: nn.Module, rate: float, backbone_rate_factor: float = 1.0
) -> list[dict[str, Any]]:
    """Parameter groups for an optimizer, with a separate rate for the backbone.

    Parameters
    ----------
    model : nn.Module
        A network with an attribute `backbone`; any other module is one group.
    rate : float
        Learning rate.
    backbone_rate_factor : float
        The backbone learns at ``rate * backbone_rate_factor``.

    Returns
    -------
    list of dict
        With ``"name"``, ``"params"`` and ``"lr"``; groups without trainable parameters are left out.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.nn.backbones import parameter_groups
    >>> groups = parameter_groups(torch.nn.Linear(2, 2), rate=0.1)
    >>> [(group["name"], group["lr"]) for group in groups]
    [('head', 0.1)]
    """
    backbone = getattr(model, "backbone", None)
    if isinstance(backbone, Texts):
        return _by_layer(model, backbone, rate, backbone_rate_factor)
    inside = {id(p) for p in backbone.parameters()} if isinstance(backbone, nn.Module) else set()
    free = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"name": "head", "params": [p for p in free if id(p) not in inside], "lr": rate},
        {
            "name": "backbone",
            "params": [p for p in free if id(p) in inside],
            "lr": rate * backbone_rate_factor,
        },
    ]
    return [group for group in groups if group["params"]]


def _by_layer(model: nn.Module, backbone: Texts, rate: float, factor: float) -> list[dict[str, Any]]:
    """One group for the head and one per layer of an encoder of texts, which has a rate of its own."""
    inside = {id(p) for p in backbone.parameters()}
    head = [p for p in model.parameters() if id(p) not in inside]
    groups: list[dict[str, Any]] = [{"name": "head", "params": head, "lr": rate}]
    groups += [
        {"name": "backbone", "params": parameters, "lr": rate * factor * share}
        for parameters, share in backbone.rates()
    ]
    for group in groups:
        group["params"] = [p for p in group["params"] if p.requires_grad]
    return [group for group in groups if group["params"]]
