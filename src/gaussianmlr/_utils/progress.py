"""Progress bars, and watchers of training."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gaussianmlr._utils.display import NAMES, clock

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

__all__ = ["ConsoleWatcher", "Watcher", "progress"]


@contextlib.contextmanager
def progress(
    label: str, total: float | None, *, shown: bool, in_bytes: bool = False
) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a bar on standard error, drawn only if `shown`."""
    if not shown:
        yield lambda _: None
        return
    from rich.progress import DownloadColumn, MofNCompleteColumn, TimeRemainingColumn, TransferSpeedColumn

    counts = (DownloadColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(),)
    with _bar(*counts, TimeRemainingColumn()) as bar:
        task = bar.add_task(label, total=total)
        yield lambda more: bar.update(task, advance=more)


def _bar(*columns: ProgressColumn) -> Progress:
    """A bar on standard error with these columns after it, which disappears at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    shown = (TextColumn("{task.description}"), BarColumn(), *columns)
    return Progress(*shown, console=Console(stderr=True), transient=True)


class Watcher:
    """Follows a training run; this base class ignores everything. Override what you need."""

    def begin(self, stage: str, epoch: int, epochs: int, steps: int, done: int) -> None:
        """An epoch begins, or resumes after `done` of its steps."""

    def step(self, loss: float) -> None:
        """A step is done."""

    def end(self, row: dict[str, Any]) -> None:
        """An epoch has ended; `row` holds its metrics."""

    def features(self, done: int, total: int) -> None:
        """Before training, the features of `done` of `total` instances are computed (frozen backbones)."""

    def rounds(self, done: int, total: int) -> None:
        """So many rounds of boosting are done, of at most so many; at the end all of them."""

    def rows(self, done: int, total: int) -> None:
        """Before training, `done` of `total` rows of streamed data are read; `total` is 0 if not known."""

    def note(self, text: str) -> None:
        """A message of one line."""


SECONDS = 10.0  # between lines of progress, where there is no terminal
_SHOWN = ("tau_b", "hamming_loss", "f1")


class ConsoleWatcher(Watcher):
    """Shows progress on standard error, so that results on standard output stay clean.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    lines : bool
        Whether to print one line per epoch and stage, beside the bar and the notes.
    """

    def __init__(self, quiet: bool = False, lines: bool = True) -> None:
        self.quiet, self.lines = quiet, lines
        self._bar: Progress | None = None
        self._task: TaskID
        self._began = time.monotonic()
        self._left_to_do = 0
        self._done = 0
        self._lines: tuple[float, float, int] | None = None  # when they began, the last one, done before

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
        """Start a bar, if standard error is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            return
        from rich.progress import MofNCompleteColumn, TextColumn

        self._bar = _bar(MofNCompleteColumn(), TextColumn("{task.fields[more]}"))
        self._task = self._bar.add_task(what, total=total, completed=done, more="")
        self._bar.start()

    def step(self, loss: float) -> None:
        """Move the bar."""
        self._done += 1
        if self._bar is not None:
            spent = time.monotonic() - self._began
            left = spent / self._done * (self._left_to_do - self._done)
            self._bar.update(self._task, advance=1, more=f"loss {loss:.4f}, {clock(left)} left")

    def predicted(self, done: int) -> None:
        """Print how many instances are predicted, every few seconds."""
        self._line(f"predicted {done:,}")

    def features(self, done: int, total: int) -> None:
        """Show a bar while the features of a frozen backbone are computed, then say so."""
        self._move("features", done, total)
        if done == total:
            self.note(f"features of {total:,} instances are there: the head trains on them alone")

    def rounds(self, done: int, total: int) -> None:
        """Show a bar while trees are boosted."""
        self._move("rounds", done, total)

    def rows(self, done: int, total: int) -> None:
        """Show a bar while rows are read, or how many if nobody knows of how many."""
        if total:
            self._move("reading rows", done, total)
        else:
            self._line(f"read {done:,} rows")

    def measured(self, done: int, total: int) -> None:
        """Show a bar while a model is evaluated."""
        self._move("measuring", done, total)

    def _move(self, what: str, done: int, total: int) -> None:
        if self._bar is None and done < total:
            self._show(what, total, done)
        if self._bar is not None:
            self._bar.update(self._task, completed=done)
        elif done < total:
            self._line(f"{what}: {done:,} of {total:,}", done, total)
        if done == total:
            self._lines = None
            self.close()

    def _line(self, text: str, done: int = 0, total: int = 0) -> None:
        """Print a line every few seconds, with the time left if the total is known."""
        now = time.monotonic()
        began, last, before = self._lines or (now, now, done)
        if now - last >= SECONDS:
            if done > before:
                text += f", {clock((now - began) / (done - before) * (total - done))} left"
            self.note(text)
            last = now
        self._lines = (began, last, before)

    def end(self, row: dict[str, Any]) -> None:
        """Print the metrics of the epoch."""
        self.close()
        if not self.lines:
            return
        shown = [f"epoch {row['epoch']:3d}", f"train loss {row['train_loss']:.4f}"]
        if "loss" in row:
            shown.append(f"validation loss {row['loss']:.4f}")
            shown += [f"{NAMES[name]} {100 * row[name]:.2f}" for name in _SHOWN]
        self.note("   ".join([*shown, clock(row["seconds"])]))

    def note(self, text: str) -> None:
        """Print a message."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
