"""The demonstration: train on canvases of embedded digits, and show what the model says of unseen ones.

Two networks see the same images, side by side in two processes: one is taught the order of the digits, the
other only which digits are there. Test digits were used for nothing before.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gaussianmlr import metrics
from gaussianmlr._utils.files import aside, write_text
from gaussianmlr._utils.memory import keep_freed_memory
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.provenance import versions
from gaussianmlr._utils.signals import stoppable
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr.data import RankedMNIST, Setting
from gaussianmlr.data.ranked_mnist.digits import describe_digits
from gaussianmlr.errors import DataError
from gaussianmlr.model.evaluate import read
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import read_config
from gaussianmlr.orders import to_text
from gaussianmlr.orders.grammar import shown
from gaussianmlr.report import write_report
from gaussianmlr.report.measure import Evidence
from gaussianmlr.report.mistakes import Mistakes, mistakes_of
from gaussianmlr.training.fit import Fitted, fit

SETTING = Setting(name="demo", factor="scale", scale=(0.7, 2.2), canvas=112, count=(1, 4))
# Every comparison counts alike, and no image comes twice.
RECIPE = Recipe(
    method_settings={"balance": "comparisons"},
    epochs=8,
    batch_size=16,
    optimizer="muon",
    rate=5e-3,
    select="loss",
    fresh=True,
)
IMAGES = 7_500  # per epoch
VERSIONS = 10  # of each of 3,330 training digits, which are few
TESTED = 1_000
_PICTURED = 6
_SURE = 0.95
_END = 60.0  # seconds for the other process to save and end

Supervision = Literal["strong", "weak"]


@dataclass(frozen=True)
class Outcome:
    """What the demonstration found: metrics of both models on test images, and five lines that tell it."""

    strong: dict[str, float]
    weak: dict[str, float]
    story: tuple[str, ...]
    folder: Path


def run(
    out: str | Path,
    *,
    images: int = IMAGES,
    epochs: int = RECIPE.epochs,
    tested: int = TESTED,
    watcher: Watcher | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train both models, test them, write models, numbers, a page and a picture to a folder.

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

    Raises
    ------
    KeyboardInterrupt
        If training was interrupted and saved.
    """
    folder = Path(out)
    recipe = RECIPE.replace(epochs=epochs)
    say(f"Training two networks on {images * epochs:,} canvases each, at most four minutes on two cores")
    with _another_process(folder / "weak", recipe, images):
        strong = _trained(folder / "strong", "strong", recipe, images, watcher)
        say("The other network")
    weak = _trained(folder / "weak", "weak", recipe, images, watcher)

    test = RankedMNIST(SETTING, "test", size=tested, digits="embedded")
    seen = _measured(strong, test)
    found, other = _metrics(seen), _metrics(_measured(weak, test))
    rows = _varied(test, _PICTURED)
    wrong = [_mistakes(seen, row) for row in rows]
    facts = {
        "test": {"strong": found, "weak": other},
        "pictured": [
            {"image": row, "right": not str(one), "wrong": str(one)} for row, one in zip(rows, wrong)
        ],
        "images_seen": images * epochs,
        "versions_of_a_digit": VERSIONS,
        "setting": SETTING.pictures,
        "recipe": recipe.to_dict(),
        "versions": versions(),
    }
    write_text(folder / "metrics.json", dumps(facts, indent=2) + "\n")
    with aside(folder / "demo.png") as part:
        draw(seen, rows, part)
    story = (
        f"Two networks saw {images * epochs:,} canvases of one to four digits; larger is more significant.",
        f"Taught the order:        {_said(found)}.",
        f"Taught relevance alone:  {_said(other)}.",
        _sure(seen),
        _pictured(wrong),
    )
    told = replace(seen, notes=(*(line.removesuffix(".") for line in story), *seen.notes))
    page = folder / "index.html"
    write_report(folder / "strong", page, wanted=told, chosen=rows, title="Digits ordered by their size")
    return Outcome(found, other, story, folder)


def _trained(
    folder: Path, supervision: Supervision, recipe: Recipe, images: int, watcher: Watcher | None = None
) -> Fitted:
    """A model on training digits; the epoch and the calibration come from validation digits."""
    data = RankedMNIST(SETTING, "train", size=images, digits="embedded", versions=VERSIONS)
    validation = RankedMNIST(SETTING, "validation", size=500, digits="embedded")
    settings = {**recipe.method_settings, "supervision": supervision}
    recipe = recipe.replace(method_settings=settings)
    fitted = fit(recipe, data, validation, labels=data.labels, out=folder, watcher=watcher, accelerator="cpu")
    if fitted.result.interrupted:
        raise KeyboardInterrupt
    return fitted


