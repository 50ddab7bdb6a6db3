"""Batch-norm statistics of the current weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def refresh_statistics(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Recompute the running statistics of all batch norms with the current weights.

    Running statistics lag behind fast-moving weights, so evaluation in the middle of training, at a high
    rate, is unreliable. Call this before it; a few hundred inputs are enough. Averaged weights need it too,
    as they have no statistics of their own. Norms with frozen weights and the modes of all modules do not
    change.

    Parameters
    ----------
    model : nn.Module
        The network, changed in place.
    batches : iterable of Tensor
        Batches of inputs, as large as in training; without any, nothing changes.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> model = nn.BatchNorm1d(1)
    >>> backbones.refresh_statistics(model, [torch.tensor([[1.0], [3.0]]), torch.tensor([[4.0], [8.0]])])
    >>> model.running_mean, model.running_var
    (tensor([4.]), tensor([5.]))
    """
    norms = [part for part in model.modules() if isinstance(part, _BatchNorm) and _is_free(part)]
    rest = iter(batches)
    first = next(rest, None)
    if not norms or first is None:
        return
    modes, momenta = {part: part.training for part in model.modules()}, [norm.momentum for norm in norms]
    model.eval()  # dropout would change the inputs of the norms
    for norm in norms:
        norm.train()
        norm.reset_running_stats()
        norm.momentum = None  # a plain mean over batches
    try:
        with torch.no_grad():
            for batch in itertools.chain([first], rest):
                model(batch)
    finally:
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
        for part, mode in modes.items():
            part.training = mode


def _is_free(norm: _BatchNorm) -> bool:
    # Without weights, only its mode tells whether it is frozen.
    return norm.track_running_stats and (norm.weight.requires_grad if norm.affine else norm.training)
