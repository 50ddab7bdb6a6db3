"""`gmlr reproduce`: the paper's tables and figures, from cells that run once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.cli.options import Accelerator, AsJson, Digits, Quiet, print_json, resumable

if TYPE_CHECKING:
    from gaussianmlr._utils.progress import ConsoleWatcher
    from gaussianmlr.paper.cells import Cell
    from gaussianmlr.paper.places import Places, Sources


def reproduce_command(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            help="Tables (gray, color, real, error-bars, small-change, rivals), figures (adjusting, "
            "calibration, extracted, bars, variance, samples), `tables`, `figures`, `all`; `cells` to train "
            "and measure only; or one cell: `cell DATASET METHOD SUPERVISION`.",
        ),
    ],
    preset: Annotated[str, typer.Option(help="smoke, cpu, or paper (a GPU is wise).")] = "cpu",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds of every cell; by default 1, for pictures 5.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of `cell`: its seed.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Of `cell`: what differs from the preset, field=value; repeatable."),
    ] = None,
    images: Annotated[int | None, typer.Option(min=1, help="Of `cell`: training images in all.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Run only cells whose name holds this text; repeatable.")
    ] = None,
    show_plan: Annotated[bool, typer.Option("--plan", help="Show the cells and which are missing.")] = False,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Run no cell; make tables and figures of finished ones.")
    ] = False,
    digits: Digits = "auto",
    nsid: Annotated[Path | None, typer.Option(help="Folder with the natural scenes.")] = None,
    avdp: Annotated[Path | None, typer.Option(help="Folder with the architecture pictures.")] = None,
    work: Annotated[Path, typer.Option(help="Folder of runs and models.")] = Path("runs/paper"),
    results: Annotated[Path, typer.Option(help="Folder of cells, tables and figures.")] = Path("results"),
    accelerator: Accelerator = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper. Cells run once; after Ctrl-C, a crash or a kill, the same command resumes.

    Several processes may run the same command: a cell that one of them works on is left to it.

    Examples: `gmlr reproduce gray`, `gmlr reproduce all --plan`,
    `gmlr reproduce cell gray-s gmlr strong --seed 1 --set head=linear`, `gmlr reproduce tables --no-train`.

    Exit code: 0 done, 2 something to fix, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    from gaussianmlr.paper.places import Places, Sources

    cells = _chosen(what, preset, seeds, seed, tuple(settings or ()), images, only or [])
    places, sources = Places(work, results), Sources(digits, nsid, avdp)
    if show_plan:
        _show_plan(cells, places, as_json)
        return
    with resumable("stopped; the same command resumes", quiet) as watcher:
        if not no_train:
            _train(cells, places, sources, accelerator, watcher, alone=what[0] == "cell")
        _show_cells(cells, places, sources)
        if what[0] not in ("cell", "cells"):
            for file in _write(named(what), preset, seeds, places, sources):
                typer.echo(str(file))


def _train(
    cells: list[Cell],
    places: Places,
    sources: Sources,
    accelerator: str,
    watcher: ConsoleWatcher,
    *,
    alone: bool,
) -> None:
    """Run the cells whose data is there; one that was asked for alone must have it."""
    from gaussianmlr.errors import DataError
    from gaussianmlr.paper.run import run_all

    runnable = [cell for cell in cells if _has_data(cell, sources)]
    if alone and not runnable:
        raise DataError(f"{cells[0].name} needs its pictures: give --{cells[0].dataset} FOLDER")
    if not run_all(runnable, places, sources, accelerator=accelerator, watcher=watcher, say=watcher.note):
        raise KeyboardInterrupt
    watcher.close()


def _write(names: list[str], preset: Any, seeds: int | None, places: Places, sources: Sources) -> list[Path]:
    from gaussianmlr.paper.cells import read_cells
    from gaussianmlr.paper.evidence import Evidence
    from gaussianmlr.paper.figures import write_figures
    from gaussianmlr.paper.plans import FIGURES, TABLES
    from gaussianmlr.paper.tables import write_tables

    tables, figures = ([name for name in names if name in known] for known in (TABLES, FIGURES))
    landed = read_cells(places.cells)
    evidence = Evidence(landed, places.cells)
    written = write_tables(tables, landed, preset, places.results / "tables", seeds, evidence)
    return [*written, *write_figures(figures, landed, preset, places.results / "figures", sources)]


def _chosen(
    what: list[str],
    preset: Any,
    seeds: int | None,
    seed: int,
    settings: tuple[str, ...],
    images: int | None,
    only: list[str],
) -> list[Cell]:
    """The cells that are asked for, each training once."""
    from gaussianmlr.errors import DataError
    from gaussianmlr.paper.canvas import SIZES
    from gaussianmlr.paper.cells import Cell, recipe_of
    from gaussianmlr.paper.plans import plan

    if what[0] == "cell":
        if len(what) != 4:
            raise DataError(f"cell {' '.join(what[1:])}: expected cell DATASET METHOD SUPERVISION")
        usual = preset in SIZES and images == SIZES[preset].images  # then it is not a variant
        cell = Cell(what[1], what[2], what[3], preset, seed, settings, None if usual else images)
        recipe_of(cell)  # refuses unknown settings before anything is written
        return [cell]
    if settings or images is not None or seed:
        raise DataError("--set, --images and --seed are for one cell: cell DATASET METHOD SUPERVISION")
    cells = plan(named(what), preset, seeds)
    found = [cell for cell in cells if not only or any(text in cell.name for text in only)]
    if cells and not found:
        raise DataError(f"no cell's name holds {' or '.join(map(repr, only))}; --plan lists them")
    return found


def named(what: list[str]) -> list[str]:
    """The tables and figures that the words name."""
    from gaussianmlr.errors import DataError
    from gaussianmlr.paper.plans import FIGURES, TABLES

    groups = {"all": (*TABLES, *FIGURES), "cells": (*TABLES, *FIGURES), "tables": TABLES, "figures": FIGURES}
    if unknown := [word for word in what if word not in (*groups, *TABLES, *FIGURES)]:
        known = ", ".join((*groups, *TABLES, *FIGURES))
        raise DataError(f"nothing is named {unknown[0]!r}; known are {known}, and cell")
    return list(dict.fromkeys(name for word in what for name in groups.get(word, (word,))))


def _has_data(cell: Cell, sources: Sources) -> bool:
    return cell.kind == "canvas" or sources.of(cell.dataset) is not None


def _show_plan(cells: list[Cell], places: Places, as_json: bool) -> None:
    from gaussianmlr.paper.cells import is_landed
    from gaussianmlr.paper.run import is_busy

    states = {}
    for cell in cells:
        begun = "begun" if (places.run(cell) / "run.json").is_file() else "missing"
        open_state = "running" if is_busy(cell, places) else begun
        states[cell.name] = "done" if is_landed(cell, places.cells) else open_state
    if as_json:
        print_json(states)
        return
    for name, state in states.items():
        typer.echo(f"{state:<8} {name}")
    counts = {state: list(states.values()).count(state) for state in ("done", "running", "begun", "missing")}
    typer.echo(", ".join(f"{count} {state}" for state, count in counts.items()), err=True)


def _show_cells(cells: list[Cell], places: Places, sources: Sources) -> None:
    from gaussianmlr._utils.display import metrics_table
    from gaussianmlr.paper.cells import read_cells

    landed = read_cells(places.cells)
    rows = {
        one.name: {name: value / 100 for name, value in landed[one]["metrics"].items()}
        for cell in cells
        for one in cell.readings
        if one in landed
    }
    if rows:
        typer.echo(metrics_table(rows))
    missing = [cell for cell in cells if cell not in landed]
    for cell in missing:
        hint = "" if _has_data(cell, sources) else f" (give --{cell.dataset} FOLDER)"
        typer.echo(f"not run: {cell.name}{hint}", err=True)
