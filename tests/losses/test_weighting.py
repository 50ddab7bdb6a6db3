"""Weights of labels and orders: against naive loops, and in training."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from gaussianmlr import DataError, losses, methods
from gaussianmlr.data.loading import Arrays
from gaussianmlr.losses import Weights
from gaussianmlr.methods import Method, Output, Reading
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit
from losses.test_losses import ALL, LABELS, random_outputs, random_ranks
from support import oracles

EACH = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0, 0.25], dtype=torch.float64)
NO_ORDER = ("binary_relevance", "plackett_luce")
every_loss = pytest.mark.parametrize("name", ALL)


@pytest.mark.parametrize("supervision", ["strong", "weak"])
@pytest.mark.parametrize(
    ("name", "order"),
    [(name, order) for name in ALL for order in (1.0, 0.0, 4.0) if order == 1 or name not in NO_ORDER],
)
def test_equal_to_the_naive_double_loop(name, supervision, order):
    _, loss, oracle = ALL[name]
    ranks, outputs = random_ranks(40), random_outputs(name, 40)
    found = loss(outputs, ranks, supervision=supervision, reduction="none", weights=Weights(EACH, order))
    expected = [
        oracle(*(part[i].tolist() for part in outputs), ranks[i].tolist(), supervision, EACH.tolist(), order)
        for i in range(len(ranks))
    ]
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-10)


@every_loss
def test_gradients_are_those_of_finite_differences(name):
    _, loss, _ = ALL[name]
    weights = Weights(EACH, 1.0 if name in NO_ORDER else 2.5)
    ranks, outputs = random_ranks(), random_outputs(name)
    free = outputs[1:] if name == "lsep_threshold" else outputs  # the scores are taken as given
    for part in free:
        part.requires_grad_()

    def of_free(*parts):
        return loss([*outputs[: -len(parts)], *parts], ranks, reduction="none", weights=weights)

    assert torch.autograd.gradcheck(of_free, tuple(free))
    if name in ("gmlr", "gmlr_comparisons", "ranknet"):
        assert torch.autograd.gradgradcheck(of_free, tuple(free))


@every_loss
def test_weights_of_one_change_nothing_and_none_are_exact(name):
    _, loss, _ = ALL[name]
    ranks, outputs = random_ranks(), random_outputs(name)
    plain = loss(outputs, ranks, reduction="none")
    assert torch.allclose(
        loss(outputs, ranks, reduction="none", weights=Weights(torch.ones(LABELS))), plain, atol=1e-12
    )


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("crpc", "plackett_luce")])
def test_a_label_of_no_weight_has_no_gradient(name):
    _, loss, _ = ALL[name]
    outputs = [part.requires_grad_() for part in random_outputs(name)]
    loss(outputs, random_ranks(), weights=Weights(EACH)).backward()
    assert not outputs[-1].grad[:, 2].any()
    assert outputs[-1].grad[:, 4].any()


@pytest.mark.parametrize("name", NO_ORDER)
def test_losses_without_pairs_refuse_weights_of_the_order(name):
    _, loss, _ = ALL[name]
    with pytest.raises(DataError, match="no terms of pairs that order_weight = 2 could weigh"):
        loss(random_outputs(name), random_ranks(), weights=Weights(EACH, 2.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Weights(torch.tensor([1, 2])), "one weight per label, got torch.int64"),
        (lambda: Weights(torch.tensor([1.0, -1.0])), "expected finite numbers from 0 up"),
        (lambda: Weights(torch.ones(2), float("inf")), "weight of the order is inf"),
        (
            lambda: losses.lsep(torch.zeros(1, 3), torch.ones(1, 3).long(), weights=Weights(torch.ones(2))),
            "2 label weights for ranks of 3 labels",
        ),
        (lambda: Recipe(label_weights={"a": "2"}), "the weight of a is '2'; expected a number from 0 up"),
        (lambda: Recipe(order_weight=-1), "the weight of order_weight is -1"),
    ],
)
def test_bad_weights_are_named(call, message):
    with pytest.raises(DataError, match=message):
        call()


def data_of(count=120, seed=1):
    """Three labels of which the first two cannot both be learned by a head with one feature."""
    x = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return Arrays(x, torch.stack([x[:, 0] > 0, x[:, 0] < 0.8, x[:, 1] > 0], 1).long())


@pytest.mark.parametrize("name", methods.available())
def test_every_method_trains_with_weights(name):
    data = data_of()
    order = 1.0 if name in ("br", "pl") else 2.0
    recipe = Recipe(method=name, method_settings={"supervision": "weak"}, backbone="mlp", epochs=1)
    weighted = recipe.replace(label_weights={"a": 5.0, "c": 0.0}, order_weight=order)
    one, other = (fit(each, data, data, labels=("a", "b", "c")).result for each in (recipe, weighted))
    assert one.history[0]["loss"] != other.history[0]["loss"]


def test_the_recipe_reaches_the_loss():
    """An untrained step: the first epoch's validation loss is the weighted one of the same network."""
    data = data_of()
    recipe = Recipe(backbone="mlp", epochs=1, rate=1e-12, label_weights={"b": 3.0}, order_weight=2.0)
    fitted = fit(recipe, data, data, labels=("a", "b", "c"))
    with torch.no_grad():
        outputs = fitted.model.network(data.inputs)
    weights = Weights(torch.tensor([1.0, 3.0, 1.0]), 2.0)
    expected = fitted.model.method.loss(outputs, data.ranks, weights=weights)
    assert fitted.result.history[0]["loss"] == pytest.approx(float(expected), abs=1e-5)


