"""`gmlr reproduce`: the paper's tables and figures, from cells that run once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr.cli.options import (
    Accelerator,
    AsJson,
    Digits,
    EngineName,
    OnEngine,
    Quiet,
    RayAddress,
    Threads,
    Workers,
    engine_of,
    print_json,
    resumable,
)

if TYPE_CHECKING:
    from gaussianmlr._utils.progress import ConsoleWatcher
    from gaussianmlr.engines.jobs import Engine
    from gaussianmlr.paper.cells import Cell
    from gaussianmlr.paper.places import Places, Sources


PAGES = ("tests", "claims", "leaderboard")  # made of the cells that tables need


def reproduce_command(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="WHAT...",
            help="Tables (gray, color, real, error-bars, small-change, nsid-test, loss, rivals), pages made "
            "of them (tests, claims, leaderboard), figures (adjusting, calibration, extracted, bars, "
            "variance, samples, ranks), `tables`, `figures`, `all`; `cells` to train and measure only; "
            "`rates` to try rates on validation images; `freeze` before test images; one cell: "
            "`cell DATASET METHOD SUPERVISION`; or `submit DATASET SCORES`.",
        ),
    ],
    preset: Annotated[str, typer.Option(help="smoke, cpu, or paper (a GPU is wise).")] = "cpu",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Seeds of every cell; by default 1, for pictures 5, for four strong sets 3."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of `cell`: its seed.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Of `cell`: what differs from the preset, field=value; repeatable."),
    ] = None,
    images: Annotated[
        int | None, typer.Option(min=1, help="Of `cell` and `submit`: training images in all.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Run only cells whose name holds this text; repeatable.")
    ] = None,
    show_plan: Annotated[
        bool, typer.Option("--plan", help="Show the cells, which are missing, and how long they take.")
    ] = False,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Run no cell; make tables and figures of finished ones.")
    ] = False,
    with_values: Annotated[
        bool,
        typer.Option("--with-values", help="Also run again the cells that lack per-instance values."),
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="Of `claims`: a page to write them into, between its marks.")
    ] = None,
    safe_colours: Annotated[
        bool, typer.Option("--safe-colours", help="Bars in colours for colour-blind readers.")
    ] = False,
    name: Annotated[str, typer.Option(help="Of `submit`: the method.")] = "",
    by: Annotated[str, typer.Option(help="Of `submit`: who made it.")] = "",
    link: Annotated[str, typer.Option(help="Of `submit`: where it is described.")] = "",
    digits: Digits = "auto",
    nsid: Annotated[Path | None, typer.Option(help="Folder with the natural scenes.")] = None,
    avdp: Annotated[Path | None, typer.Option(help="Folder with the architecture pictures.")] = None,
    work: Annotated[Path, typer.Option(help="Folder of runs and models.")] = Path("runs/paper"),
    results: Annotated[Path, typer.Option(help="Folder of cells, tables and figures.")] = Path("results"),
    accelerator: Accelerator = "auto",
    engine: OnEngine = EngineName.local,
    ray_address: RayAddress = None,
    workers: Workers = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper. Cells run once; after Ctrl-C, a crash or a kill, the same command resumes.

    Several processes may run the same command: a cell that one of them works on is left to it. With
    `--engine ray` cells run on a Ray cluster, and give the same.

    Examples: `gmlr reproduce gray`, `gmlr reproduce all --plan`,
    `gmlr reproduce cell gray-s gmlr strong --seed 1 --set head=linear`, `gmlr reproduce tables --no-train`,
    `gmlr reproduce submit gray-s scores.npz --name "My method"`.

    Exit code: 0 done, 2 something to fix, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    from gaussianmlr.errors import DataError
    from gaussianmlr.paper.places import Places, Sources

    place = engine_of(engine, ray_address, workers, threads, accelerator)
    if not place.is_local and what[0] == "rates":
        raise DataError("rates are tried on this machine; leave --engine ray out")
    places, sources = Places(work, results), Sources(digits, nsid, avdp)
    if what[0] == "submit":
        _submit(what[1:], places, name, by, link, images, digits)
        return
    cells = _chosen(what, preset, seeds, seed, tuple(settings or ()), images, only or [])
    if what[0] == "freeze":
        _freeze(places)
        return
    if show_plan:
        _show_plan(cells, places, as_json, with_values)
        return
    with resumable("stopped; the same command resumes", quiet, threads=threads) as watcher:
        if what[0] == "rates":
            _try_rates(cells, preset, places, sources, accelerator, watcher, no_train)
            return
        if not no_train:
            _train(
                cells,
                places,
                sources,
                accelerator,
                place,
                watcher,
                alone=what[0] == "cell",
                with_values=with_values,
            )
        _show_cells(cells, places, sources)
        if what[0] not in ("cell", "cells"):
            wanted = named(what)
            for file in _write(wanted, preset, seeds, places, sources, page, safe_colours):
                typer.echo(str(file))


def _submit(
    words: list[str], places: Places, name: str, by: str, link: str, images: int | None, digits: str
) -> None:
    from gaussianmlr.errors import DataError
    from gaussianmlr.paper.leaderboard import submit

    if len(words) != 2 or not name:
        raise DataError(f"submit {' '.join(words)}: expected submit DATASET SCORES --name NAME")
    dataset, scores = words
    file = submit(
        dataset, scores, places.submissions, name=name, by=by, link=link, images_seen=images, digits=digits
    )
    typer.echo(str(file))


def _freeze(places: Places) -> None:
    from gaussianmlr.paper.frozen import freeze
    from gaussianmlr.paper.plans import cells_of

    typer.echo(str(freeze(cells_of("nsid-test", "cpu"), places.frozen, places.cells)))
    typer.echo("commit this file before anything is measured on the test images", err=True)


def _try_rates(
    cells: list[Cell],
    preset: Any,
    places: Places,
    sources: Sources,
    accelerator: str,
    watcher: ConsoleWatcher,
    no_train: bool,
) -> None:
    from gaussianmlr.paper.trials import run_trial, write_rates

    for number, cell in enumerate([] if no_train else cells, 1):
        watcher.note(f"rate {number} of {len(cells)}: {cell.name}")
        if not run_trial(cell, places, sources, accelerator=accelerator, watcher=watcher):
            raise KeyboardInterrupt
    watcher.close()
    typer.echo(str(write_rates(places, preset)))


def _train(
    cells: list[Cell],
    places: Places,
    sources: Sources,
    accelerator: str,
    engine: Engine,
    watcher: ConsoleWatcher,
    *,
    alone: bool,
    with_values: bool,
) -> None:
    """Run the cells whose data is there; one that was asked for alone must have it."""
    from gaussianmlr.errors import DataError
    from gaussianmlr.paper.cells import TESTED
    from gaussianmlr.paper.run import run_all

    runnable = [cell for cell in cells if _has_data(cell, sources)]
    if alone and not runnable:
        raise DataError(f"{cells[0].name} needs its pictures: give --{_option(cells[0])} FOLDER")
    if not alone and not places.frozen.is_file() and any(cell.dataset == TESTED for cell in runnable):
        watcher.note(f"{TESTED} is left out: gmlr reproduce freeze comes first")
        runnable = [cell for cell in runnable if cell.dataset != TESTED]
    done = run_all(
        runnable,
        places,
        sources,
        accelerator=accelerator,
        engine=engine,
        watcher=watcher,
        say=watcher.note,
        with_values=with_values,
    )
    if not done:
        raise KeyboardInterrupt
    watcher.close()


def _write(
    names: list[str],
    preset: Any,
    seeds: int | None,
    places: Places,
    sources: Sources,
    page: Path | None,
    safe_colours: bool,
) -> list[Path]:
    from gaussianmlr.paper.cells import read_cells
    from gaussianmlr.paper.claims_page import write_claims
    from gaussianmlr.paper.evidence import Evidence
    from gaussianmlr.paper.figures import write_figures
    from gaussianmlr.paper.leaderboard import read_submissions, write_leaderboard
    from gaussianmlr.paper.pairs import write_pairs
    from gaussianmlr.paper.plans import FIGURES, TABLES
    from gaussianmlr.paper.tables import write_tables

    tables, figures = ([name for name in names if name in known] for known in (TABLES, FIGURES))
    landed = read_cells(places.cells)
    evidence = Evidence(landed, places.cells)
    folder = places.results / "tables"
    written = write_tables(tables, landed, preset, folder, seeds, evidence)
    if "tests" in names:
        written += write_pairs(evidence, preset, folder)
    if "claims" in names:
        written += write_claims(evidence, preset, folder, page)
    if "leaderboard" in names:
        submissions = read_submissions(places.submissions)
        written.append(write_leaderboard(landed, submissions, places.results / "leaderboard.md"))
    figures_folder = places.results / "figures"
    return [
        *written,
        *write_figures(figures, landed, preset, figures_folder, sources, safe_colours=safe_colours),
    ]


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
    from gaussianmlr.paper.plans import plan, trials

    if what[0] == "cell":
        if len(what) != 4:
            raise DataError(f"cell {' '.join(what[1:])}: expected cell DATASET METHOD SUPERVISION")
        usual = preset in SIZES and images == SIZES[preset].images  # then it is not a variant
        cell = Cell(what[1], what[2], what[3], preset, seed, settings, None if usual else images)
        recipe_of(cell)  # refuses unknown settings before anything is written
        return [cell]
    if settings or images is not None or seed:
        raise DataError("--set, --images and --seed are for one cell: cell DATASET METHOD SUPERVISION")
    if what[0] in ("rates", "freeze"):
        if len(what) > 1:
            raise DataError(f"{' '.join(what)}: {what[0]} stands alone")
        cells = trials(preset) if what[0] == "rates" else []
    else:
        cells = plan([name for name in named(what) if name not in PAGES], preset, seeds)
    found = [cell for cell in cells if not only or any(text in cell.name for text in only)]
    if cells and not found:
        raise DataError(f"no cell's name holds {' or '.join(map(repr, only))}; --plan lists them")
    return found


def named(what: list[str]) -> list[str]:
    """The tables and figures that the words name."""
    from gaussianmlr.errors import DataError
    from gaussianmlr.paper.plans import FIGURES, TABLES

    every = (*TABLES, *PAGES, *FIGURES)
    groups = {"all": every, "cells": every, "tables": (*TABLES, *PAGES), "figures": FIGURES}
    if unknown := [word for word in what if word not in (*groups, *every)]:
        known = ", ".join((*groups, *every))
        raise DataError(f"nothing is named {unknown[0]!r}; known are {known}, cell, rates, freeze and submit")
    return list(dict.fromkeys(name for word in what for name in groups.get(word, (word,))))


def _has_data(cell: Cell, sources: Sources) -> bool:
    return cell.kind == "canvas" or sources.of(cell.dataset) is not None


def _option(cell: Cell) -> str:
    """The option that gives the pictures of a cell."""
    return cell.dataset.partition("-")[0]


def _show_plan(cells: list[Cell], places: Places, as_json: bool, with_values: bool) -> None:
    from gaussianmlr._utils.display import clock
    from gaussianmlr.paper.cells import is_landed, read_cells
    from gaussianmlr.paper.run import is_busy
    from gaussianmlr.paper.times import seconds_of

    landed = read_cells(places.cells)
    states, left = {}, {}
    for cell in cells:
        if is_landed(cell, places.cells, with_values=with_values):
            whole = all(landed[one].get("values") for one in cell.readings)
            states[cell.name] = "done" if whole else "bare"
            continue
        begun = "begun" if (places.run(cell) / "run.json").is_file() else "missing"
        states[cell.name] = "running" if is_busy(cell, places) else begun
        left[cell.name] = seconds_of(cell, landed)
    total = sum(seconds for seconds in left.values() if seconds is not None)
    if as_json:
        about = {name: {"state": state, "seconds": left.get(name)} for name, state in states.items()}
        print_json({"cells": about, "seconds_left": round(total, 1)})
        return
    for name, state in states.items():
        seconds = left.get(name)
        typer.echo(f"{state:<8} {name}" + ("" if seconds is None else f"  about {clock(seconds)}"))
    kinds = ("done", "bare", "running", "begun", "missing")
    counts = {state: list(states.values()).count(state) for state in kinds}
    typer.echo(", ".join(f"{count} {state}" for state, count in counts.items() if count), err=True)
    if counts["bare"]:
        typer.echo("bare: without per-instance values; --with-values runs them again", err=True)
    if left:
        blind = sum(seconds is None for seconds in left.values())
        more = f", and {blind} cells unlike any that ran" if blind else ""
        typer.echo(f"training left for one process: about {clock(total)}{more}", err=True)


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
        hint = "" if _has_data(cell, sources) else f" (give --{_option(cell)} FOLDER)"
        typer.echo(f"not run: {cell.name}{hint}", err=True)
