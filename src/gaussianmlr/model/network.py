"""The network of a recipe."""

from __future__ import annotations

from itertools import accumulate, pairwise

from torch import nn

from gaussianmlr.data.columns import slots
from gaussianmlr.data.inputs import Inputs, encoding_of
from gaussianmlr.errors import DataError
from gaussianmlr.methods import Method, make
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import MOST_LABELS, check_inputs
from gaussianmlr.nn import backbones
from gaussianmlr.nn.backbones.expanded import Expand, Expanded
from gaussianmlr.nn.backbones.texts import Place, Texts, make_encoder
from gaussianmlr.nn.network import Network, make_network

__all__ = ["build", "built_of", "expand_of", "has_texts", "texts_of"]

_KINDS = {"image": "pictures", "table": "rows of numbers"}


def built_of(backbone: str, kind: str) -> str:
    """What a model is made of, for people.

    Examples
    --------
    >>> [built_of("mlp", kind) for kind in ("network", "both", "auto", "trees")]
    ['mlp', 'mlp and trees', 'mlp or trees', 'trees']
    """
    known = {"network": backbone, "both": f"{backbone} and trees", "auto": f"{backbone} or trees"}
    return known.get(kind, "trees")


def build(
    recipe: Recipe, labels: int, inputs: Inputs, backbone: nn.Module | None = None
) -> tuple[Network, Method]:
    """The network and the method of a recipe.

    Parameters
    ----------
    recipe : Recipe
        Names and settings.
    labels : int
        Number of labels.
    inputs : Inputs
        Description of the inputs.
    backbone : nn.Module, optional
        A backbone of your own, in place of the recipe's.

    Examples
    --------
    >>> import torch
    >>> network, method = build(Recipe(backbone="mlp"), 3, {"kind": "table", "channels": 2})
    >>> {name: tuple(output.shape) for name, output in network(torch.zeros(5, 2)).items()}
    {'mu': (5, 3), 'logvar': (5, 3)}
    """
    check_inputs(inputs)
    if labels > MOST_LABELS:
        raise DataError(f"{labels:,} labels; expected at most {MOST_LABELS:,} in a model")
    method = make(recipe.method, **recipe.method_settings)
    settings = dict(recipe.backbone_settings)
    if backbone is not None and not isinstance(backbone, backbones.Backbone):
        settings = {"kind": inputs["kind"], "size": inputs.get("size", [224])[0], **settings}
    channels = inputs["channels"]
    made: backbones.Backbone
    if backbone is None and has_texts(inputs):
        made = texts_of(inputs, recipe)
    else:
        expand = expand_of(inputs)
        made = backbones.make(
            recipe.backbone if backbone is None else backbone,
            channels=channels if expand is None else expand.width,
            **settings,
        )
        if expand is not None and made.inputs.kind == "table":
            made = Expanded(made, expand)
    if made.inputs.kind != inputs["kind"]:
        taken, given = (_KINDS[kind] for kind in (made.inputs.kind, inputs["kind"]))
        raise DataError(f"the backbone {recipe.backbone!r} takes {taken}, but the data are {given}")
    head = recipe.head if recipe.head != "auto" else ("tokens" if made.is_map else "linear")
    network = make_network(
        method, labels=labels, channels=channels, backbone=made, head=head, head_settings=recipe.head_settings
    )
    backbones.freeze(made, recipe.freeze)
    return network, method


def has_texts(inputs: Inputs) -> bool:
    """Whether a model reads texts.

    Examples
    --------
    >>> has_texts({"kind": "table", "channels": 2})
    False
    """
    return any(one.text is not None for one in encoding_of(inputs) or ())


def texts_of(inputs: Inputs, recipe: Recipe | None = None) -> Texts:
    """The backbone of rows with texts, all read by the encoder of the recipe, or by that of the inputs."""
    encoding = encoding_of(inputs) or ()
    codes = {one.text for one in encoding if one.text is not None}
    names = {one.encoder for one in codes}
    if recipe is None:
        recipe = Recipe(backbone=min(names))
    if names != {recipe.backbone} or len(codes) != 1:
        known = ", ".join(sorted(names))
        raise DataError(
            f"the backbone is {recipe.backbone!r}, but the texts are read for {known}; expected text:minilm, "
            "text:tfidf or hf:NAME for data with texts"
        )
    code = codes.pop()
    encoder = make_encoder(code.encoder, code.tokens, code.weights, recipe.backbone_settings)
    ends = list(accumulate((one.width for one in encoding), initial=0))
    places = [Place(*both) for both, one in zip(pairwise(ends), encoding) if one.text is not None]
    others = tuple(one for one in encoding if one.text is None)
    return Texts(encoder, inputs["channels"], places, Expand(slots(others)) if others else None)


def expand_of(inputs: Inputs) -> Expand | None:
    """Turns codes and gaps of rows into inputs of a network; None if the rows have none."""
    encoding = encoding_of(inputs)
    if encoding is None or all(one.kind in ("number", "boolean") and not one.gaps for one in encoding):
        return None
    return Expand(slots(encoding))
