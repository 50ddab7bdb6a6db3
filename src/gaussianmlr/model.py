"""A trained model, in memory and on disk: safetensors and JSON in a folder, never pickle."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch import Tensor, nn

from gaussianmlr._version import __version__
from gaussianmlr.batches import as_input, as_tensor
from gaussianmlr.calibration import Calibration
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.files import aside, write_text
from gaussianmlr.methods import Method, Reading, make
from gaussianmlr.network import Ensemble, Network, make_network
from gaussianmlr.provenance import versions
from gaussianmlr.recipe import Recipe

if TYPE_CHECKING:
    from gaussianmlr.prediction import Prediction

__all__ = ["Inputs", "Model", "build", "join", "load", "read_config"]

FORMAT = "gaussianmlr-model"
FORMAT_VERSION = 1
_KINDS = {"image": "pictures", "table": "rows of numbers"}
_WEIGHTS, _CONFIG, _CARD = "model.safetensors", "config.json", "README.md"


class Inputs(TypedDict, total=False):
    """What a model takes: kind, channels or columns, and how files become tensors."""

    kind: str  # "image" or "table"
    channels: int
    size: list[int]  # height and width of the training images
    columns: list[str]  # of a table
    preprocess: dict[str, Any]  # how image files were read
    scaling: dict[str, list[float]]  # mean and std that table columns were standardised by


@dataclass
class Model:
    """A network, its method and labels, and where they come from.

    Attributes
    ----------
    network : Network or Ensemble
        Backbone and head, or several of them.
    method : Method
        How outputs are read.
    labels : tuple of str
        Names of the columns of every reading.
    recipe : Recipe
        How it was trained.
    inputs : dict
        What it takes.
    about : dict
        Versions, data fingerprint, metrics, images seen.
    calibration : Calibration or None
        Temperatures of its probabilities, which every reading is given; None leaves them as they are.

    Examples
    --------
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp")
    >>> model = Model(*build(recipe, 3, inputs), ("sky", "sea", "sun"), recipe, inputs)
    >>> model
    Model(gmlr strong, mlp, 3 labels, table inputs)
    >>> model.read([[1.0, 2.0], [0.0, 1.0]]).scores.shape
    torch.Size([2, 3])
    """

    network: Network | Ensemble
    method: Method
    labels: tuple[str, ...]
    recipe: Recipe
    inputs: Inputs
    about: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None

    @property
    def members(self) -> int:
        """How many networks it averages."""
        return len(self.network.members) if isinstance(self.network, Ensemble) else 1

    @torch.no_grad()
    def read(self, inputs: Any, batch_size: int = 256, *, calibrated: bool = True) -> Reading:
        """Read a batch of inputs [N, ...], some at a time; no gradients.

        Parameters
        ----------
        inputs : array or tensor
            Images [N, channels, height, width], bytes or floats in [0, 1]; or rows [N, columns].
        batch_size : int
            How many go through the network at once.
        calibrated : bool
            Whether the probabilities, and sigma, are at the temperatures of `calibration`.
        """
        x = as_tensor(inputs)
        device = next(self.network.parameters()).device
        self.network.eval()
        parts = [
            self.method.read(self._outputs(x[start : start + batch_size].to(device)))
            for start in range(0, len(x), batch_size)
        ]
        if not parts:
            raise DataError("expected at least one input, got none")
        reading = Reading.join(parts)
        return self.calibration.apply(reading) if calibrated and self.calibration else reading

    def predict(self, inputs: Any, batch_size: int = 256, *, calibrated: bool = True) -> Prediction:
        """What the model says of a batch of inputs, to be read in many ways; arguments as of `read`."""
        from gaussianmlr.prediction import Prediction

        reading = self.read(inputs, batch_size, calibrated=calibrated)
        return Prediction.from_reading(reading, self.labels, method=self.method.name)

    def _outputs(self, x: Tensor) -> dict[str, Tensor]:
        kind = next(self.network.parameters()).dtype
        outputs: dict[str, Tensor] = self.network(x.double() if kind == torch.float64 else as_input(x))
        return outputs

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the model to a folder that appears whole or not at all.

        Parameters
        ----------
        path : path-like
            The folder. One that is there is refused, or replaced by `overwrite` if it holds a model.
        overwrite : bool
            Whether a model that is there may be replaced.
        """
        final = Path(path)
        old = None
        if final.exists():
            if not overwrite:
                raise DataError(f"{final} is there already; choose another folder, or overwrite it")
            read_config(final)  # nothing but a model is ever replaced
            old = final.with_name(f".{final.name}.old")
        try:
            with aside(final) as part:
                part.mkdir()
                self._write(part)
                if old is not None:
                    shutil.rmtree(old, ignore_errors=True)
                    final.rename(old)
        except OSError as error:
            if old is not None and not final.exists():
                old.rename(final)  # the old model is better than none
            raise DataError(f"cannot write the model to {final}: {error.strerror or error}") from None
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)
        return final

    def _write(self, folder: Path) -> None:
        from safetensors.torch import save_file

        state = self.network.state_dict()
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        save_file(weights, folder / _WEIGHTS)
        config = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "weights_sha256": _sha256(folder / _WEIGHTS),
            "method": self.method.name,
            "labels": list(self.labels),
            "members": self.members,
            "inputs": self.inputs,
            "recipe": self.recipe.to_dict(),
            "calibration": None if self.calibration is None else vars(self.calibration),
            "about": self.about,
            "versions": versions(),
        }
        write_text(folder / _CONFIG, json.dumps(config, indent=2, ensure_ascii=False) + "\n")
        write_text(folder / _CARD, self.card())

    def card(self) -> str:
        """A short model card, as Markdown."""
        parameters = sum(parameter.numel() for parameter in self.network.parameters())
        metrics = self.about.get("metrics", {})
        more = " ..." if len(self.labels) > 30 else ""
        lines = [
            f"# {self.method.name} ({self.method.supervision}) on {self.recipe.backbone}",
            "",
            f"A multi-label ranking model of gaussianmlr {__version__}, {parameters:,} parameters.",
            "",
            f"- Labels ({len(self.labels)}): {', '.join(self.labels[:30])}{more}",
            f"- Inputs: {json.dumps(self.inputs, ensure_ascii=False)}",
            f"- Training instances seen: {self.about.get('images', 'unknown')}",
        ]
        if self.calibration is not None:
            one, other = self.calibration.relevance, self.calibration.pairs
            lines.append(f"- Temperatures: {one:.3g} of relevance, {other:.3g} of pairs")
        if metrics:
            where = self.about.get("measured_on", "validation")
            lines += ["", f"Measured on {where} data:", "", "| metric | value |", "| --- | --- |"]
            lines += [f"| {name} | {value:.4f} |" for name, value in metrics.items()]
        ending = f"Load it with `gaussianmlr.load(FOLDER)`; the recipe is in `{_CONFIG}`."
        return "\n".join([*lines, "", ending, ""])

    def __repr__(self) -> str:
        return (
            f"Model({self.method.name} {self.method.supervision}, {self.recipe.backbone}, "
            f"{len(self.labels)} labels, {self.inputs.get('kind', 'unknown')} inputs)"
        )


