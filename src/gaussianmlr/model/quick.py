"""Models whose frozen backbone onnxruntime runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gaussianmlr.data.loading import as_input
from gaussianmlr.nn.backbones.converted import convert
from gaussianmlr.nn.network import Network

if TYPE_CHECKING:
    from gaussianmlr.model.model import Model

__all__ = ["quickened"]


def quickened(
    model: Model, inputs: Tensor | None = None, note: Callable[[str], None] = lambda text: None
) -> Model:
    """The same model, whose frozen backbone is run by onnxruntime where that agrees with torch to 1e-3.

    Models with a trained backbone, several networks or rows as inputs are returned unchanged, and so is
    every model where onnxruntime cannot be used; see `nn.backbones.converted.convert`.

    Parameters
    ----------
    model : Model
        The model, which is not changed.
    inputs : Tensor, optional
        A few inputs to check it on; noise by default.
    note : callable
        Told in one line why torch is used, if that can be helped.

    Examples
    --------
    >>> from gaussianmlr.model import Model, Recipe, build
    >>> recipe, inputs = Recipe(freeze="all"), {"kind": "image", "channels": 1, "size": [64, 64]}
    >>> model = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs)
    >>> image = torch.rand(1, 1, 64, 64)
    >>> bool(((quickened(model).read(image).scores - model.read(image).scores).abs() < 1e-3).all())
    True
    """
    network = model.network
    if model.recipe.freeze != "all" or model.inputs["kind"] != "image" or not isinstance(network, Network):
        return model
    if inputs is None:
        shape = (2, model.inputs["channels"], *model.inputs.get("size", [224, 224]))
        inputs = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    backbone = convert(network.backbone, as_input(inputs), note=note)
    if backbone is network.backbone:
        return model
    return replace(model, network=Network(backbone, network.head).eval())
