"""Derivatives for boosting, against autograd, naive loops and mpmath."""

import mpmath
import numpy as np
import pytest
import torch

from gaussianmlr import DataError, losses
from gaussianmlr.losses import boosting
from gaussianmlr.losses.boosting import compare_all, gmlr_derivatives, gmlr_values


def drawn(seed=0, rows=40, labels=6, spread=2.0):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(-1, 4, (rows, labels))
    ranks[0], ranks[1], ranks[2] = -1, 0, 3  # nothing known, nothing relevant, all tied
    return spread * rng.normal(size=(rows, labels)), rng.normal(size=(rows, labels)), ranks, rng


@pytest.mark.parametrize("supervision", ["strong", "weak"])
@pytest.mark.parametrize("balance", ["comparisons", "parts"])
def test_derivatives_are_those_of_autograd(supervision, balance):
    mu, logvar, ranks, rng = drawn()
    weights, by_label = rng.random(len(mu)), rng.random(mu.shape[1])

    def loss(mu, logvar):
        each = losses.gmlr(
            mu,
            logvar,
            torch.from_numpy(ranks),
            supervision=supervision,
            balance=balance,
            reduction="none",
            weights=losses.Weights(torch.from_numpy(by_label), 0.75),
        )
        return each @ torch.from_numpy(weights)

    tensors = torch.from_numpy(mu).requires_grad_(), torch.from_numpy(logvar).requires_grad_()
    by_mu, by_logvar = torch.autograd.grad(loss(*tensors), tensors)
    comparisons = compare_all(
        ranks,
        supervision=supervision,
        balance=balance,
        weights=weights,
        label_weights=by_label,
        order_weight=0.75,
    )
    found = gmlr_derivatives(mu, logvar, comparisons)
    np.testing.assert_allclose(found.mu_gradient, by_mu.numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.logvar_gradient, by_logvar.numpy(), rtol=1e-10, atol=1e-12)
    hessian = torch.autograd.functional.hessian(lambda x: loss(x, tensors[1].detach()), tensors[0].detach())
    size = mu.size
    diagonal = hessian.reshape(size, size).diagonal().reshape(mu.shape)
    np.testing.assert_allclose(found.mu_hessian, diagonal.numpy(), rtol=1e-8, atol=1e-12)
    assert float(gmlr_values(mu, logvar, comparisons).sum()) == pytest.approx(
        float(loss(*tensors).detach()), rel=1e-12
    )


def test_information_is_the_expected_square_of_the_slope():
    """Of a Bernoulli outcome: chance times the squared slope of either outcome, by a naive loop."""
    mu, logvar, ranks, _ = drawn(1, rows=8, labels=4)
    found = gmlr_derivatives(mu, logvar, compare_all(ranks)).logvar_information
    wanted = np.zeros_like(mu)

    def add(row, label, argument, step=1e-5):
        def logs(change):
            changed = logvar[row].copy()
            changed[label] += change
            z = argument(changed)
            return np.array([float(mpmath.log(mpmath.ncdf(z))), float(mpmath.log(mpmath.ncdf(-z)))])

        slopes = (logs(step) - logs(-step)) / (2 * step)
        wanted[row, label] += np.exp(logs(0.0)) @ slopes**2

    for row in range(len(mu)):
        for u in range(4):
            if ranks[row, u] >= 0:
                add(row, u, lambda v, row=row, u=u: mu[row, u] * np.exp(-0.5 * v[u]))
            for v in range(4):
                if ranks[row, u] > ranks[row, v] >= 0:
                    for label in (u, v):
                        add(
                            row,
                            label,
                            lambda x, row=row, u=u, v=v: (
                                (mu[row, u] - mu[row, v]) / np.sqrt(np.exp(x[u]) + np.exp(x[v]))
                            ),
                        )
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("z", [-1e7, -2e4, -1e4, -300.0, -20.0, -1.0, 0.0, 1e-8, 3.0, 8.0, 30.0, 40.0])
def test_tails_are_those_of_mpmath(z):
    """One relevant label with a mean of z: its comparison with zero alone."""
    with mpmath.workdps(60):
        x = mpmath.mpf(z)
        ratio = mpmath.npdf(x) / (mpmath.erfc(-x / mpmath.sqrt(2)) / 2)
        slope, bend = float(-ratio), float(ratio * (x + ratio))
    found = gmlr_derivatives([[z]], None, compare_all(np.array([[1]])))
    assert found.mu_gradient[0, 0] == pytest.approx(slope, rel=1e-9, abs=1e-300)
    assert found.mu_hessian[0, 0] == pytest.approx(bend, rel=1e-6, abs=1e-300)


def test_blocks_do_not_change_the_result(monkeypatch):
    mu, logvar, ranks, _ = drawn(2, rows=50)
    whole = gmlr_derivatives(mu, logvar, compare_all(ranks))
    values = gmlr_values(mu, None, compare_all(ranks))
    monkeypatch.setattr(boosting, "_AT_ONCE", 100)
    parts = compare_all(ranks)
    assert len(parts.blocks) > 10
    for one, other in zip(whole, gmlr_derivatives(mu, logvar, parts)):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(values, gmlr_values(mu, None, parts))


def test_wrong_shapes_and_names_are_refused():
    comparisons = compare_all(np.array([[1, 0]]))
    with pytest.raises(DataError, match=r"\[N, K\] = \[1, 2\], got \[2, 2\]"):
        gmlr_derivatives(np.zeros((2, 2)), None, comparisons)
    with pytest.raises(DataError, match="balance is 'parts' or 'comparisons', not 'none'"):
        compare_all(np.array([[1, 0]]), balance="none")
