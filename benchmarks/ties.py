"""Ties that are predicted: by cross-validation, beside a threshold of zero and beside rounding the scores.

    python benchmarks/ties.py --data FOLDER --nsid FOLDER --texts FOLDER

FOLDER of --data holds emotion6.mat and Painting.mat, that of --nsid the natural scenes (training images
alone, as features of the frozen backbone of the preset `cpu`), that of --texts emotions-eng-train.csv (grades
0 to 3; TF-IDF of words and pairs of words). Grades of the made-up table are hidden significances cut at whole
numbers: there ties follow from the threshold model up to its noise.

Five folds, the same for every ranker. Of the rows to train on, 15 % choose the epoch, the temperatures and
the step of rounding, for every ranker alike. Measured cells are lines of JSON in results/ties/TABLE.jsonl
with settings, versions and commit; the same command measures what is missing, and README.md is made from
them alone.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gaussianmlr import GaussianMLR, MultiLabelRanker
from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import commit, versions
from gaussianmlr.data import read_mat
from gaussianmlr.data.splits import shuffled_folds
from gaussianmlr.metrics import bucket_likelihood, evaluate, kendall_tau_b, tie_f1, tie_precision, tie_recall
from gaussianmlr.orders import densify
from tables import scene_features

OUT = Path(__file__).parent.parent / "results" / "ties"
FOLDS = 5
HELD = 0.15
STEPS = np.geomspace(0.05, 8.0, 40)  # widths of rounding, as multiples of the scores' mean size
ONE: dict[str, Any] = {"n_members": 1, "random_state": 0}
RANKERS: dict[str, Any] = {
    "gmlr, tau = 0": GaussianMLR(model="network", ties="none", **ONE),
    "gmlr, learned": GaussianMLR(model="network", ties="learned", **ONE),
    "gmlr, learned per label": GaussianMLR(
        model="network", ties="learned", method_settings={"thresholds": "label"}, **ONE
    ),
    "trees, tau = 0": GaussianMLR(model="trees", ties="none", **ONE),
    "trees, learned": GaussianMLR(model="trees", ties="learned", **ONE),
    "ranknet": MultiLabelRanker("ranknet", **ONE),
    "ranknet, Rao-Kupper": MultiLabelRanker("ranknet", method_settings={"ties": "learned"}, **ONE),
    "zlpr": MultiLabelRanker("zlpr", **ONE),
    "zlpr, Rao-Kupper": MultiLabelRanker("zlpr", method_settings={"ties": "learned"}, **ONE),
    "pl, Breslow": MultiLabelRanker("pl", **ONE),
    "pl, exact ties": MultiLabelRanker("pl", method_settings={"ties": "exact"}, **ONE),
}
ROUNDED = {"gmlr, tau = 0": "gmlr, rounded", "ranknet": "ranknet, rounded", "pl, exact ties": "pl, rounded"}
ON_SMALL_TABLES = ("gmlr, learned per label", "trees, tau = 0", "trees, learned", "pl, Breslow")
SMALL = ("made up", "Painting")
HEAD = (
    "ranker",
    "tau-b",
    "against the first",
    "precision",
    "recall",
    "F1",
    "ties",
    "likelihood",
    "Hamming loss",
    "CPU seconds",
)
COLUMNS = ("tau_b", "tau_b_scores", "precision", "recall", "f1", "likelihood", "hamming_loss", "claimed")


def tables(arguments: Any) -> dict[str, tuple[Any, Any]]:
    """Features and ranks of the tables whose folders were given."""
    found: dict[str, tuple[Any, Any]] = {"made up": made_up()}
    if arguments.data is not None:
        for name in ("Painting", "emotion6"):
            data = read_mat(arguments.data / f"{name}.mat")
            found[name] = data.features, data.ranks
    if arguments.texts is not None:
        table = pd.read_csv(arguments.texts / "emotions-eng-train.csv")
        found["texts"] = table["text"].to_numpy(), densify(table.drop(columns=["id", "text"]).to_numpy())
    if arguments.nsid is not None:
        scenes = scene_features(arguments.nsid)
        found["NSID"] = scenes.features, scenes.ranks
    return found


def made_up() -> tuple[Any, Any]:
    """Grades: hidden significances, rounded up."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(1_000, 8))
    hidden = 0.3 + 1.5 * features[:, :6] + 0.5 * rng.normal(size=(1_000, 6))
    return features, densify(np.where(hidden > 0, np.ceil(hidden), 0))


