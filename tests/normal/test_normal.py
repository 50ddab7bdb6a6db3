"""The Gaussian maths against mpmath, closed forms, fine grids and simulation."""

import itertools
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from gaussianmlr import DataError, normal

mp.mp.dps = 60
GRID = np.concatenate(
    [
        -np.geomspace(1e4, 1e-4, 120),
        [0.0],
        np.geomspace(1e-4, 1e4, 120),
        np.linspace(-40, 40, 401),
    ]
)


def exact_log_cdf(z):
    z = mp.mpf(float(z))
    return mp.log1p(-mp.erfc(z / mp.sqrt(2)) / 2) if z > 0 else mp.log(mp.erfc(-z / mp.sqrt(2)) / 2)


def exact_slope(z):
    z = mp.mpf(float(z))
    return mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi) / (mp.erfc(-z / mp.sqrt(2)) / 2)


def relative_errors(found, exact, dtype):
    """Errors relative to the truth; below the smallest normal number only the absolute one counts."""
    floor = float(torch.finfo(dtype).tiny)
    return [abs(float((mp.mpf(f) - e) / max(abs(e), floor))) for f, e in zip(found.double().tolist(), exact)]


@pytest.mark.parametrize(("dtype", "bar"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_log_cdf_and_its_gradient_are_exact_in_both_tails(dtype, bar):
    z = torch.tensor(GRID, dtype=dtype, requires_grad=True)
    value = normal.log_cdf(z)
    value.sum().backward()
    points = z.detach().double().tolist()
    assert max(relative_errors(value.detach(), [exact_log_cdf(p) for p in points], dtype)) < bar
    assert max(relative_errors(z.grad, [exact_slope(p) for p in points], dtype)) < bar


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    z = torch.tensor([-300.0, -1.0, 2.0], dtype=dtype, requires_grad=True)
    value = normal.log_cdf(z)
    assert value.dtype == torch.float32
    assert torch.equal(value, normal.log_cdf(z.float()))
    value.sum().backward()
    assert z.grad.dtype == dtype
    assert torch.isfinite(z.grad).all()


def test_log_cdf_second_derivative_and_vmap():
    z = torch.linspace(-6, 6, 13, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(normal.log_cdf, z)
    assert torch.autograd.gradgradcheck(normal.log_cdf, z)
    rows = torch.randn(3, 5, dtype=torch.float64)
    assert torch.equal(torch.func.vmap(normal.log_cdf)(rows), normal.log_cdf(rows))


def random_significances(count, labels, seed=0, spread=1.5):
    generator = torch.Generator().manual_seed(seed)
    mu = 2 * torch.randn(count, labels, generator=generator, dtype=torch.float64)
    sigma = torch.exp(spread * torch.randn(count, labels, generator=generator, dtype=torch.float64))
    return mu, sigma


def test_p_relevant_and_p_above_against_scipy():
    mu, sigma = random_significances(20, 4)
    assert np.allclose(normal.p_relevant(mu, sigma), scipy.stats.norm.cdf(mu / sigma), atol=1e-14)
    above = normal.p_above(mu, sigma)
    assert above.shape == (20, 4, 4)
    for u in range(4):
        for v in range(4):
            z = (mu[:, u] - mu[:, v]) / (sigma[:, u] ** 2 + sigma[:, v] ** 2).sqrt()
            assert np.allclose(above[:, u, v], scipy.stats.norm.cdf(z), atol=1e-14)
    assert torch.allclose(above + above.mT, torch.ones_like(above))


def test_p_first_of_two_labels_has_a_closed_form():
    mu, sigma = random_significances(200, 2, spread=4)  # sigmas up to e^12 apart
    z = ((mu[:, 0] - mu[:, 1]) / torch.hypot(sigma[:, 0], sigma[:, 1])).numpy()
    exact = scipy.stats.norm.cdf(np.stack([z, -z], -1))
    assert np.abs(normal.p_first(mu, sigma).numpy() - exact).max() < 1e-6


def fine_grid(mu, sigma, points=400_001):
    low, high = (mu - 10 * sigma).min(), (mu + 10 * sigma).max()
    x = np.linspace(low, high, points)
    return (
        x,
        scipy.stats.norm.cdf((x[:, None] - mu) / sigma),
        scipy.stats.norm.pdf((x[:, None] - mu) / sigma) / sigma,
    )


def test_p_first_against_a_fine_grid():
    mu, sigma = random_significances(5, 5, seed=1)
    found = normal.p_first(mu, sigma).numpy()
    for row in range(5):
        x, cdf, pdf = fine_grid(mu[row].numpy(), sigma[row].numpy())
        for label in range(5):
            others = np.delete(cdf, label, axis=1).prod(1)
            assert abs(found[row, label] - np.trapezoid(pdf[:, label] * others, x)) < 1e-6
    assert np.abs(found.sum(1) - 1).max() < 1e-9


def test_p_first_in_float32_and_with_many_labels():
    mu, sigma = random_significances(3, 300, seed=2)
    single = normal.p_first(mu.float(), sigma.float())
    assert single.dtype == torch.float32
    assert torch.allclose(single.sum(1), torch.ones(3), atol=1e-5)
    assert torch.allclose(
        single.double(), normal.p_first(mu.float().double(), sigma.float().double()), atol=1e-6
    )


def simulated_ranks(mu, sigma, draws, seed):
    samples = np.random.default_rng(seed).normal(mu.numpy(), sigma.numpy(), (draws, len(mu)))
    relevant_below = (samples[:, None, :] >= 0) & (samples[:, None, :] < samples[:, :, None])
    return samples, np.where(samples >= 0, 1 + relevant_below.sum(-1), 0)


@pytest.mark.parametrize("labels", [1, 2, 6])
def test_p_first_p_rank_and_expected_rank_inside_the_simulations_interval(labels):
    (mu,), (sigma,) = random_significances(1, labels, seed=3)
    draws = 200_000
    samples, ranks = simulated_ranks(mu, sigma, draws, seed=4)
    first = np.bincount(samples.argmax(1), minlength=labels) / draws
    shares = np.stack([np.bincount(ranks[:, label], minlength=labels + 1) / draws for label in range(labels)])
    five_sigmas = 5 * np.sqrt(0.25 / draws)
    assert np.abs(normal.p_first(mu, sigma).numpy() - first).max() < five_sigmas
    found = normal.p_rank(mu, sigma).numpy()
    assert found.shape == (labels, labels + 1)
    assert np.abs(found - shares).max() < five_sigmas
    assert np.abs(found.sum(-1) - 1).max() < 1e-9
    expected = normal.expected_rank(mu, sigma).numpy()
    assert np.abs(expected - found @ np.arange(labels + 1)).max() < 1e-9
    assert np.abs(expected - ranks.mean(0)).max() < five_sigmas * labels


def test_p_rank_of_two_labels_against_a_bivariate_normal():
    mu, sigma = torch.tensor([0.7, -0.2], dtype=torch.float64), torch.tensor([0.5, 1.4], dtype=torch.float64)
    # rank 2 of label 0: 0 <= s1 < s0, an orthant of the pair (s1, s0 - s1)
    covariance = [[sigma[1] ** 2, -(sigma[1] ** 2)], [-(sigma[1] ** 2), sigma[0] ** 2 + sigma[1] ** 2]]
    law = scipy.stats.multivariate_normal([-mu[1], mu[1] - mu[0]], covariance)
    assert abs(normal.p_rank(mu, sigma)[0, 2].item() - law.cdf([0, 0], rng=0)) < 1e-7


def test_rank_interval_covers_at_least_its_confidence_and_no_narrower_end_does():
    mu, sigma = random_significances(30, 5, seed=5, spread=0.5)
    low, high = normal.rank_interval(mu, sigma, 0.8)
    law = normal.p_rank(mu, sigma).numpy()
    for row in range(30):
        for label in range(5):
            p, a, b = law[row, label], int(low[row, label]), int(high[row, label])
            assert p[a : b + 1].sum() >= 0.8 - 1e-9
            assert p[:a].sum() <= 0.1 + 1e-9
            assert p[b + 1 :].sum() <= 0.1 + 1e-9
            assert p[: a + 1].sum() > 0.1 - 1e-9
            assert p[b:].sum() > 0.1 - 1e-9


def test_integrals_have_the_right_gradient():
    mu, sigma = random_significances(2, 3, seed=6, spread=0.5)
    mu.requires_grad_(), sigma.requires_grad_()
    for function in (normal.p_first, normal.expected_rank, normal.p_rank):
        assert torch.autograd.gradcheck(function, (mu, sigma), atol=1e-6)


def test_canonical_gauge():
    mu, sigma = random_significances(10, 4, seed=7)
    scaled = normal.canonical(mu * 17, sigma * 17)
    found = normal.canonical(mu, sigma)
    assert torch.allclose(found.mu, scaled.mu)
    assert torch.allclose(found.sigma, scaled.sigma)
    assert np.allclose(scipy.stats.gmean(found.sigma.numpy(), axis=1), 1)
    assert torch.allclose(normal.p_above(*found), normal.p_above(mu, sigma))
    assert torch.allclose(normal.p_relevant(*found), normal.p_relevant(mu, sigma))


finite = st.floats(-100, 100, width=32)
positive = st.floats(-4, 4).map(math.exp)


@given(st.lists(st.tuples(finite, positive), min_size=2, max_size=8), st.floats(0.501, 0.999))
def test_partial_order_is_a_strict_partial_order(rows, confidence):
    mu, sigma = (torch.tensor(part, dtype=torch.float64) for part in zip(*rows))
    above = normal.partial_order(mu, sigma, confidence).numpy()
    assert not above.diagonal().any()
    assert not (above & above.T).any()
    two_steps = (above[:, :, None] & above[None, :, :]).any(1)
    assert not (two_steps & ~above).any()


def test_partial_order_follows_the_pair_probability():
    mu, sigma = random_significances(50, 5, seed=8)
    m, s = mu.numpy(), sigma.numpy()
    probabilities = scipy.stats.norm.cdf(
        (m[:, :, None] - m[:, None, :]) / np.hypot(s[:, :, None], s[:, None, :])
    )
    assert (normal.partial_order(mu, sigma, 0.9).numpy() == (probabilities >= 0.9)).all()
    # At a confidence barely above one half the order is that of the mus.
    almost_total = normal.partial_order(mu, sigma, 0.5 + 1e-12)
    assert (almost_total.sum((1, 2)) == 10).all()


@pytest.mark.parametrize("confidence", [0.5, 1.0, -1, 2])
def test_bad_confidence(confidence):
    with pytest.raises(DataError, match=f"got {confidence}"):
        normal.partial_order(torch.zeros(2), torch.ones(2), confidence)


def test_bad_shapes_and_sigmas():
    with pytest.raises(DataError, match=r"\[2\] and \[3\]"):
        normal.p_first(torch.zeros(2), torch.ones(3))
    for function in (normal.p_first, normal.p_relevant, normal.partial_order, normal.canonical):
        with pytest.raises(DataError, match=r"sigma is 0\.0 at \[1\]; expected a finite number above 0"):
            function(torch.zeros(2), torch.tensor([1.0, 0.0]))
        with pytest.raises(DataError, match=r"mu is nan at \[0\]"):
            function(torch.tensor([float("nan"), 0.0]), torch.ones(2))


@pytest.mark.parametrize("labels", [2, 10, 50, 300])
def test_tied_labels_are_first_equally_often(labels):
    found = normal.p_first(torch.full((labels,), 5.0).double(), torch.ones(labels).double())
    assert (found - 1 / labels).abs().max() < 1e-6 / labels
    tiny = normal.p_first(torch.full((labels,), 5.0).double(), torch.full((labels,), 1e-16).double())
    assert (tiny - 1 / labels).abs().max() < 1e-6 / labels


@pytest.mark.parametrize("labels", [2, 10, 30])
def test_tied_labels_have_every_rank_equally_often(labels):
    found = normal.p_rank(torch.full((labels,), 20.0).double(), torch.ones(labels).double())
    assert (found[:, 1:] - 1 / labels).abs().max() < 1e-7


def test_inputs_stay_and_batches_of_any_shape_work():
    mu, sigma = random_significances(6, 3)
    before = mu.clone(), sigma.clone()
    for function in (normal.p_first, normal.p_rank, normal.expected_rank, normal.p_above):
        flat = function(mu, sigma)
        deep = function(mu.reshape(2, 3, 3), sigma.reshape(2, 3, 3))
        assert torch.equal(deep.reshape(flat.shape), flat)
        assert function(mu[:0], sigma[:0]).shape == (0, *flat.shape[1:])
    assert torch.equal(mu, before[0])
    assert torch.equal(sigma, before[1])


@pytest.mark.parametrize("share", [1e-10, 1e-14, 1e-16, 1e-30, 1e-300])
def test_sigmas_narrower_than_the_digits_of_mu(share):
    mu = torch.tensor([3.0, 1.0, -2.0, 5e5], dtype=torch.float64)
    sigma = mu.abs() * share
    certain = torch.nn.functional.one_hot(torch.tensor([2, 1, 0, 3]), 5).double()
    torch.testing.assert_close(normal.p_rank(mu, sigma), certain, atol=1e-5, rtol=0)
    wanted = torch.tensor([2.0, 1.0, 0.0, 3.0], dtype=torch.float64)
    torch.testing.assert_close(normal.expected_rank(mu, sigma), wanted, atol=1e-5, rtol=0)


def rank_law_by_adaptive_quadrature(mu, sigma, label):
    """Ranks 1 to K of a label: at each point, the counts of the others by plain convolution."""

    def integrand(x, rank):
        law = np.ones(1)
        for other in set(range(len(mu))) - {label}:
            low, high = scipy.stats.norm.cdf((np.array([0.0, x]) - mu[other]) / sigma[other])
            law = np.convolve(law, [1 - (high - low), high - low])
        return law[rank - 1] * scipy.stats.norm.pdf(x, mu[label], sigma[label])

    ends = np.unique((mu[:, None] + sigma[:, None] * np.array([-9, -3, 0, 3, 9])).clip(0))
    return [
        sum(
            scipy.integrate.quad(integrand, a, b, (rank,), epsabs=1e-11)[0]
            for a, b in itertools.pairwise(ends)
        )
        for rank in range(1, len(mu) + 1)
    ]


@pytest.mark.parametrize(
    "sigma",
    [[1.0, 1.0, 1.0, 1.0], [1e-3, 1.0, 30.0, 1e-6], [2.0, 1e-4, 1e-4, 5.0], [1e3, 1e3, 1e-3, 1e3]],
)
def test_p_rank_against_adaptive_quadrature_and_plain_convolution(sigma):
    mu, sigma = np.array([0.3, 0.31, -0.2, 1.5]), np.array(sigma)
    found = normal.p_rank(torch.tensor(mu), torch.tensor(sigma)).numpy()
    for label in range(4):
        assert np.abs(found[label, 1:] - rank_law_by_adaptive_quadrature(mu, sigma, label)).max() < 1e-8


def relevant_labels(mu, sigma):
    """Law of the number of relevant labels, by plain convolution."""
    law = np.ones(1)
    for chance in scipy.stats.norm.cdf(mu / sigma):
        law = np.convolve(law, [1 - chance, chance])
    return law


@pytest.mark.parametrize("labels", [1, 2, 33, 65, 150])
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_each_rank_up_to_the_number_of_relevant_labels_is_taken_once(labels, spread):
    mu, sigma = random_significances(3, labels, seed=labels, spread=spread)
    found = normal.p_rank(mu, sigma).numpy()
    assert np.abs(found.sum(-1) - 1).max() < 1e-12
    for row in range(3):
        at_least = relevant_labels(mu[row].numpy(), sigma[row].numpy())[::-1].cumsum()[::-1]
        assert np.abs(found[row].sum(0)[1:] - at_least[1:]).max() < 1e-8


@pytest.mark.parametrize("mean", [-3.0, 0.0, 0.5])
def test_p_rank_of_many_equal_labels_has_a_closed_form(mean):
    found = normal.p_rank(torch.full((300,), mean).double(), torch.ones(300).double())[:, 1:].numpy()
    # Each of R relevant labels has each of the ranks 1 to R equally often.
    exact = scipy.stats.binom.sf(np.arange(300), 300, scipy.stats.norm.cdf(mean)) / 300
    assert np.abs(found - exact).max() < 1e-9 / 300


_PEAK = """
import sys
from support.memory import peak_megabytes
import numpy as np, torch
from gaussianmlr import normal
from gaussianmlr.model.prediction import Prediction, Significances
count, labels = map(int, sys.argv[1:3])
draw = np.random.default_rng(0)
law = Significances(2 * draw.normal(size=(count, labels)), np.exp(draw.normal(size=(count, labels)) / 2))
chances = normal.p_relevant(*map(torch.tensor, law)).numpy()
found = Prediction(law.mu, chances, tuple(map(str, range(labels))), law)
for name in sys.argv[3:]:
    reading = getattr(found, name)
    assert np.isfinite(reading(0.9) if callable(reading) else reading).all()
print(peak_megabytes())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize(
    ("count", "labels", "readings"),
    [
        (256, 200, ["p_rank"]),
        (1, 1000, ["p_rank", "rank_interval", "partial_order", "p_first", "expected_rank"]),
    ],
)
def test_a_reading_of_many_labels_needs_less_than_a_gigabyte(count, labels, readings):
    command = [sys.executable, "-c", _PEAK, str(count), str(labels), *readings]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert int(done.stdout) < 1000, done.stdout


def test_work_ends_soon_after_nobody_waits_for_it():
    mu, sigma = random_significances(1, 1000, spread=0.5)
    end = time.monotonic() + 0.2

    def check():
        if time.monotonic() > end:
            raise TimeoutError

    with normal.checking(check), pytest.raises(TimeoutError):
        normal.p_rank(mu, sigma)
    assert time.monotonic() < end + 2  # a whole reading takes longer than this, a slice some milliseconds
    assert normal.p_rank(mu[:, :3], sigma[:, :3]).shape == (1, 3, 4)  # nobody checks any more
