"""What the engine costs on small data: `fit` against a bare PyTorch loop of the same steps, in one run.

An MLP on 1,600 x 1,280 features for 30 epochs of batches of 64: the same network from the same seed, the
same batches, GaussianMLR loss, clipping, AdamW and one-cycle schedule. After an epoch both have the same
weights, which is checked. On one thread the process's own CPU seconds count, so that other work on the
machine disturbs little. Rounds alternate; the best of each counts. Exits with 1 where `fit` takes more than
1.5x.
"""

import argparse
import json
import platform
import sys
import time

import lightning
import torch
from torch import Tensor, nn

from gaussianmlr.data.loading import Arrays, epoch_order
from gaussianmlr.model.model import build
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.training.fit import fit

BAR = 1.5
LABELS = tuple(f"label {number}" for number in range(10))


def bare(recipe: Recipe, x: Tensor, ranks: Tensor) -> nn.Module:
    """The loop that one would write by hand."""
    torch.manual_seed(recipe.seed)
    network, method = build(recipe, len(LABELS), {"kind": "table", "channels": x.shape[1]})
    weights = network.parameters()
    optimiser = torch.optim.AdamW(weights, lr=recipe.rate, weight_decay=recipe.weight_decay, fused=True)
    steps = -(-len(x) // recipe.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=recipe.rate, total_steps=steps * recipe.epochs, cycle_momentum=False
    )
    network.train()
    for epoch in range(recipe.epochs):
        order = epoch_order(len(x), recipe.seed, 0, epoch)
        for start in range(0, len(x), recipe.batch_size):
            where = order[start : start + recipe.batch_size]
            optimiser.zero_grad()
            method.loss(network(x[where]), ranks[where]).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), recipe.clip or 0.0)
            optimiser.step()
            schedule.step()
    return network


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1600)
    parser.add_argument("--features", type=int, default=1280)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(options.instances, options.features)
    ranks = torch.randint(0, 4, (options.instances, len(LABELS)))
    recipe = Recipe(backbone="mlp", epochs=options.epochs, rate=1e-3, batch_size=64, clip=1.0)
    data = Arrays(x, ranks)
    # One epoch of both first: it warms up, and shows that they take the same steps. After all
    # 750 steps they were seen to differ by 0.04, so that only the start is compared.
    once = recipe.replace(epochs=1)
    state = fit(once, data, None, labels=LABELS, accelerator="cpu").model.network.state_dict()
    apart = max(
        float((state[name] - value).abs().max()) for name, value in bare(once, x, ranks).state_dict().items()
    )
    if apart > 1e-4:
        raise SystemExit(f"the two do not take the same steps: their weights differ by {apart:.2g}")
    best = {"bare": float("inf"), "fit": float("inf")}
    for _ in range(options.rounds):
        start = time.process_time()
        bare(recipe, x, ranks)
        best["bare"] = min(best["bare"], time.process_time() - start)
        start = time.process_time()
        fit(recipe, data, None, labels=LABELS, accelerator="cpu")
        best["fit"] = min(best["fit"], time.process_time() - start)
    ratio = best["fit"] / best["bare"]
    about = {"torch": torch.__version__, "lightning": lightning.__version__, "machine": platform.machine()}
    if options.json:
        print(json.dumps({**about, "cpu_seconds": best, "ratio": ratio, "weights_apart": apart, "bar": BAR}))
    else:
        verdict = "" if ratio <= BAR else ", MISSED"
        print(
            f"bare loop {best['bare']:.2f} s, fit {best['fit']:.2f} s of CPU; "
            f"weights after one epoch differ by {apart:.1g}"
        )
        print(f"fit / bare: {ratio:.2f}x (bar {BAR}x{verdict}), {', '.join(map(' '.join, about.items()))}")
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
