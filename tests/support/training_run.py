"""A small training run as a program of its own, so that tests can kill it or start it twice."""

import argparse
import sys

import torch
from torch import nn

from gaussianmlr import methods
from gaussianmlr._utils.progress import Watcher
from gaussianmlr.data.loading import Arrays
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.engine import train
from gaussianmlr.training.run_folder import RunFolder

FEATURES, LABELS = 12, 5


class Net(nn.Module):
    """Batch norm and dropout, so that running statistics and random numbers must be kept too."""

    def __init__(self, outputs):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2))
        self.layers = nn.ModuleDict({output.name: nn.Linear(32, output.size(LABELS)) for output in outputs})

    def forward(self, x):
        features = self.body(x)
        return {name: layer(features) for name, layer in self.layers.items()}


def make_data(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, FEATURES, generator=generator)
    weights = torch.randn(FEATURES, LABELS, generator=torch.Generator().manual_seed(99))
    hidden = x @ weights + torch.randn(count, LABELS, generator=generator)
    ranks = hidden.argsort(-1).argsort(-1) + 1 - (hidden <= 0).sum(-1, keepdim=True)
    return Arrays(x, ranks.clamp(min=0))


class Spoken(Watcher):
    """Prints every step, for a test to wait for."""

    def step(self, loss):
        print("step", flush=True)


def run(name, out, *, data=None, fabric=None, watcher=None, seed=0, **settings):
    method = methods.make(name)
    recipe = Recipe(method=name, **{"epochs": 4, "batch_size": 16, "rate": 0.01, "average": 0.9, **settings})
    torch.manual_seed(seed)
    folder = RunFolder(out, recipe, {"labels": LABELS}) if out else None
    net = Net(method.outputs)
    data = make_data(200, 1) if data is None else data
    return train(net, method, recipe, data, make_data(61, 2), folder=folder, fabric=fabric, watcher=watcher)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("method")
    parser.add_argument("out")
    parser.add_argument("weights")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--epochs", type=int, default=4)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    fabric = None
    if chosen.processes > 1:
        from lightning.fabric import Fabric

        fabric = Fabric(accelerator="cpu", devices=chosen.processes, strategy="ddp")
        fabric.launch()
    result = run(
        chosen.method,
        chosen.out or None,
        fabric=fabric,
        watcher=Spoken(),
        checkpoint_minutes=chosen.minutes,
        epochs=chosen.epochs,
    )
    if fabric is None or fabric.is_global_zero:
        torch.save({"state": result.network.state_dict(), "history": result.history}, chosen.weights)
        print("interrupted" if result.interrupted else "finished", flush=True)
    if fabric is not None:
        fabric.barrier()
    sys.exit(0)
