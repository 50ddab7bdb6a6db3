"""`gmlr export`: a model for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gaussianmlr.cli.options import ModelFolder, Trust


class Target(StrEnum):
    """The forms a model can be exported to."""

    onnx = "onnx"


def export_command(
    model: ModelFolder,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    to: Annotated[Target, typer.Option(help="The form.")] = Target.onnx,
    trust: Trust = None,
) -> None:
    """Write a model as an ONNX file, checked against onnxruntime. Needs the extra `onnx`.

    Example: `gmlr export runs/photos --to onnx --out photos.onnx`.
    """
    from gaussianmlr.inference.matching import open_model
    from gaussianmlr.model.export import export_onnx

    loaded = open_model(model)
    differences = export_onnx(loaded, out)
    largest = max(differences.values())
    typer.echo(f"{out}: {', '.join(differences)}; onnxruntime agrees to {largest:.1g}")
