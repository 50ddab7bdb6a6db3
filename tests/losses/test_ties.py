"""Losses with ties against naive loops: pairs with a threshold, and exact sums of Plackett-Luce."""

import itertools
import math

import numpy as np
import pytest
import torch

from gaussianmlr import DataError, losses
from gaussianmlr.losses.boosting import compare_all, gmlr_derivatives, gmlr_values

BALANCES = ["parts", "comparisons"]


def cdf(x, law):
    return 0.5 * math.erfc(-x / math.sqrt(2)) if law == "normal" else 1 / (1 + math.exp(-x))


def naive(mu, sigma, ranks, tau, balance, law="normal", weights=None, order=1.0):
    """The loss of one instance, term by term."""
    labels = [label for label in range(len(ranks)) if ranks[label] >= 0]
    weights = [1.0] * len(ranks) if weights is None else weights
    relevance = sum(
        weights[u] * math.log(cdf(mu[u] / sigma[u] if ranks[u] > 0 else -mu[u] / sigma[u], law))
        for u in labels
    )
    terms = []
    for u, v in itertools.permutations(labels, 2):
        spread = math.hypot(sigma[u], sigma[v]) if law == "normal" else 1.0
        difference, threshold = mu[u] - mu[v], 0.5 * (tau[u] + tau[v])
        share = weights[u] * weights[v] * (order if ranks[v] > 0 else 1.0)
        if ranks[u] > ranks[v]:
            margin = difference - (threshold if ranks[v] > 0 else 0.0)  # an irrelevant label ties with none
            terms.append(share * math.log(cdf(margin / spread, law)))
        elif ranks[u] == ranks[v] > 0 and u < v:
            both = (cdf((threshold - difference) / spread, law), cdf((-threshold - difference) / spread, law))
            terms.append(share * math.log(both[0] - both[1]))
    if balance == "comparisons":
        return -relevance - sum(terms)
    return -relevance / max(1, len(labels)) - sum(terms) / max(1, len(terms))


