"""What a run keeps on disk: its recipe, where it stands, the best weights, a table of its epochs."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gaussianmlr.errors import DataError, shorten
from gaussianmlr.files import aside, write_text
from gaussianmlr.recipe import Recipe

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
    finished: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)


def worth(row: dict[str, Any], select: str, *, only: bool, ordered: bool) -> float:
    """What the best epoch of a stage has the most of.

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


_BEGUN = {"checkpoint.pt", "epochs.csv", "model"}
_OF_A_RUN = {"run.json", "recipe.toml", "data.json", *_BEGUN}


class RunFolder:
    """The folder of a run; every file in it is whole or not there.

    Parameters
    ----------
    path : path-like
        Made where it is missing. One that holds a run of another recipe is refused, once that has a
        checkpoint; and one that holds something else.
    recipe : Recipe
        The recipe of the run.
    data : dict
        What the run was trained on (fingerprints, labels), which must stay the same too.
    """

    def __init__(self, path: str | Path, recipe: Recipe, data: dict[str, Any]) -> None:
        self.path = Path(path)
        self._claim(recipe, data)

    def _claim(self, recipe: Recipe, data: dict[str, Any]) -> None:
        run = json.loads(json.dumps({"recipe": recipe.to_dict(), "data": data}))
        file = self.path / "run.json"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            others = {one.name for one in self.path.iterdir() if not one.name.startswith(".")}
            if others and not others & _OF_A_RUN:
                raise DataError(
                    f"{self.path} is not empty and holds no run (but {shorten(min(others))}); "
                    "choose another folder"
                )
            there = json.loads(file.read_text("utf-8")) if file.exists() else None
            if there is not None:
                # A field that is younger than the run had its default.
                there["recipe"] = {**Recipe().to_dict(), **there["recipe"]}
            if there is None or not others & _BEGUN:  # a start that failed binds nobody
                write_text(self.path / "recipe.toml", recipe.to_toml())
                write_text(file, json.dumps(run, indent=2) + "\n")
                return
        except OSError as error:
            raise DataError(f"cannot write to the folder {self.path}: {error.strerror or error}") from None
        except DataError:
            raise
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{file} is no run of gaussianmlr; choose another folder") from None
        for part in ("recipe", "data"):
            for name in set(run[part]) - IDLE - {"calibrate"}:  # which comes after training
                if there.get(part, {}).get(name) != run[part][name]:
                    was, now = shorten(there.get(part, {}).get(name)), shorten(run[part][name])
                    raise DataError(
                        f"{self.path} holds a run with {name} = {was}, not {now}; "
                        "choose another folder, or remove this one"
                    )

    def check_space(self, parameters: int) -> None:
        """Refuse to start where the disk cannot hold the checkpoints of a network of this size."""
        # Weights, two moments of the optimiser, an average, the best, and the old file beside the new.
        needed = parameters * 4 * 10 + _SPARE
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise DataError(
                f"the disk of {self.path} has {free >> 20} MB left; the run needs {needed >> 20} MB"
            )

    def save(self, standing: Standing, state: dict[str, Any]) -> None:
        """Write a whole checkpoint and the table of epochs."""
        with aside(self.path / "checkpoint.pt") as part:
            torch.save({"standing": json.dumps(asdict(standing)), "state": state}, part)
        if standing.history:
            write_text(self.path / "epochs.csv", _table(standing.history))

    def load(self) -> tuple[Standing, dict[str, Any]] | None:
        """The last whole checkpoint, read weights-only; none where there is none."""
        file = self.path / "checkpoint.pt"
        if not file.exists():
            return None
        try:
            found = torch.load(file, weights_only=True, map_location="cpu")
            return Standing(**json.loads(found["standing"])), found["state"]
        except Exception as error:
            raise DataError(
                f"the checkpoint {file} cannot be read ({error}); remove it to start anew"
            ) from None

    def save_best(self, weights: dict[str, Tensor]) -> None:
        """Write the best weights so far."""
        with aside(self.path / "best.pt") as part:
            torch.save(weights, part)

    def load_best(self) -> dict[str, Tensor] | None:
        """The best weights so far; none before the first epoch has ended."""
        file = self.path / "best.pt"
        if not file.exists():
            return None
        found: dict[str, Tensor] = torch.load(file, weights_only=True, map_location="cpu")
        return found


def _table(history: list[dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in history for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return text.getvalue()