@dataclass(frozen=True)
class Plain(Method):
    """A method from outside that knows no weights."""

    name: ClassVar[str] = "plain"
    outputs: ClassVar[tuple[Output, ...]] = (Output("score"),)

    def loss(self, outputs, ranks, *, stage=None, reduction="mean"):
        return losses.ranknet(outputs["score"], ranks, reduction=reduction)

    def read(self, outputs):
        return Reading.of_scores(outputs["score"])


def test_what_cannot_be_weighed_is_said_before_training(tmp_path):
    data, labels = data_of(), ("a", "b", "c")
    for wrong in ({"method": "pl", "order_weight": 2}, {"label_weights": {"z": 2}}, {"backbone": "none"}):
        with pytest.raises(DataError):
            fit(Recipe(**{"backbone": "mlp", **wrong}), data, data, labels=labels, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()  # the corrected recipe may go there
    with pytest.raises(DataError, match=r"label_weights names \['z'\]; the labels are"):
        fit(Recipe(backbone="mlp", label_weights={"z": 2}), data, data, labels=labels)
    with pytest.raises(DataError, match="order_weight = 2 could weigh"):
        fit(Recipe(method="pl", backbone="mlp", order_weight=2), data, data, labels=labels)
    name = f"{Plain.__module__}:Plain"
    plain = Recipe(method=name, backbone="mlp", epochs=1)
    assert len(fit(plain, data, data, labels=labels).result.history) == 1
    with pytest.raises(DataError, match="the method 'plain' has no weights"):
        fit(plain.replace(order_weight=2), data, data, labels=labels)


def test_the_oracle_weighs_pairs_by_the_product():
    """The weighing itself, by hand: a above b, b irrelevant and c as well."""
    score = torch.tensor([[1.0, 0.0, -1.0]])
    found = losses.ranknet(
        score, torch.tensor([[2, 1, 0]]), weights=Weights(torch.tensor([2.0, 3.0, 5.0]), 7.0)
    )
    s = oracles.softplus
    by_hand = (2 * s(-1) + 3 * s(0) + 5 * s(-1)) / 3 + (7 * 6 * s(-1) + 10 * s(-2) + 15 * s(-1)) / 3
    assert float(found) == pytest.approx(by_hand, rel=1e-6)
