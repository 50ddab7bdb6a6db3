"""The files of a search, and the one look at the test part."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.files import aside, held, write_text
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr._utils.tables import csv_text
from gaussianmlr.data import RankedData, Setting
from gaussianmlr.data.open import open_data
from gaussianmlr.data.tokens import encoder_of
from gaussianmlr.errors import DataError
from gaussianmlr.model.evaluate import evaluate
from gaussianmlr.training.kinds import fit_kinds
from gaussianmlr.tuning.display import SearchDisplay
from gaussianmlr.tuning.search import TESTED, Search

__all__ = ["measure_once", "write_search"]


def write_search(search: Search, out: str | os.PathLike[str]) -> None:
    """Write ``best.json`` (a recipe), ``trials.csv``, ``search.json`` and ``search.png`` to a folder."""
    require("the picture of a search", "matplotlib")
    import matplotlib.pyplot as plt

    folder = Path(out)
    write_text(folder / "best.json", dumps(search.recipe.to_dict(), indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "search.json", dumps(search.to_dict(), indent=2, ensure_ascii=False) + "\n")
    names = [one.name for one in search.space]
    head = ["trial", "state", "tau_b", "standard_error", "seconds", *names, "why"]
    rows = [
        [row.number, row.state, row.value, row.standard_error, row.seconds,
         *(row.changes.get(name) for name in names), row.why]
        for row in search.rows
    ]  # fmt: skip
    write_text(folder / "trials.csv", csv_text(head, rows))
    figure = SearchDisplay.from_search(search).plot().figure_
    with aside(folder / "search.png") as part:
        figure.savefig(part, format="png", dpi=150)
    plt.close(figure)


def measure_once(
    search: Search,
    data: RankedData | Setting,
    out: str | os.PathLike[str],
    *,
    accelerator: str = "auto",
    watcher: Watcher | None = None,
    **opening: Any,
) -> dict[str, dict[str, float]]:
    """Train the best and the default recipe as `gmlr train` does, and measure both on the test part.

    The result is written to ``test.json``; the search cannot be continued afterwards, as its next choices
    could follow from the test.

    Raises
    ------
    KeyboardInterrupt
        If it was interrupted; the same call resumes.
    """
    folder, metrics = Path(out), {}
    recipes = {"default": search.base, "best": search.recipe}
    for name in recipes if search.best.number else ("default",):
        recipe = recipes[name]
        source = open_data(
            data,
            **opening,
            rankers=recipe.rankers,
            seed=recipe.seed,
            encoder=encoder_of(recipe.backbone),
        )
        if source.test is None:
            raise DataError("the data has no test part to measure on")
        fitted = fit_kinds(
            recipe,
            source.train,
            source.validation,
            labels=source.labels,
            inputs=source.inputs,
            out=folder / name,
            fingerprint=source.fingerprint,
            accelerator=accelerator,
            watcher=watcher,
        )
        if fitted.result.interrupted:
            raise KeyboardInterrupt
        metrics[name] = evaluate(fitted.model, source.test)
    with held(folder):
        about = {"trial": search.best.number, "trials": len(search.rows), "metrics": metrics}
        write_text(folder / TESTED, dumps(about, indent=2) + "\n")
    return metrics
