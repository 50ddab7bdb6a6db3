"""Backbones, by name: inputs in, features out.

=======================  =====================================================  =============
name                     what it is                                             features
=======================  =====================================================  =============
`fast`                   a small network for canvases, the default on CPU       map, 128
`resnet18`               the paper's network                                    map, 512
`mlp`                    for tables and embeddings                              vector
`efficientnet-lite0..2`  pretrained on ImageNet (extra ``efficientnet``)        map, 1280
`hf:NAME`                through transformers (extra ``transformers``)          map
`timm:NAME`              through timm, where it is installed                    map
`ONE+OTHER`              several side by side, such as lite0 and lite2          vector
=======================  =====================================================  =============

Maps become vectors with ``pool=True``. Images are floats in [0, 1] or bytes; a backbone brings
them into the range of its weights by itself.
"""

from gaussianmlr.backbones import zoo as _zoo  # noqa: F401  (makes its names known)
from gaussianmlr.backbones.base import Backbone, Inputs, available, make, register
from gaussianmlr.backbones.divided import divide
from gaussianmlr.backbones.fast import Fast
from gaussianmlr.backbones.freezing import freeze, parameter_groups
from gaussianmlr.backbones.joined import Joined
from gaussianmlr.backbones.mlp import Mlp
from gaussianmlr.backbones.resnet import ResNet18
from gaussianmlr.backbones.statistics import refresh_statistics
from gaussianmlr.backbones.weights import load_weights, read_weights
from gaussianmlr.backbones.wrapped import wrap

__all__ = [
    "Backbone",
    "Fast",
    "Inputs",
    "Joined",
    "Mlp",
    "ResNet18",
    "available",
    "divide",
    "freeze",
    "load_weights",
    "make",
    "parameter_groups",
    "read_weights",
    "refresh_statistics",
    "register",
    "wrap",
]
