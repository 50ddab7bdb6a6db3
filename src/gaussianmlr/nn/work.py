"""The cost of a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

__all__ = ["evaluating", "work_of"]

_KNOWN: WeakKeyDictionary[nn.Module, dict[tuple[int, ...], float]] = WeakKeyDictionary()


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Evaluation mode; at the end every module returns to the mode it was in."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def work_of(network: nn.Module, inputs: Tensor, run: Callable[[Tensor], Any] | None = None) -> float:
    """Floating-point operations of a network for one instance of a batch, forward.

    Rows of a table pass every weight once: two operations per parameter. For pictures the operations are
    counted, by running the network on the first one.

    Parameters
    ----------
    network : nn.Module
        The network.
    inputs : Tensor [N, ...]
        Inputs, at least one.
    run : callable, optional
        Runs the network on inputs; the network itself by default.

    Examples
    --------
    >>> work_of(nn.Linear(4, 3, bias=False), torch.zeros(1, 4))
    24.0
    >>> work_of(nn.Conv2d(1, 2, 3, bias=False), torch.zeros(5, 1, 6, 6))  # 4 x 4 places, 2 x 9 weights
    576.0
    """
    known = _KNOWN.setdefault(network, {})
    shape = tuple(inputs.shape[1:]) if inputs.ndim > 2 else ()
    if shape not in known and not shape:
        known[shape] = 2.0 * sum(parameter.numel() for parameter in network.parameters())
    elif shape not in known:
        from torch.utils.flop_counter import FlopCounterMode

        with evaluating(network), torch.no_grad(), FlopCounterMode(display=False) as counter:
            (run or network)(inputs[:1])
        known[shape] = float(counter.get_total_flops())
    return known[shape]
