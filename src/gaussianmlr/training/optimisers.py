"""Optimisers: torch's Adam and AdamW, and Muon for networks that begin from nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gaussianmlr.model.recipe import Recipe

Groups = list[dict[str, Any]]

# The quintic whose five-fold iteration takes singular values to about one (Jordan and others, 2024).
_QUINTIC = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_WIDE = 4  # columns a row, from which on a matrix is iterated by its Gram matrix: half the time
_ADAM_SIZE = 0.2  # root mean square of a typical update of Adam, in units of the rate


class Muon(Optimizer):
    r"""Orthogonalised momentum for weight matrices, AdamW for every other parameter.

    The momentum :math:`M` of a weight of shape [out, in] (a convolution's is [out, in * height *
    width]) has the singular value decomposition :math:`U S V^\top`; the update is

    .. math:: W \leftarrow (1 - \eta\lambda) W - 0.2\,\eta \sqrt{\max(out, in)}\; U V^\top ,

    with :math:`U V^\top` by five steps of a Newton-Schulz iteration. The factor gives updates the
    size of Adam's, so that one rate serves both kinds of parameters.

    Torch's own `torch.optim.Muon` takes two-dimensional weights only, and iterates in bfloat16, which
    is slow on a CPU.

    Parameters
    ----------
    groups : iterable of dict
        Groups of parameters; those with ``"matrix": True`` are orthogonalised.
    lr, weight_decay : float
        Rate, and decoupled weight decay.
    momentum : float
        Decay of the momentum of matrices; it looks one step ahead (Nesterov).
    betas, eps
        Of AdamW.

    References
    ----------
    K. Jordan and others, "Muon: an optimizer for hidden layers in neural networks", 2024.
    J. Liu and others, "Muon is scalable for LLM training", 2025 (the factor).

    Examples
    --------
    >>> weight = nn.Parameter(torch.zeros(2, 3))
    >>> optimiser = Muon([{"params": [weight], "matrix": True}], lr=1.0)
    >>> weight.grad = torch.tensor([[5.0, 0.0, 0.0], [0.0, 0.1, 0.0]])
    >>> optimiser.step()
    >>> bool(weight[0, 0] < -0.2), bool(weight[1, 1] < -0.2)  # the small direction counts as much
    (True, True)
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "betas": betas,
            "eps": eps,
            "matrix": False,
        }
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step; a closure is called with gradients first."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            update = self._matrix_update if group["matrix"] else self._adam_update
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1.0 - group["lr"] * group["weight_decay"])
                    parameter.add_(update(parameter, group), alpha=-group["lr"])
        return loss

    def _matrix_update(self, weight: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.state[weight]
        if not state:
            state["momentum"] = torch.zeros_like(weight)
        gradient = weight.grad
        assert gradient is not None
        momentum: Tensor = state["momentum"].lerp_(gradient, 1.0 - group["momentum"])
        ahead = gradient.lerp(momentum, group["momentum"]).flatten(1)
        return _ADAM_SIZE * math.sqrt(max(ahead.shape)) * orthogonalised(ahead).view(weight.shape)

    def _adam_update(self, parameter: Tensor, group: dict[str, Any]) -> Tensor:
        state = self.state[parameter]
        if not state:
            state["step"] = 0
            state["first"], state["second"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        gradient = parameter.grad
        assert gradient is not None
        state["step"] += 1
        one, two = group["betas"]
        first: Tensor = state["first"].lerp_(gradient, 1.0 - one)
        second: Tensor = state["second"].mul_(two).addcmul_(gradient, gradient, value=1.0 - two)
        step: int = state["step"]
        size = (second / (1.0 - two**step)).sqrt_().add_(group["eps"])
        update: Tensor = first / (1.0 - one**step) / size
        return update


def orthogonalised(matrix: Tensor) -> Tensor:
    r"""About :math:`U V^\top` of a matrix :math:`U S V^\top`: singular values between 0.6 and 1.3.

    Examples
    --------
    >>> found = orthogonalised(torch.diag(torch.tensor([9.0, 1.0])))
    >>> [0.6 < float(value) < 1.3 for value in torch.linalg.svdvals(found)]
    [True, True]
    """
    a, b, c = _QUINTIC
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.mT if tall else matrix).float()
    x = x / x.norm().clamp(min=1e-7)
    gram = x @ x.mT
    # Products of products need every bit, which TF32 and bfloat16 have not.
    exact = torch.get_float32_matmul_precision() == "highest"
    if x.shape[1] < _WIDE * x.shape[0] or not exact:
        for number in range(_ITERATIONS):
            gram = x @ x.mT if number else gram
            x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    else:
        # Every step multiplies x from the left by a polynomial of its Gram matrix, so x itself can wait.
        product = torch.eye(len(gram), dtype=x.dtype, device=x.device)
        for _ in range(_ITERATIONS):
            factor = torch.addmm(gram, gram, gram, beta=b, alpha=c)
            factor.diagonal().add_(a)
            product, gram = factor @ product, factor @ gram @ factor
        x = product @ x
    return (x.mT if tall else x).to(matrix.dtype)


def hidden_weights(network: nn.Module) -> set[Tensor]:
    """Weights of linear layers and convolutions, but for the layers of `network.layers`, which give outputs.

    Examples
    --------
    >>> network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3, groups=4))
    >>> [tuple(weight.shape) for weight in hidden_weights(network)]
    [(4, 1, 3, 3)]
    """
    last = {module for layer in getattr(network, "layers", {}).values() for module in layer.modules()}
    return {
        module.weight
        for module in network.modules()
        if module not in last
        and (isinstance(module, nn.Linear) or (isinstance(module, nn.Conv2d) and module.groups == 1))
    }


def make_optimiser(recipe: Recipe, network: nn.Module, groups: Groups) -> Optimizer:
    """The optimiser of a recipe.

    Parameters
    ----------
    recipe : Recipe
        Names it, with its rate and weight decay.
    network : nn.Module
        Whose parameters these are.
    groups : list of dict
        With ``"params"`` and ``"lr"``.

    Examples
    --------
    >>> network = nn.Linear(3, 2)
    >>> groups = [{"params": list(network.parameters()), "lr": 0.1}]
    >>> type(make_optimiser(Recipe(optimizer="adam"), network, groups)).__name__
    'Adam'
    """
    settings: dict[str, Any] = {"lr": recipe.rate, "weight_decay": recipe.weight_decay}
    if recipe.optimizer != "muon":
        kind = torch.optim.Adam if recipe.optimizer == "adam" else torch.optim.AdamW
        # One pass over the weights, not ten; but it unscales gradients itself, so none could be clipped.
        return kind(groups, fused=recipe.precision != "16-mixed", **settings)
    matrices = hidden_weights(network)
    parted = [
        {**group, "matrix": matrix, "params": [p for p in group["params"] if (p in matrices) is matrix]}
        for group in groups
        for matrix in (True, False)
    ]
    return Muon([group for group in parted if group["params"]], **settings)
