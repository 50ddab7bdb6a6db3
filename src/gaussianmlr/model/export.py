"""A model as one ONNX file: network and reading, with labels and preprocessing in its metadata."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.files import write_bytes
from gaussianmlr._version import __version__
from gaussianmlr.data.inputs import Inputs, encoding_of
from gaussianmlr.errors import DataError
from gaussianmlr.methods import Method
from gaussianmlr.model.calibration import Calibration
from gaussianmlr.model.model import Model
from gaussianmlr.nn.backbones.converted import hushed

__all__ = ["OUTPUTS", "export_onnx"]

OUTPUTS = ("scores", "p_relevant", "mu", "sigma", "tau")
TOLERANCE = 1e-4
_NEEDED = ("onnx", "onnxscript", "onnxruntime")


class _Read(nn.Module):
    """The network and the reading of its method, as tensors in a row."""

    def __init__(self, network: nn.Module, method: Method, calibration: Calibration | None) -> None:
        super().__init__()
        self.network, self.method, self.calibration = network, method, calibration

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        reading = self.method.read(self.network(inputs))
        if self.calibration is not None:
            reading = self.calibration.apply(reading)
        return tuple(part.float() for part in reading if part is not None)


def export_onnx(model: Model, path: str | os.PathLike[str]) -> dict[str, float]:
    """Write a model as an ONNX file, after onnxruntime has agreed with it.

    The input ``inputs`` is a float32 batch of any length: images [N, channels, height, width] with values
    in 0..1, or rows [N, columns] already standardised. The outputs are ``scores`` and ``p_relevant``
    [N, K], ``mu`` and ``sigma`` of methods that have them, and the thresholds ``tau`` of methods that predict
    ties, from which `normal.best_buckets` decodes orders. The metadata holds ``labels``, ``method``
    and, under ``inputs``, what image files or table columns go through before, all as JSON.

    Parameters
    ----------
    model : Model
        The model.
    path : path-like
        The file, written whole or not at all.

    Returns
    -------
    dict of str to float
        Of each output, the largest difference between torch and onnxruntime on a trial batch, relative
        to the size of the numbers where they are above one.

    Raises
    ------
    DataError
        Where the extra ``onnx`` is missing, or the file would not say the same as the model.
    """
    require("export to ONNX", *_NEEDED)
    reader = _Read(model.network, model.method, model.calibration).eval().cpu()
    trial = _trial(model.inputs, 3)
    with torch.no_grad():
        wanted = reader(trial)
    names = [name for name, part in zip(OUTPUTS, model.read(trial)) if part is not None]
    proto = _converted(reader, trial[:2], names)
    known = {
        "gaussianmlr": __version__,
        "method": model.method.name,
        "labels": json.dumps(list(model.labels), ensure_ascii=False),
        "inputs": json.dumps(model.inputs, ensure_ascii=False),
    }
    for key, value in known.items():
        proto.metadata_props.add(key=key, value=value)
    data: bytes = proto.SerializeToString()
    differences = _compared(data, trial, dict(zip(names, wanted)))
    worst = max(differences, key=lambda name: differences[name])
    if not differences[worst] <= TOLERANCE:
        raise DataError(
            f"onnxruntime's {worst} differs from the model's by {differences[worst]:.2g}; nothing was written"
        )
    write_bytes(Path(path), data)
    return differences


def _trial(inputs: Inputs, count: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    if inputs["kind"] == "table":
        rows = torch.randn(count, inputs["channels"], generator=generator)
        place = 0
        for column in encoding_of(inputs) or ():
            if column.text is not None:  # tokens of texts of different lengths
                words = column.text.vocabulary.count("\n") + 1
                tokens = torch.randint(1, words + 1, (count, column.width), generator=generator)
                lengths = torch.linspace(2, column.width, count).round()[:, None]
                held = torch.arange(column.width) < lengths
                rows[:, place : place + column.width] = (tokens * held).float()
            place += column.width
        return rows
    height, width = inputs.get("size", [224, 224])
    return torch.rand(count, inputs["channels"], height, width, generator=generator)


def _converted(reader: nn.Module, trial: Tensor, names: list[str]) -> Any:
    with hushed():
        try:
            program = torch.onnx.export(
                reader,
                (trial,),
                dynamo=True,
                verbose=False,
                input_names=["inputs"],
                output_names=names,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
            )
        except Exception as error:  # the exporter raises whatever it meets in a network it cannot follow
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise DataError(f"this network cannot be written as ONNX: {first}") from error
    assert program is not None
    return program.model_proto


def _compared(data: bytes, trial: Tensor, wanted: dict[str, Tensor]) -> dict[str, float]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        found = session.run(list(wanted), {"inputs": trial.numpy()})
    except Exception as error:  # onnxruntime's errors share no class of their own
        raise DataError(f"onnxruntime cannot run what was made of this network: {error}") from None
    return {
        name: float(np.max(np.abs(there - here.numpy()) / np.maximum(1.0, np.abs(here.numpy()))))
        for (name, here), there in zip(wanted.items(), found)
    }
