"""What tests of commands share: a small table, and `gmlr` in a process of its own."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from gaussianmlr.cli.main import app

LABELS = ("sea", "sky", "sun")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


def command(*arguments):
    return [sys.executable, "-m", "gaussianmlr", *map(str, arguments)]


def gmlr(*arguments, text=None):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=240, input=text, env=ENVIRONMENT
    )


def make_table(count=160, seed=0):
    """Features far from zero and of different spread, so that forgetting to scale them would show."""
    values = np.random.default_rng(seed).normal(size=(count, 4))
    hidden = values[:, :3] + 0.2 * values[:, 3:]
    frame = pd.DataFrame(values * [1, 10, 100, 5] + [0, 50, -300, 7], columns=["a", "b", "c", "d"])
    frame["ranking"] = [
        " > ".join(LABELS[label] for label in np.argsort(-row) if row[label] > 0) for row in hidden
    ]
    frame["split"] = np.where(np.arange(count) % 4 == 0, "test", "train")
    return frame


def call(*arguments):
    """A command in this process: what it printed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout
