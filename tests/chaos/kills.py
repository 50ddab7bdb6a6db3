"""Processes that are killed at random moments, or run out of disk, and the same command again."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time

from chaos.rows import Row, each, expect
from cli.test_compare import cells
from support.commanding import ENVIRONMENT, command, gmlr, make_table

PATIENCE = 120.0  # seconds until a command counts as hung
STOPPED = (130, 143)  # exit codes of a command that saved and stopped
# Steps enough for a second of work, checkpoints as often as --set says.
TRAIN = ("--epochs", 60, "--set", "batch_size=8", "--set", "backbone_settings.norm=batch", "--set")
TRAIN += ("patience=60",)
COMPARE = ("--preset", "smoke", "--set", "batch_size=16", "--method", "gmlr,lsep,crpc", "--seeds", 3)
COMPARE += ("--epochs", 12)


class Command:
    """A command that can be struck while it runs; what it says goes to a file."""

    def __init__(self, folder, *arguments, limit=None):
        self.said = folder / "said.txt"
        self.said.unlink(missing_ok=True)
        with self.said.open("wb") as stream:
            self.process = subprocess.Popen(
                command(*arguments),
                stdout=subprocess.DEVNULL,
                stderr=stream,
                env=ENVIRONMENT,
                preexec_fn=None if limit is None else limit,
            )
        self.began = time.monotonic()

    @property
    def text(self):
        return self.said.read_text("utf-8", errors="replace")

    def wait_for(self, word):
        """Wait until the command has said something; False where it ended before that."""
        while word not in self.text:
            if self.process.poll() is not None:
                return word in self.text
            self._bound()
            time.sleep(0.005)
        return True

    def strike(self, sign, word, after):
        """Send a signal so many seconds after the word was said; False where the command was done by then."""
        begun = self.wait_for(word)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(after)
        struck = begun and self.process.poll() is None
        if struck:
            self.process.send_signal(sign)
        self.end()
        return struck

    def end(self):
        """The exit code."""
        while self.process.poll() is None:
            self._bound()
            time.sleep(0.005)
        expect("Traceback" not in self.text, "crashed", self.text)
        return self.process.returncode

    def _bound(self):
        if time.monotonic() - self.began > PATIENCE:
            self.process.kill()
            self.process.wait()
            expect(False, "hung", f"no end after {PATIENCE:.0f} s: {self.text}")


def measure(folder, word, *arguments):
    """Run a command undisturbed; the seconds between the word and its end."""
    running = Command(folder, *arguments)
    running.wait_for(word)
    began = time.monotonic()
    expect(running.end() == 0, "crashed", running.text)
    return time.monotonic() - began


def finish(folder, *arguments):
    running = Command(folder, *arguments)
    code = running.end()
    expect(code == 0, "lost", f"resuming ended with {code}: {running.text}")
    return running.text


def leftovers(folder):
    """Files that a dead process did not finish."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*.part"))


def disturb(plan, name, case, folder, arguments, seconds, is_whole, word):
    """Strike a command one to three times; how often, by signal. `is_whole()` after every strike."""
    random = plan.random(name, case)
    counts = {}
    for _ in range(random.choice((1, 1, 2, 3))):
        sign = random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
        running = Command(folder, *arguments)
        struck = running.strike(sign, word, random.uniform(0, 1.1 * seconds))
        done = is_whole()
        if not struck:
            counts["too late"] = counts.get("too late", 0) + 1
            break
        counts[sign.name] = counts.get(sign.name, 0) + 1
        code = running.process.returncode
        if sign == signal.SIGTERM and not done and code not in STOPPED:
            expect(False, "wrong", f"SIGTERM ended with code {code}, not {STOPPED}: {running.text[-400:]}")
        if done:
            break
    return counts


def train(plan):
    """Kill `gmlr train` and run it again: the weights of an undisturbed run, bit for bit."""
    row = Row("train", "SIGKILL, SIGTERM during `gmlr train`", "resumed bit for bit", plan.count(32))
    home = plan.space("train")
    make_table().to_csv(table := home / "table.csv", index=False)
    words = ("train", table, "--out", home / "whole", *TRAIN)
    seconds = measure(home, "epoch   1", *words)
    expected = (home / "whole" / "model" / "model.safetensors").read_bytes()

    def attack(case):
        folder = plan.space("train", case)
        out, weights = folder / "run", folder / "run" / "model" / "model.safetensors"
        minutes = plan.random("minutes", case).choice((0, 5))  # a checkpoint per step, or per epoch
        words = ("train", table, "--out", out, *TRAIN, "--set", f"checkpoint_minutes={minutes}")

        def is_whole():
            if not (out / "model").exists():
                return False
            expect(weights.read_bytes() == expected, "wrong", "a model that is not the finished one")
            return True

        counts = disturb(plan, "train", case, folder, words, seconds, is_whole, "epoch   1")
        said = finish(folder, *words)
        expect(weights.read_bytes() == expected, "lost", f"other weights than undisturbed: {said}")
        expect(not leftovers(out), "wrong", f"left over: {leftovers(out)}")
        shutil.rmtree(folder)
        return {**counts, "equal": 1}

    return each(plan, row, range(row.planned), attack)


