"""A training on streamed rows as a program of its own, so that tests can kill it and measure its memory."""

import argparse
import sys
from pathlib import Path

import torch

from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data.streamed import open_rows
from gaussianmlr.data.streaming import build, learn, sets
from gaussianmlr.data.streaming.files import find_rows
from gaussianmlr.data.streaming.look import look
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit
from support.memory import peak_megabytes


class Spoken(Watcher):
    """Prints every step, for a test to wait for."""

    def step(self, loss):
        print("step", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    sets.BUFFER_BYTES = 8 << 20  # small beside the data of the test
    build._MOST = 10_000
    learn.MOST_HELD = 2_000
    rows = find_rows(chosen.data, stream=True)
    source = open_rows(rows, look(rows), chosen.out / ".rows")
    recipe = Recipe(
        backbone="mlp",
        backbone_settings={"dropout": 0.1},  # random numbers must be kept, too
        epochs=chosen.epochs,
        batch_size=chosen.batch_size,
        checkpoint_minutes=0.0,
        average=0.9,
        calibrate=False,
        jnd=False,
    )
    result = fit(
        recipe,
        source.train,
        source.validation,
        labels=source.labels,
        inputs=source.inputs,
        fingerprint=source.fingerprint,
        out=chosen.out,
        accelerator="cpu",
        watcher=Spoken(),
    ).result
    torch.save({"state": result.network.state_dict(), "history": result.history}, chosen.weights)
    print("peak", peak_megabytes(), flush=True)
    sys.exit(0)
