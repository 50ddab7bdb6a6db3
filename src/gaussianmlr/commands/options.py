"""Options that several commands have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Accelerator",
    "Backbone",
    "Channels",
    "Data",
    "Digits",
    "Epochs",
    "ImageSize",
    "Labels",
    "Quiet",
    "RecipeFile",
    "Settings",
    "Size",
    "Threshold",
    "Tolerance",
    "listed",
]

Data = Annotated[
    str,
    typer.Argument(
        help="A Ranked MNIST set such as gray-s, a table, a manifest of pictures or a folder with one."
    ),
]
RecipeFile = Annotated[Path | None, typer.Option(help="TOML or JSON with any settings of the training.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, field=value or field.key=value; may be given often."),
]
Backbone = Annotated[
    str | None, typer.Option(help="fast, resnet18, mlp, efficientnet-lite0, hf:NAME, timm:NAME.")
]
Epochs = Annotated[int | None, typer.Option(help="Passes over the training data.")]
Size = Annotated[int | None, typer.Option(help="Ranked MNIST: training images an epoch.")]
Digits = Annotated[str, typer.Option(help="Ranked MNIST: auto, mnist, embedded, or a folder with MNIST.")]
ImageSize = Annotated[
    int | None,
    typer.Option(help="Pictures: height and width they are brought to; the backbone's own without it."),
]
Channels = Annotated[int | None, typer.Option(help="Pictures: 1 (gray) or 3 (colour); found out without it.")]
Labels = Annotated[
    str | None,
    typer.Option(help="The labels there should be, separated by commas; any other is an error."),
]
Threshold = Annotated[float | None, typer.Option(help="Read label columns as grades: relevant above this.")]
Tolerance = Annotated[float, typer.Option(help="Grades that differ by no more than this tie.")]
Accelerator = Annotated[str, typer.Option(help="Lightning's: auto, cpu, cuda, mps.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def listed(labels: str | None) -> list[str] | None:
    """The labels of `--labels`, if it is given.

    Examples
    --------
    >>> listed("sky, sea"), listed(None)
    (['sky', 'sea'], None)
    """
    return None if labels is None else [label.strip() for label in labels.split(",")]