def compare(plan):
    """Kill `gmlr compare` and run it again: the same cells as undisturbed."""
    row = Row("compare", "SIGKILL, SIGTERM during `gmlr compare`", "the same cells", plan.count(16))
    home = plan.space("compare")
    make_table(120).to_csv(table := home / "table.csv", index=False)
    seconds = measure(home, "[1/", "compare", table, "--out", home / "whole", *COMPARE)
    expected = cells(home / "whole")

    def attack(case):
        folder = plan.space("compare", case)
        out = folder / "compared"
        words = ("compare", table, "--out", out, *COMPARE)

        def is_whole():
            found = cells(out) if (out / "cells").exists() else {}
            wrong = [name for name, cell in found.items() if expected.get(name) != cell]
            expect(not wrong, "wrong", f"cells that differ: {wrong}")
            return (out / "comparison.png").exists()  # the last file

        counts = disturb(plan, "compare", case, folder, words, seconds, is_whole, "[1/")
        finish(folder, *words)
        expect(cells(out) == expected, "lost", "other cells than undisturbed")
        expect(not leftovers(out), "wrong", f"left over: {leftovers(out)}")
        shutil.rmtree(folder)
        return {**counts, "equal": 1}

    return each(plan, row, range(row.planned), attack)


def predict(plan):
    """Kill `gmlr predict`: the output is absent, the old one, or whole; again, it is the same bytes."""
    row = Row("predict", "SIGKILL, SIGTERM during `gmlr predict`", "whole or absent", plan.count(40))
    home = plan.space("predict")
    make_table(160).to_csv(home / "table.csv", index=False)
    done = gmlr("train", home / "table.csv", "--out", home / "run", "--epochs", 2, "--quiet")
    expect(done.returncode == 0, "crashed", done.stderr)
    make_table(40_000, seed=1).drop(columns=["ranking", "split"]).to_csv(
        rows := home / "new.csv", index=False
    )
    expected, seconds = {}, {}
    for suffix in ("csv", "jsonl", "parquet"):
        out = home / f"whole.{suffix}"
        began = time.monotonic()
        finish(home, "predict", home / "run", rows, "--out", out)
        expected[suffix], seconds[suffix] = out.read_bytes(), time.monotonic() - began

    def attack(case):
        random = plan.random("predict", case)
        folder = plan.space("predict", case)
        suffix, old = random.choice(list(expected)), random.choice((None, b"an older file"))
        out = folder / f"found.{suffix}"
        if old is not None:
            out.write_bytes(old)
        words = ("predict", home / "run", rows, "--out", out)
        running = Command(folder, *words)
        sign = random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
        # Half of the time goes into imports: later moments are more telling.
        struck = running.strike(sign, "", random.uniform(0.4, 1.1) * seconds[suffix])
        found = out.read_bytes() if out.exists() else None
        expect(
            found in (old, expected[suffix]), "lost", f"{suffix}: half of a file, {len(found or b'')} bytes"
        )
        finish(folder, *words)
        expect(out.read_bytes() == expected[suffix], "lost", f"{suffix}: other bytes than undisturbed")
        expect(not leftovers(folder), "wrong", f"left over: {leftovers(folder)}")
        shutil.rmtree(folder)
        return {sign.name if struck else "too late": 1, "equal": 1}

    return each(plan, row, range(row.planned), attack)


def disk(plan):
    """Fill the disk during `gmlr train`: one message and code 2; with room again, the same weights."""
    way = "a full tmpfs" if _can_mount(plan) else "a bound on file sizes"
    row = Row("disk", f"{way} during `gmlr train`", "one message, then resumed bit for bit", plan.count(16))
    home = plan.space("disk")
    make_table().to_csv(table := home / "table.csv", index=False)
    finish(home, "train", table, "--out", home / "whole", *TRAIN)
    whole = home / "whole"
    expected = (whole / "model" / "model.safetensors").read_bytes()
    sizes = [file.stat().st_size for file in whole.rglob("*") if file.is_file()]

    def attack(case):
        folder = plan.space("disk", case)
        random = plan.random("disk", case)
        out = folder / "disk" / "run"
        words = ("train", table, "--out", out, *TRAIN)
        with contextlib.ExitStack() as stack:
            if way == "a full tmpfs":
                room = random.randrange(4096, sum(sizes))
                grow = stack.enter_context(_tmpfs(folder / "disk", room))
                running = Command(folder, *words)
            else:
                room, grow = random.randrange(100, max(sizes)), lambda: None
                bound = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))  # noqa: E731
                running = Command(folder, *words, limit=bound)
            code = running.end()
            if code == 0:
                counts = {"fitted": 1}
            else:
                expect(code == 2, "crashed", f"{room:,} bytes: exit code {code}, not 2: {running.text}")
                last = running.text.strip().splitlines()[-1]
                expect("gmlr:" in last, "wrong", f"{room:,} bytes: the last line is no message: {last}")
                counts = {"full": 1}
            grow()
            finish(folder, *words)
            found = (out / "model" / "model.safetensors").read_bytes()
            expect(found == expected, "lost", f"{room:,} bytes: other weights than undisturbed")
            expect(not leftovers(out), "wrong", f"left over: {leftovers(out)}")
        shutil.rmtree(folder)
        return {**counts, "equal": 1}

    return each(plan, row, range(row.planned), attack)


@contextlib.contextmanager
def _tmpfs(folder, size):
    """A file system of this size; the function that is given makes it large."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield lambda: subprocess.run(
            ["mount", "-o", "remount,size=1g", str(folder)], check=True, capture_output=True
        )
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def _can_mount(plan):
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    try:
        with _tmpfs(plan.space("mount"), 1 << 20):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
