"""`gmlr data`: fetch digits, show and export Ranked MNIST, check any data set."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr.cli.check import check_command

app = typer.Typer(
    name="data",
    help="Digits, the Ranked MNIST sets made from them, and checks of your own data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("check")(check_command)


class SplitName(StrEnum):
    """The splits a set has."""

    train = "train"
    validation = "validation"
    test = "test"


class FormatName(StrEnum):
    """The forms a set can be written in."""

    png = "png"
    npz = "npz"
    parquet = "parquet"


Source = Annotated[
    str,
    typer.Option(
        "--digits", help="auto (what is available), mnist (full or fail), embedded, or a folder with MNIST."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the set.")]
Name = Annotated[str, typer.Argument(help="A set such as gray-s or color-b-mix.")]


@app.command()
def digits(
    folder: Annotated[
        str, typer.Option("--from", help="A folder that holds MNIST's idx files, raw or gz.")
    ] = "",
    offline: Annotated[bool, typer.Option("--offline", help="Use no network.")] = False,
) -> None:
    """Find MNIST, or fetch it into the user cache, and show what was found."""
    from gaussianmlr.data.ranked_mnist.digits import load_digits

    for split in ("train", "test"):
        found = load_digits(
            split,
            folder or "auto",
            download=not offline and split == "train",  # one search fetches both
            shown=sys.stderr.isatty(),
            say=_note if split == "train" else lambda _: None,
        )
        typer.echo(f"{split}: {len(found):,} digits: {found.source}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A set such as gray-s or color-b-mix, or all.")],
    out: Annotated[Path | None, typer.Option(help="The PNG to write; NAME.png by default.")] = None,
    split: Annotated[SplitName, typer.Option(help="Which images.")] = SplitName.test,
    rows: Annotated[int, typer.Option(help="Rows of images.")] = 3,
    columns: Annotated[int, typer.Option(help="Images per row.")] = 4,
    seed: Seed = 0,
    source: Source = "auto",
) -> None:
    """Draw a contact sheet with boxes, ranks and orders."""
    from gaussianmlr.data.ranked_mnist.sheet import contact_sheet

    path = out or Path(f"{name}.png")
    contact_sheet(name, split=split.value, rows=rows, columns=columns, seed=seed, digits=source, out=path)
    typer.echo(str(path))


@app.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    to: Annotated[FormatName, typer.Option(help="The form.")] = FormatName.png,
    split: Annotated[
        list[SplitName] | None, typer.Option(help="A split; repeatable. All by default.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Images per split; by default the paper's.")] = None,
    seed: Seed = 0,
    source: Source = "auto",
    shared_digits: Annotated[
        bool, typer.Option("--shared-digits", help="The paper's way: train and validation share digits.")
    ] = False,
) -> None:
    """Write a set with its ranks and true significances. Run it again to resume."""
    from gaussianmlr.data.ranked_mnist.export import export_sets
    from gaussianmlr.data.ranked_mnist.sets import RankedMNIST

    sets = [
        RankedMNIST(name, one.value, size=size, seed=seed, digits=source, shared_digits=shared_digits)
        for one in split or list(SplitName)
    ]
    made = export_sets(sets, out, to.value, shown=sys.stderr.isatty())
    _note(f"made from {sets[0].digits.source}")
    typer.echo(f"{made}: {sum(map(len, sets)):,} images")


def _note(line: str) -> None:
    typer.echo(line, err=True)
