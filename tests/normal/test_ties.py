"""Ties: probabilities against mpmath, the decoded order against all bucket orders."""

import itertools

import mpmath
import pytest
import torch

from gaussianmlr import normal
from gaussianmlr.normal.ties import best_buckets, log_p_tie, log_p_tie_logistic, pair_logs

DISTANCES = [0.0, 1e-3, 0.3, 0.99, 1.0, 3.0, 7.0, 40.0, 300.0, 1e4]
THRESHOLDS = [1e-8, 1e-4, 0.01, 0.5, 0.999, 1.0, 2.5, 8.0, 30.0, 500.0]


def exact(m, h):
    """The logarithm of a tie's probability and its slopes by m and h."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(m) - mpmath.mpf(h), mpmath.mpf(m) + mpmath.mpf(h)
        root = mpmath.sqrt(2)
        if low > 0:
            chance = (mpmath.erfc(low / root) - mpmath.erfc(high / root)) / 2
            found = mpmath.log(chance)
        else:
            tails = (mpmath.erfc(-low / root) + mpmath.erfc(high / root)) / 2
            chance, found = 1 - tails, mpmath.log1p(-tails)
        near, far = (mpmath.npdf(one) / chance for one in (low, high))
        return float(found), float(far - near), float(near + far)


@pytest.mark.parametrize("h", THRESHOLDS)
@pytest.mark.parametrize("m", DISTANCES)
def test_log_p_tie_and_slopes(m, h):
    inputs = [torch.tensor(float(value), dtype=torch.float64, requires_grad=True) for value in (m, h)]
    found = log_p_tie(*inputs)
    slopes = torch.autograd.grad(found, inputs)
    wanted = exact(m, h)
    assert found.item() == pytest.approx(wanted[0], rel=1e-12, abs=1e-300)
    # Near m = 0 the slope by m is the difference of two equal densities.
    assert slopes[0].item() == pytest.approx(wanted[1], rel=1e-11, abs=1e-15)
    assert slopes[1].item() == pytest.approx(wanted[2], rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(("m", "h"), list(itertools.product([0.0, 0.5, 40.0, 1e4], [1e-4, 0.7, 2.0])))
def test_single_precision(m, h):
    found = log_p_tie(torch.tensor(m), torch.tensor(h))
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(exact(m, h)[0], rel=1e-6)


def test_derivatives_at_the_borders_of_branches():
    m = torch.tensor([0.2, 0.999, 1.001, 3.0, 0.5], dtype=torch.float64, requires_grad=True)
    h = torch.tensor([0.999, 0.9995, 1.001, 0.2, 1.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(log_p_tie, (m, h))
    assert torch.autograd.gradgradcheck(log_p_tie, (m, h))


@pytest.mark.parametrize("tau", [1e-9, 0.1, 3.0, 60.0])
@pytest.mark.parametrize("difference", [0.0, 1.0, -5.0, 300.0])
def test_logistic_ties(difference, tau):
    with mpmath.workdps(60):
        d, t = mpmath.mpf(difference), mpmath.mpf(tau)
        chance = (mpmath.exp(2 * t) - 1) / ((1 + mpmath.exp(t - d)) * (1 + mpmath.exp(t + d)))
        wanted = mpmath.log(chance)
    with mpmath.workdps(400):
        d, t = mpmath.mpf(difference), mpmath.mpf(tau)
        assert mpmath.almosteq(chance, 1 - 1 / (1 + mpmath.exp(t - d)) - 1 / (1 + mpmath.exp(t + d)), 1e-50)
    found = log_p_tie_logistic(*(torch.tensor(x, dtype=torch.float64) for x in (difference, tau)))
    assert found.item() == pytest.approx(float(wanted), rel=1e-12, abs=1e-25)


@pytest.mark.parametrize("shape", [(5, 1), (5, 6)])
def test_outcomes_sum_to_one(shape):
    generator = torch.Generator().manual_seed(0)
    mu = torch.randn(5, 6, generator=generator, dtype=torch.float64) * 3
    sigma, tau = (torch.rand(*one, generator=generator).double() + 0.1 for one in ((5, 6), shape))
    above, tie = normal.p_above(mu, sigma, tau), normal.p_tie(mu, sigma, tau)
    assert torch.allclose(above + above.transpose(1, 2) + tie, torch.ones(5, 6, 6).double(), atol=1e-12)
    logs = pair_logs(mu, None, tau)
    logistic = logs[0].exp() + logs[0].exp().transpose(1, 2) + logs[1].exp()
    assert torch.allclose(logistic, torch.ones(5, 6, 6).double(), atol=1e-12)


def test_no_threshold_is_the_law_without_ties():
    mu, sigma = torch.randn(4, 5), torch.rand(4, 5) + 0.2
    assert torch.equal(normal.p_above(mu, sigma, 0.0), normal.p_above(mu, sigma))
    assert not normal.p_tie(mu, sigma, 0.0).any()
    scores = torch.tensor([[0.3, -1.0, 2.0, 0.1]])
    assert best_buckets(scores, torch.ones(1, 4), torch.zeros(1, 1)).tolist() == [[2, 0, 3, 1]]


def test_partial_orders_with_thresholds_are_strict_and_transitive():
    generator = torch.Generator().manual_seed(1)
    for _ in range(50):
        mu = torch.randn(7, generator=generator) * 3
        sigma, tau = (torch.rand(7, generator=generator) + 0.05 for _ in range(2))
        above = normal.partial_order(mu, sigma, 0.7, tau)
        assert torch.equal(above, normal.p_above(mu, sigma, tau).double() >= 0.7)
        assert not (above & above.T).any()
        through = (above.float() @ above.float()) > 0
        assert not (through & ~above).any()


def enumerated(mu, sigma, tau):
    """The best bucket order that respects the means, by trying all."""
    above, tie = pair_logs(mu, sigma, tau)
    order = [label for label in mu.sort(descending=True, stable=True).indices.tolist() if mu[label] > 0]
    best, found = None, []
    for cuts in itertools.product([0, 1], repeat=max(0, len(order) - 1)):
        bucket = [0, *itertools.accumulate(cuts)]
        value = sum(
            (tie if bucket[i] == bucket[j] else above)[order[i], order[j]].item()
            for i, j in itertools.combinations(range(len(order)), 2)
        )
        if best is None or value > best:
            best, found = value, bucket
    ranks = torch.zeros_like(mu, dtype=torch.int64)
    for label, bucket in zip(order, found):
        ranks[label] = found[-1] + 1 - bucket
    return ranks


@pytest.mark.parametrize("labels", range(1, 7))
@pytest.mark.parametrize("law", ["normal", "logistic"])
@pytest.mark.parametrize("thresholds", ["model", "label"])
def test_decoding_against_enumeration(labels, law, thresholds):
    generator = torch.Generator().manual_seed(labels)
    mu = torch.randn(40, labels, generator=generator, dtype=torch.float64) + 0.5
    sigma = torch.rand(40, labels, generator=generator).double() + 0.2 if law == "normal" else None
    tau = 1.5 * torch.rand(40, labels if thresholds == "label" else 1, generator=generator).double()
    found = best_buckets(mu, sigma, tau)
    for row in range(40):
        spread = None if sigma is None else sigma[row]
        assert torch.equal(found[row], enumerated(mu[row], spread, tau[row].expand(labels)))
    if labels > 2:
        tied = (found[:, :, None] == found[:, None, :]) & (found[:, :, None] > 0)
        assert (tied.sum((1, 2)) > (found > 0).sum(1)).any()  # the case is not trivial


def test_decoding_in_slices_and_of_equal_means(monkeypatch):
    mu = torch.rand(30, 8, generator=torch.Generator().manual_seed(0)) * 2 - 0.5
    sigma, tau = torch.full_like(mu, 0.4), torch.tensor([[0.3]])
    whole = best_buckets(mu, sigma, tau)
    monkeypatch.setattr("gaussianmlr.normal.ties._CELLS", 100)
    monkeypatch.setattr("gaussianmlr.normal.ties._AT_ONCE", 7)
    assert torch.equal(best_buckets(mu, sigma, tau), whole)
    same = best_buckets(torch.tensor([[1.0, 1.0, -1.0]]), torch.ones(1, 3), torch.tensor([[1e-3]]))
    assert same.tolist() == [[1, 1, 0]]  # as without ties, where equal scores tie
    assert best_buckets(mu[:0], sigma[:0], tau[:0]).shape == (0, 8)
