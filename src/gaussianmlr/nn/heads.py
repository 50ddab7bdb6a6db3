"""Heads turn features into a method's outputs, by name.

==========  =====================================================================  ==============
name        what it does                                                           features
==========  =====================================================================  ==============
`linear`    the paper's: mean over places, Linear, ReLU, one Linear per output     map or vector
`tokens`    every label attends to the map; one readout for all labels             map
==========  =====================================================================  ==============

Both work with every method: a method defines its outputs, one number per label or one per pair of labels.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.losses import pair_indices
from gaussianmlr.methods import Output
from gaussianmlr.nn.backbones import Backbone

__all__ = ["Head", "LinearHead", "TokenHead", "available", "kind_of", "make_head"]


class Head(nn.Module, ABC):
    """A network that turns features into outputs.

    Attributes
    ----------
    outputs : tuple of Output
        Its outputs.
    labels : int
        K, the number of labels.
    layers : nn.ModuleDict
        The part that belongs to one output alone, by the name of the output.
    """

    layers: nn.ModuleDict

    def __init__(self, outputs: Sequence[Output], labels: int) -> None:
        super().__init__()
        if labels < 1 or not outputs:
            raise DataError(f"{labels} labels and {len(outputs)} outputs; expected 1 or more of each")
        self.outputs, self.labels = tuple(outputs), labels

    @abstractmethod
    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Outputs by name: [N, K], or [N, K (K + 1) / 2] for pairs as in `losses.pair_indices`."""


class LinearHead(Head):
    """The paper's head: mean over places, Linear, ReLU, and one Linear per output.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs of the method.
    labels : int
        The number of labels.
    backbone : Backbone
        The backbone that computes the features.
    hidden : int
        Units of the layer that all outputs share; 0 for no such layer, which suits a pretrained backbone that
        is trained further.
    dropout : float
        Share of features and of hidden units dropped in training.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.nn import backbones
    >>> from gaussianmlr import methods
    >>> backbone = backbones.make("mlp", channels=7)
    >>> head = make_head("linear", methods.make("lsep").outputs, labels=4, backbone=backbone)
    >>> {name: tuple(output.shape) for name, output in head(backbone(torch.zeros(2, 7))).items()}
    {'score': (2, 4), 'threshold': (2, 4)}
    """

    def __init__(
        self,
        outputs: Sequence[Output],
        labels: int,
        backbone: Backbone,
        *,
        hidden: int = 512,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(outputs, labels)
        if type(hidden) is not int or hidden < 0:
            raise DataError(f"hidden is {shorten(hidden)}; expected a number of units, or 0 for no layer")
        between = [nn.Linear(backbone.features, hidden), nn.ReLU(), nn.Dropout(dropout)] if hidden else []
        self.shared = nn.Sequential(nn.Dropout(dropout), *between)
        width = hidden or backbone.features
        self.layers = nn.ModuleDict(
            {o.name: Fixed(o.size(labels)) if o.fixed else nn.Linear(width, o.size(labels)) for o in outputs}
        )

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Outputs by name."""
        hidden = self.shared(features.mean((2, 3)) if features.dim() == 4 else features)
        return {name: layer(hidden) for name, layer in self.layers.items()}


class TokenHead(Head):
    r"""Label tokens: every label attends to the map, and one readout serves all labels.

    Label k has a query :math:`q_k`. With keys and values of the map's places,
    :math:`a_{kp} = q_k^\top \mathrm{key}_p`, it finds
    :math:`\sum_p \mathrm{softmax}_p(a_{kp})\,\mathrm{value}_p`, with the certainty given by
    :math:`\max_p a_{kp}` and the log-mean-exp of :math:`a_{kp}` over places. From these and an embedding of
    the label, one small network computes a token, and one readout per output turns tokens into numbers.
    Outputs of pairs join two tokens; that of the virtual label is learned.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs of the method.
    labels : int
        The number of labels.
    backbone : Backbone
        The backbone that computes the features, which must be a map.
    width : int
        Length of queries, keys and values.
    hidden : int
        Length of a token.
    embedding : int
        Length of the embedding of a label.
    dropout : float
        Share of a token dropped in training.

    Examples
    --------
    >>> import torch
    >>> from gaussianmlr.nn import backbones
    >>> from gaussianmlr import methods
    >>> backbone = backbones.make("fast", channels=1)
    >>> head = make_head("tokens", methods.make("crpc").outputs, labels=4, backbone=backbone)
    >>> head(backbone(torch.zeros(2, 1, 64, 64)))["pair"].shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        outputs: Sequence[Output],
        labels: int,
        backbone: Backbone,
        *,
        width: int = 128,
        hidden: int = 128,
        embedding: int = 32,
        dropout: float = 0.0,
    ) -> None:
        if not backbone.is_map:
            raise DataError(
                f"the head 'tokens' needs a map [N, F, H, W], but {type(backbone).__name__} "
                "gives a vector; use a backbone with a map (pool=False), or the head 'linear'"
            )
        super().__init__(outputs, labels)
        self.keys = nn.Conv2d(backbone.features, width, 1, bias=False)  # a bias would shift all places alike
        self.values = nn.Conv2d(backbone.features, width, 1)
        self.queries = nn.Parameter(torch.empty(labels, width))  # filled when its size is known to be valid
        self.names = nn.Parameter(torch.empty(labels, embedding))
        with torch.no_grad():
            self.queries.normal_().div_(math.sqrt(width))
            self.names.normal_().div_(math.sqrt(embedding))
        self.found = nn.Linear(width + 2, hidden)
        self.named = nn.Linear(embedding, hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleDict({o.name: _readout(o, labels, hidden) for o in outputs})

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Outputs by name."""
        tokens = self.dropout(self.tokens(features))
        return {name: layer(tokens) for name, layer in self.layers.items()}

    def tokens(self, features: Tensor) -> Tensor:
        """One token per label: [N, K, hidden]."""
        attention = self.attention(features).flatten(2)
        found = attention.softmax(-1) @ self.values(features).flatten(2).transpose(1, 2)
        # Log-mean-exp does not depend on the size of the canvas.
        sure = attention.logsumexp(-1, keepdim=True) - math.log(attention.shape[-1])
        what = torch.cat([found, attention.amax(-1, keepdim=True), sure], -1)
        return torch.relu(self.found(what) + self.named(self.names))

    def attention(self, features: Tensor) -> Tensor:
        """How well each place matches each label: [N, K, H, W]."""
        keys: Tensor = self.keys(features)
        return (self.queries @ keys.flatten(2)).view(keys.shape[0], self.labels, *keys.shape[2:])


class Fixed(nn.Module):
    """Learned numbers that are the same for every instance; they begin at zero.

    Examples
    --------
    >>> Fixed(1)(torch.ones(3, 7)).shape
    torch.Size([3, 1])
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(size))

    def forward(self, features: Tensor) -> Tensor:
        return self.values.expand(features.shape[0], -1)


