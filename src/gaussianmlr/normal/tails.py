"""The logarithm of the normal distribution function and its slope, exact in both tails."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

__all__ = ["DENSITY_AT_ZERO", "inverse_mills", "log_cdf", "log_cdf_and_slope", "single_or_better"]

DENSITY_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_SQRT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
_Context = Any  # torch's own type does not know saved_tensors


def log_cdf(z: Tensor) -> Tensor:
    r"""Logarithm of the standard normal distribution function, exact in both tails.

    .. math::
        \log\Phi(z) = \log\tfrac12\operatorname{erfcx}(-z/\sqrt2) - z^2/2, \qquad
        \frac{d}{dz}\log\Phi(z) = \frac{\sqrt{2/\pi}}{\operatorname{erfcx}(-z/\sqrt2)}

    Half precision is computed, and returned, in float32. The second derivative works too.

    References
    ----------
    W. J. Cody, "Rational Chebyshev approximations for the error function", 1969.

    Examples
    --------
    >>> import torch
    >>> log_cdf(torch.tensor([-1e4, 0.0, 20.0], dtype=torch.float64))
    tensor([-5.0000e+07, -6.9315e-01, -2.7536e-89], dtype=torch.float64)
    """
    return _LogCdf.apply(single_or_better(z))  # type: ignore[no-any-return, no-untyped-call]


def inverse_mills(z: Tensor) -> Tensor:
    r"""The slope of `log_cdf`, :math:`\varphi(z)/\Phi(z)`, exact in both tails.

    Examples
    --------
    >>> import torch
    >>> inverse_mills(torch.tensor([-1000.0, 0.0]))
    tensor([1.0000e+03, 7.9788e-01])
    """
    return _InverseMills.apply(single_or_better(z))  # type: ignore[no-any-return, no-untyped-call]


class _LogCdf(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return _log_cdf_of(z, *_tail_parts(z))

    @staticmethod
    def setup_context(ctx: _Context, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: _Context, grad: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        return grad * inverse_mills(z)


class _InverseMills(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return _slope_of(z, *_tail_parts(z))

    @staticmethod
    def setup_context(ctx: _Context, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: _Context, grad: Tensor) -> Tensor:
        z, ratio = ctx.saved_tensors
        slope: Tensor = -ratio * (z + ratio)
        return grad * slope


def log_cdf_and_slope(z: Tensor) -> tuple[Tensor, Tensor]:
    """`log_cdf` and `inverse_mills` at the price of one; for code that does its own gradients."""
    parts = _tail_parts(z)
    return _log_cdf_of(z, *parts), _slope_of(z, *parts)


def _tail_parts(z: Tensor) -> tuple[Tensor, Tensor]:
    """erfcx(|z|/sqrt 2), and exp(-z^2/2) without the rounding of z^2."""
    tail = z.abs()
    scaled = torch.special.erfcx(tail * _SQRT_HALF)
    short = torch.round(tail.clamp(max=64.0) * 16.0) / 16.0  # past 64 even float64 gives 0
    rest = (tail - short) * (tail + short)  # the square of a short number is exact, the rest small
    return scaled, torch.exp(-0.5 * short * short) * torch.exp(-0.5 * rest)


def _log_cdf_of(z: Tensor, scaled: Tensor, bell: Tensor) -> Tensor:
    half = 0.5 * scaled
    return torch.where(z < 0, half.log() - 0.5 * z * z, torch.log1p(-half * bell))


def _slope_of(z: Tensor, scaled: Tensor, bell: Tensor) -> Tensor:
    above = DENSITY_AT_ZERO * bell / (1.0 - 0.5 * scaled * bell)
    return torch.where(z < 0, _SQRT_TWO_OVER_PI / scaled, above)


def single_or_better(z: Tensor) -> Tensor:
    """Float32 and float64 as they are, every other type in float32; the rule of the whole package."""
    return z if z.dtype in (torch.float32, torch.float64) else z.to(torch.float32)
