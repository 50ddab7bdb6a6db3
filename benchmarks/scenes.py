"""How significances of natural scenes follow those of people, label by label.

    python benchmarks/scenes.py --nsid FOLDER

Training images of FOLDER alone, as features of the frozen backbone of the preset `cpu`; five folds, two
networks per method. For every label: Pearson's correlation over all images of a prediction with the mean rank
that ten people gave the label (0 where it does not apply). Beside it, what a person reaches: the correlation
of one person's rank with the mean of the other nine. The numbers go to results/significance/scenes.json, from
which README.md beside it is made.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr import GaussianMLR, MultiLabelRanker
from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import commit, versions
from gaussianmlr.data import read_nsid
from gaussianmlr.data.splits import shuffled_folds
from tables import scene_features

OUT = Path(__file__).parent.parent / "results" / "significance"
FOLDS = 5


def predictions(features: Any, ranks: Any) -> dict[str, Any]:
    """Scores [N, K] by reading, each image predicted by the fold that did not see it."""
    found: dict[str, Any] = {}
    for kept, test in shuffled_folds(len(ranks), FOLDS, 0):
        gaussian = GaussianMLR(model="network", random_state=0).fit(features[kept], ranks[kept])
        votes = MultiLabelRanker("crpc", random_state=0).fit(features[kept], ranks[kept])
        one = gaussian.predict_full(features[test])
        parts = {
            "raw mu": one.rescaled("raw").significance,
            "canonical mu": one.rescaled("canonical").significance,
            "jnd": one.rescaled("jnd").significance,
            "jnd, relevant part": np.maximum(one.rescaled("jnd").significance, 0.0),
            "crpc votes": votes.decision_function(features[test]),
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


def page(found: dict[str, Any]) -> str:
    """The table."""
    names = list(next(iter(found["labels"].values())))
    lines = [
        "# Significances of natural scenes and of people",
        "",
        "Made by `benchmarks/scenes.py` from `scenes.json`: correlation over images with the mean rank by",
        "ten people, five folds of the training images. Doubtful: some of the ten people say that the label",
        "applies and some that it does not. A person: one person's rank with the mean of the other nine.",
        "",
        f"| label | {' | '.join(names)} |",
        "| --- " * (len(names) + 1) + "|",
        *(
            f"| {label} | {' | '.join(f'{x:.3f}' for x in row.values())} |"
            for label, row in found["labels"].items()
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nsid", type=Path, required=True)
    folder = parser.parse_args().nsid
    scenes, data = read_nsid(folder).subset("train"), scene_features(folder)
    assert scenes.by_ranker is not None
    by_ranker = np.maximum(scenes.by_ranker, 0).astype(float)
    found = predictions(data.features, data.ranks)
    table = measures(found, by_ranker.mean(1), by_ranker, data.labels)
    about = {"images": len(data), "versions": versions(), "commit": commit()}
    OUT.mkdir(parents=True, exist_ok=True)
    write_text(OUT / "scenes.json", json.dumps({**about, "labels": table}, indent=1) + "\n")
    write_text(OUT / "README.md", page({"labels": table}))
    print(page({"labels": table}))


if __name__ == "__main__":
    main()
