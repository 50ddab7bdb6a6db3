"""Rates tried for every method, measured on validation images only: a test chooses no recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr._utils.files import alone, write_text
from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.provenance import commit, machine, versions
from gaussianmlr._utils.seals import seal, unseal
from gaussianmlr._utils.strict_json import loads
from gaussianmlr._utils.tables import markdown_table
from gaussianmlr.errors import DataError
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.canvas import open_canvases, sizes_of
from gaussianmlr.paper.cells import Cell, reading_methods, recipe_of
from gaussianmlr.paper.photos import all_outputs
from gaussianmlr.paper.places import Places, Sources
from gaussianmlr.paper.plans import trials
from gaussianmlr.paper.run import lock_of, train_once
from gaussianmlr.paper.tables import HEADS, METHODS
from gaussianmlr.paper.values import Values, measured

__all__ = ["read_trials", "run_trial", "write_rates"]

_SHOWN = ("tau_b", "hamming_loss", "f1")


def trials_file(places: Places) -> Path:
    """The file of all trials, one JSON object per line."""
    return places.results / "rates.jsonl"


def read_trials(file: Path) -> dict[str, dict[str, Any]]:
    """Trials by the name of their training.

    Raises
    ------
    DataError
        For a line that was changed.
    """
    if not file.is_file():
        return {}
    found = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            one = unseal(loads(line))
            found[str(one["name"])] = one
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{file}, line {number}: {error}; remove the line to run it again") from None
    return found


def run_trial(
    cell: Cell,
    places: Places,
    sources: Sources,
    *,
    accelerator: str = "auto",
    watcher: Watcher | None = None,
) -> bool:
    """Train a cell, measure it on its validation images, and add a line; False if Ctrl-C stopped it.

    The run folder is that of the cell, so a cell of the same recipe needs no training of its own.
    """
    file = trials_file(places)
    if cell.name in read_trials(file):
        return True
    with alone(lock_of(places.run(cell))) as first:
        if not first:
            return True  # another process is at it
        recipe, made_by = recipe_of(cell), commit()
        data = open_canvases(cell, recipe, sources.digits)
        model = train_once(
            recipe,
            data.train,
            data.validation,
            labels=data.validation.labels,
            folder=places.run(cell),
            fingerprint=data.fingerprint,
            accelerator=accelerator,
            watcher=watcher,
        )
        if model is None:
            return False
        found, ranks = all_outputs(model.network, data.validation)
        scores = reading_methods(cell)[0].read(found).scores.float().numpy()
        metrics = measured(Values(scores, ranks.astype(np.int16)))
        about = {
            "name": cell.name,
            "dataset": cell.dataset,
            "method": cell.method,
            "rate": recipe.rate,
            "validation_images": len(ranks),
            "metrics": {name: round(100 * value, 4) for name, value in metrics.items()},
            "images_seen": int(model.about["images"]),
            "seconds": round(float(model.about["seconds"]), 1),
            "recipe": recipe.to_dict(),
            "versions": versions(),
            "machine": machine(),
            "commit": made_by,
        }
    _add(file, about)
    return True


def _add(file: Path, about: Mapping[str, Any]) -> None:
    import time

    while True:
        with alone(file.with_name(f".{file.name}.lock")) as first:
            if first:
                lines = file.read_text(encoding="utf-8") if file.is_file() else ""
                write_text(file, lines + json.dumps(seal(about), ensure_ascii=False) + "\n")
                return
        time.sleep(0.1)  # another process adds a line, which takes milliseconds


def write_rates(places: Places, preset: Preset) -> Path:
    """Write ``tables/rates-PRESET.md``: the validation numbers of every rate and method."""
    found, cells = read_trials(trials_file(places)), trials(preset)
    tried = sizes_of(cells[0])
    lines = [
        "# Rates, on validation images",
        "",
        f"Preset `{preset}`, percent, seed 0, strong. Every method had the same rates and {tried.images:,} "
        f"training images on two sets, and was measured on {tried.validation:,} validation images; no test "
        "image is involved. Bold: the best tau-b of a method on a set.",
    ]
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        rows = _rows([cell for cell in cells if cell.dataset == dataset], found)
        head = ["method", "rate", *(HEADS[name][0] for name in _SHOWN)]
        lines += ["", f"## {dataset}", "", *markdown_table(head, rows, texts=2)]
    file = places.results / "tables" / f"rates-{preset}.md"
    write_text(file, "\n".join(lines) + "\n")
    return file


def _rows(cells: Sequence[Cell], found: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    best: dict[str, float] = {}
    for cell in cells:
        if cell.name in found:
            tau = found[cell.name]["metrics"]["tau_b"]
            best[cell.method] = max(tau, best.get(cell.method, tau))
    rows = []
    for cell in cells:
        head = [METHODS[cell.method], f"{recipe_of(cell).rate:g}"]
        if cell.name not in found:
            rows.append([*head, *["not run"] * len(_SHOWN)])
            continue
        metrics = found[cell.name]["metrics"]
        texts = [f"{metrics[name]:.2f}" for name in _SHOWN]
        if metrics["tau_b"] == best[cell.method]:
            texts[0] = f"**{texts[0]}**"
        rows.append([*head, *texts])
    return rows
