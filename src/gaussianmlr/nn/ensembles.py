"""Networks and trees put together: equal shares for both kinds, and within each for its members."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor, nn

from gaussianmlr.methods.ties import raw_of, tau_of
from gaussianmlr.nn.network import Ensemble, Network
from gaussianmlr.nn.trees import Trees

__all__ = ["members_of", "one_of", "parts_of", "put_together"]


def parts_of(network: nn.Module) -> tuple[list[nn.Module], Trees | None]:
    """The networks of a model, and its trees."""
    if isinstance(network, Trees):
        return [], network
    if not isinstance(network, Ensemble):
        return [network], None
    parts = [parts_of(one) for one in network.members]
    return [one for networks, _ in parts for one in networks], next(
        (trees for _, trees in parts if trees), None
    )


def members_of(network: nn.Module) -> list[nn.Module]:
    """The networks and, as one, the trees of a model."""
    networks, trees = parts_of(network)
    return networks if trees is None else [*networks, trees]


def put_together(members: Sequence[nn.Module]) -> Network | Ensemble | Trees:
    """One module of networks and trees; a single member is itself.

    Networks are averaged, trees are averaged, and then both, so that one kind does not outvote the other.
    """
    networks = [one for one in members if not isinstance(one, Trees)]
    forests = [one for one in members if isinstance(one, Trees)]
    whole: list[nn.Module] = []
    if networks:
        whole.append(Ensemble(networks) if len(networks) > 1 else networks[0])
    if forests:
        first = forests[0]
        files = [file for one in forests for file in one.files]
        known = [one.tau for one in forests if one.tau is not None]
        # As networks average their outputs.
        tau = tau_of({"tau": torch.stack([raw_of(one) for one in known]).mean(0)}) if known else None
        whole.append(
            first
            if len(forests) == 1
            else Trees(
                files, labels=first.labels, channels=first.channels, categories=first.categories, tau=tau
            )
        )
    return Ensemble(whole) if len(whole) > 1 else whole[0]  # type: ignore[return-value]


def one_of(network: nn.Module) -> Tensor:
    """A floating-point tensor of a module, for its device and type; trees have no parameters."""
    return next(part for part in chain(network.parameters(), network.buffers()) if part.is_floating_point())
