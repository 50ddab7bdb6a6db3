"""Transformers of the BERT family, with the tokens that a batch really has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Bert", "Shape", "named_as_here"]

_LAYER = re.compile(r"encoder\.layer\.(\d+)\.(.+)")
_PARTS = {
    "attention.output.dense": "after_attention",
    "attention.output.LayerNorm": "norm_attention",
    "intermediate.dense": "widen",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}


class Shape(NamedTuple):
    """Sizes of a network of the BERT family; by default those of MiniLM-L6-H384."""

    words: int = 30_522
    width: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1_536
    places: int = 512


class _Layer(nn.Module):
    """Self-attention and a perceptron, each followed by a layer norm."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.heads, self.rate = shape.heads, dropout
        self.attend = nn.Linear(shape.width, 3 * shape.width)
        self.after_attention = nn.Linear(shape.width, shape.width)
        self.norm_attention = nn.LayerNorm(shape.width, eps=1e-12)
        self.widen = nn.Linear(shape.width, shape.inner)
        self.narrow = nn.Linear(shape.inner, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, length, width = x.shape
        query, key, value = (
            self.attend(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        )
        rate = self.rate if self.training else 0.0
        found = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=rate)
        found = self.after_attention(found.transpose(1, 2).reshape(rows, length, width))
        x = self.norm_attention(x + self.dropout(found))
        y: Tensor = self.norm(x + self.dropout(self.narrow(functional.gelu(self.widen(x)))))
        return y


class Words(nn.Module):
    """Embeddings of tokens and of their places."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(shape.words, shape.width)
        self.places = nn.Embedding(shape.places, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        found: Tensor = self.dropout(self.norm(self.words(tokens) + self.places(places)))
        return found


class Bert(nn.Module):
    """The layers of a network of the BERT family, without its pooler.

    Parameters
    ----------
    shape : Shape
        Sizes.
    dropout : float
        Share of values and of attention that is left out in training.

    Examples
    --------
    >>> bert = Bert(Shape(words=10, width=8, layers=1, heads=2, inner=16, places=4)).eval()
    >>> [tuple(x.shape) for x in bert(torch.tensor([[1, 2, 0]]), torch.tensor([[True, True, False]]))]
    [(1, 3, 8), (1, 3, 8)]
    """

    def __init__(self, shape: Shape, dropout: float = 0.1) -> None:
        super().__init__()
        self.embeddings = Words(shape, dropout)
        self.layers = nn.ModuleList(_Layer(shape, dropout) for _ in range(shape.layers))

    def forward(self, tokens: Tensor, held: Tensor) -> list[Tensor]:
        """Vectors [N, L, width] of tokens [N, L]: the embeddings, then what each layer makes of them.

        `held` says which tokens are no padding.
        """
        found: list[Tensor] = [self.embeddings(tokens)]
        mask = held[:, None, None, :]
        for layer in self.layers:
            found.append(layer(found[-1], mask))
        return found


def named_as_here(published: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Published weights of a BERT by the names of `Bert`.

    Queries, keys and values are computed by one layer; the one token type is part of the places.
    """
    places = published["embeddings.position_embeddings.weight"]
    found = {
        "embeddings.words.weight": published["embeddings.word_embeddings.weight"],
        "embeddings.places.weight": places + published["embeddings.token_type_embeddings.weight"][0],
        "embeddings.norm.weight": published["embeddings.LayerNorm.weight"],
        "embeddings.norm.bias": published["embeddings.LayerNorm.bias"],
    }
    for name, value in published.items():
        match = _LAYER.fullmatch(name)
        if match is None:
            continue
        layer, (part, _, kind) = match[1], match[2].rpartition(".")
        if part == "attention.self.query":
            each = [published[name.replace("query", other)] for other in ("query", "key", "value")]
            found[f"layers.{layer}.attend.{kind}"] = torch.cat(each)
        elif part in _PARTS:
            found[f"layers.{layer}.{_PARTS[part]}.{kind}"] = value
    return found
