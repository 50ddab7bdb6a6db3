"""Backbones of texts: MiniLM, models of the transformers library, and TF-IDF.

A text is a row of tokens: numbers from 1 up, then zeros. In a table it stands among other columns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from gaussianmlr._utils.extras import minilm_file, require
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.nn.backbones.base import Backbone, Inputs
from gaussianmlr.nn.backbones.bert import Bert, Shape, named_as_here
from gaussianmlr.nn.backbones.expanded import Expand
from gaussianmlr.nn.backbones.registry import register
from gaussianmlr.nn.backbones.transformers_models import load_transformer

__all__ = ["Encoder", "Place", "Texts", "make_encoder", "uncut"]

Layers = Literal["last", "all"]

_AT_ONCE = 64  # texts that are padded to one length
_AT_ONCE_ON_CPU = 8  # where padding costs more than many small steps


class Encoder(Backbone):
    """A backbone of one text: tokens [N, L] to a vector [N, F].

    Texts of similar length are encoded together and padded to the longest of them, so padding costs little.

    Parameters
    ----------
    features : int
        F.
    tokens : int
        L.
    """

    def __init__(self, features: int, tokens: int) -> None:
        super().__init__(features, Inputs(tokens, "table"), is_map=False)

    def extract(self, x: Tensor) -> Tensor:
        """Features of texts."""
        tokens = x.round().long()
        if torch.onnx.is_in_onnx_export() or torch.compiler.is_compiling():  # a graph has one length
            return self.encode(tokens).to(x.dtype)
        lengths = (tokens > 0).sum(1)
        order = lengths.argsort(descending=True, stable=True)
        size = _AT_ONCE_ON_CPU if x.device.type == "cpu" else _AT_ONCE
        parts = [
            self.encode(tokens[some, : max(1, int(lengths[some[0]]))]) for some in torch.split(order, size)
        ]
        found = torch.cat(parts) if parts else x.new_zeros(0, self.features)
        return found[order.argsort()].to(x.dtype)

    def encode(self, tokens: Tensor) -> Tensor:
        """Features of texts of similar length."""
        raise NotImplementedError

    def rates(self) -> list[tuple[list[nn.Parameter], float]]:
        """Parameters and the factor of their learning rate."""
        return [(list(self.parameters()), 1.0)]


class _Pooled(Encoder):
    """A network whose vectors are averaged over the tokens of a text.

    Parameters
    ----------
    width : int
        Length of a vector.
    depth : int
        Number of layers.
    tokens : int
        Maximum number of tokens of a text.
    stages : sequence of nn.Module
        Parts, from below.
    layers : {"last", "all"}
        Whose vectors are averaged: those of the last layer, or of the embeddings and of every layer, which
        then stand beside each other.
    decay : float
        Factor between the learning rates of a layer and of the one above it.
    """

    def __init__(
        self, width: int, depth: int, tokens: int, stages: Sequence[nn.Module], layers: Layers, decay: float
    ) -> None:
        if layers not in ("last", "all"):
            raise DataError(f"layers is {shorten(layers)}; expected 'last' or 'all'")
        if not 0 < decay <= 1:
            raise DataError(f"decay is {decay:g}; expected a factor above 0, up to 1")
        super().__init__(width if layers == "last" else width * (1 + depth), tokens)
        self.layers, self.decay = layers, decay
        self._stages = tuple(stages)

    def encode(self, tokens: Tensor) -> Tensor:
        """The mean of the vectors of the tokens, per layer."""
        held = tokens > 0
        # Something must be looked at, also in a row without any token.
        seen = held | (torch.arange(tokens.shape[1], device=tokens.device) == 0)
        found = self.vectors((tokens - 1).clamp(min=0), seen)
        weights = held.to(found[-1].dtype).unsqueeze(-1)
        count = weights.sum(1).clamp(min=1.0)
        used = found[-1:] if self.layers == "last" else found
        return torch.cat([(vectors * weights).sum(1) / count for vectors in used], 1)

    def vectors(self, tokens: Tensor, held: Tensor) -> Sequence[Tensor]:
        """Vectors [N, L, width] of tokens per layer, from below; `held` says which are no padding."""
        raise NotImplementedError

    def stages(self) -> list[nn.Module]:
        """Embeddings, then the layers."""
        return list(self._stages)

    def rates(self) -> list[tuple[list[nn.Parameter], float]]:
        """Each layer learns more slowly than the one above it, by the factor `decay`."""
        from_top = enumerate(reversed(self._stages))
        return [(list(stage.parameters()), self.decay**depth) for depth, stage in from_top]

    def extra_repr(self) -> str:
        """Settings that are not visible in the parts."""
        return f"layers={self.layers!r}, decay={self.decay}"


class MiniLm(_Pooled):
    """all-MiniLM-L6-v2, mean of the vectors of the tokens: 384 features per layer, for English.

    Parameters
    ----------
    tokens : int
        Maximum number of tokens of a text.
    pretrained : bool
        Whether to load the weights, which come in a package.
    dropout : float
        Share of values that is left out in training.
    layers : {"last", "all"}
        Whether only the last layer gives features, or the embeddings and all six.
    decay : float
        Factor between the learning rates of a layer and of the one above it.

    References
    ----------
    W. Wang et al., "MiniLM: Deep self-attention distillation for task-agnostic compression of pre-trained
    transformers", 2020.

    Examples
    --------
    >>> MiniLm(8, pretrained=False)(torch.tensor([[102.0, 103.0, 0, 0, 0, 0, 0, 0]])).shape
    torch.Size([1, 384])
    """

    def __init__(
        self,
        tokens: int,
        *,
        pretrained: bool = True,
        dropout: float = 0.1,
        layers: Layers = "last",
        decay: float = 0.9,
    ) -> None:
        shape = Shape()
        if not 1 <= tokens <= shape.places:
            raise DataError(f"tokens is {tokens}; expected 1 to {shape.places}")
        if not 0 <= dropout < 1:
            raise DataError(f"dropout is {dropout:g}; expected a share below 1")
        bert = Bert(shape, dropout)
        stages = [bert.embeddings, *bert.layers]
        super().__init__(shape.width, shape.layers, tokens, stages, layers, decay)
        self.bert = bert
        if pretrained:
            from safetensors.torch import load_file

            bert.load_state_dict(named_as_here(load_file(minilm_file("model.safetensors"))))

    def vectors(self, tokens: Tensor, held: Tensor) -> Sequence[Tensor]:
        """Embeddings and layers."""
        found: list[Tensor] = self.bert(tokens, held)
        return found


class Transformer(_Pooled):
    """A model of texts of the transformers library; mean of the vectors of the tokens.

    Parameters
    ----------
    name : str
        A name on the hub, or a folder with a saved model.
    tokens : int
        Maximum number of tokens of a text.
    pretrained : bool
        Whether to load the weights; without them only the config is read.
    local_only : bool
        Whether downloads are forbidden.
    layers : {"last", "all"}
        Whether only the last layer gives features, or the embeddings and all layers.
    decay : float
        Factor between the learning rates of a layer and of the one above it.
    """

    def __init__(
        self,
        name: str,
        tokens: int,
        *,
        pretrained: bool = True,
        local_only: bool = False,
        layers: Layers = "last",
        decay: float = 0.9,
    ) -> None:
        require("this encoder", "transformers")
        import transformers

        code: Any = transformers
        config, network = load_transformer(code, name, pretrained, local_only)
        width = getattr(config, "hidden_size", None)
        if not isinstance(width, int):
            raise DataError(f"{name!r} is no model of texts: its config has no hidden_size")
        network.pooler = None  # reads one token for a classifier, which is not used
        embeddings, parts = getattr(network, "embeddings", None), _layers(network)
        stages = [network] if embeddings is None or not parts else [embeddings, *parts]
        depth = getattr(config, "num_hidden_layers", len(parts))
        super().__init__(width, depth, tokens, stages, layers, decay)
        self.network = network

    def vectors(self, tokens: Tensor, held: Tensor) -> Sequence[Tensor]:
        """Embeddings and layers, or the last one alone; some networks normalise it once more."""
        every = self.layers == "all"
        found = self.network(input_ids=tokens, attention_mask=held.long(), output_hidden_states=every)
        return *(found.hidden_states[:-1] if every else ()), found.last_hidden_state


def _layers(network: nn.Module) -> list[nn.Module]:
    inside = getattr(network, "encoder", None) or getattr(network, "transformer", None)
    found = getattr(inside, "layer", None) or getattr(inside, "layers", None)
    return list(found) if isinstance(found, nn.ModuleList) else []


class TfIdf(Encoder):
    r"""TF-IDF: :math:`(1 + \log n_t) \log\frac{1 + N}{1 + N_t}` per term, scaled to length 1.

    n is the number of occurrences of term t in the text, N that of training texts and N with index t that of
    training texts with the term.

    Parameters
    ----------
    tokens : int
        Maximum number of terms of a text.
    weights : sequence of float
        Inverse document frequency of each term.

    Examples
    --------
    >>> TfIdf(3, weights=[1.0, 2.0])(torch.tensor([[1.0, 2.0, 0.0], [2.0, 2.0, 0.0]])).round(decimals=3)
    tensor([[0.4470, 0.8940],
            [0.0000, 1.0000]])
    """

    weights: Tensor

    def __init__(self, tokens: int, *, weights: Sequence[float]) -> None:
        if not weights:
            raise DataError("no weights of terms; expected one per term of the vocabulary")
        super().__init__(len(weights), tokens)
        # Not in the state dict: the config of a model has them.
        self.register_buffer("weights", torch.tensor(list(weights)), persistent=False)

    def encode(self, tokens: Tensor) -> Tensor:
        """One number per term of the vocabulary."""
        counts = self.weights.new_zeros(tokens.shape[0], self.features + 1)
        places = tokens.clamp(max=self.features)
        counts.scatter_add_(1, places, torch.ones_like(places, dtype=counts.dtype))
        counts = counts[:, 1:]
        raw: Tensor = torch.where(counts > 0, 1 + counts.clamp(min=1).log(), 0) * self.weights
        length: Tensor = torch.linalg.vector_norm(raw, dim=1, keepdim=True)
        return raw / length.clamp(min=1e-12)

    def stages(self) -> list[nn.Module]:
        """There is nothing to freeze."""
        return []


_ENCODERS: dict[str, Callable[..., Encoder]] = {"minilm": MiniLm, "tfidf": TfIdf}


@register("text:")
def _texts(
    name: str,
    channels: int,
    *,
    pretrained: bool = True,
    dropout: float = 0.1,
    layers: Layers = "last",
    decay: float = 0.9,
) -> Encoder:
    """An encoder of texts: ``text:minilm``, or ``text:tfidf``, which only a model of texts can make.

    Parameters
    ----------
    name : str
        ``minilm``.
    channels : int
        Maximum number of tokens.
    pretrained, dropout, layers, decay
        As of `MiniLm`.
    """
    if name not in _ENCODERS:
        known = ", ".join(f"text:{one}" for one in _ENCODERS)
        raise DataError(f"no encoder of texts 'text:{name}'; known are {known}, and hf:NAME")
    if name == "tfidf":
        raise DataError("text:tfidf learns its terms from texts; expected data with a column of texts")
    return MiniLm(channels, pretrained=pretrained, dropout=dropout, layers=layers, decay=decay)


def make_encoder(
    name: str, tokens: int, weights: Sequence[float] = (), settings: Mapping[str, Any] | None = None
) -> Encoder:
    """The encoder of texts of a name and settings.

    Parameters
    ----------
    name : str
        ``text:minilm``, ``text:tfidf`` or ``hf:NAME``.
    tokens : int
        Maximum number of tokens of a text.
    weights : sequence of float
        Of the terms of TF-IDF.
    settings : mapping, optional
        Settings of the encoder.

    Examples
    --------
    >>> make_encoder("text:tfidf", 9, [1.0, 1.5]).features
    2
    """
    zoo, _, rest = name.partition(":")
    given = dict(settings or {})
    try:
        if zoo == "hf":
            return Transformer(os.fspath(rest), tokens, **given)
        if name == "text:tfidf":
            given.pop("pretrained", None)
            return TfIdf(tokens, weights=weights, **given)
        return _texts(rest, tokens, **given)
    except TypeError as error:
        raise DataError(f"backbone {name!r}: {error}") from None


class Place(NamedTuple):
    """The channels of a column of texts."""

    start: int
    stop: int


def uncut(x: Tensor, network: nn.Module) -> Tensor:
    """Rows with texts as integers of the same bits.

    Mixed precision rounds every float before the network, and 16 bits cannot hold the numbers of words.
    """
    of_texts = isinstance(getattr(network, "backbone", None), Texts) and x.dtype == torch.float32
    return x.view(torch.int32) if of_texts else x


class Texts(Backbone):
    """A backbone of rows with one or more columns of texts; all other columns stand beside their features.

    Parameters
    ----------
    encoder : Encoder
        Encodes every column of texts.
    channels : int
        Channels of a row.
    places : sequence of Place
        Where the texts are.
    expand : Expand, optional
        Expands the other channels.

    Examples
    --------
    >>> beside = Texts(TfIdf(2, weights=[1.0, 1.0]), 3, [Place(1, 3)], Expand([(None, False)]))
    >>> beside(torch.tensor([[0.5, 1.0, 0.0]]))
    tensor([[1.0000, 0.0000, 0.5000]])
    """

    def __init__(
        self, encoder: Encoder, channels: int, places: Sequence[Place], expand: Expand | None = None
    ) -> None:
        beside = 0 if expand is None else expand.width
        super().__init__(len(places) * encoder.features + beside, Inputs(channels, "table"), is_map=False)
        self.encoder, self.places, self.expand = encoder, tuple(places), expand
        taken = {channel for place in places for channel in range(*place)}
        self._others = [channel for channel in range(channels) if channel not in taken]

    def extract(self, x: Tensor) -> Tensor:
        """The features of the texts, then the other columns."""
        if x.dtype == torch.int32:
            x = x.view(torch.float32)  # see `uncut`
        parts = [self.encoder(x[:, place.start : place.stop]) for place in self.places]
        if self.expand is not None:
            parts.append(self.expand(x[:, self._others]))
        return torch.cat(parts, 1) if len(parts) > 1 else parts[0]

    def stages(self) -> list[nn.Module]:
        """The stages of the encoder."""
        return self.encoder.stages()

    def rates(self) -> list[tuple[list[nn.Parameter], float]]:
        """Those of the encoder."""
        return self.encoder.rates()
