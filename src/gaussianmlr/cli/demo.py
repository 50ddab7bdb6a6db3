"""The demonstration: train on small canvases of embedded digits, show the predictions.

Two models see the same images: GaussianMLR with the whole order, and with relevance alone. Digits of
the test images were never trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr import metrics
from gaussianmlr._utils.extras import require
from gaussianmlr._utils.files import aside, write_text
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.provenance import versions
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr.data import RankedMNIST, Setting
from gaussianmlr.model.model import Model
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit

SETTING = Setting(name="demo", factor="scale", scale=(0.7, 2.2), canvas=112, count=(1, 4))
RECIPE = Recipe(epochs=6, batch_size=16, optimizer="muon", rate=5e-3, select="loss")
IMAGES = 2_500  # per epoch


@dataclass(frozen=True)
class Outcome:
    """What the demonstration found, and where it wrote it."""

    strong: dict[str, float]
    weak: dict[str, float]
    folder: Path
    interrupted: bool = False


def run(
    out: str | Path,
    *,
    images: int = IMAGES,
    epochs: int = RECIPE.epochs,
    tested: int = 1_000,
    watcher: Watcher | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train both models, test them, write model, numbers and a picture to a folder.

    Parameters
    ----------
    out : path-like
        The folder. Run again to resume.
    images, epochs : int
        Training images per epoch, and epochs.
    tested : int
        Test images.
    watcher : Watcher, optional
        Is notified of progress.
    say : callable
        Called with lines to show.
    """
    folder = Path(out)
    data = RankedMNIST(SETTING, "train", size=images, digits="embedded")
    validation = RankedMNIST(SETTING, "validation", size=300, digits="embedded")
    test = RankedMNIST(SETTING, "test", size=tested, digits="embedded")
    models: dict[str, Model] = {}
    measured: dict[str, dict[str, float]] = {}
    for supervision in ("strong", "weak"):
        about = (
            "with the order of the digits"
            if supervision == "strong"
            else "knowing only which digits are there"
        )
        say(f"GaussianMLR, {supervision} supervision: {images * epochs:,} images, {about}")
        recipe = RECIPE.replace(epochs=epochs, method_settings={"supervision": supervision})
        fitted = fit(
            recipe,
            data,
            validation,
            labels=data.labels,
            out=folder / supervision,
            watcher=watcher,
            accelerator="cpu",
        )
        if fitted.result.interrupted:
            return Outcome({}, {}, folder, interrupted=True)
        models[supervision] = fitted.model
        measured[supervision] = _measure(fitted.model, test)
    facts = {
        "test": measured,
        "images_seen": images * epochs,
        "setting": SETTING.pictures,
        "recipe": RECIPE.replace(epochs=epochs).to_dict(),
        "versions": versions(),
    }
    write_text(folder / "metrics.json", dumps(facts, indent=2) + "\n")
    with aside(folder / "demo.png") as part:
        draw(models["strong"], test, part)
    return Outcome(measured["strong"], measured["weak"], folder)


def _measure(model: Model, test: RankedMNIST) -> dict[str, float]:
    """The paper's six metrics, and the order among the digits that are there."""
    parts = [test.batch(range(start, min(start + 250, len(test)))) for start in range(0, len(test), 250)]
    scores = np.concatenate([model.read(part.images).scores.numpy() for part in parts])
    ranks = np.concatenate([part.ranks for part in parts])
    order = float(metrics.positives_tau(scores, ranks))
    return {**metrics.evaluate(scores, ranks), "positives_tau": order}


def draw(model: Model, data: RankedMNIST, file: Path, count: int = 6) -> None:
    """Images, the curves of their digits' significances, true and predicted orders, as a PNG."""
    require("the demonstration", "matplotlib")
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from gaussianmlr import orders
    from gaussianmlr.orders.grammar import shown
    from gaussianmlr.plots import GaussianDisplay

    batch = data.batch(_varied(data, count))
    prediction = model.predict(batch.images)
    true = orders.to_text(batch.ranks, model.labels)
    figure, axes = plt.subplots(
        2, count, figsize=(2.6 * count, 5.4), height_ratios=[1, 0.8], layout="constrained", squeeze=False
    )
    for column, (picture, curves) in enumerate(axes.T):
        picture.imshow(batch.images[column, 0], cmap="gray", vmin=0, vmax=255)
        picture.set_xticks([])
        picture.set_yticks([])
        right = true[column] == prediction.orders[column]
        picture.set_title(
            f"true   {shown(true[column])}\nfound {shown(prediction.orders[column])}",
            fontsize=9,
            loc="left",
            color="black" if right else "firebrick",
        )
        one = prediction[column]
        there = batch.ranks[column] > 0
        display = GaussianDisplay(one.significance[0], one.sigma[0], one.labels, named=there)
        # The span shows the digits that are there; others may be anywhere left of zero.
        furthest = float((one.significance[0] + 3 * one.sigma[0])[there].max())
        display.plot(curves, span=(-0.4 * furthest, 1.05 * furthest))
        curves.set_xlabel("significance; left of 0: not there", fontsize=8)
    figure.suptitle(
        "What GaussianMLR says of unseen digits: the larger a digit, the more significant", fontsize=12
    )
    figure.savefig(file, dpi=110, format="png")
    plt.close(figure)


def _varied(data: RankedMNIST, count: int) -> list[int]:
    """The first images with two digits or more, so that there is an order to see."""
    found: list[int] = []
    index = 0
    while len(found) < count:
        ranks: Any = data.recipes([index]).ranks
        if (ranks > 0).sum() >= 2 + len(found) % 3:
            found.append(index)
        index += 1
    return found
