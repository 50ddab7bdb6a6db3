"""What a run shows on the terminal: a bar, and a line an epoch. In a pipe, the lines alone."""

from __future__ import annotations

import sys
import time
from typing import Any

from gaussianmlr.training import Watcher

_SHOWN = ("tau_b", "hamming_loss", "f1")


class ConsoleWatcher(Watcher):
    """Shows progress on standard error, so that results on standard output stay clean.

    Parameters
    ----------
    quiet : bool
        Say nothing.
    lines : bool
        A line an epoch and a stage; without, the bar and notes alone.
    """

    def __init__(self, quiet: bool = False, lines: bool = True) -> None:
        self.quiet, self.lines = quiet, lines
        self._bar: Any = None
        self._task: Any = None
        self._began = time.monotonic()
        self._left_to_do = 0
        self._done = 0

    def begin(self, stage: str, epoch: int, epochs: int, steps: int, done: int) -> None:
        """Show a bar for the epoch; the time left is that of the whole stage."""
        if self.quiet:
            return
        self._left_to_do = (epochs - epoch) * steps - done
        self._done = 0
        self._began = time.monotonic()
        if epoch == 0 and done == 0 and stage != "all" and self.lines:
            self.note(f"stage: {stage}")
        self._show(f"epoch {epoch + 1}", steps, done)

    def _show(self, what: str, total: int, done: int) -> None:
        """Begin a bar, where there is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[more]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(what, total=total, completed=done, more="")
        self._bar.start()

    def step(self, loss: float) -> None:
        """Move the bar."""
        self._done += 1
        if self._bar is not None:
            spent = time.monotonic() - self._began
            left = spent / self._done * (self._left_to_do - self._done)
            self._bar.update(self._task, advance=1, more=f"loss {loss:.4f}, {clock(left)} left")

    def features(self, done: int, total: int) -> None:
        """Show a bar while the features of a frozen backbone are computed, then say so."""
        if self._bar is None and done < total:
            self._show("features", total, done)
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        if done == total:
            self.close()
            self.note(f"features of {total:,} instances are there: the head trains on them alone")

    def measured(self, done: int, total: int) -> None:
        """Show a bar while a model is measured."""
        if self._bar is None and done < total:
            self._show("measuring", total, done)
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        if done == total:
            self.close()

    def end(self, row: dict[str, Any]) -> None:
        """Show the epoch's measures in a line."""
        self.close()
        if not self.lines:
            return
        shown = [f"epoch {row['epoch']:3d}", f"train loss {row['train_loss']:.4f}"]
        if "loss" in row:
            shown.append(f"validation loss {row['loss']:.4f}")
            shown += [f"{name} {100 * row[name]:.2f}" for name in _SHOWN]
        self.note("   ".join([*shown, clock(row["seconds"])]))

    def note(self, text: str) -> None:
        """A line of its own."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def clock(seconds: float) -> str:
    """Seconds as people read them.

    Examples
    --------
    >>> clock(75), clock(3_675)
    ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


NAMES = {
    "positives_tau": "order of positives",
    "tau_b": "tau-b",
    "spearman_rho": "rho",
    "gamma": "gamma",
    "hamming_loss": "Hamming loss",
    "max1_error": "Max-1 error",
    "f1": "F1",
    "ece": "calibration error",
}


def metrics_table(rows: dict[str, dict[str, float]]) -> str:
    """The paper's six metrics in percent, a row a name, as text that survives a pipe.

    Examples
    --------
    >>> print(metrics_table({"model": dict.fromkeys(("tau_b", "f1"), 0.5)}))
           tau-b     F1
    model  50.00  50.00
    """
    names = [name for name in NAMES if all(name in row for row in rows.values())]
    heads = [NAMES[name] for name in names]
    wide = max(map(len, rows))
    lines = ["  ".join([" " * wide, *(f"{head:>{max(5, len(head))}}" for head in heads)])]
    for title, row in rows.items():
        cells = (f"{100 * row[name]:>{max(5, len(head))}.2f}" for name, head in zip(names, heads))
        lines.append("  ".join([f"{title:<{wide}}", *cells]))
    return "\n".join(lines)
