"""Backbones by name: they turn inputs into features.

=======================  =====================================================  =============
name                     what it is                                             features
=======================  =====================================================  =============
`fast`                   a small network for canvases, the default on CPU       map, 128
`resnet18`               the paper's network                                    map, 512
`mlp`                    for tables and embeddings                              vector
`efficientnet-lite0..2`  pretrained on ImageNet (extra ``efficientnet``)        map, 1280
`hf:NAME`                through transformers (extra ``transformers``)          map
`text:NAME`              columns of texts (extra ``texts``)                     vector
`timm:NAME`              through timm, if it is installed                       map
`ONE+OTHER`              several side by side, such as lite0 and lite2          vector
=======================  =====================================================  =============

Maps become vectors with ``pool=True``. Images are floats in [0, 1] or bytes; a backbone scales them to the
range of its weights.
"""

from gaussianmlr.nn.backbones import zoo as _zoo  # noqa: F401  (registers its names)
from gaussianmlr.nn.backbones.base import Backbone, Inputs
from gaussianmlr.nn.backbones.divided import divide
from gaussianmlr.nn.backbones.fast import Fast
from gaussianmlr.nn.backbones.joined import Joined
from gaussianmlr.nn.backbones.mlp import Mlp
from gaussianmlr.nn.backbones.registry import available, make, register
from gaussianmlr.nn.backbones.resnet import ResNet18
from gaussianmlr.nn.backbones.statistics import refresh_statistics
from gaussianmlr.nn.backbones.trainable import freeze, parameter_groups
from gaussianmlr.nn.backbones.weights import load_weights, read_weights
from gaussianmlr.nn.backbones.wrapped import wrap

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
