"""Losses against naive double loops, and the promises every one of them makes."""

import math

import pytest
import torch

from gaussianmlr import DataError, losses
from gaussianmlr.losses import pairs
from support import oracles

# name, number of outputs of K labels, function of (outputs, ranks, **settings), oracle
LABELS = 6
PAIRS = LABELS * (LABELS + 1) // 2
ALL = {
    "gmlr": (2, lambda o, r, **k: losses.gmlr(o[0], o[1], r, **k), oracles.gmlr),
    "gmlr_comparisons": (
        2,
        lambda o, r, **k: losses.gmlr(o[0], o[1], r, balance="comparisons", **k),
        oracles.gmlr_comparisons,
    ),
    "ranknet": (1, lambda o, r, **k: losses.ranknet(o[0], r, **k), oracles.ranknet),
    "lsep": (1, lambda o, r, **k: losses.lsep(o[0], r, **k), oracles.lsep),
    "zlpr": (1, lambda o, r, **k: losses.zlpr(o[0], r, **k), oracles.zlpr),
    "plackett_luce": (1, lambda o, r, **k: losses.plackett_luce(o[0], r, **k), oracles.plackett_luce),
    "crpc": (0, lambda o, r, **k: losses.crpc(o[0], r, **k), oracles.crpc),
    "binary_relevance": (
        1,
        lambda o, r, supervision="weak", **k: losses.binary_relevance(o[0], r, **k),
        oracles.binary_relevance,
    ),
    "lsep_threshold": (
        2,
        lambda o, r, supervision="weak", **k: losses.lsep_threshold(o[0], o[1], r, **k),
        oracles.lsep_threshold,
    ),
}
every_loss = pytest.mark.parametrize("name", ALL)
both_supervisions = pytest.mark.parametrize("supervision", ["strong", "weak"])


def random_ranks(count=12, labels=LABELS, seed=0, unknown=True):
    generator = torch.Generator().manual_seed(seed)
    ranks = torch.randint(-1 if unknown else 0, 4, (count, labels), generator=generator)
    ranks[0], ranks[1] = 0, 2  # none relevant; all tied
    if unknown:
        ranks[2] = -1  # nothing known
        ranks[3] = torch.tensor([-1] * (labels - 1) + [1])
    return ranks


