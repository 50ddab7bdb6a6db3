"""Curves for other programs: TensorBoard, MLflow and W&B through Lightning's loggers, each row once.

The table of epochs, ``epochs.csv``, needs none of them and is always there.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.strict_json import dumps, read_json
from gaussianmlr.errors import DataError, shorten

__all__ = ["KINDS", "Logs", "open_loggers"]

# The packages of which one is needed, and how to get it.
KINDS: dict[str, tuple[tuple[str, ...], str]] = {
    "csv": ((), ""),
    "tensorboard": (("tensorboardX", "tensorboard"), "pip install 'gaussianmlr[tensorboard]'"),
    "mlflow": (("mlflow",), "pip install mlflow"),
    "wandb": (("wandb",), "pip install wandb"),
}
_STATE = "loggers.json"


def open_loggers(names: Iterable[str], out: str | os.PathLike[str]) -> dict[str, Any]:
    """Lightning's loggers by name, writing to the folder of a run; a resumed run is the same run.

    Parameters
    ----------
    names : iterable of str
        ``csv`` (the table of epochs, which every run writes), ``tensorboard``, ``mlflow`` (to
        ``MLFLOW_TRACKING_URI`` where it is set), ``wandb`` (as its own settings say).
    out : path-like
        Folder of the run.

    Examples
    --------
    >>> open_loggers(["csv"], "run")
    {}
    >>> open_loggers(["excel"], "run")
    Traceback (most recent call last):
        ...
    gaussianmlr.errors.DataError: no logger 'excel'; there are csv, tensorboard, mlflow, wandb
    """
    wanted = dict.fromkeys(names)
    for name in wanted:
        if name not in KINDS:
            raise DataError(f"no logger {name!r}; there are {', '.join(KINDS)}")
        packages, remedy = KINDS[name]
        if packages and not any(importlib.util.find_spec(package) for package in packages):
            raise DataError(f"logging to {name} needs {packages[0]}: {remedy}")
    folder = Path(out)
    known = _read(folder / _STATE)
    return {name: _make(name, folder, known.get(name, {}).get("id")) for name in wanted if name != "csv"}


def _make(name: str, folder: Path, known: str | None) -> Any:
    if name == "tensorboard":
        from lightning.fabric.loggers.tensorboard import TensorBoardLogger

        # Files are named by the second: a run resumed within the same second would overwrite its own.
        own = f".{secrets.token_hex(4)}"
        return TensorBoardLogger(folder, name="", version="tensorboard", filename_suffix=own)
    if name == "mlflow":
        from lightning.pytorch.loggers import MLFlowLogger

        return MLFlowLogger(
            "gaussianmlr", run_name=folder.name, save_dir=str(folder / "mlruns"), run_id=known
        )
    from lightning.pytorch.loggers import WandbLogger

    made = known or secrets.token_hex(4)
    return WandbLogger(folder.name, save_dir=folder, id=made, project="gaussianmlr", resume="allow")


class Logs:
    """Passes every row of a run's history to every logger once, however often the run is interrupted.

    Parameters
    ----------
    loggers : mapping or sequence of Lightning loggers, or one
        By a name that stays the same when the run resumes.
    folder : path-like, optional
        Folder of the run, where it is kept how many rows each has.
    """

    def __init__(self, loggers: Any, folder: str | os.PathLike[str] | None) -> None:
        if loggers is not None and not isinstance(loggers, Mapping):
            several = loggers if isinstance(loggers, Sequence) else [loggers]
            loggers = {f"{type(one).__name__} {number}": one for number, one in enumerate(several)}
        self.loggers: dict[str, Any] = dict(loggers or {})
        self.file = None if folder is None else Path(folder) / _STATE
        self._known = {} if self.file is None else _read(self.file)

    def write(self, history: list[dict[str, Any]]) -> None:
        """Log the rows that are new, numbered from 1."""
        for name, logger in self.loggers.items():
            done = int(self._known.get(name, {}).get("rows", 0))
            if done >= len(history):
                continue
            # Noted first: what is killed in between loses a row here (never in epochs.csv), and doubles none.
            self._note(name, logger, len(history))
            for number, row in enumerate(history[done:], done + 1):
                logger.log_metrics({k: v for k, v in row.items() if isinstance(v, int | float)}, step=number)
            if hasattr(getattr(logger, "experiment", None), "flush"):
                logger.experiment.flush()

    def close(self, status: str) -> None:
        """Say that the run has ended: ``success``, or ``failed``."""
        for logger in self.loggers.values():
            logger.finalize(status)

    def _note(self, name: str, logger: Any, rows: int) -> None:
        self._known[name] = {"rows": rows}
        if name in ("mlflow", "wandb"):
            self._known[name]["id"] = str(logger.run_id if name == "mlflow" else logger.experiment.id)
        if self.file is not None:
            write_text(self.file, dumps(self._known, indent=2) + "\n")


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        found = read_json(file)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{file} cannot be read ({shorten(error)}); remove it to log every row again"
        ) from None
    return dict(found)
