"""First and second derivatives of `gmlr` for gradient boosting, as arrays in double precision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.errors import DataError
from gaussianmlr.losses.common import Balance, Supervision
from gaussianmlr.normal.tails import DENSITY_AT_ZERO
from gaussianmlr.orders import weak

__all__ = ["Comparisons", "Derivatives", "compare_all", "gmlr_derivatives", "gmlr_values"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_AT_ONCE = 1 << 18  # comparisons per block
_FAR = -1e4  # below it, z plus the inverse Mills ratio loses its digits
_NOTHING = np.zeros(0)


class Derivatives(NamedTuple):
    """Gradient and diagonal of the Hessian by mu; gradient and Fisher information by the log-variance.

    All are [N, K] of the weighted sum over instances; the last two are None without log-variances.
    """

    mu_gradient: FloatArray
    mu_hessian: FloatArray
    logvar_gradient: FloatArray | None = None
    logvar_information: FloatArray | None = None


class _Block(NamedTuple):
    """Comparisons of some rows: places in the block's flattened labels, and their weights."""

    start: int  # the rows
    stop: int
    sign: FloatArray  # [rows * K]: 1 relevant, -1 irrelevant; 0 unknown
    of_label: FloatArray  # [rows * K]: weights of relevance
    above: IntArray
    below: IntArray
    of_pair: FloatArray


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
) -> Comparisons:
    """List the comparisons of orders: those with zero, and the ordered pairs.

    Unknown labels (-1) take no part, and tied pairs are left out. The number of pairs of an instance is at
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
            start, orders[start : start + step], of_row[start : start + step], of_label, order_weight, balance
        )
        for start in range(0, rows, step)
    )
    return Comparisons(labels, rows, blocks)


def _block(
    start: int, ranks: IntArray, of_row: FloatArray, of_label: FloatArray, order: float, balance: Balance
) -> _Block:
    known, labels = ranks >= 0, ranks.shape[1]
    row, above = np.nonzero(ranks > 0)
    pair, below = np.nonzero((ranks[row, above, None] > ranks[row]) & known[row])
    row, above = row[pair], above[pair]
    sign = np.where(ranks > 0, 1.0, -1.0) * known
    of_one = of_row[:, None] * of_label * known
    of_pair = of_row[row] * of_label[above] * of_label[below] * np.where(ranks[row, below] > 0, order, 1.0)
    if balance == "parts":
        of_one = of_one / np.maximum(known.sum(1, keepdims=True), 1)
        of_pair = of_pair / np.bincount(row, minlength=len(ranks))[row]
    at = row * labels
    return _Block(start, start + len(ranks), sign.ravel(), of_one.ravel(), at + above, at + below, of_pair)


def gmlr_derivatives(
    mu: npt.ArrayLike, logvar: npt.ArrayLike | None, comparisons: Comparisons
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

    Parameters
    ----------
    mu : array-like [N, K]
        Means.
    logvar : array-like [N, K], optional
        Log-variances; without them all are zero, and only the derivatives by mu are computed.
    comparisons : Comparisons
        Those of the instances.

    Examples
    --------
    >>> found = gmlr_derivatives([[0.0, 0.0]], None, compare_all(np.array([[1, 0]])))
    >>> found.mu_gradient.round(4)
    array([[-1.3621,  1.3621]])
    """
    outputs = [np.empty((comparisons.rows, comparisons.labels)) for _ in range(2 if logvar is None else 4)]
    for block, means, variances in _blocks(mu, logvar, comparisons):
        found = _of_block(block, means, variances)
        for output, part in zip(outputs, found):
            output[block.start : block.stop] = part.reshape(-1, comparisons.labels)
    return Derivatives(*outputs)


def gmlr_values(mu: npt.ArrayLike, logvar: npt.ArrayLike | None, comparisons: Comparisons) -> FloatArray:
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
        pair, _ = _pairs(block, means, variances)
        rows = block.stop - block.start
        sums = (log_ndtr(one) * block.of_label).reshape(rows, -1).sum(1)
        sums += np.bincount(block.above // comparisons.labels, log_ndtr(pair) * block.of_pair, minlength=rows)
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


def _pairs(block: _Block, mu: FloatArray, variance: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """The arguments of the pairs, and the reciprocal variances of their differences."""
    reciprocal = np.full(len(block.above), 0.5)
    if variance is not None:
        reciprocal = 1.0 / (variance[block.above] + variance[block.below])
    return (mu[block.above] - mu[block.below]) * np.sqrt(reciprocal), reciprocal


def _of_block(block: _Block, mu: FloatArray, variance: FloatArray | None) -> tuple[FloatArray, ...]:
    size = len(mu)
    precision = np.ones(size) if variance is None else 1.0 / variance
    one = block.sign * mu * np.sqrt(precision)
    pair, reciprocal = _pairs(block, mu, variance)
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