def drawn(seed, rows=12, labels=6):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(-1, 4, (rows, labels))
    ranks[0], ranks[1], ranks[2], ranks[3] = -1, 0, 1, np.arange(labels) == 0
    return rng.normal(size=(rows, labels)), 0.5 * rng.normal(size=(rows, labels)), ranks, rng


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("thresholds", ["model", "label", "instance"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gmlr_with_ties(balance, thresholds, weighted):
    mu, logvar, ranks, rng = drawn(0)
    tau = rng.random({"model": (), "label": 6, "instance": (12, 1)}[thresholds]) + 0.1
    weights = rng.random(6) if weighted else None
    found = losses.gmlr(
        *(torch.from_numpy(part) for part in (mu, logvar, ranks)),
        tau=torch.as_tensor(tau),
        balance=balance,
        reduction="none",
        weights=None if weights is None else losses.Weights(torch.from_numpy(weights), 2.5),
    )
    each = np.broadcast_to(tau, mu.shape)
    order = 2.5 if weighted else 1.0
    wanted = [
        naive(mu[row], np.exp(0.5 * logvar[row]), ranks[row], each[row], balance, "normal", weights, order)
        for row in range(len(mu))
    ]
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_ranknet_with_ties():
    mu, _, ranks, _ = drawn(1)
    found = losses.ranknet(torch.from_numpy(mu), torch.from_numpy(ranks), tau=0.7, reduction="none")
    ones = np.ones(6)
    wanted = [naive(mu[row], ones, ranks[row], 0.7 * ones, "parts", "logistic") for row in range(len(mu))]
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-12)


def odds_against(scores, ranks, tau, weights, order):
    """ZLPR of one instance: log(1 + sum of the odds against every comparison), by probabilities."""
    total = 1.0
    known = [label for label in range(len(ranks)) if ranks[label] >= 0]
    for u in known:
        total += weights[u] * (1 / cdf(scores[u] if ranks[u] > 0 else -scores[u], "logistic") - 1)
    for u, v in itertools.permutations(known, 2):
        share = weights[u] * weights[v] * (order if ranks[v] > 0 else 1.0)
        difference, threshold = scores[u] - scores[v], 0.5 * (tau[u] + tau[v])
        if ranks[u] > ranks[v]:
            margin = difference - (threshold if ranks[v] > 0 else 0.0)
            total += share * (1 / cdf(margin, "logistic") - 1)
        elif ranks[u] == ranks[v] > 0 and u < v:
            tie = cdf(threshold - difference, "logistic") - cdf(-threshold - difference, "logistic")
            total += share * (1 / tie - 1)
    return math.log(total)


@pytest.mark.parametrize("thresholds", ["model", "label"])
@pytest.mark.parametrize("weighted", [False, True])
def test_zlpr_with_ties(thresholds, weighted):
    scores, _, ranks, rng = drawn(6)
    tau = rng.random({"model": (), "label": 6}[thresholds]) + 0.1
    weights, order = (rng.random(6), 2.5) if weighted else (np.ones(6), 1.0)
    found = losses.zlpr(
        torch.from_numpy(scores),
        torch.from_numpy(ranks),
        tau=torch.as_tensor(tau),
        reduction="none",
        weights=losses.Weights(torch.from_numpy(weights), order) if weighted else None,
    )
    each = np.broadcast_to(tau, scores.shape)
    wanted = [odds_against(*row, weights, order) for row in zip(scores, ranks, each)]
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_zlpr_without_a_threshold_is_zlpr_to_the_bit():
    scores, _, ranks, _ = drawn(7)
    scores, ranks = torch.from_numpy(scores).float(), torch.from_numpy(ranks)
    for tau in (None, 0.0, torch.zeros(6)):
        assert torch.equal(losses.zlpr(scores, ranks, tau=tau), losses.zlpr(scores, ranks))
    weak = losses.zlpr(scores, ranks, supervision="weak", tau=0.5)
    assert torch.equal(weak, losses.zlpr(scores, ranks, supervision="weak"))


def test_far_apart_ties_of_zlpr_keep_finite_gradients():
    scores = torch.tensor([[1e4, -1e4, 5.0]], requires_grad=True)
    tau = torch.tensor(1e-6, requires_grad=True)
    loss = losses.zlpr(scores, torch.tensor([[1, 1, 1]]), tau=tau)
    assert loss.item() == pytest.approx(2e4 + 13, abs=2)
    assert all(part.isfinite().all() for part in torch.autograd.grad(loss, (scores, tau)))


@pytest.mark.parametrize("balance", BALANCES)
def test_gradients(balance):
    mu, logvar, ranks, rng = drawn(2, rows=5, labels=4)
    inputs = [torch.from_numpy(part).requires_grad_() for part in (mu, logvar, rng.random(4) + 0.2)]
    by_label = torch.from_numpy(rng.random(4))

    def loss(mu, logvar, tau):
        return losses.gmlr(
            mu,
            logvar,
            torch.from_numpy(ranks),
            tau=tau,
            balance=balance,
            weights=losses.Weights(by_label),
        )

    assert torch.autograd.gradcheck(loss, inputs)
    assert torch.autograd.gradgradcheck(loss, inputs)

    def logistic(mu, tau):
        return losses.ranknet(mu, torch.from_numpy(ranks), tau=tau)

    assert torch.autograd.gradcheck(logistic, inputs[::2])
    assert torch.autograd.gradgradcheck(logistic, inputs[::2])

    def summed(mu, tau):
        return losses.zlpr(mu, torch.from_numpy(ranks), tau=tau)

    assert torch.autograd.gradcheck(summed, inputs[::2])
    assert torch.autograd.gradgradcheck(summed, inputs[::2])


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("tau", [0, 0.0, torch.tensor(0.0), torch.zeros(6)])
def test_no_threshold_is_the_papers_loss_to_the_bit(balance, tau):
    mu, logvar, ranks, _ = drawn(3)
    results = []
    for options in ({}, {"tau": tau}):
        inputs = [torch.from_numpy(part).float().requires_grad_() for part in (mu, logvar)]
        found = losses.gmlr(*inputs, torch.from_numpy(ranks), balance=balance, reduction="none", **options)
        results.append((found, *torch.autograd.grad(found.sum(), inputs)))
    assert all(torch.equal(one, other) for one, other in zip(*results))


def test_orders_without_ties_count_as_many_pairs_as_ever():
    """At a tiny threshold the loss of an order without ties tends to the one without; with ties not."""
    mu, logvar = torch.randn(1, 4).double(), torch.zeros(1, 4).double()
    for order, close in (([3, 2, 1, 0], True), ([2, 2, 1, 0], False)):
        ranks = torch.tensor([order])
        gap = losses.gmlr(mu, logvar, ranks, tau=1e-9) - losses.gmlr(mu, logvar, ranks)
        assert (abs(gap.item()) < 1e-6) == close


def test_irrelevant_labels_do_not_tie():
    mu, logvar = torch.randn(3, 5).double(), torch.zeros(3, 5).double()
    ranks = torch.tensor([[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 2, 0, -1, 0]])
    assert torch.equal(losses.gmlr(mu, logvar, ranks, tau=0.8), losses.gmlr(mu, logvar, ranks))


def test_weak_supervision_knows_no_ties():
    mu, ranks = torch.randn(3, 4), torch.tensor([[2, 2, 1, 0]] * 3)
    plain = losses.gmlr(mu, 0 * mu, ranks, supervision="weak")
    assert torch.equal(losses.gmlr(mu, 0 * mu, ranks, supervision="weak", tau=0.5), plain)


@pytest.mark.parametrize("tau", [-0.1, float("nan"), float("inf")])
def test_bad_thresholds(tau):
    with pytest.raises(DataError, match="threshold"):
        losses.gmlr(torch.zeros(1, 2), torch.zeros(1, 2), torch.tensor([[1, 1]]), tau=tau)
    with pytest.raises(DataError, match="expands"):
        losses.gmlr(torch.zeros(1, 2), torch.zeros(1, 2), torch.tensor([[1, 1]]), tau=torch.ones(3))


def test_far_apart_ties_keep_finite_gradients():
    mu = torch.tensor([[1e4, -1e4, 5.0]], requires_grad=True)
    tau = torch.tensor(1e-6, requires_grad=True)
    loss = losses.gmlr(mu, torch.full((1, 3), -4.0), torch.tensor([[1, 1, 1]]), tau=tau)
    assert loss.isfinite()
    assert all(part.isfinite().all() for part in torch.autograd.grad(loss, (mu, tau)))


@pytest.mark.parametrize("balance", BALANCES)
@pytest.mark.parametrize("thresholds", [1, 6])
def test_boosting_with_ties(balance, thresholds):
    mu, _, ranks, rng = drawn(4)
    tau, weights, by_label = rng.random(thresholds) + 0.2, rng.random(len(mu)), rng.random(6)
    comparisons = compare_all(
        ranks, balance=balance, weights=weights, label_weights=by_label, order_weight=0.7, ties=True
    )

    def each(mu, tau):
        return losses.gmlr(
            mu,
            torch.zeros_like(mu),
            torch.from_numpy(ranks),
            balance=balance,
            reduction="none",
            weights=losses.Weights(torch.from_numpy(by_label), 0.7),
            tau=tau,
        ) * torch.from_numpy(weights)

    inputs = torch.from_numpy(mu).requires_grad_(), torch.from_numpy(tau).requires_grad_()
    assert np.allclose(gmlr_values(mu, None, comparisons, tau), each(*inputs).detach())
    by_mu, by_tau = torch.autograd.grad(each(*inputs).sum(), inputs)
    found = gmlr_derivatives(mu, None, comparisons, tau)
    assert np.allclose(found.mu_gradient, by_mu)
    sums = found.tau_gradient.sum(0)
    assert np.allclose(sums if thresholds > 1 else sums.sum(), by_tau)
    whole = torch.autograd.functional.hessian(lambda *both: each(*both).sum(), inputs)
    diagonal = whole[0][0].reshape(mu.size, mu.size).diagonal().reshape(mu.shape)
    assert np.allclose(found.mu_hessian, diagonal)
    if thresholds > 1:
        assert np.allclose(found.tau_hessian.sum(0), whole[1][1].diagonal())


def in_any_order(scores, ranks):
    """Plackett-Luce with the probabilities of all orders of a bucket added up, for one instance."""
    known = [label for label in range(len(ranks)) if ranks[label] >= 0]
    worth = {label: math.exp(scores[label]) for label in known} | {"zero": 1.0}
    places = {label: ranks[label] + (ranks[label] > 0) for label in known} | {"zero": 1}
    total = 0.0
    for place in {one for one in places.values() if one > 0}:
        bucket = [label for label in places if places[label] == place]
        below = sum(worth[label] for label in places if places[label] < place)
        chance = 0.0
        for order in itertools.permutations(bucket):
            left, product = sum(worth[label] for label in bucket) + below, 1.0
            for label in order:
                product *= worth[label] / left
                left -= worth[label]
            chance += product
        total -= math.log(chance)
    return total


def test_plackett_luce_with_exact_ties():
    scores, _, ranks, _ = drawn(5)
    found = losses.plackett_luce(
        torch.from_numpy(scores), torch.from_numpy(ranks), ties="exact", reduction="none"
    )
    assert np.allclose(found, [in_any_order(one, order) for one, order in zip(scores, ranks)])
    untied = torch.tensor([[3, 2, 1, 0, 0, -1]])
    both = [losses.plackett_luce(torch.from_numpy(scores[:1]), untied, ties=t) for t in ("exact", "breslow")]
    assert both[0].item() == pytest.approx(both[1].item(), rel=1e-12)
    inputs = torch.from_numpy(scores).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: losses.plackett_luce(x, torch.from_numpy(ranks), ties="exact"), inputs
    )


def test_large_buckets_stay_in_breslows_form():
    scores, ranks = torch.randn(2, 12).double(), torch.ones(2, 12, dtype=torch.int64)
    assert torch.equal(losses.plackett_luce(scores, ranks, ties="exact"), losses.plackett_luce(scores, ranks))
    with pytest.raises(DataError, match="breslow"):
        losses.plackett_luce(scores, ranks, ties="efron")