def build(
    recipe: Recipe, labels: int, inputs: Inputs, backbone: nn.Module | None = None
) -> tuple[Network, Method]:
    """The network and the method of a recipe.

    Parameters
    ----------
    recipe : Recipe
        Names and settings.
    labels : int
        How many labels there are.
    inputs : Inputs
        What the network takes.
    backbone : nn.Module, optional
        A backbone of your own, in place of the recipe's.

    Examples
    --------
    >>> network, method = build(Recipe(backbone="mlp"), 3, {"kind": "table", "channels": 2})
    >>> {name: tuple(output.shape) for name, output in network(torch.zeros(5, 2)).items()}
    {'mu': (5, 3), 'logvar': (5, 3)}
    """
    from gaussianmlr import backbones

    method = make(recipe.method, **recipe.method_settings)
    settings = dict(recipe.backbone_settings)
    if backbone is not None and not isinstance(backbone, backbones.Backbone):
        settings = {"kind": inputs["kind"], "size": inputs.get("size", [224])[0], **settings}
    channels = inputs["channels"]
    made = backbones.make(recipe.backbone if backbone is None else backbone, channels=channels, **settings)
    if made.inputs.kind != inputs["kind"]:
        taken, given = (_KINDS[kind] for kind in (made.inputs.kind, inputs["kind"]))
        raise DataError(f"the backbone {recipe.backbone!r} takes {taken}, and the data are {given}")
    head = recipe.head if recipe.head != "auto" else ("tokens" if made.is_map else "linear")
    network = make_network(
        method, labels=labels, channels=channels, backbone=made, head=head, head_settings=recipe.head_settings
    )
    backbones.freeze(made, recipe.freeze)
    return network, method