def rounded(scores: Any, step: float) -> Any:
    """Ranks of scores rounded up to multiples of a step; relevance stays."""
    return densify(np.where(scores > 0, np.ceil(scores / step), 0))


def measures(found: Any, ranks: Any, predicted: Any) -> dict[str, float]:
    """What is measured of predictions, with the order that is claimed."""
    values = evaluate(found.scores, ranks, predicted)
    upper = np.triu(np.ones((ranks.shape[1],) * 2, bool), 1)
    claims = (predicted[:, :, None] > 0) & (predicted[:, :, None] == predicted[:, None, :]) & upper
    return {
        "tau_b": values["tau_b"],
        "tau_b_scores": evaluate(found.scores, ranks)["tau_b"],
        "hamming_loss": values["hamming_loss"],
        "precision": tie_precision(predicted, ranks),
        "recall": tie_recall(predicted, ranks),
        "f1": tie_f1(predicted, ranks),
        "claimed": float(claims.sum() / max(1, len(ranks))),
        "true_share": tie_share(ranks),
    }


def tie_share(ranks: Any) -> float:
    """Share of the pairs of relevant labels that tie."""
    upper = np.triu(np.ones((ranks.shape[1],) * 2, bool), 1)
    both = (ranks[:, :, None] > 0) & (ranks[:, None, :] > 0) & upper
    return float(((ranks[:, :, None] == ranks[:, None, :]) & both).sum() / both.sum())


def likelihood(found: Any, ranks: Any, rate: float) -> float | None:
    """Mean log-probability per pair; without a threshold, of ties at the training rows' rate."""
    if found.tau is not None:
        return float(bucket_likelihood(found.p_above, found.p_tie, ranks))
    if found.raw is None:
        return None
    return float(bucket_likelihood((1 - rate) * found.p_above, np.full_like(found.p_above, rate), ranks))


def measure(features: Any, ranks: Any, name: str, fold: int) -> list[dict[str, Any]]:
    """One ranker on one fold, and its scores rounded."""
    kept, test = shuffled_folds(len(ranks), FOLDS, 0)[fold]
    held, train = kept[: round(HELD * len(kept))], kept[round(HELD * len(kept)) :]
    parts = [features[rows] for rows in (train, held, test)]
    if isinstance(features[0], str):
        from sklearn.feature_extraction.text import TfidfVectorizer

        words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True).fit(parts[0])
        parts = [words.transform(part) for part in parts]
    started = time.process_time()
    ranker = RANKERS[name].fit(parts[0], ranks[train], eval_set=(parts[1], ranks[held]))
    seconds = round(time.process_time() - started, 1)
    found, known = ranker.predict_full(parts[2]), ranker.predict_full(parts[1])
    model, rate = ranker.model_, tie_share(ranks[train])
    about = {
        "fold": fold,
        "rows": [len(train), len(held), len(test)],
        "cpu_seconds": seconds,
        "settings": {key: value for key, value in ranker.get_params().items() if value is not None},
        "ties": model.about.get("ties"),
        "calibration": None if model.calibration is None else model.calibration.to_dict(),
        "versions": versions(),
        "commit": commit(),
    }
    values = {**measures(found, ranks[test], found.ranks), "likelihood": likelihood(found, ranks[test], rate)}
    cells = [{"ranker": name, **values, **about}]
    if name in ROUNDED:
        size = float(np.abs(known.scores).mean())
        steps = [size * step for step in STEPS]
        taus = [kendall_tau_b(rounded(known.scores, step), ranks[held]) for step in steps]
        step = steps[int(np.argmax(taus))]
        values = {**measures(found, ranks[test], rounded(found.scores, step)), "likelihood": None}
        cells.append({"ranker": ROUNDED[name], **values, **about, "step": step})
    return cells


