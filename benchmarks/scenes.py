"""How significances of natural scenes follow those of people, label by label.

    python benchmarks/scenes.py --nsid FOLDER

Training images of FOLDER alone, as features of the frozen backbone of the preset `cpu`; five folds. Two
models per method: one network by the recipe of the preset `cpu`, as `gmlr train` makes it (15 % of the images
to train on choose the epoch, and settle temperatures and scale), and the default estimators. For every label:
Pearson's correlation over all images of a prediction with the mean rank that ten people gave the label (0
where it does not apply). Beside it, what a person reaches: the correlation of one person's rank with the mean
of the other nine. The numbers go to results/significance/scenes.json, from which README.md beside it is made.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gaussianmlr import GaussianMLR, MultiLabelRanker, Prediction
from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import commit, versions
from gaussianmlr.data import read_nsid
from gaussianmlr.data.loading import Arrays
from gaussianmlr.data.splits import shuffled_folds
from gaussianmlr.model.presets import preset
from gaussianmlr.nn import backbones
from gaussianmlr.training.fit import fit
from tables import scene_features

OUT = Path(__file__).parent.parent / "results" / "significance"
FOLDS = 5
HELD = 0.15
COMPARED = (
    ("jnd", "raw mu"),
    ("jnd", "canonical mu"),
    ("jnd", "crpc votes"),
    ("jnd, relevant part", "crpc votes"),
    ("degree", "crpc votes"),
    ("expected rank", "crpc votes"),
)
Ranker = Callable[[str, Any, Any, Any], Prediction]


def by_preset(method: str, features: Any, ranks: Any, new: Any) -> Prediction:
    """Predictions of the network that the preset `cpu` trains on frozen features of photographs."""
    recipe = preset("cpu", "photo", method=method)
    frozen = backbones.make(recipe.backbone, channels=3, **recipe.backbone_settings)
    backbones.freeze(frozen, recipe.freeze)
    halves = backbones.divide(frozen)
    assert halves is not None
    held = round(HELD * len(features))
    parts = [Arrays(features[some], ranks[some]) for some in (slice(held, None), slice(held))]
    recipe = recipe.replace(freeze="none", backbone_settings={})
    labels = tuple(str(label) for label in range(ranks.shape[1]))
    model = fit(recipe, *parts, labels=labels, backbone=halves.free).model
    with torch.no_grad():
        outputs = model.network.eval()(torch.from_numpy(new))
    reading = model.method.read({name: value.float() for name, value in outputs.items()})
    return model.prediction_of(reading if model.calibration is None else model.calibration.apply(reading))


def by_estimator(method: str, features: Any, ranks: Any, new: Any) -> Prediction:
    """Predictions of the default estimators."""
    ranker = (
        GaussianMLR(model="network", random_state=0)
        if method == "gmlr"
        else MultiLabelRanker(method, random_state=0)
    )
    return ranker.fit(features, ranks).predict_full(new)


MODELS: dict[str, Ranker] = {"preset cpu": by_preset, "estimators": by_estimator}


def predictions(features: Any, ranks: Any, model: Ranker) -> dict[str, Any]:
    """Scores [N, K] by reading, each image predicted by the fold that did not see it."""
    found: dict[str, Any] = {}
    for kept, test in shuffled_folds(len(ranks), FOLDS, 0):
        one, votes = (
            model(method, features[kept], ranks[kept], features[test]) for method in ("gmlr", "crpc")
        )
        parts = {
            "raw mu": one.rescaled("raw").significance,
            "canonical mu": one.rescaled("canonical").significance,
            "jnd": one.rescaled("jnd").significance,
            "jnd, relevant part": np.maximum(one.rescaled("jnd").significance, 0.0),
            "degree": one.rescaled("jnd").degree,
            "expected rank": one.expected_rank,
            "crpc votes": votes.scores,
        }
        for name, values in parts.items():
            found.setdefault(name, np.zeros(ranks.shape))[test] = values
        print("fold done", flush=True)
    return found


def correlation(one: Any, other: Any) -> float:
    """Pearson's, rounded."""
    return round(float(np.corrcoef(one, other)[0, 1]), 4)


def measures(found: dict[str, Any], people: Any, by_ranker: Any, labels: Any) -> dict[str, Any]:
    """Correlations and facts per label."""
    table: dict[str, Any] = {}
    for place, label in enumerate(labels):
        truth = people[:, place]
        single = [
            correlation(by_ranker[:, r, place], np.delete(by_ranker[:, :, place], r, 1).mean(1))
            for r in range(by_ranker.shape[1])
        ]
        there = truth > 0
        table[str(label)] = {
            **{name: correlation(values[:, place], truth) for name, values in found.items()},
            "jnd, images with the label": correlation(found["jnd"][there, place], truth[there]),
            "a person": round(float(np.mean(single)), 4),
            "share of images": round(float(there.mean()), 4),
            "share of doubtful images": round(
                float(((by_ranker[:, :, place] > 0).mean(1) % 1 > 0).mean()), 4
            ),
            "mean rank where it applies": round(float(truth[there].mean()), 3),
            "deviation where it applies": round(float(truth[there].std()), 3),
        }
    return table


def wins(labels: dict[str, Any], one: str, other: str) -> str:
    """How many labels a reading is better on than another."""
    return f"{sum(row[one] > row[other] for row in labels.values())} of {len(labels)}"


def page(models: dict[str, Any]) -> str:
    """The tables."""
    lines = [
        "# Significances of natural scenes and of people",
        "",
        "Made by `benchmarks/scenes.py` from `scenes.json`: correlation over images with the mean rank by",
        "ten people, five folds of the training images. Doubtful: some of the ten people say that the label",
        "applies and some that it does not. A person: one person's rank with the mean of the other nine.",
    ]
    for model, labels in models.items():
        names = list(next(iter(labels.values())))
        lines += [
            "",
            f"## {model[0].upper()}{model[1:]}",
            "",
            f"| label | {' | '.join(names)} |",
            "| --- " * (len(names) + 1) + "|",
            *(
                f"| {label} | {' | '.join(f'{x:.3f}' for x in row.values())} |"
                for label, row in labels.items()
            ),
            "",
            "; ".join(f"{one} above {other}: {wins(labels, one, other)}" for one, other in COMPARED) + ".",
        ]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nsid", type=Path, required=True)
    folder = parser.parse_args().nsid
    scenes, data = read_nsid(folder).subset("train"), scene_features(folder)
    assert scenes.by_ranker is not None
    by_ranker = np.maximum(scenes.by_ranker, 0).astype(float)
    models = {
        name: measures(
            predictions(data.features, data.ranks, model), by_ranker.mean(1), by_ranker, data.labels
        )
        for name, model in MODELS.items()
    }
    about = {"images": len(data), "versions": versions(), "commit": commit()}
    OUT.mkdir(parents=True, exist_ok=True)
    write_text(OUT / "scenes.json", json.dumps({**about, "models": models}, indent=1) + "\n")
    write_text(OUT / "README.md", page(models))
    print(page(models))


if __name__ == "__main__":
    main()