def load(path: str | Path, *, backbone: nn.Module | None = None) -> Model:
    """Read a model from its folder.

    Parameters
    ----------
    path : path-like
        The folder that `Model.save` or `gmlr train` wrote.
    backbone : nn.Module, optional
        For a model trained with a backbone of your own: that backbone, with any weights.

    Raises
    ------
    DataError
        For a folder that is no model, was changed or cut, or has a newer format.

    Examples
    --------
    >>> import tempfile
    >>> inputs = {"kind": "table", "channels": 2}
    >>> recipe = Recipe(backbone="mlp", method="lsep")
    >>> model = Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(model.save(f"{folder}/model"))
    >>> again
    Model(lsep strong, mlp, 2 labels, table inputs)
    >>> bool((again.read([[1.0, 2.0]]).scores == model.read([[1.0, 2.0]]).scores).all())
    True
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(path)
    config = read_config(folder)
    weights = folder / _WEIGHTS
    if not weights.is_file():
        raise DataError(f"{folder} has no {_WEIGHTS}; copy the whole folder")
    if _sha256(weights) != config.get("weights_sha256"):
        raise DataError(f"{weights} is not the file that was saved: it was changed or cut; copy it again")
    try:
        recipe = Recipe.from_dict(config["recipe"])
        labels = tuple(str(label) for label in config["labels"])
        inputs: Inputs = config["inputs"]
        inputs["kind"], inputs["channels"] = str(inputs["kind"]), int(inputs["channels"])
        about = dict(config.get("about", {}), versions=config.get("versions", {}))
        temperatures = config.get("calibration")  # models of the first versions have none
        calibration = None if temperatures is None else Calibration(**temperatures)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{folder / _CONFIG} was changed: {error}") from None
    network: Network | Ensemble
    members = config.get("members", 1)
    if members > 1:
        if backbone is not None:
            raise DataError("a backbone of your own belongs to one network, and this model has several")
        made = [build(_without_downloads(recipe), len(labels), inputs) for _ in range(members)]
        network, method = Ensemble([one for one, _ in made]), made[0][1]
    else:
        network, method = build(_without_downloads(recipe), len(labels), inputs, backbone)
    try:
        network.load_state_dict(load_file(weights))
    except (RuntimeError, SafetensorError) as error:
        first = str(error).splitlines()[0]
        raise DataError(f"the weights in {folder} do not fit its config: {first}") from None
    network.eval()
    return Model(network, method, labels, recipe, inputs, about, calibration)


def join(models: Sequence[Model]) -> Model:
    """One model of several that were trained apart on the same labels and inputs; their outputs are averaged.

    Examples
    --------
    >>> from gaussianmlr.recipe import Recipe
    >>> recipe, inputs = Recipe(backbone="mlp"), {"kind": "table", "channels": 2}
    >>> join([Model(*build(recipe, 2, inputs), ("a", "b"), recipe, inputs) for _ in range(3)]).members
    3
    """
    first = models[0]
    if len(models) == 1:
        return first
    images = sum(model.about.get("images", 0) for model in models)
    seconds = round(sum(model.about.get("seconds", 0.0) for model in models), 1)
    of_one = ("metrics", "measured_on", "calibration_error")
    about = {name: value for name, value in first.about.items() if name not in of_one}
    known = [model.calibration for model in models if model.calibration is not None]
    calibration = None
    if len(known) == len(models):  # temperatures multiply, so their mean is the geometric one
        relevance = math.prod(one.relevance for one in known) ** (1 / len(known))
        calibration = Calibration(relevance, math.prod(one.pairs for one in known) ** (1 / len(known)))
    return Model(
        Ensemble([model.network for model in models]),
        first.method,
        first.labels,
        first.recipe,
        first.inputs,
        {**about, "images": images, "seconds": seconds},
        calibration,
    )


def read_config(folder: Path) -> dict[str, Any]:
    """What a model says of itself, without its weights.

    Examples
    --------
    >>> read_config(Path("nowhere"))
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: no model at nowhere: expected a folder that `gmlr train` or `save` wrote
    """
    file = folder / _CONFIG
    if not folder.is_dir():
        raise DataError(f"no model at {folder}: expected a folder that `gmlr train` or `save` wrote")
    try:
        config = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        raise DataError(f"{folder} is no model: it has no {_CONFIG}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise DataError(f"{folder} is no model of gaussianmlr: {_CONFIG} does not say format {FORMAT!r}")
    version = config.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise DataError(
            f"{folder} has model format {shorten(version)}, and this gaussianmlr {__version__} reads up to "
            f"{FORMAT_VERSION}; update gaussianmlr"
        )
    return config


def _without_downloads(recipe: Recipe) -> Recipe:
    """The weights come from the folder, so pretrained ones need not be fetched first."""
    if not recipe.backbone.startswith(("efficientnet", "hf:", "timm:")):
        return recipe
    return recipe.replace(backbone_settings={**recipe.backbone_settings, "pretrained": False})


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
