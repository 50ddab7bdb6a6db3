"""The files of a model: weights as safetensors, trees, and a config as JSON."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import versions
from gaussianmlr._utils.strict_json import read_json
from gaussianmlr.errors import DataError
from gaussianmlr.methods import Method, make
from gaussianmlr.model.checks import bounded, checked_recipe, sha256, sizes_of
from gaussianmlr.model.network import build
from gaussianmlr.model.packaged import packaged_weights, split_weights
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import CONFIG, FORMAT, FORMAT_VERSION, LARGEST_CONFIG, digest_of
from gaussianmlr.model.trees import read_trees, write_trees
from gaussianmlr.nn.ensembles import parts_of, put_together
from gaussianmlr.nn.network import Ensemble, Network
from gaussianmlr.nn.trees import Trees

if TYPE_CHECKING:
    from gaussianmlr.model.model import Model

__all__ = ["WEIGHTS", "read_network", "write_files"]

WEIGHTS = "model.safetensors"


def write_files(model: Model, folder: Path, *, half: bool = False, whole: bool = True) -> None:
    """Write weights, trees and config of a model to an empty folder.

    Weights are in 16 bits if `half`, and without those that an installed package holds if not `whole`.
    """
    state, packaged = model.network.state_dict(), None
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    if not whole:
        weights, packaged = split_weights(weights, model.recipe, model.inputs)
    save_file(_halved(weights) if half else weights, folder / WEIGHTS)
    networks, trees = parts_of(model.network)
    config = {
        "format": FORMAT,
        "format_version": _version_of(trees=trees is not None, packaged=packaged is not None),
        "weights_sha256": sha256(folder / WEIGHTS),
        **({} if packaged is None else {"packaged_sha256": packaged}),
        "method": model.method.name,
        "labels": list(model.labels),
        "members": len(networks),
        **({} if trees is None else {"trees_sha256": write_trees(trees, folder)}),
        "inputs": model.inputs,
        "recipe": model.recipe.to_dict(),
        "calibration": None if model.calibration is None else model.calibration.to_dict(),
        **({} if model.jnd is None else {"jnd": vars(model.jnd)}),
        "about": model.about,
        "versions": versions(),
    }
    if model.conformal is not None:
        config["conformal"] = model.conformal.to_dict()
    for _ in range(2):  # the second time with the checksum of the first
        write_text(folder / CONFIG, json.dumps(config, indent=2, ensure_ascii=False) + "\n")
        config = read_json(folder / CONFIG, LARGEST_CONFIG)
        config["config_sha256"] = digest_of(config)


def _version_of(*, trees: bool, packaged: bool) -> int:
    """The first format that knows what a model has, so that older versions read what they can."""
    return FORMAT_VERSION if packaged else 2 if trees else 1


def _halved(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights in 16 bits; one that is too large for them is an error."""
    found = {name: one.half() if one.is_floating_point() else one for name, one in weights.items()}
    for name, one in found.items():
        if not torch.isfinite(one).all():
            raise DataError(
                f"{name} holds {weights[name].abs().max():g}, too large for 16 bits; save without half"
            )
    return found


def read_network(
    folder: Path, config: Mapping[str, Any], recipe: Recipe, backbone: nn.Module | None
) -> tuple[Network | Ensemble | Trees, Method]:
    """The network with its weights, and the method, of a folder whose config was read and checked."""
    file = folder / CONFIG
    offline = checked_recipe(recipe, file, own=backbone is not None)
    sizes = sizes_of(folder / WEIGHTS, config["weights_sha256"])
    labels, inputs, members = len(config["labels"]), config["inputs"], config["members"]
    if members != 1 and backbone is not None:
        raise DataError("a backbone of your own fits one network, but this model has several, or none")
    trees = read_trees(folder, config["trees_sha256"], labels, inputs)
    known = {}
    if config["packaged_sha256"] is not None and backbone is None:
        known = packaged_weights(recipe, inputs, config["packaged_sha256"])
        sizes = sizes[0] + len(known), sizes[1] + sum(tensor.numel() for tensor in known.values())
    try:
        with bounded(*sizes):
            made = [build(offline, labels, inputs, backbone)[0] for _ in range(members)]
        method = make(offline.method, **offline.method_settings)
        for one, output in itertools.product(trees, method.outputs):
            if output.name == "tau":  # a weight, which is loaded next
                one.tau = torch.zeros(output.size(labels))
        network = put_together([*made, *trees])
        network.load_state_dict({**load_file(folder / WEIGHTS), **known})
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except (RuntimeError, SafetensorError) as error:
        first = str(error).splitlines()[0]
        raise DataError(f"the weights in {folder} do not fit its config: {first}") from None
    except Exception as error:  # settings of the right type that no network can be built with
        raise DataError(f"no network can be built from {file}: {error}") from error
    if method.name != config["method"]:
        raise DataError(f"{file} was changed: method is {config['method']!r}, not {method.name!r}")
    network.eval()
    return network, method
