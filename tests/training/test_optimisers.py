"""Muon against an exact singular value decomposition and torch's own AdamW."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from gaussianmlr import methods
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn.network import make_network
from gaussianmlr.training.optimisers import Muon, hidden_weights, make_optimiser, orthogonalised


def polar(matrix: torch.Tensor) -> torch.Tensor:
    """U V^T, exactly."""
    u, _, vt = torch.linalg.svd(matrix.double(), full_matrices=False)
    return u @ vt


@pytest.mark.parametrize("shape", [(8, 8), (6, 20), (20, 6), (1, 5), (5, 1)])
def test_orthogonalised_has_the_singular_vectors_and_values_about_one(shape: tuple[int, int]) -> None:
    matrix = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    found, exact = orthogonalised(matrix).double(), polar(matrix)
    values = torch.linalg.svdvals(found)
    assert 0.6 < values.min() <= values.max() < 1.3
    # In the directions of U and V it is diagonal: the directions are right and only the values vary.
    u, _, vt = torch.linalg.svd(matrix.double(), full_matrices=False)
    turned = u.mT @ found @ vt.mT
    assert (turned - torch.diag(turned.diagonal())).abs().max() < 1e-5
    assert torch.allclose(found, exact, atol=0.4)


def iterated(matrix: torch.Tensor) -> torch.Tensor:
    """The published iteration, in double precision, step by step."""
    x = matrix.double() / matrix.double().norm()
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x - 4.7750 * gram @ x + 2.0315 * gram @ gram @ x
    return x


@pytest.mark.parametrize("shape", [(12, 30), (12, 48), (12, 300), (64, 576)])
@pytest.mark.parametrize("decades", [0.0, 3.0, 6.0])
def test_wide_and_narrow_matrices_are_iterated_as_published(shape: tuple[int, int], decades: float) -> None:
    random = torch.Generator().manual_seed(2)
    scales = torch.logspace(0.0, -decades, shape[0])[:, None]
    matrix = scales * torch.randn(*shape, generator=random)
    assert (orthogonalised(matrix).double() - iterated(matrix)).abs().max() < 1e-4


def test_matmuls_of_few_bits_are_not_multiplied_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix of rank one and a little noise, with the operands of products rounded as bfloat16 does."""
    random = torch.Generator().manual_seed(3)
    noise = torch.randn(64, 576, generator=random)
    matrix = torch.randn(64, 1, generator=random) @ torch.randn(1, 576, generator=random) + 1e-3 * noise

    def rounded(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return torch.mm(one.bfloat16().float(), other.bfloat16().float())

    def rounded_sum(
        add: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, beta: float = 1, alpha: float = 1
    ) -> torch.Tensor:
        return beta * add + alpha * rounded(one, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", rounded)
    monkeypatch.setattr(torch, "addmm", rounded_sum)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "medium")
    assert torch.linalg.svdvals(orthogonalised(matrix)).max() < 1.5


def test_orthogonalised_does_not_see_the_size_and_stands_zero() -> None:
    matrix = torch.randn(4, 7, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(orthogonalised(matrix), orthogonalised(1e4 * matrix), atol=1e-5)
    assert torch.equal(orthogonalised(torch.zeros(3, 2)), torch.zeros(3, 2))


def test_other_parameters_move_as_by_adamw() -> None:
    torch.manual_seed(0)
    ours = nn.Linear(5, 3)
    theirs = copy.deepcopy(ours)
    settings = {"lr": 0.03, "weight_decay": 0.1}
    first = Muon([{"params": list(ours.parameters())}], **settings)
    second = torch.optim.AdamW(theirs.parameters(), **settings)
    for _ in range(7):
        x = torch.randn(4, 5)
        for network, optimiser in ((ours, first), (theirs, second)):
            optimiser.zero_grad()
            network(x).square().sum().backward()
            optimiser.step()
    for mine, other in zip(ours.parameters(), theirs.parameters()):
        assert torch.allclose(mine, other, atol=1e-6)


def test_matrices_move_along_the_polar_factor_of_the_momentum() -> None:
    generator = torch.Generator().manual_seed(2)
    weight = nn.Parameter(torch.randn(4, 2, 3, 3, generator=generator))
    gradients = [torch.randn(weight.shape, generator=generator) for _ in range(3)]
    rate, decay, beta = 0.01, 0.1, 0.95
    optimiser = Muon([{"params": [weight], "matrix": True}], lr=rate, weight_decay=decay, momentum=beta)
    expected, momentum = weight.detach().double(), torch.zeros(weight.shape, dtype=torch.float64)
    for gradient in gradients:
        before = expected.clone()
        momentum = beta * momentum + (1 - beta) * gradient
        ahead = (beta * momentum + (1 - beta) * gradient).flatten(1)
        step = 0.2 * rate * 18**0.5 * polar(ahead).view(weight.shape)
        expected = (1 - rate * decay) * before - step
        weight.grad = gradient
        optimiser.step()
        # The iteration takes singular values to about one: a step is as long as the exact one to 40 %.
        assert (weight.detach() - expected).norm() < 0.4 * step.norm()
        expected = weight.detach().double()


def test_which_weights_are_matrices() -> None:
    network = make_network(methods.make("gmlr"), labels=4, channels=1)
    names = {name for name, p in network.named_parameters() if p in hidden_weights(network)}
    assert {"backbone.stem.1.weight", "head.keys.weight", "head.found.weight"} <= names
    assert not any("norm" in name or "bias" in name or "layers" in name for name in names)
    assert not names & {"head.queries", "head.names"}


def test_every_parameter_is_in_one_group() -> None:
    network = make_network(methods.make("gmlr"), labels=4, channels=1)
    groups = [{"name": "all", "params": list(network.parameters()), "lr": 0.5}]
    optimiser = make_optimiser(Recipe(optimizer="muon"), network, groups)
    found = [id(p) for group in optimiser.param_groups for p in group["params"]]
    assert sorted(found) == sorted(map(id, network.parameters()))
    assert {(group["matrix"], group["lr"]) for group in optimiser.param_groups} == {(True, 0.5), (False, 0.5)}


def test_a_state_goes_on_as_if_nothing_happened() -> None:
    torch.manual_seed(0)
    one = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    gradient = [torch.randn(p.shape) for p in one.parameters()]

    def optimiser(network: nn.Module) -> torch.optim.Optimizer:
        groups = [{"params": list(network.parameters()), "lr": 0.1}]
        return make_optimiser(Recipe(optimizer="muon"), network, groups)

    def step(network: nn.Module, by: torch.optim.Optimizer) -> None:
        for p, g in zip(network.parameters(), gradient):
            p.grad = g.clone()
        by.step()

    first = optimiser(one)
    step(one, first)
    two = copy.deepcopy(one)
    second = optimiser(two)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    step(one, first)
    step(two, second)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))


@pytest.mark.parametrize(("name", "plain"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])
def test_adam_in_one_pass_takes_the_same_steps(name: str, plain: Any, precision: str) -> None:
    torch.manual_seed(0)
    ours, theirs = nn.Linear(5, 3), nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    recipe = Recipe(optimizer=name, rate=0.05, weight_decay=0.1, precision=precision)
    found = make_optimiser(recipe, ours, [{"params": list(ours.parameters()), "lr": 0.05}])
    assert getattr(found, "_step_supports_amp_scaling", False) == (precision == "32-true")
    other = plain(theirs.parameters(), lr=0.05, weight_decay=0.1, fused=False)
    for _ in range(20):
        x = torch.randn(7, 5)
        for network, optimiser in ((ours, found), (theirs, other)):
            optimiser.zero_grad()
            network(x).square().sum().backward()
            optimiser.step()
    torch.testing.assert_close(ours.weight, theirs.weight)