def read_cells() -> dict[str, list[dict[str, Any]]]:
    """Measured cells by table."""
    found = {}
    for file in sorted(OUT.glob("*.jsonl")):
        cells = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        found[cells[0]["table"]] = cells
    return found


def page(found: dict[str, list[dict[str, Any]]]) -> str:
    """The tables, made from the cells alone."""
    lines = [
        "# Ties, predicted",
        "",
        "Made by `benchmarks/ties.py` from the JSON lines beside this page. Five folds, in percent; the",
        "difference to the first ranker with its standard error over folds. Likelihood: nats per pair of",
        "relevant labels; without a threshold, ties have the rate of the training rows. tau-b counts",
        "predicted ties; in brackets that of the scores alone. Precision, recall and F1 are of tied pairs;",
        "ties are those predicted per instance. One network, or one member of trees; texts as TF-IDF; NSID:",
        "training images alone.",
    ]
    for table, cells in found.items():
        names = list(dict.fromkeys([*RANKERS, *ROUNDED.values()]))
        by = {name: [one for one in cells if one["ranker"] == name] for name in names}
        by = {name: sorted(ones, key=lambda one: one["fold"]) for name, ones in by.items() if ones}
        first = next(iter(by.values()))
        share = 100 * np.mean([one["true_share"] for one in first])
        lines += [
            "",
            f"## {table}",
            "",
            f"{share:.0f} % of the pairs of relevant labels tie; {sum(first[0]['rows']):,} rows; "
            f"{len(first)} of the five folds.",
            "",
            f"| {' | '.join(HEAD)} |",
            "| --- " * len(HEAD) + "|",
        ]
        for name, ones in by.items():
            mean = {key: np.mean([one[key] for one in ones]) for key in COLUMNS if ones[0][key] is not None}
            gap = np.array([100 * (one["tau_b"] - other["tau_b"]) for one, other in zip(ones, first)])
            error = gap.std(ddof=1) / len(gap) ** 0.5 if len(gap) > 1 else 0.0
            shown = f"{mean['likelihood']:.3f}" if "likelihood" in mean else "-"
            parts = [
                name,
                f"{100 * mean['tau_b']:.1f} ({100 * mean['tau_b_scores']:.1f})",
                f"{gap.mean():+.1f} ± {error:.1f}",
                *(f"{100 * mean[key]:.0f}" for key in ("precision", "recall", "f1")),
                f"{mean['claimed']:.2f}",
                shown,
                f"{100 * mean['hamming_loss']:.1f}",
                f"{np.mean([one['cpu_seconds'] for one in ones]):.0f}",
            ]
            lines.append(f"| {' | '.join(parts)} |")
        kept = [one["ties"]["gain"] > 0 for one in by.get("gmlr, learned", [])]
        lines += ["", f'`ties="auto"` keeps the threshold in {sum(kept)} of {len(kept)} folds.']
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("data", "nsid", "texts"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--folds", type=int, default=FOLDS, help="measure the first of the five folds only")
    parser.add_argument("--rankers", nargs="+", choices=RANKERS, default=list(RANKERS))
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    wanted = tables(arguments)
    for fold in range(arguments.folds):
        for table, (features, ranks) in wanted.items():
            for name in arguments.rankers:
                known = {(one["ranker"], one["fold"]) for one in read_cells().get(table, [])}
                if (name, fold) in known or (name in ON_SMALL_TABLES and table not in SMALL):
                    continue
                file = OUT / f"{table.lower().replace(' ', '-')}.jsonl"
                before = file.read_text("utf-8") if file.exists() else ""
                cells = measure(features, ranks, name, fold)
                write_text(
                    file, before + "".join(json.dumps({"table": table, **one}) + "\n" for one in cells)
                )
                for one in cells:
                    print(
                        f"{table}, fold {fold}, {one['ranker']}: tau-b {100 * one['tau_b']:.1f}", flush=True
                    )
                write_text(OUT / "README.md", page(read_cells()))


if __name__ == "__main__":
    main()
