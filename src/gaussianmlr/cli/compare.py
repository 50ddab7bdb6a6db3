"""`gmlr compare`: methods on your own data, with the same splits and budget."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gaussianmlr._utils.strict_json import dumps
from gaussianmlr.cli import options
from gaussianmlr.cli.tables import reads_tables

if TYPE_CHECKING:
    from gaussianmlr.comparison.verdict import Comparison
    from gaussianmlr.model.recipe import Recipe


@reads_tables()
def compare_command(
    data: options.Data,
    out: Annotated[Path, typer.Option(help="Folder of the comparison: cells, tables and the picture.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A contender: gmlr, lsep:weak, all, for tables forest, neighbours, dummy; repeatable, or "
            "with commas. By default gmlr, lsep and crpc.",
            callback=options.named,
        ),
    ] = None,
    supervision: Annotated[
        str | None, typer.Option(help="For methods without one: strong, weak or both.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Number of seeds; each draws a split if the data has no test part.")
    ] = 5,
    folds: Annotated[
        int | None, typer.Option(help="Cross-validate: number of parts per seed, each tested on once.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Settings by name: paper, cpu or smoke.")] = None,
    recipe: options.RecipeFile = None,
    settings: options.Settings = None,
    backbone: options.Backbone = None,
    epochs: options.Epochs = None,
    seed: Annotated[int | None, typer.Option(help="The first seed.")] = None,
    size: options.Size = None,
    digits: options.Digits = "auto",
    image_size: options.ImageSize = None,
    channels: options.Channels = None,
    labels: options.Labels = None,
    threshold: options.Threshold = None,
    tolerance: options.Tolerance = 0.0,
    accelerator: options.Accelerator = "auto",
    engine: options.OnEngine = options.EngineName.local,
    ray_address: options.RayAddress = None,
    workers: options.Workers = None,
    threads: options.Threads = None,
    trust: options.Trust = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    escape_formulas: options.EscapeFormulas = False,
    layout: Any = None,
) -> None:
    """Compare methods on the same splits with the same budget: mean, spread, and paired tests.

    After Ctrl-C, a crash or a kill, the same command resumes with what is missing; more methods or seeds
    may be added to a comparison later. With `--engine ray` cells run on a Ray cluster, and give the same.

    Examples: `gmlr compare hikes.csv --out runs/who`, `gmlr compare hikes.csv --out runs/all --method all
    --folds 5 --seeds 2`, `gmlr compare photos/ --out runs/weak --method gmlr,lsep --supervision both`.

    Exit code: 0 done, 2 something to fix, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    from gaussianmlr.comparison.run import DEFAULT, compare
    from gaussianmlr.data import RankedData
    from gaussianmlr.data.open import find_data
    from gaussianmlr.model.settings import recipe_of
    from gaussianmlr.training.defaults import default_recipe, why_small

    place = options.engine_of(engine, ray_address, workers, threads, accelerator)
    names = [one.strip() for text in method or () for one in text.split(",") if one.strip()]
    said = f"stopped; what is finished is kept, and the same command resumes from {out}"
    with options.resumable(said, quiet, lines=False, threads=threads) as watcher:
        found = find_data(
            data, labels=options.listed(labels), threshold=threshold, tolerance=tolerance, layout=layout
        )
        for note in found.notes if isinstance(found, RankedData) else ():
            watcher.note(note)
        chosen = recipe_of(
            default_recipe(found, preset, named=options.names_backbone(backbone, recipe, settings)),
            file=recipe,
            settings=settings or (),
            said=[re.sub(":(strong|weak|both)$", "", name) for name in names],
            backbone=backbone,
            epochs=epochs,
            seed=seed,
        )
        _refuse_lost(settings or [], chosen, names or DEFAULT)
        if isinstance(found, RankedData) and found.images is not None and chosen.backbone == "fast":
            watcher.note(why_small())
        comparison = compare(
            found,
            names or DEFAULT,
            out=out,
            recipe=chosen,
            supervision=supervision,  # type: ignore[arg-type]  # refused where it is none
            seeds=seeds,
            folds=folds,
            accelerator=accelerator,
            engine=place,
            watcher=watcher,
            say=watcher.note,
            size=size,
            digits=digits,
            image_size=image_size,
            channels=channels,
        )
        watcher.close()
        _write(comparison, out, escape_formulas)
        if as_json:
            options.print_json(comparison.to_dict())
            return
        _show(comparison)
        typer.echo(f"\ntables and picture: {out}/comparison.md, .tex, .csv, .json and .png")


def _refuse_lost(settings: Sequence[str], recipe: Recipe, names: Sequence[str]) -> None:
    """Refuse settings that no contender would use: contenders set their method and supervision themselves."""
    from gaussianmlr.errors import DataError

    for text in settings:
        field = text.partition("=")[0].strip()
        if field == "method_settings.supervision":
            raise DataError(f"{text!r} would be lost; use --supervision, or --method NAME:weak")
        there = "all" in names or any(f"{name}:".startswith(f"{recipe.method}:") for name in names)
        if field.startswith("method") and not there:
            raise DataError(
                f"{text!r} would be lost: no contender has the method {recipe.method!r}; "
                "add it by --method, or name another by --set method=NAME"
            )


def _write(comparison: Comparison, out: Path, escape_formulas: bool) -> None:
    from gaussianmlr._utils.files import write_text
    from gaussianmlr.comparison.plot import ComparisonDisplay
    from gaussianmlr.comparison.tables import to_csv, to_latex, to_markdown

    write_text(out / "comparison.md", to_markdown(comparison))
    write_text(out / "comparison.tex", to_latex(comparison))
    write_text(out / "comparison.csv", to_csv(comparison, escape_formulas=escape_formulas))
    result = dumps(comparison.to_dict(), indent=2, ensure_ascii=False)
    write_text(out / "comparison.json", result + "\n")
    ComparisonDisplay.from_comparison(comparison).save(out / "comparison.png")


def _show(comparison: Comparison) -> None:
    """Print the table and the verdict; in a pipe, lines are not wrapped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gaussianmlr.comparison.tables import headings, p_text, spread_text
    from gaussianmlr.comparison.verdict import LOWER

    heads, p = headings(comparison), p_text(comparison)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("contender", no_wrap=True)
    for metric, head in heads.items():
        table.add_column(f"{head} {'↓' if metric in LOWER else '↑'}", justify="right")
    table.add_column("p", justify="right")
    table.add_column("seconds", justify="right")
    for name in comparison.ranking:
        row = [Text(name)]
        for metric in heads:
            text = spread_text(comparison.summary(name, metric))
            row.append(Text(text, style="bold" if name in comparison.best(metric) else ""))
        cells = comparison.of(name)
        seconds = sum(cell.seconds for cell in cells) / len(cells)
        table.add_row(*row, p[name] or "best", f"{seconds:.1f}")
    console = Console(width=None if sys.stdout.isatty() else 250, highlight=False)
    console.print(f"{comparison.setup()}", markup=False, soft_wrap=True)
    console.print(table)
    spread = ", mean ± standard deviation over the runs" if comparison.runs > 1 else ""
    console.print(f"percent{spread}; p: tau-b against the best", markup=False, soft_wrap=True)
    console.print(f"test: {comparison.verdict.test}", markup=False, soft_wrap=True)
    console.print(f"\n{comparison.verdict.text()}", markup=False, soft_wrap=True, style="bold")
