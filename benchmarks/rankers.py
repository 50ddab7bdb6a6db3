"""Held-out rankers of the natural scenes (NSID): which aggregate of some is nearest to the others.

Only training images are used. In each draw, some of the ten rankers are aggregated and the rest held out; a
careless ranker keeps the orders, but gives them to other images. With `--train`, networks on small colour
grids learn from the aggregate, from all rankers, and from all in proportion to reliability. Run
`python benchmarks/rankers.py FOLDER_OF_NSID [--train]`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from gaussianmlr import GaussianMLR
from gaussianmlr.data import RankedData, read_nsid
from gaussianmlr.metrics import kendall_tau_b
from gaussianmlr.orders.reading import FloatArray, IntArray
from gaussianmlr.rankers import aggregate

METHODS: Any = ("mean_rank", "borda", "kemeny", "thurstone")
SETTINGS = ((3, 0), (5, 0), (9, 0), (5, 1), (5, 2))


def measure(given: IntArray, held: IntArray) -> dict[str, list[float]]:
    """Per method, in percent: tau-b and Hamming loss with held-out rankers, tau-b with their aggregates."""
    found = {}
    common = aggregate(held)
    for method in METHODS:
        order = aggregate(given, method)
        each = [kendall_tau_b(order, held[:, ranker]) for ranker in range(held.shape[1])]
        wrong = ((order > 0)[:, None] != (held > 0)).mean()
        own = aggregate(held, method)
        values = [np.mean(each), wrong, kendall_tau_b(order, common), kendall_tau_b(order, own)]
        found[method] = [100 * float(value) for value in values]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nsid")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--images", type=int, default=600, help="training images per draw")
    parser.add_argument("--train", action="store_true", help="compare ways to train on all rankers instead")
    options = parser.parse_args()
    data = read_nsid(options.nsid, orders_only=not options.train).subset("train")
    ranks = data.by_ranker
    assert ranks is not None
    if options.train:
        train(data, ranks)
        return
    for count, careless in SETTINGS:
        draws = []
        for draw in range(options.draws):
            rng = np.random.default_rng((draw, count, careless))
            images = rng.permutation(len(ranks))[: options.images]
            people = rng.permutation(ranks.shape[1])
            given = ranks[np.ix_(images, people[:count])]
            for ranker in range(careless):
                given[:, ranker] = given[rng.permutation(len(given)), ranker]
            draws.append(measure(given, ranks[np.ix_(images, people[count:])]))
        show(count, careless, draws)


def train(data: RankedData, ranks: IntArray, folds: int = 3) -> None:
    """Cross-validate the three ways, with all rankers as they are and with three of ten careless."""
    assert data.images is not None
    grids = np.stack([grid(file) for file in data.images])
    print(
        "rankers: tau-b with each ranker, with their aggregate by mean_rank, by thurstone; per fold and mean"
    )
    for careless in (0, 3):
        found: dict[str, list[list[float]]] = {"aggregate": [], "all": [], "reliable": []}
        fold = np.random.default_rng(0).permutation(len(grids)) % folds
        for number in range(folds):
            rng = np.random.default_rng((number, careless))
            given, held = ranks[fold != number].copy(), ranks[fold == number]
            for ranker in range(careless):
                given[:, 5 + ranker] = given[rng.permutation(len(given)), 5 + ranker]
            for name, values in found.items():
                model = GaussianMLR(rankers=name, n_members=1, random_state=number)  # type: ignore[arg-type]
                order = model.fit(grids[fold != number], given).predict(grids[fold == number])
                each = np.mean([kendall_tau_b(order, held[:, ranker]) for ranker in range(held.shape[1])])
                both = [
                    kendall_tau_b(order, aggregate(held, method)) for method in ("mean_rank", "thurstone")
                ]
                values.append([100 * float(value) for value in (each, *both)])
        for name, values in found.items():
            print(
                f"{careless} careless, {name}: {np.round(np.mean(values, axis=0), 1)}; {np.round(values, 1)}"
            )


def grid(file: Path) -> FloatArray:
    """Mean colours of a picture on a grid of 6 x 6."""
    with Image.open(file) as picture:
        small = picture.convert("RGB").resize((6, 6), Image.Resampling.BOX)
    return np.asarray(small, dtype=np.float64).ravel() / 255


def show(count: int, careless: int, draws: list[dict[str, list[float]]]) -> None:
    """Means over draws; for the others than mean rank, the standard error of the paired difference to it."""
    base = np.array([draw["mean_rank"] for draw in draws])
    rows = []
    for method in METHODS:
        values = np.array([draw[method] for draw in draws])
        error = (values - base).std(axis=0, ddof=1) / np.sqrt(len(draws))
        cells = [
            f"{mean:.1f}" + ("" if method == "mean_rank" else f" ± {each:.1f}")
            for mean, each in zip(values.mean(axis=0), error)
        ]
        rows.append([f"{count}" + (f", {careless} careless" if careless else ""), method, *cells])
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