def random_outputs(name, count=12, labels=LABELS, seed=1, scale=2.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    number = ALL[name][0]
    shapes = [(count, labels)] * number or [(count, labels * (labels + 1) // 2)]
    return [
        (scale * torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype) for shape in shapes
    ]


@every_loss
@both_supervisions
def test_equal_to_the_naive_double_loop(name, supervision):
    _, loss, oracle = ALL[name]
    ranks, outputs = random_ranks(40), random_outputs(name, 40)
    expected = [
        oracle(*(part[i].tolist() for part in outputs), ranks[i].tolist(), supervision)
        for i in range(len(ranks))
    ]
    found = loss(outputs, ranks, supervision=supervision, reduction="none")
    assert found.dtype == torch.float64
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-10)
    assert math.isclose(
        loss(outputs, ranks, supervision=supervision).item(), sum(expected) / len(expected), abs_tol=1e-10
    )
    assert math.isclose(
        loss(outputs, ranks, supervision=supervision, reduction="sum").item(), sum(expected), abs_tol=1e-9
    )


@both_supervisions
def test_tied_pairs_of_crpc_as_losses(supervision):
    """The paper's published code trains the left one to lose; that differs wherever something ties."""
    ranks, (logits,) = random_ranks(40), random_outputs("crpc", 40)
    expected = [
        oracles.crpc(row, truth, supervision, ties="losses")
        for row, truth in zip(logits.tolist(), ranks.tolist())
    ]
    found = losses.crpc(logits, ranks, supervision=supervision, ties="losses", reduction="none")
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-10)
    without = losses.crpc(logits, ranks, supervision=supervision, reduction="none")
    assert found[0] > without[0]
    assert (found >= without).all()


@every_loss
@both_supervisions
def test_gradient_is_that_of_finite_differences(name, supervision):
    _, loss, _ = ALL[name]
    ranks, outputs = random_ranks(), random_outputs(name)
    free = outputs[1:] if name == "lsep_threshold" else outputs  # the scores are taken as given
    for part in free:
        part.requires_grad_()

    def of_free(*parts):
        every = [outputs[0], *parts] if name == "lsep_threshold" else list(parts)
        return loss(every, ranks, supervision=supervision, reduction="none")

    assert torch.autograd.gradcheck(of_free, tuple(free))


def test_the_threshold_stage_gives_the_scores_no_gradient():
    scores, thresholds = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    losses.lsep_threshold(scores, thresholds, torch.ones(3, 4, dtype=torch.long)).backward()
    assert scores.grad is None
    assert thresholds.grad.abs().min() > 0


@every_loss
def test_inputs_stay_as_they_were(name):
    _, loss, _ = ALL[name]
    ranks, outputs = random_ranks(), [part.requires_grad_() for part in random_outputs(name)]
    before = ranks.clone(), [part.detach().clone() for part in outputs]
    loss(outputs, ranks).backward()
    assert torch.equal(ranks, before[0])
    assert all(torch.equal(part, old) for part, old in zip(outputs, before[1]))


@every_loss
@both_supervisions
def test_nothing_to_compare_costs_zero_and_still_backpropagates(name, supervision):
    _, loss, _ = ALL[name]
    outputs = [part.requires_grad_() for part in random_outputs(name, 2)]
    value = loss(outputs, torch.full((2, LABELS), -1), supervision=supervision)
    value.backward()
    assert value.item() == 0
    assert outputs[-1].grad is not None
    assert not outputs[-1].grad.any()


@every_loss
def test_an_empty_batch_costs_zero_and_still_backpropagates(name):
    _, loss, _ = ALL[name]
    outputs = [part[:0].requires_grad_() for part in random_outputs(name)]
    value = loss(outputs, random_ranks()[:0])
    value.backward()
    assert value.item() == 0
    assert outputs[-1].grad.shape == outputs[-1].shape


@every_loss
@both_supervisions
@pytest.mark.parametrize("logvar", [-50.0, 0.0, 50.0])
def test_extreme_outputs_give_finite_values_and_gradients(name, supervision, logvar):
    _, loss, _ = ALL[name]
    ranks = random_ranks(64, seed=5)
    outputs = random_outputs(name, 64, dtype=torch.float32)
    outputs = [torch.where(part > 0, 1e6, -1e6).requires_grad_() for part in outputs]
    if name.startswith("gmlr"):
        mixed = torch.where(torch.rand(64, LABELS) < 0.5, logvar, -logvar)
        outputs[1] = mixed.requires_grad_()
    value = loss(outputs, ranks, supervision=supervision)
    value.backward()
    assert torch.isfinite(value)
    free = outputs[1:] if name == "lsep_threshold" else outputs
    assert all(torch.isfinite(part.grad).all() for part in free)


@every_loss
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_and_autocast_compute_in_float32(name, dtype):
    _, loss, _ = ALL[name]
    ranks, outputs = random_ranks(), random_outputs(name, dtype=dtype)
    exact = loss([part.double() for part in outputs], ranks)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = loss([part.requires_grad_() for part in outputs], ranks)
    found.backward()
    assert found.dtype == torch.float32
    assert math.isclose(found.item(), exact.item(), rel_tol=1e-5)
    assert outputs[-1].grad.dtype == dtype


@pytest.mark.parametrize("name", [name for name in ALL if name != "crpc"])  # its pairs would move
@both_supervisions
def test_unknown_labels_drop_out(name, supervision):
    """The same as a data set that never had them."""
    _, loss, _ = ALL[name]
    ranks, outputs = random_ranks(8, unknown=False), random_outputs(name, 8)
    kept = [0, 2, 3, 5]
    hidden = ranks.clone()
    hidden[:, [1, 4]] = -1
    full = loss(outputs, hidden, supervision=supervision)
    small = loss([part[:, kept] for part in outputs], ranks[:, kept], supervision=supervision)
    assert torch.allclose(full, small, atol=1e-12)


def test_blocks_of_any_size_give_the_same(monkeypatch):
    outputs, ranks = random_outputs("gmlr"), random_ranks()
    results = []
    for block in (1, 7, 1 << 20):
        monkeypatch.setattr(pairs, "BLOCK", block)
        mu, logvar = (part.clone().requires_grad_() for part in outputs)
        value = losses.gmlr(mu, logvar, ranks, reduction="none")
        value.sum().backward()
        results.append(torch.cat([value.detach()[:, None], mu.grad, logvar.grad], 1))
    assert torch.allclose(results[0], results[2], atol=1e-14)
    assert torch.allclose(results[1], results[2], atol=1e-14)


def test_pair_counts_against_a_double_loop():
    ranks = random_ranks(50)
    assert pairs.pair_counts(ranks).tolist() == [len(oracles.ordered_pairs(row)) for row in ranks.tolist()]


def test_the_gauge_does_not_change_the_loss():
    (mu, logvar), ranks = random_outputs("gmlr"), random_ranks()
    assert torch.allclose(
        losses.gmlr(mu, logvar, ranks), losses.gmlr(3 * mu, logvar + 2 * math.log(3), ranks)
    )


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.uint8])
@every_loss
def test_ranks_of_any_integer_type(name, dtype):
    _, loss, _ = ALL[name]
    ranks, outputs = random_ranks(unknown=dtype != torch.uint8), random_outputs(name)
    assert torch.equal(loss(outputs, ranks.to(dtype)), loss(outputs, ranks))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.lsep(torch.zeros(2, 3), torch.zeros(2, 4).long()), r"\[2, 3\] and \[2, 4\]"),
        (lambda: losses.lsep(torch.zeros(2, 3), torch.zeros(2, 3)), "integers, got torch.float32"),
        (lambda: losses.lsep(torch.zeros(2, 3).long(), torch.zeros(2, 3).long()), "floats, got torch.int64"),
        (lambda: losses.lsep(torch.zeros(2, 3), torch.zeros(2, 3).long(), supervision="full"), "not 'full'"),
        (lambda: losses.lsep(torch.zeros(2, 3), torch.zeros(2, 3).long(), reduction="max"), "not 'max'"),
        (lambda: losses.crpc(torch.zeros(2, 3), torch.zeros(2, 3).long()), r"expected \[N, 6\] pair logits"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


@pytest.mark.parametrize("name", ["gmlr", "ranknet", "plackett_luce", "crpc"])
def test_second_derivatives(name):
    _, loss, _ = ALL[name]
    outputs = [part.requires_grad_() for part in random_outputs(name, 4)]
    ranks = random_ranks(4)
    assert torch.autograd.gradgradcheck(lambda *o: loss(list(o), ranks, reduction="none"), tuple(outputs))
    # With a constant gradient from above, too: that is how Hessians are made.
    (first,) = torch.autograd.grad(loss(outputs, ranks).sum(), outputs[:1], create_graph=True)
    assert torch.autograd.grad(first.square().sum(), outputs[:1])[0].abs().sum() > 0


@every_loss
def test_large_ranks_of_narrow_types(name):
    _, loss, _ = ALL[name]
    outputs = random_outputs(name, 1)
    ranks = torch.tensor([[127, 1, 0, 126, 0, 2]])
    assert torch.equal(loss(outputs, ranks.to(torch.int8)), loss(outputs, ranks))


def test_means_and_variances_of_two_types():
    (mu, logvar), ranks = random_outputs("gmlr"), random_ranks()
    mixed = losses.gmlr(mu.float(), logvar, ranks)
    assert torch.allclose(mixed.double(), losses.gmlr(mu, logvar, ranks), rtol=1e-5)


@pytest.mark.parametrize("name", ["lsep", "zlpr", "plackett_luce"])
@pytest.mark.parametrize("row", [[-1, -1, -1], [2, 1, -1], [1, -1, -1], [-1, 0, 3]])
def test_second_derivatives_beside_unknown_labels(name, row):
    _, loss, _ = ALL[name]
    scores = torch.tensor([[0.3, -1.2, 0.8]], dtype=torch.float64, requires_grad=True)
    ranks = torch.tensor([row])
    assert torch.autograd.gradgradcheck(lambda s: loss([s], ranks, reduction="none"), (scores,))
    known = ranks[0] >= 0
    with_them = torch.autograd.functional.hessian(lambda s: loss([s], ranks), scores)[0, :, 0]
    assert not with_them[~known].any()
    if known.any():  # and the others do not notice them
        alone = torch.autograd.functional.hessian(
            lambda s: loss([s], ranks[:, known]), scores.detach()[:, known]
        )
        torch.testing.assert_close(with_them[known][:, known], alone[0, :, 0])
