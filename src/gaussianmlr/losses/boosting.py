"""First and second derivatives of `gmlr` for gradient boosting, as arrays in double precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr.errors import DataError
from gaussianmlr.losses.common import Balance, Supervision
from gaussianmlr.normal.tails import DENSITY_AT_ZERO
from gaussianmlr.normal.ties import log_p_tie
from gaussianmlr.orders import weak

__all__ = ["Comparisons", "Derivatives", "compare_all", "gmlr_derivatives", "gmlr_values"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_AT_ONCE = 1 << 18  # comparisons per block
_FAR = -1e4  # below it, z plus the inverse Mills ratio loses its digits
_NOTHING = np.zeros(0)
_SQRT_HALF = 0.5**0.5


class Derivatives(NamedTuple):
    """Gradient and diagonal of the Hessian by mu; gradient and Fisher information by the log-variance.

    All are [N, K] of the weighted sum over instances; those of the log-variances, and gradient and diagonal
    of the Hessian by the thresholds of labels, are None without them.
    """

    mu_gradient: FloatArray
    mu_hessian: FloatArray
    logvar_gradient: FloatArray | None = None
    logvar_information: FloatArray | None = None
    tau_gradient: FloatArray | None = None
    tau_hessian: FloatArray | None = None


class _Block(NamedTuple):
    """Comparisons of some rows: places in the block's flattened labels, and their weights."""

    start: int  # the rows
    stop: int
    sign: FloatArray  # [rows * K]: 1 relevant, -1 irrelevant; 0 unknown
    of_label: FloatArray  # [rows * K]: weights of relevance
    above: IntArray
    below: IntArray
    of_pair: FloatArray
    apart: FloatArray  # 1 where both labels of a pair are relevant and could have tied
    tied: tuple[IntArray, IntArray]
    of_tie: FloatArray


@dataclass(frozen=True)
class Comparisons:
    """All comparisons in orders that do not change from round to round; made by `compare_all`."""

    labels: int
    rows: int
    blocks: tuple[_Block, ...]