@contextmanager
def _another_process(folder: Path, recipe: Recipe, images: int) -> Iterator[None]:
    """Train the weak model in a process of its own, where there is a second core.

    Whatever becomes of it, the run in its folder can be resumed here.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2 or _is_finished(folder):
        yield
        return
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_weak, args=(folder, recipe, images), daemon=True)
    process.start()
    try:
        yield
        process.join()
    finally:
        process.terminate()  # it saves, as on Ctrl-C
        process.join(_END)


def _is_finished(folder: Path) -> bool:
    try:
        return not read_config(folder / "model")["about"].get("interrupted", True)
    except DataError:
        return False


def _weak(folder: Path, recipe: Recipe, images: int) -> None:
    """The other process."""

    def follow() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)  # no one waits for it any more; the last checkpoint stays

    threading.Thread(target=follow, daemon=True).start()
    keep_freed_memory()
    with stoppable(""):
        _trained(folder, "weak", recipe, images)


def _measured(fitted: Fitted, test: RankedMNIST) -> Evidence:
    reading, truth = read(fitted.model, test, 64)
    digits = f"drawn from {describe_digits(test.digits, 'test')['name']} that were not used before"
    name, rows = "canvases of unseen digits", np.arange(len(test))
    return Evidence(fitted.model, test, name, "test", rows, reading, truth.numpy(), (digits,))


def _metrics(seen: Evidence) -> dict[str, float]:
    """The paper's six metrics, and the order among the digits that are there."""
    order = float(metrics.positives_tau(seen.reading.scores, seen.truth))
    return {**seen.metrics, "positives_tau": order}


def _varied(data: RankedMNIST, count: int) -> list[int]:
    """The first images with two, three, four, two, ... digits, so that there is an order to see."""
    found: list[int] = []
    for index in range(len(data)):
        ranks: Any = data.recipes([index]).ranks
        if len(found) < count and (ranks > 0).sum() == 2 + len(found) % 3:
            found.append(index)
    return found


def _mistakes(seen: Evidence, row: int) -> Mistakes:
    one = seen.prediction[row]
    return mistakes_of(one.ranks[0], seen.truth[row], one.labels, one.p_above[0])


def _said(found: dict[str, float]) -> str:
    return (
        f"tau-b {100 * found['tau_b']:.1f}, among the digits present {100 * found['positives_tau']:.1f}; "
        f"which digits are present: F1 {100 * found['f1']:.1f}"
    )


def _sure(seen: Evidence) -> str:
    curve = metrics.abstention(seen.prediction.p_above, seen.truth, [_SURE])
    if not curve.counts[0]:
        return f"The first is {100 * _SURE:.0f} % sure of no comparison."
    covered, right = 100 * curve.coverage[0], 100 * curve.accuracy[0]
    return (
        f"The first is at least {100 * _SURE:.0f} % sure of {covered:.0f} % of all comparisons, and right in "
        f"{right:.1f} % of those."
    )


def _pictured(wrong: Sequence[Mistakes]) -> str:
    right = sum(not str(one) for one in wrong)
    rest = "".join(f"; picture {place + 1}: {one}" for place, one in enumerate(wrong) if str(one))
    return f"{right} of the {len(wrong)} pictured orders are exactly right{rest}."


def draw(seen: Evidence, rows: Sequence[int], file: Path) -> None:
    """Images, the curves of their digits' significances, true and predicted orders, as a PNG."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    from gaussianmlr.plots import GaussianDisplay

    assert isinstance(seen.data, RankedMNIST)
    batch, count = seen.data.batch(rows), len(rows)
    true = to_text(batch.ranks, seen.model.labels)
    figure, axes = plt.subplots(
        2, count, figsize=(2.6 * count, 5.6), height_ratios=[1, 0.8], layout="constrained", squeeze=False
    )
    for column, (picture, curves) in enumerate(axes.T):
        one, wrong = seen.prediction[rows[column]], _mistakes(seen, rows[column])
        picture.imshow(batch.images[column, 0], cmap="gray", vmin=0, vmax=255)
        picture.set_xticks([])
        picture.set_yticks([])
        for label in wrong.labels:
            left, top, side = batch.boxes[column, int(label)]
            picture.add_patch(Rectangle((left, top), side, side, fill=False, color="tomato"))
        title = f"true   {shown(true[column])}\nfound {shown(one.orders[0])}"
        picture.set_title(title, fontsize=9, loc="left")
        picture.set_xlabel(_brief(wrong), fontsize=8, color="firebrick" if str(wrong) else "darkgreen")
        there = (batch.ranks[column] > 0) | (one.ranks[0] > 0)
        display = GaussianDisplay(one.significance[0], one.sigma[0], one.labels, named=there)
        # The span shows the digits that are there; others may be anywhere left of zero.
        furthest = float((one.significance[0] + 3 * one.sigma[0])[there].max())
        display.plot(curves, span=(-0.4 * furthest, 1.05 * furthest))
        curves.set_xlabel("significance; left of 0: not there", fontsize=8)
    figure.suptitle(
        "Predictions for digits it never saw: the larger a digit, the more significant", fontsize=12
    )
    figure.savefig(file, dpi=110, format="png")
    plt.close(figure)


def _brief(wrong: Mistakes) -> str:
    if not str(wrong):
        return "exactly right"
    said = [
        f"wrong pair: {first} > {second}" + ("" if math.isnan(chance) else f" ({100 * chance:.0f} %)")
        for first, second, chance in wrong.pairs
    ]
    said += [f"missed: {label}" for label in wrong.missed] + [
        f"{label} is not there" for label in wrong.extra
    ]
    return "\n".join(said)
