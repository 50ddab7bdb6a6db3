"""P(first) and expected ranks of many labels, whose grids are shared, against scipy's quadrature."""

import itertools

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from gaussianmlr.normal import expected_rank, gaussians, p_first

LABELS = gaussians._MANY + 72


def drawn(kind, seed=0):
    rng = np.random.default_rng(seed)
    mu = rng.normal(size=LABELS)
    sigma = {
        "alike": np.ones(LABELS),
        "different": rng.uniform(0.5, 1.5, LABELS),
        "very different": np.exp(3 * rng.normal(size=LABELS)),
        "one narrow": np.r_[1e-6, np.ones(LABELS - 1)],
    }[kind]
    if kind == "one narrow":
        mu[0] = 3.0  # among the largest
    return mu, sigma


def first_by_scipy(mu, sigma, label):
    def integrand(x):
        logs = norm.logcdf((x - mu) / sigma)
        return norm.pdf(x, mu[label], sigma[label]) * np.exp(logs.sum() - logs[label])

    ends = mu[label] + sigma[label] * np.linspace(-9, 9, 37)
    return sum(quad(integrand, a, b, epsabs=1e-13, limit=200)[0] for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize("kind", ["alike", "different", "very different", "one narrow"])
def test_first_of_many(kind):
    mu, sigma = drawn(kind)
    found = p_first(torch.tensor(mu), torch.tensor(sigma)).numpy()
    assert found.sum() == pytest.approx(1, abs=1e-9)
    for label in [*np.argsort(-found)[:4], 0, LABELS - 1]:
        assert found[label] == pytest.approx(first_by_scipy(mu, sigma, label), abs=2e-8)


@pytest.mark.parametrize("kind", ["alike", "different", "very different", "one narrow"])
def test_expected_rank_of_many(kind):
    """P(0 <= s_v < s_u) of each pair by scipy, summed."""
    mu, sigma = drawn(kind, 1)
    found = expected_rank(torch.tensor(mu), torch.tensor(sigma)).numpy()
    irrelevant = norm.cdf(-mu / sigma)
    for label in (0, 7, LABELS - 1):

        def integrand(x, label=label):
            others = np.maximum(norm.cdf((x - mu) / sigma) - irrelevant, 0)
            return norm.pdf(x, mu[label], sigma[label]) * (1 + others.sum() - others[label])

        ends = np.maximum(mu[label] + sigma[label] * np.linspace(-9, 9, 37), 0)
        ends = np.unique(np.r_[ends, np.clip(mu, ends[0], ends[-1])])
        expected = sum(quad(integrand, a, b, epsabs=1e-11)[0] for a, b in itertools.pairwise(ends))
        assert found[label] == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_tied_labels_share_the_first_place():
    for count in (200, 20_000):
        found = p_first(torch.full((count,), 2.0), torch.full((count,), 0.3))
        torch.testing.assert_close(found, torch.full((count,), 1 / count), rtol=1e-5, atol=0)


def test_shared_and_own_grids_agree():
    """Rows together, where one has many contenders and one has few, as each alone."""
    mu, sigma = (torch.tensor(part) for part in drawn("different"))
    clear = mu.clone()
    clear[5] = 40.0
    both = p_first(torch.stack([mu, clear]), torch.stack([sigma, sigma]))
    torch.testing.assert_close(both[0], p_first(mu, sigma), rtol=1e-9, atol=1e-12)
    assert both[1, 5] == pytest.approx(1, abs=1e-8)


def test_gradients_of_many():
    mu, sigma = (torch.tensor(part, requires_grad=True) for part in drawn("different"))
    for read in (p_first, expected_rank):
        found = read(mu, sigma)
        label = int(found.argmax())
        (slope,) = torch.autograd.grad(found[label], mu)
        step = torch.zeros_like(mu)
        step[label] = 1e-4
        rise = read(mu.detach() + step, sigma.detach()) - read(mu.detach() - step, sigma.detach())
        assert slope[label] == pytest.approx(float(rise[label]) / 2e-4, rel=1e-4)