def compare_all(
    ranks: npt.NDArray[np.integer],
    *,
    supervision: Supervision = "strong",
    balance: Balance = "comparisons",
    weights: npt.ArrayLike | None = None,
    label_weights: npt.ArrayLike | None = None,
    order_weight: float = 1.0,
    ties: bool = False,
) -> Comparisons:
    """List the comparisons of orders: those with zero, and the ordered pairs.

    Unknown labels (-1) take no part, and tied pairs are left out, or those of relevant labels added with
    `ties`. The number of ordered pairs of an instance is at
    most its number of relevant labels times K.

    Parameters
    ----------
    ranks : array [N, K]
        Ranks.
    supervision, balance
        As in `losses.gmlr`.
    weights : array-like [N], optional
        Weights of the instances.
    label_weights : array-like [K], optional
        Weights of labels, as in `losses.Weights`.
    order_weight : float
        Weight of pairs of two relevant labels, as in `losses.Weights`.
    ties : bool
        Whether tied pairs of relevant labels are compared.

    Examples
    --------
    >>> found = compare_all(np.array([[2, 1, 0, -1]]))
    >>> found.blocks[0].above, found.blocks[0].below
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    orders = np.asarray(ranks, dtype=np.int64)
    if balance not in ("parts", "comparisons"):
        raise DataError(f"balance is 'parts' or 'comparisons', not {balance!r}")
    if supervision == "weak":
        orders = weak(orders)
    rows, labels = orders.shape
    of_row = np.ones(rows) if weights is None else np.asarray(weights, dtype=np.float64)
    of_label = np.ones(labels) if label_weights is None else np.asarray(label_weights, dtype=np.float64)
    step = max(1, _AT_ONCE // max(1, labels * labels))
    blocks = tuple(
        _block(
            start,
            orders[start : start + step],
            of_row[start : start + step],
            of_label,
            order_weight,
            balance,
            ties and supervision == "strong",
        )
        for start in range(0, rows, step)
    )
    return Comparisons(labels, rows, blocks)


def _block(
    start: int,
    ranks: IntArray,
    of_row: FloatArray,
    of_label: FloatArray,
    order: float,
    balance: Balance,
    ties: bool,
) -> _Block:
    known, labels = ranks >= 0, ranks.shape[1]
    first, upper = np.nonzero(ranks > 0)
    pair, below = np.nonzero((ranks[first, upper, None] > ranks[first]) & known[first])
    row, above = first[pair], upper[pair]
    later = np.arange(labels) > upper[:, None]
    pair, right = np.nonzero((ranks[first, upper, None] == ranks[first]) & later & ties)
    tied_row, left = first[pair], upper[pair]
    sign = np.where(ranks > 0, 1.0, -1.0) * known
    of_one = of_row[:, None] * of_label * known
    of_pair = of_row[row] * of_label[above] * of_label[below] * np.where(ranks[row, below] > 0, order, 1.0)
    of_tie = of_row[tied_row] * of_label[left] * of_label[right] * order
    if balance == "parts":
        of_one = of_one / np.maximum(known.sum(1, keepdims=True), 1)
        counts = np.bincount(np.concatenate([row, tied_row]), minlength=len(ranks))
        of_pair, of_tie = of_pair / counts[row], of_tie / counts[tied_row]
    at, tied_at = row * labels, tied_row * labels
    return _Block(
        start,
        start + len(ranks),
        sign.ravel(),
        of_one.ravel(),
        at + above,
        at + below,
        of_pair,
        (ranks[row, below] > 0).astype(np.float64),
        (tied_at + left, tied_at + right),
        of_tie,
    )


def gmlr_derivatives(
    mu: npt.ArrayLike,
    logvar: npt.ArrayLike | None,
    comparisons: Comparisons,
    tau: npt.ArrayLike | None = None,
) -> Derivatives:
    r"""Derivatives of the negative log-likelihood `losses.gmlr`, summed over instances.

    With :math:`z` the argument of a comparison, :math:`z=\mu_u/\sigma_u` or
    :math:`z=(\mu_u-\mu_v)/\sqrt{\sigma_u^2+\sigma_v^2}`, and :math:`m(z)=\varphi(z)/\Phi(z)`,

    .. math::
        \frac{d}{dz}\big(-\log\Phi\big) = -m(z), \qquad
        \frac{d^2}{dz^2}\big(-\log\Phi\big) = m(z)\,(z + m(z)) \in (0, 1).

    :math:`z` is linear in mu, so the loss is convex in it and the diagonal of the Hessian is exact. In the
    log-variance it is not convex, and the Fisher information :math:`m(z)\,m(-z)\,(dz/d\log\sigma^2)^2`
    takes the place of the second derivative.

    With thresholds the loss is convex in mu and tau together, as the probability of a tie is a normal
    integral over a convex set.

    Parameters
    ----------
    mu : array-like [N, K]
        Means.
    logvar : array-like [N, K], optional
        Log-variances; without them all are zero, and only the derivatives by mu are computed.
    comparisons : Comparisons
        Those of the instances.
    tau : array-like [K], optional
        Thresholds of labels; without log-variances only.

    Examples
    --------
    >>> found = gmlr_derivatives([[0.0, 0.0]], None, compare_all(np.array([[1, 0]])))
    >>> found.mu_gradient.round(4)
    array([[-1.3621,  1.3621]])
    """
    if logvar is not None and tau is not None:
        raise DataError("expected log-variances or thresholds, got both")
    count = 2 if logvar is None and tau is None else 4
    outputs = [np.empty((comparisons.rows, comparisons.labels)) for _ in range(count)]
    for block, means, variances in _blocks(mu, logvar, comparisons):
        found = _of_block(block, means, variances, _widths(tau, block, comparisons.labels))
        for output, part in zip(outputs, found):
            output[block.start : block.stop] = part.reshape(-1, comparisons.labels)
    if tau is None:
        return Derivatives(*outputs)
    return Derivatives(outputs[0], outputs[1], None, None, outputs[2], outputs[3])


class _Widths(NamedTuple):
    """Thresholds of ordered and of tied pairs."""

    ordered: FloatArray
    tied: FloatArray


def _widths(tau: npt.ArrayLike | None, block: _Block, labels: int) -> _Widths | None:
    if tau is None:
        return None
    each = np.broadcast_to(np.asarray(tau, dtype=np.float64), labels)
    ordered = 0.5 * (each[block.above % labels] + each[block.below % labels]) * block.apart
    return _Widths(ordered, 0.5 * (each[block.tied[0] % labels] + each[block.tied[1] % labels]))


def gmlr_values(
    mu: npt.ArrayLike,
    logvar: npt.ArrayLike | None,
    comparisons: Comparisons,
    tau: npt.ArrayLike | None = None,
) -> FloatArray:
    """The weighted negative log-likelihood of each instance [N]; parameters as of `gmlr_derivatives`.

    Examples
    --------
    >>> gmlr_values([[0.0, 0.0]], None, compare_all(np.array([[1, 0]]))).round(4)  # 3 log 2
    array([2.0794])
    """
    from scipy.special import log_ndtr

    found = np.empty(comparisons.rows)
    for block, means, variances in _blocks(mu, logvar, comparisons):
        one = block.sign * means * (1.0 if variances is None else variances**-0.5)
        widths = _widths(tau, block, comparisons.labels)
        pair, _ = _pairs(block, means, variances, widths)
        rows = block.stop - block.start
        sums = (log_ndtr(one) * block.of_label).reshape(rows, -1).sum(1)
        sums += np.bincount(block.above // comparisons.labels, log_ndtr(pair) * block.of_pair, minlength=rows)
        if widths is not None:
            logs = _ties(block, means, widths)[0]
            sums += np.bincount(block.tied[0] // comparisons.labels, logs * block.of_tie, minlength=rows)
        found[block.start : block.stop] = -sums
    return found


def _blocks(
    mu: npt.ArrayLike, logvar: npt.ArrayLike | None, comparisons: Comparisons
) -> Iterator[tuple[_Block, FloatArray, FloatArray | None]]:
    """Blocks with their means and variances, flattened."""
    means = np.asarray(mu, dtype=np.float64)
    expected = (comparisons.rows, comparisons.labels)
    variances = None if logvar is None else np.exp(np.asarray(logvar, dtype=np.float64))
    for part in (means, variances):
        if part is not None and part.shape != expected:
            raise DataError(
                f"expected means and log-variances [N, K] = {list(expected)}, got {list(part.shape)}"
            )
    for block in comparisons.blocks:
        rows = slice(block.start, block.stop)
        yield block, means[rows].ravel(), None if variances is None else variances[rows].ravel()


def _ties(block: _Block, mu: FloatArray, widths: _Widths) -> tuple[FloatArray, ...]:
    """Of tied pairs, log P and its first two derivatives by mu_u - mu_v and by the threshold."""
    difference = torch.from_numpy(mu[block.tied[0]] - mu[block.tied[1]]).requires_grad_()
    threshold = torch.from_numpy(widths.tied).requires_grad_()
    logs = log_p_tie(difference.abs() * _SQRT_HALF, threshold * _SQRT_HALF)
    both = (difference, threshold)
    first = torch.autograd.grad(logs.sum(), both, create_graph=True)
    second = [torch.autograd.grad(one.sum(), at, retain_graph=True)[0] for one, at in zip(first, both)]
    return tuple(part.detach().numpy() for part in (logs, *first, *second))


def _pairs(
    block: _Block, mu: FloatArray, variance: FloatArray | None, widths: _Widths | None
) -> tuple[FloatArray, FloatArray]:
    """The arguments of the pairs, and the reciprocal variances of their differences."""
    reciprocal = np.full(len(block.above), 0.5)
    if variance is not None:
        reciprocal = 1.0 / (variance[block.above] + variance[block.below])
    difference = mu[block.above] - mu[block.below]
    if widths is not None:
        difference = difference - widths.ordered
    return difference * np.sqrt(reciprocal), reciprocal


def _of_block(
    block: _Block, mu: FloatArray, variance: FloatArray | None, widths: _Widths | None
) -> tuple[FloatArray, ...]:
    size = len(mu)
    precision = np.ones(size) if variance is None else 1.0 / variance
    one = block.sign * mu * np.sqrt(precision)
    pair, reciprocal = _pairs(block, mu, variance, widths)
    slope, bend = _slope_and_bend(one)
    pair_slope, pair_bend = _slope_and_bend(pair)

    def summed(upper: FloatArray, lower: FloatArray | None = None) -> FloatArray:
        lower = upper if lower is None else lower
        both = np.bincount(block.above, upper, size) + np.bincount(block.below, lower, size)
        return both.astype(np.float64, copy=False)  # of no pairs at all, numpy counts whole numbers

    by_difference = pair_slope * np.sqrt(reciprocal) * block.of_pair
    gradient = summed(-by_difference, by_difference) - block.of_label * block.sign * slope * np.sqrt(
        precision
    )
    hessian = summed(pair_bend * reciprocal * block.of_pair) + block.of_label * bend * precision
    if widths is not None:
        found = _with_ties(block, mu, widths, by_difference, pair_bend * reciprocal * block.of_pair)
        return gradient + found[0], hessian + found[1], *found[2:]
    if variance is None:
        return gradient, hessian
    # Each z falls by half of itself times the share of the label in the variance.
    shares = [0.5 * pair * variance[place] * reciprocal for place in (block.above, block.below)]
    information = pair_slope * _slope_and_bend(-pair)[0] * block.of_pair
    by_logvar = summed(*(pair_slope * share * block.of_pair for share in shares))
    by_logvar += block.of_label * slope * 0.5 * one
    known = summed(*(information * share * share for share in shares))
    known += block.of_label * slope * _slope_and_bend(-one)[0] * 0.25 * one * one
    return gradient, hessian, by_logvar, known


def _with_ties(
    block: _Block, mu: FloatArray, widths: _Widths, slope: FloatArray, bend: FloatArray
) -> tuple[FloatArray, ...]:
    """What tied pairs add to the derivatives by mu, and the derivatives by the thresholds of labels."""
    size, (left, right) = len(mu), block.tied
    _, by_mu, by_tau, mu_bend, tau_bend = (part * block.of_tie for part in _ties(block, mu, widths))

    def summed(places: tuple[IntArray, IntArray], *values: FloatArray) -> FloatArray:
        first, second = values[0], values[-1]
        both = np.bincount(places[0], first, size) + np.bincount(places[1], second, size)
        return both.astype(np.float64, copy=False)

    ordered = (block.above, block.below)
    gradient = summed((left, right), -by_mu, by_mu)
    hessian = summed((left, right), np.clip(-mu_bend, 0.0, None))
    # A pair's threshold is half of each label's, and is subtracted from an ordered pair's difference.
    tau_gradient = summed(ordered, 0.5 * slope * block.apart) - summed((left, right), 0.5 * by_tau)
    tau_hessian = summed(ordered, 0.25 * bend * block.apart) - summed((left, right), 0.25 * tau_bend)
    return gradient, hessian, tau_gradient, tau_hessian


def _slope_and_bend(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The inverse Mills ratio m, and m (z + m), exact in both tails."""
    from scipy.special import erfcx

    if not len(z):
        return _NOTHING, _NOTHING
    tail = erfcx(np.abs(z) * 0.5**0.5)
    bell = np.exp(-0.5 * z * z)
    slope = np.where(z < 0, 2.0 * DENSITY_AT_ZERO / tail, DENSITY_AT_ZERO * bell / (1.0 - 0.5 * tail * bell))
    with np.errstate(divide="ignore"):
        bend = np.where(z < _FAR, 1.0 - 1.0 / (z * z), slope * (z + slope))
    return slope, np.clip(bend, 0.0, 1.0)