def _readout(output: Output, labels: int, hidden: int) -> nn.Module:
    if output.fixed:
        return Fixed(output.size(labels))
    return _PairReadout(hidden) if output.of == "pair" else _LabelReadout(hidden)


class _LabelReadout(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, tokens: Tensor) -> Tensor:
        out: Tensor = self.network(tokens)
        return out.squeeze(-1)


class _PairReadout(nn.Module):
    """Reads two joined tokens; a linear layer of the two is the sum of one layer each."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.virtual = nn.Parameter(torch.randn(hidden) / math.sqrt(hidden))
        self.left = nn.Linear(hidden, hidden)
        self.right = nn.Linear(hidden, hidden, bias=False)
        self.last = nn.Linear(hidden, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = torch.cat([tokens, self.virtual.expand(tokens.shape[0], 1, -1)], 1)
        left, right = pair_indices(tokens.shape[1] - 1, tokens.device)
        joined = self.left(tokens)[:, left] + self.right(tokens)[:, right]
        out: Tensor = self.last(torch.relu(joined))
        return out.squeeze(-1)


_HEADS: Mapping[str, type[LinearHead] | type[TokenHead]] = {"linear": LinearHead, "tokens": TokenHead}


def available() -> tuple[str, ...]:
    """Names of the heads.

    Examples
    --------
    >>> available()
    ('linear', 'tokens')
    """
    return tuple(sorted(_HEADS))


def kind_of(name: str) -> type[LinearHead] | type[TokenHead]:
    """The class of a head.

    Examples
    --------
    >>> kind_of("tokens").__name__
    'TokenHead'
    """
    if name not in _HEADS:
        raise DataError(f"no head {name!r}; known are {', '.join(available())}")
    return _HEADS[name]


def make_head(
    name: str, outputs: Sequence[Output], *, labels: int, backbone: Backbone, **settings: Any
) -> Head:
    """Make a head from its name and settings.

    Parameters
    ----------
    name : {"linear", "tokens"}
        The name.
    outputs : sequence of Output
        A method's `outputs`.
    labels : int
        The number of labels.
    backbone : Backbone
        The backbone that computes the features.
    **settings
        Settings of that head.

    Examples
    --------
    >>> from gaussianmlr.nn import backbones
    >>> from gaussianmlr import methods
    >>> backbone = backbones.make("fast", channels=1)
    >>> head = make_head("tokens", methods.make("gmlr").outputs, labels=10, backbone=backbone)
    >>> sorted(head.layers)
    ['logvar', 'mu']
    """
    kind = kind_of(name)
    known = [
        key for key in inspect.signature(kind).parameters if key not in ("outputs", "labels", "backbone")
    ]
    if strange := sorted(set(settings) - set(known)):
        raise DataError(f"head {name!r} has no setting {strange[0]!r}; it has {', '.join(known)}")
    return kind(outputs, labels, backbone, **settings)
