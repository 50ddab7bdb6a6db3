"""What a run keeps on disk: its recipe, where it stands, the best weights, a table of its epochs."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.seals import read_tensors, write_tensors
from gaussianmlr._utils.strict_json import read_json
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import LARGEST_CONFIG

IDLE = frozenset({"workers", "checkpoint_minutes"})  # fields of a recipe that change no result
_SPARE = 64 << 20  # bytes to be left over on the disk


@dataclass
class Standing:
    """Where a run stands: the next batch of which epoch of which stage, and how it went so far."""

    stage: int = 0
    epoch: int = 0
    batch: int = 0
    images: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0  # of the epoch that is under way
    best_value: float | None = None
    best_epoch: int | None = None
    best_sha256: str | None = None  # of best.pt; runs of the first versions have none
    finished: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)


def worth(row: dict[str, Any], select: str, *, only: bool, ordered: bool) -> float:
    """The value that the best epoch of a stage maximises.

    Parameters
    ----------
    row : dict
        Measures of an epoch, as in `Standing.history`; without a validation loss the last one is the best.
    select : {"tau_b", "loss", "last"}
        The recipe's.
    only : bool
        Whether the method has no other stage. One of several is judged by the loss it trains: before the
        last, relevance is read of outputs that nothing has trained, and tau-b knows relevance too.
    ordered : bool
        Whether validation data orders any two labels; else tau-b is 0 in every epoch, and the loss counts.

    Examples
    --------
    >>> row = {"epoch": 3, "tau_b": 0.5, "loss": 0.2}
    >>> worth(row, "tau_b", only=True, ordered=True), worth(row, "tau_b", only=False, ordered=True)
    (0.5, -0.2)
    """
    how = select if "loss" in row else "last"
    if how == "tau_b" and not (only and ordered):
        how = "loss"
    return float({"tau_b": row.get("tau_b", 0.0), "loss": -row.get("loss", 0.0), "last": row["epoch"]}[how])


CHOICE, TREES = "choice.json", "trees.pt"  # of runs that train more than a network
OLD_TREES = "trees.ubj"  # finished trees of the first runs, without a checksum
_BEGUN = {"checkpoint.pt", "epochs.csv", "model", CHOICE, TREES, OLD_TREES}
_OF_A_RUN = {"run.json", "recipe.toml", "data.json", *_BEGUN}
_FILES = (_OF_A_RUN | {"best.pt"}) - {"model"}
_AFTERWARDS = {"calibrate", "jnd"}  # fields of a recipe that matter once training is done


class RunFolder:
    """The folder of a run; every file in it is complete or missing.

    Parameters
    ----------
    path : path-like
        Created if missing. A folder with a run of another recipe is refused once that has a checkpoint,
        and so is a folder with other files.
    recipe : Recipe
        The recipe of the run.
    data : dict
        Description of the data (fingerprints, labels), which must stay the same too.
    """

    def __init__(self, path: str | Path, recipe: Recipe, data: dict[str, Any]) -> None:
        self.path = Path(path)
        self.checkpoint, self.best = self.path / "checkpoint.pt", self.path / "best.pt"
        self.run = self._claim(recipe, data)

    def _claim(self, recipe: Recipe, data: dict[str, Any]) -> str:
        """Claim the folder for a run, and return the digest of its description."""
        run = json.loads(json.dumps({"recipe": recipe.to_dict(), "data": data}))
        file = self.path / "run.json"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = {one.name for one in self.path.iterdir() if not one.name.startswith(".")}
            if others and not others & _OF_A_RUN:
                raise DataError(
                    f"{self.path} is not empty and does not hold a run (but {shorten(min(others))}); "
                    "choose another folder"
                )
            self._check_own(sorted(others & _FILES))
            if not file.exists() and others & _BEGUN:
                raise DataError(
                    f"{self.path} holds {min(others & _BEGUN)}, but no run.json that describes the run; "
                    "choose another folder, or restore it"
                )
            if not others & _BEGUN:  # a start that failed is not a run yet
                write_text(self.path / "recipe.toml", recipe.to_toml())
                write_text(file, json.dumps(run, indent=2) + "\n")
                return _identity(run)
            there = read_json(file, LARGEST_CONFIG)
            identity = _identity(there)
            # Fields added later take their defaults.
            there["recipe"] = {**Recipe().to_dict(), **there["recipe"]}
        except OSError as error:
            raise DataError(f"cannot write to the folder {self.path}: {error.strerror or error}") from None
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{file} is not a run of gaussianmlr; choose another folder") from None
        for part in ("recipe", "data"):
            for name in set(run[part]) - IDLE - _AFTERWARDS:
                if there.get(part, {}).get(name) != run[part][name]:
                    was, now = shorten(there.get(part, {}).get(name)), shorten(run[part][name])
                    raise DataError(
                        f"{self.path} holds a run with {name} = {was}, not {now}; "
                        "choose another folder, or remove this one"
                    )
        return identity

    def _check_own(self, names: list[str]) -> None:
        """Refuse what is no file of this folder: pipes block, and a link may lead to any file of the user."""
        for file in (self.path / name for name in names):
            if not file.is_file() or not file.resolve().is_relative_to(self.path.resolve()):
                kind = f"a link to {file.readlink()}" if file.is_symlink() else "not a regular file"
                raise DataError(f"{file} is {kind}; expected a file of the run. Nothing was changed")

    def check_space(self, parameters: int) -> None:
        """Refuse to start if the disk cannot hold the checkpoints of a network of this size."""
        # Weights, two moments of the optimiser, an average, the best, and the old file beside the new.
        needed = parameters * 4 * 10 + _SPARE
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise DataError(
                f"the disk of {self.path} has {free >> 20} MB left; the run needs {needed >> 20} MB"
            )

    def save(self, standing: Standing, state: dict[str, Any]) -> None:
        """Write a checkpoint and the table of epochs."""
        self._write(
            self.checkpoint, {"standing": json.dumps(asdict(standing)), "state": state, "run": self.run}
        )
        if standing.history:
            write_text(self.path / "epochs.csv", _table(standing.history))

    def load(self) -> tuple[Standing, dict[str, Any]] | None:
        """The last checkpoint, read weights-only; None if there is none."""
        if not self.checkpoint.exists():
            return None
        standing, found = read_checkpoint(self.checkpoint)
        if found.get("run", self.run) != self.run:
            raise self.damaged("it is of another run")
        return standing, found["state"]

    def damaged(self, reason: object) -> DataError:
        """The error for a checkpoint that cannot be used."""
        return _damaged(self.checkpoint, reason)

    def save_best(self, standing: Standing, weights: dict[str, Tensor]) -> None:
        """Write the best weights so far, those of the last epoch."""
        about = {"run": self.run, "stage": standing.stage, "epoch": standing.epoch}
        standing.best_sha256 = self._write(self.best, {"weights": weights, **about})

    def _write(self, file: Path, what: dict[str, Any]) -> str:
        try:
            return write_tensors(file, what)
        except DataError as error:
            raise DataError(f"{error}; the same command resumes from the last checkpoint") from None

    def load_best(self, standing: Standing, expected: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
        """The best weights so far; None before the end of the first epoch.

        Parameters
        ----------
        standing : Standing
            State of the checkpoint that they belong to.
        expected : mapping
            Weights of the network, for names and shapes.

        Raises
        ------
        DataError
            If they are missing, damaged or not those of the checkpoint, as the run would end with a worse
            model.
        """
        if not standing.history:
            return None
        try:
            if not self.best.is_file():
                raise ValueError("it is missing")
            found, digest = read_tensors(self.best)
            if digest is not None:
                self._check_best(standing, found, digest)
                found, standing.best_sha256 = found["weights"], digest
            elif standing.best_sha256 is not None:
                raise ValueError("it has no checksum")
            shapes = {name: tensor.shape for name, tensor in found.items()}
            if shapes != {name: tensor.shape for name, tensor in expected.items()}:
                raise ValueError("it holds the weights of another network")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"the best weights of the run, {self.best}, cannot be used: {error}. Nothing was changed. "
                f"Restore the file, or remove {self.checkpoint} to train again"
            ) from None
        weights: dict[str, Tensor] = found
        return weights

    def _check_best(self, standing: Standing, found: dict[str, Any], digest: str) -> None:
        if found["run"] != self.run:
            raise ValueError("it is of another run")
        # A process may have died between writing the best weights and their checkpoint.
        following = (found["stage"], found["epoch"]) == (standing.stage, standing.epoch + 1)
        if digest != standing.best_sha256 and not following:
            raise ValueError(f"it is not the one that {self.checkpoint.name} was written with")


def read_checkpoint(file: Path) -> tuple[Standing, dict[str, Any]]:
    """The progress of a run, and the contents of its checkpoint.

    Raises
    ------
    DataError
        If it is damaged, with what to do.
    """
    try:
        found = read_tensors(file)[0]
        return Standing(**json.loads(found["standing"])), {"state": found["state"], **found}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(file, error) from None


def _damaged(file: Path, reason: object) -> DataError:
    return DataError(
        f"the checkpoint {file} cannot be read: {reason}. Nothing was changed. "
        "Restore the file, or remove it to train again"
    )


def _identity(run: dict[str, Any]) -> str:
    """The digest of a run: its data and the fields of its recipe that affect training."""
    fields = {name: value for name, value in run["recipe"].items() if name not in IDLE | _AFTERWARDS}
    text = json.dumps({"recipe": fields, "data": run["data"]}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _table(history: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in history for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return text.getvalue()
