"""The rounds of boosting, and the checkpoint from which an interrupted run resumes bit for bit."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from gaussianmlr._utils.progress import Watcher
from gaussianmlr._utils.seals import read_tensors, write_tensors
from gaussianmlr._utils.signals import on_interrupt
from gaussianmlr._utils.ubjson import read_ubjson
from gaussianmlr.errors import DataError
from gaussianmlr.nn.trees import MOST_BYTES, check_trees
from gaussianmlr.training.run_folder import TREES, RunFolder

__all__ = ["Boosted", "Boosting", "TreesCheckpoint", "boost_rounds", "read_boosting"]

FloatArray = npt.NDArray[np.float64]
_SECONDS = 10.0  # between two checkpoints, at most
_UPDATER = "grow_quantile_histmaker"  # that of tree_method=hist
_OTHER = "grow_colmaker"  # never grows a tree here
_SEED = 0x7FFFFFFF


@dataclass
class Boosting:
    """Where boosting stands: rounds done, the best of them, and the loss of held-out rows after that."""

    rounds: int = 0
    best: int = 0
    loss: float | None = None
    seconds: float = 0.0
    finished: bool = False

    def __post_init__(self) -> None:
        whole = all(type(one) is int for one in (self.rounds, self.best))
        numbers = [one for one in (self.loss, self.seconds) if one is not None]
        if not (whole and 0 <= self.best <= self.rounds and type(self.finished) is bool):
            raise ValueError(f"{self.best} of {self.rounds} rounds")
        if not all(isinstance(one, float) and math.isfinite(one) for one in numbers):
            raise ValueError(f"a loss of {self.loss} after {self.seconds} seconds")


class Boosted(NamedTuple):
    """Trees as XGBoost writes them, and how their training went."""

    file: bytes
    standing: Boosting
    interrupted: bool


class TreesCheckpoint:
    """The trees of a run on disk, with a checksum: those of the last rounds, and the best at the end.

    Parameters
    ----------
    folder : RunFolder
        The folder of the run.
    seconds : float
        Time between two checkpoints.
    """

    def __init__(self, folder: RunFolder, seconds: float = _SECONDS) -> None:
        self.file, self.run, self.seconds = folder.path / TREES, folder.run, min(seconds, _SECONDS)

    def save(self, standing: Boosting, trees: bytes) -> None:
        """Write where boosting stands, atomically."""
        held = torch.frombuffer(bytearray(trees), dtype=torch.uint8)
        what = {"standing": json.dumps(asdict(standing)), "trees": held, "run": self.run}
        try:
            write_tensors(self.file, what)
        except DataError as error:
            raise DataError(f"{error}; the same command resumes from the last checkpoint") from None

    def load(self) -> tuple[Boosting, bytes] | None:
        """What was written last; None at the start. `damaged` says what to do with anything else."""
        if not self.file.exists():
            return None
        standing, found = read_boosting(self.file)
        if found["run"] != self.run:
            raise self.damaged("it is of another run")
        return standing, found["trees"].numpy().tobytes()

    def damaged(self, reason: object) -> DataError:
        """The error for a checkpoint that cannot be used."""
        return _damaged(self.file, reason)


def read_boosting(file: Path) -> tuple[Boosting, dict[str, Any]]:
    """Where boosting stands, and the contents of its checkpoint; the trees are not checked."""
    try:
        if file.stat().st_size > MOST_BYTES + (1 << 20):
            raise ValueError(f"it is larger than {MOST_BYTES:,} bytes")
        found, digest = read_tensors(file)
        if digest is None:
            raise ValueError("it has no checksum")
        trees = found["trees"]
        flat = isinstance(trees, torch.Tensor) and trees.dtype == torch.uint8 and trees.ndim == 1
        if not flat or not trees.is_contiguous():  # one byte may stand for many otherwise
            raise ValueError("it holds no trees")
        return Boosting(**json.loads(found["standing"])), found
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(file, error) from None


def _damaged(file: Path, reason: object) -> DataError:
    return DataError(
        f"the trees of the run, {file}, cannot be read: {reason}. Nothing was changed. "
        "Restore the file, or remove it to train them again"
    )


def boost_rounds(
    parameters: dict[str, Any],
    rounds: int,
    train: Any,
    derivatives: Callable[[Any, Any], tuple[FloatArray, FloatArray]],
    *,
    held: Any = None,
    loss_of: Callable[[Any], float] | None = None,
    patience: int = 0,
    checkpoint: TreesCheckpoint | None = None,
    watcher: Watcher | None = None,
) -> Boosted:
    """Boost round by round; Ctrl-C and SIGTERM stop after a round.

    Parameters
    ----------
    parameters : dict
        XGBoost's.
    rounds : int
        Maximum number of rounds.
    train, held : xgboost.DMatrix
        Rows to train on, and rows to stop by.
    derivatives, loss_of : callable
        Gradient and Hessian for margins of `train`; loss for margins of `held`.
    patience : int
        Stop after this many rounds without a smaller loss.
    checkpoint : TreesCheckpoint, optional
        Rounds that a run on disk has done are not repeated. Every round of such a run then draws with a seed
        of its own, as XGBoost does not save the state of its generators.
    watcher : Watcher, optional
        Receives the progress.

    Raises
    ------
    KeyboardInterrupt
        If a run on disk was stopped; it resumes.
    """
    run = _Run(parameters, train, held, checkpoint, watcher or Watcher())
    at = run.at
    with on_interrupt(run.stop):
        while at.rounds < rounds and (held is None or at.rounds - at.best < patience):
            run.round(derivatives, loss_of)
            run.watcher.rounds(at.rounds, rounds)
            if run.stopping:
                break
        run.watcher.rounds(rounds, rounds)
        return run.end()


class _Run:
    def __init__(
        self,
        parameters: dict[str, Any],
        train: Any,
        held: Any,
        checkpoint: TreesCheckpoint | None,
        watcher: Watcher,
    ) -> None:
        import xgboost

        self.train, self.held, self.checkpoint, self.watcher = train, held, checkpoint, watcher
        self.at, self.seed, self.stopping = Boosting(), parameters["seed"], False
        self.booster = xgboost.Booster(parameters, [train] if held is None else [train, held])
        found = None if checkpoint is None else checkpoint.load()
        if checkpoint is not None and found is not None:
            self.at = found[0]
            try:
                _check(found[1], parameters, train, self.at.rounds)
                self.booster.load_model(bytearray(found[1]))
            except (ValueError, KeyError, TypeError, xgboost.core.XGBoostError) as error:
                raise checkpoint.damaged(str(error).partition("\n")[0]) from None
            watcher.note(f"resuming trees at round {self.at.rounds + 1}")
        self.before, self.written = self.at.seconds, self.at.rounds
        self.began = self.saved = time.monotonic()

    def stop(self) -> None:
        self.stopping = True
        self.watcher.note("stopping after this round; again to stop at once")

    def round(self, derivatives: Callable[..., Any], loss_of: Callable[[Any], float] | None) -> None:
        at = self.at
        if self.checkpoint is not None:
            _reseed(self.booster, self.seed, at.rounds)
        self.booster.update(self.train, at.rounds, derivatives)
        at.rounds += 1
        if loss_of is not None:
            loss = loss_of(self.booster.predict(self.held, output_margin=True))
            if at.loss is None or loss < at.loss:
                at.best, at.loss = at.rounds, loss
        if self.checkpoint is not None and time.monotonic() - self.saved > self.checkpoint.seconds:
            self.save()

    def save(self) -> None:
        """Write the rounds since the last checkpoint."""
        now = time.monotonic()
        self.at.seconds = self.before + now - self.began
        if self.checkpoint is not None and self.written < self.at.rounds:
            self.checkpoint.save(self.at, bytes(self.booster.save_raw("ubj")))
            self.saved, self.written = now, self.at.rounds

    def end(self) -> Boosted:
        """The best rounds; those of a run on disk that was stopped are written instead."""
        at = self.at
        if self.stopping and self.checkpoint is not None:
            self.save()
            raise KeyboardInterrupt
        at.seconds = self.before + time.monotonic() - self.began
        at.finished = not self.stopping
        trees = bytes(self.booster[: at.rounds if self.held is None else max(1, at.best)].save_raw("ubj"))
        if self.checkpoint is not None:
            self.checkpoint.save(at, trees)
        return Boosted(trees, at, self.stopping)


def _reseed(booster: Any, seed: int, done: int) -> None:
    """Begin the random draws of a round anew, as in a process that resumes here."""
    drawn = int(np.random.SeedSequence([seed, done]).generate_state(1)[0]) & _SEED
    # The drawing of columns has a state of its own, which only a new updater begins anew.
    booster.set_param({"updater": _OTHER})
    booster.save_config()  # takes effect now
    booster.set_param({"updater": _UPDATER, "seed": drawn})


def _check(trees: bytes, parameters: dict[str, Any], train: Any, rounds: int) -> None:
    """Refuse what XGBoost would not have written with these parameters: its own reader trusts its files."""
    import xgboost

    targets, width = len(parameters["base_score"]), train.num_col()
    check_trees(trees, targets, width)
    blank = xgboost.DMatrix(np.zeros((2, width), np.float32), label=np.zeros((2, targets), np.float32))
    model = xgboost.Booster(parameters, [blank])
    model.update(blank, 0, lambda margin, _: (np.zeros_like(margin), np.ones_like(margin)))
    ours, theirs = read_ubjson(bytes(model.save_raw("ubj"))), read_ubjson(trees)
    forest = theirs["learner"]["gradient_booster"]["model"]
    expected = ours["learner"]["gradient_booster"]["model"]
    kind, grown = expected.pop("trees")[0], forest.pop("trees")
    expected["gbtree_model_param"]["num_trees"] = str(rounds)
    expected |= {"iteration_indptr": [*range(rounds + 1)], "tree_info": [0] * rounds}
    if len(grown) != rounds or _text(theirs) != _text(ours):
        raise ValueError(f"expected {rounds} rounds of this run by XGBoost {xgboost.__version__}")
    for number, tree in enumerate(grown):
        _check_tree(tree, kind, number, targets)


def _check_tree(tree: dict[str, Any], kind: dict[str, Any], number: int, targets: int) -> None:
    if tree.keys() != kind.keys():
        raise ValueError(f"tree {number} has other fields than XGBoost writes")
    count, left, right = len(tree["left_children"]), tree["left_children"], tree["right_children"]
    sizes = {"base_weights": count * targets, "leaf_weights": int((left < 0).sum()) * targets}
    for name, like in kind.items():
        if isinstance(like, np.ndarray):
            one, size = tree[name], 0 if name.startswith("categories") else sizes.get(name, count)
            if not isinstance(one, np.ndarray) or one.dtype != like.dtype or one.shape != (size,):
                raise ValueError(f"tree {number} has other {name} than XGBoost writes")
    inner = left >= 0
    parents = np.full(count, kind["parents"][0])
    for children in (left, right):
        parents[children[inner]] = np.flatnonzero(inner)
    parameters = {**kind["tree_param"], "num_nodes": str(count)}
    same = (
        (tree["parents"] == parents).all()
        and (tree["default_left"] <= 1).all()
        and (left[~inner] == kind["left_children"][0]).all()  # XGBoost knows leaves by this number alone
        and not tree["split_type"].any()
        and not tree["split_indices"][~inner].any()
    )
    if not same or _text([tree["tree_param"], tree["id"]]) != _text([parameters, number]):
        raise ValueError(f"tree {number} is not one that XGBoost writes")


def _text(value: Any) -> str:
    """A value as text in which types differ, too."""
    return json.dumps(value, sort_keys=True, default=lambda one: [one.dtype.str, one.tolist()])
