"""`gmlr compare`: methods on one's own data, on the same splits and with the same budget."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gaussianmlr.commands.options import (
    Accelerator,
    Backbone,
    Channels,
    Data,
    Digits,
    Epochs,
    ImageSize,
    Labels,
    Quiet,
    RecipeFile,
    Settings,
    Size,
    Threshold,
    Tolerance,
    listed,
)

if TYPE_CHECKING:
    from gaussianmlr.judging import Comparison
    from gaussianmlr.recipe import Recipe


def compare_command(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the comparison: cells, tables and the picture.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A contender: gmlr, lsep:weak, all, for tables forest, neighbours, dummy; may be given "
            "often, or with commas. gmlr, lsep and crpc without it."
        ),
    ] = None,
    supervision: Annotated[
        str | None, typer.Option(help="Of methods that do not say it: strong, weak or both.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="How many seeds; each draws a split where the data has no test part.")
    ] = 5,
    folds: Annotated[
        int | None, typer.Option(help="Cross-validate: so many parts a seed, each tested on once.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Settings by name: paper, cpu or smoke.")] = None,
    recipe: RecipeFile = None,
    settings: Settings = None,
    backbone: Backbone = None,
    epochs: Epochs = None,
    seed: Annotated[int | None, typer.Option(help="The first seed.")] = None,
    size: Size = None,
    digits: Digits = "auto",
    image_size: ImageSize = None,
    channels: Channels = None,
    labels: Labels = None,
    threshold: Threshold = None,
    tolerance: Tolerance = 0.0,
    accelerator: Accelerator = "auto",
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compare methods on the same splits with the same budget: mean, spread, and who wins beyond noise.

    After Ctrl-C, a crash or a kill, the same command goes on with what is missing; more methods or seeds
    may be added to a comparison later.

    Examples: `gmlr compare hikes.csv --out runs/who`, `gmlr compare hikes.csv --out runs/all --method all
    --folds 5 --seeds 2`, `gmlr compare photos/ --out runs/weak --method gmlr,lsep --supervision both`.

    Exit code: 0 done, 2 something to mend, 130 stopped by Ctrl-C.
    """
    from gaussianmlr.allocation import keep_freed_memory
    from gaussianmlr.commands.settings import recipe_of
    from gaussianmlr.comparing import DEFAULT, compare
    from gaussianmlr.console import ConsoleWatcher
    from gaussianmlr.defaults import default_recipe
    from gaussianmlr.sources import find_data

    keep_freed_memory()
    watcher = ConsoleWatcher(quiet, lines=False)
    names = [one.strip() for text in method or () for one in text.split(",") if one.strip()]
    try:
        found = find_data(data, labels=listed(labels), threshold=threshold, tolerance=tolerance)
        chosen = recipe_of(
            default_recipe(found, preset),
            file=recipe,
            settings=settings or (),
            backbone=backbone,
            epochs=epochs,
            seed=seed,
        )
        _refuse_lost(settings or [], chosen, names or DEFAULT)
        comparison = compare(
            found,
            names or DEFAULT,
            out=out,
            recipe=chosen,
            supervision=supervision,  # type: ignore[arg-type]  # refused where it is none
            seeds=seeds,
            folds=folds,
            accelerator=accelerator,
            watcher=watcher,
            say=watcher.note,
            size=size,
            digits=digits,
            image_size=image_size,
            channels=channels,
        )
    except KeyboardInterrupt:
        watcher.close()
        typer.echo(f"stopped; what is finished is kept, and the same command goes on from {out}", err=True)
        raise typer.Exit(130) from None
    finally:
        watcher.close()
    _write(comparison, out)
    if as_json:
        typer.echo(json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False))
        return
    _show(comparison)
    typer.echo(f"\ntables and picture: {out}/comparison.md, .tex, .csv, .json and .png")


def _refuse_lost(settings: Sequence[str], recipe: Recipe, names: Sequence[str]) -> None:
    """Contenders say their method and supervision themselves; settings of no contender would be lost."""
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


def _write(comparison: Comparison, out: Path) -> None:
    from gaussianmlr.files import write_text
    from gaussianmlr.plots import ComparisonDisplay
    from gaussianmlr.tabulating import to_csv, to_latex, to_markdown

    write_text(out / "comparison.md", to_markdown(comparison))
    write_text(out / "comparison.tex", to_latex(comparison))
    write_text(out / "comparison.csv", to_csv(comparison))
    result = json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False)
    write_text(out / "comparison.json", result + "\n")
    ComparisonDisplay.from_comparison(comparison).save(out / "comparison.png")


def _show(comparison: Comparison) -> None:
    """The table and the verdict; in a pipe, nothing is folded."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gaussianmlr.judging import LOWER
    from gaussianmlr.tabulating import headings, p_text, spread_text

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
