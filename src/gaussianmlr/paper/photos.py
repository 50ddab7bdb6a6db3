"""Pictures for cells: cross-validation of natural scenes, the given split of architecture.

The frozen part of the backbone processes every picture, or each of its versions, once for all folds.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gaussianmlr._utils.files import aside
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data import Preprocess, RankedData, read_avdp, read_nsid
from gaussianmlr.data.loading import Arrays, RankedSet
from gaussianmlr.data.readers.images import RankedImages, read_tensor
from gaussianmlr.data.splits import shuffled_folds
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.evaluate import outputs
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.nn import backbones
from gaussianmlr.paper.cells import TESTED, Cell, Measured, Tested, reading_methods, recipe_of
from gaussianmlr.paper.places import Sources
from gaussianmlr.paper.strips import probe_photos
from gaussianmlr.paper.values import Values
from gaussianmlr.rankers import agreement
from gaussianmlr.training.defaults import SIDE, side_of
from gaussianmlr.training.epochs import for_training
from gaussianmlr.training.features import compute_features
from gaussianmlr.training.fit import fit
from gaussianmlr.training.frozen import Versions, features_of, stands_still

__all__ = ["FOLDS", "Outputs", "open_photos", "parts_of", "photo_features", "read_outputs", "run_photos"]

FOLDS = 5
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """One split of the data into training and test pictures."""

    train: Ints
    test: Ints


@dataclass(frozen=True)
class Outputs:
    """Outputs of networks for held-out pictures; row i belongs to picture ``where[i]``."""

    where: Ints
    outputs: dict[str, Tensor]
    images: int
    seconds: float


def open_photos(cell: Cell, sources: Sources) -> RankedData:
    """The pictures of a cell; test pictures only if the cell is measured on them."""
    folder = sources.of(cell.dataset)
    if folder is None:
        option = cell.dataset.partition("-")[0]
        raise DataError(f"{cell.dataset}: no data; pass the folder with --{option} FOLDER")
    if cell.dataset == "avdp":
        return read_avdp(folder)
    data = read_nsid(folder)
    return data.subset("train") if _cross_validated(cell) else data


def _cross_validated(cell: Cell) -> bool:
    return cell.dataset == "nsid" and cell.preset != "paper"


def parts_of(cell: Cell, data: RankedData) -> tuple[list[Part], str]:
    """The splits of the data, and their description.

    The paper's preset, ``nsid-test`` and AVDP use the given split. Otherwise the pictures are shuffled
    by the seed and cut into five folds, the same for all methods; each fold is measured once, by a network
    trained on the other four.
    """
    if _cross_validated(cell):
        parts = [Part(*rows) for rows in shuffled_folds(len(data), FOLDS, cell.seed)]
        return parts, f"{FOLDS}-fold cross-validation on the {len(data):,} training images"
    split = np.array([] if data.split is None else data.split)
    trained, tested = np.flatnonzero(np.isin(split, ("train", "val"))), np.flatnonzero(split == "test")
    if not len(trained) or not len(tested):
        raise DataError(
            f"{data.source}: pictures of the splits {shorten(data.splits)}; expected some of train and test"
        )
    return [Part(trained, tested)], f"trained on {len(trained):,} images, tested on {len(tested):,}"


def run_photos(
    cell: Cell, folder: Path, sources: Sources, *, accelerator: str = "auto", watcher: Watcher | None = None
) -> Measured | None:
    """Train and measure a cell of pictures; None if Ctrl-C stopped it."""
    recipe = recipe_of(cell)
    data = open_photos(cell, sources)
    parts, protocol = parts_of(cell, data)
    about: dict[str, Any] = {
        "protocol": protocol,
        "source": cell.dataset,
        "fingerprint": data.fingerprint(files=False),
        # Without validation data nothing is chosen by a score: not the epoch, whatever the recipe says.
        "selection": "last epoch",
    }
    given = _Given(recipe, data, watcher or Watcher())
    about["side"] = given.preprocess.size[0]
    for number, part in enumerate(parts):
        if not _run_part(number, part, recipe, given, folder, about, accelerator, watcher):
            return None
    found = read_outputs(folder)
    order = np.argsort(found.where)  # by picture, so that cells of all seeds and methods can be paired
    where = found.where[order]
    outputs_ = {name: value[torch.from_numpy(order)] for name, value in found.outputs.items()}
    assert data.ids is not None
    ids, ranks = tuple(data.ids[i] for i in where), data.ranks[where].astype(np.int16)
    if cell.dataset == TESTED and data.by_ranker is not None:
        about["people"] = _percent(agreement(data.by_ranker[where]).against_rest)
    tests = []
    for one, method in zip(cell.readings, reading_methods(cell), strict=True):
        values = Values(method.read(outputs_).scores.float().numpy(), ranks, ids)
        probes = probe_photos(method, data, where, outputs_) if one.is_drawn else {}
        tests.append(Tested(values, probes))
    return Measured(tests, found.images, found.seconds, about)


def _percent(found: Mapping[str, float]) -> dict[str, float]:
    return {name: round(100 * value, 4) for name, value in found.items()}


class _Given:
    """Inputs of the trained part of a network: pictures, or features of its frozen part.

    Attributes
    ----------
    recipe : Recipe
        Recipe of this training: without validation data, the last epoch is kept.
    """

    def __init__(self, recipe: Recipe, data: RankedData, watcher: Watcher) -> None:
        self.data, self.preprocess = data, _preprocess(side_of(recipe))
        self.recipe = recipe.replace(select="last")
        pictures = RankedImages(data, self.preprocess)
        drawn = RankedImages(data, self.preprocess, by_ranker=recipe.rankers != "aggregate", seed=recipe.seed)
        train, halves = for_training(drawn, recipe), None
        if stands_still(recipe, train):
            backbone = backbones.make(recipe.backbone, channels=3, **recipe.backbone_settings)
            backbones.freeze(backbone, recipe.freeze)
            halves = backbones.divide(backbone)
        self._features: tuple[Arrays | Versions, Arrays | Versions] | None = None
        if halves is not None:
            found = [
                features_of(halves.still, one, progress=_in_quarters(watcher.note))
                for one in dict.fromkeys([train, pictures])
            ]
            if found[0] is None or found[-1] is None:  # too large for memory
                return
            self._features, self._free = (found[0], found[-1]), halves.free
            self.recipe = self.recipe.replace(
                freeze="none", augment="none", augment_settings={}, backbone_settings={}
            )

    def backbone(self) -> nn.Module | None:
        """A copy of the trained part of the backbone; None if the recipe builds the whole backbone."""
        return None if self._features is None else copy.deepcopy(self._free)

    def rows(self, where: Ints, *, trained: bool) -> RankedSet:
        """A selection of the pictures, in the given order, for training or for measuring."""
        if self._features is None:
            drawn = trained and self.recipe.rankers != "aggregate"
            return RankedImages(
                self.data.subset(where), self.preprocess, by_ranker=drawn, seed=self.recipe.seed
            )
        return self._features[0 if trained else 1].rows(torch.from_numpy(where))


def _in_quarters(say: Callable[[str], None]) -> Callable[[int, int], None]:
    """A callback that reports the progress four times."""
    said = [0]

    def progress(done: int, total: int) -> None:
        if done * 4 // total > said[0] * 4 // total:
            say(f"features of {done:,} of {total:,} pictures")
        said[0] = done

    return progress


def photo_features(
    recipe: Recipe, data: RankedData, say: Callable[[str], None] = lambda text: None
) -> Tensor:
    """Features of pictures by the untrained backbone of a recipe.

    Parameters
    ----------
    recipe : Recipe
        Names the backbone.
    data : RankedData
        Data with images.
    say : callable
        Called four times with the progress as text.
    """
    backbone = backbones.make(recipe.backbone, channels=3, **recipe.backbone_settings)
    preprocess = _preprocess(backbone.inputs.size or SIDE)

    assert data.images is not None
    return compute_features(
        backbone,
        data.images,
        load=lambda file: read_tensor(file, preprocess),
        transform=preprocess.to_dict(),
        progress=_in_quarters(say),
    )


def _preprocess(side: int) -> Preprocess:
    # No crop, which could remove a label. Backbones normalise the values themselves.
    return Preprocess(size=(side, side), crop=None, mean=(0.0,) * 3, std=(1.0,) * 3, channels=3)


def _run_part(
    number: int,
    part: Part,
    recipe: Recipe,
    given: _Given,
    folder: Path,
    about: Mapping[str, Any],
    accelerator: str,
    watcher: Watcher | None,
) -> bool:
    """Train on a part and store the outputs for its test pictures; False if Ctrl-C stopped it."""
    file = folder / f"outputs-{number}.npz"
    where = hashlib.sha256(part.test.tobytes()).hexdigest()
    made_of = json.dumps({"recipe": recipe.to_dict(), "data": dict(about), "part": where}, sort_keys=True)
    if file.exists():
        if str(_kept(file)["made_of"]) == made_of:
            return True
        raise DataError(f"{file} was made with other settings or data; remove it, or choose another folder")

    run = folder / f"part-{number}"
    fitted = fit(
        given.recipe,
        given.rows(part.train, trained=True),
        None,
        labels=given.data.labels,
        out=run,
        fingerprint=made_of,
        backbone=given.backbone(),
        accelerator=accelerator,
        watcher=watcher,
    )
    if fitted.result.interrupted:
        return False
    tested, _ = all_outputs(fitted.model.network, given.rows(part.test, trained=False))
    with aside(file) as beside, beside.open("wb") as stream:
        facts: dict[str, Any] = {"images": fitted.result.images, "seconds": fitted.result.seconds}
        facts |= {f"output_{name}": value.numpy() for name, value in tested.items()}
        np.savez(stream, made_of=made_of, where=part.test, **facts)
    shutil.rmtree(run)
    return True


def all_outputs(network: nn.Module, data: RankedSet, batch_size: int = 64) -> tuple[dict[str, Tensor], Ints]:
    """The outputs of a network for all instances, by name, and their ranks."""
    found, batches = zip(*outputs(network, data, batch_size))
    joined = {name: torch.cat([part[name] for part in found]).float().cpu() for name in found[0]}
    return joined, torch.cat([batch.ranks for batch in batches]).numpy()


def read_outputs(folder: Path) -> Outputs:
    """The outputs of all parts of a run, joined."""
    files = sorted(folder.glob("outputs-*.npz"))
    if not files:
        raise DataError(f"{folder} holds no outputs; run the cell first")
    parts = [_kept(file) for file in files]
    names = [name for name in parts[0] if name.startswith("output_")]
    return Outputs(
        where=np.concatenate([part["where"] for part in parts]),
        outputs={
            name.removeprefix("output_"): torch.from_numpy(np.concatenate([part[name] for part in parts]))
            for name in names
        },
        images=sum(int(part["images"]) for part in parts),
        seconds=sum(float(part["seconds"]) for part in parts),
    )


def _kept(file: Path) -> dict[str, Any]:
    """All that a file of outputs holds; the archive knows the checksums of its parts."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as kept:
            found = {name: kept[name] for name in kept.files}
        if missing := {"made_of", "where", "images", "seconds"} - found.keys():
            raise ValueError(f"it has no {min(missing)}")
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{file} was changed or cut ({error}); remove it to train the part again") from None
    return found
