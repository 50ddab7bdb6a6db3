"""The estimators and their rivals on data nobody here made, over seeds.

    python benchmarks/tables.py --data FOLDER --nsid FOLDER

FOLDER of --data holds emotion6.mat, Painting.mat and Movie.mat (label distributions; not shipped); that of
--nsid the natural scenes, whose training images become rows of features by the frozen backbone of the preset
`cpu`. A seed draws a training and a test part, the same for every ranker. Measured cells are lines of JSON in
results/estimators/TABLE.jsonl, with recipe, versions and commit; the same command measures what is missing,
and README.md beside them is made from them alone. CatBoost is in no extra: pip install catboost.

Bars, on each table over all seeds: the default GaussianMLR is at least as good in tau-b as the best of its
rivals, within one standard error of the paired differences, and its Hamming loss is at most 0.5 larger than
the smallest one. Exits with 1 where a bar is missed, and with 0 where there is no data to measure on.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier

from gaussianmlr import CalibratedRanker, DummyRanker, GaussianMLR, MultiLabelRanker, NeighbourRanker
from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import commit, versions
from gaussianmlr.data import RankedData, from_arrays, read_mat, read_nsid
from gaussianmlr.data.splits import rolling_hold_out
from gaussianmlr.metrics import evaluate
from gaussianmlr.model.presets import preset
from gaussianmlr.paper.photos import photo_features

ROOT = Path(__file__).parent.parent
OUT = ROOT / "results" / "estimators"
METRICS = ("tau_b", "spearman_rho", "gamma", "hamming_loss", "max1_error", "f1")


@dataclass(frozen=True)
class Table:
    """A table, and how many rows a seed draws to train and to test on."""

    train: int
    test: int


TABLES = {
    "Painting": Table(224, 56),
    "emotion6": Table(1584, 396),
    "Movie": Table(1000, 500),
    "NSID": Table(1279, 320),
}


class SortedForest:
    """A random forest that predicts the relevance of every label, which are sorted by their probability."""

    def get_params(self) -> dict[str, Any]:
        return {"n_estimators": 300}

    def fit(self, X: Any, ranks: Any) -> "SortedForest":
        self.forest = RandomForestClassifier(300, random_state=0, n_jobs=1).fit(X, ranks > 0)
        return self

    def decision_function(self, X: Any) -> Any:
        chances = self.forest.predict_proba(X)
        found = [
            one[:, 1] if one.shape[1] == 2 else np.full(len(X), float(known[0]))
            for one, known in zip(chances, self.forest.classes_)
        ]
        return np.stack(found, 1) - 0.5


class CatBoostGrades:
    """CatBoost's MultiRMSE on places between 0 and 1; rows held out say when to stop and what is relevant."""

    def get_params(self) -> dict[str, Any]:
        return {"loss": "MultiRMSE", "iterations": 1000, "depth": 6, "early_stopping_rounds": 40}

    def fit(self, X: Any, ranks: Any) -> "CatBoostGrades":
        from catboost import CatBoostRegressor

        grades = ranks / np.maximum(ranks.max(1, keepdims=True), 1)
        kept, held = rolling_hold_out(len(ranks), 0.15, 0, 0)
        self.model = CatBoostRegressor(
            loss_function="MultiRMSE",
            iterations=1000,
            depth=6,
            rsm=min(1.0, 300 / X.shape[1]),
            thread_count=1,
            random_seed=0,
            verbose=False,
            allow_writing_files=False,
        )
        self.model.fit(X[kept], grades[kept], eval_set=(X[held], grades[held]), early_stopping_rounds=40)
        found, steps = self.model.predict(X[held]), np.linspace(-0.2, 1.0, 121)
        wrong = [((found > step) != (ranks[held] > 0)).mean() for step in steps]
        self.threshold = steps[int(np.argmin(wrong))]
        return self

    def decision_function(self, X: Any) -> Any:
        return self.model.predict(X) - self.threshold


NETWORKS = ("gmlr", "ranknet", "crpc", "lsep", "zlpr", "pl", "br")
RANKERS: dict[str, Any] = {
    "GaussianMLR": GaussianMLR(),
    "GaussianMLR (network)": GaussianMLR(model="network"),
    "GaussianMLR (trees)": GaussianMLR(model="trees"),
    "GaussianMLR (both)": GaussianMLR(model="both"),
    **{name: MultiLabelRanker(name) for name in NETWORKS if name != "gmlr"},
    "forest, sorted by p": SortedForest(),
    "CalibratedRanker (forest)": CalibratedRanker(),
    "CatBoost grades": CatBoostGrades(),
    "NeighbourRanker": NeighbourRanker(),
    "DummyRanker": DummyRanker(),
}
RIVALS = [name for name in RANKERS if not name.startswith("GaussianMLR")]
LARGER = 0.5  # Hamming loss, in percent, that the best ranker may cost


def measure(data: Any, table: Table, name: str, seed: int) -> dict[str, Any]:
    """Fit on the seed's training rows, measure on its test rows."""
    order = np.random.default_rng(seed).permutation(len(data))
    if len(data) < table.train + table.test:
        raise SystemExit(f"{data.source}: {len(data):,} rows; expected {table.train + table.test:,} or more")
    test, train = order[: table.test], order[table.test : table.test + table.train]
    ranker = RANKERS[name]
    settings = {key: value for key, value in ranker.get_params().items() if value is not None}
    if "random_state" in ranker.get_params():
        ranker = sklearn.clone(ranker).set_params(random_state=seed)
    started = time.process_time()
    ranker.fit(data.features[train], data.ranks[train])
    found = evaluate(ranker.decision_function(data.features[test]), data.ranks[test])
    recipe = ranker.model_.recipe.to_dict() if hasattr(ranker, "model_") else None
    chosen = {"chosen": ranker.chosen_} if hasattr(ranker, "chosen_") else {}
    return {
        "ranker": name,
        "seed": seed,
        "train": len(train),
        "test": len(test),
        "metrics": found,
        "cpu_seconds": round(time.process_time() - started, 1),
        "estimator": type(ranker).__name__,
        "settings": settings,
        "recipe": recipe,
        **chosen,
        "fingerprint": data.fingerprint(),
        "versions": {**versions(), "scikit-learn": sklearn.__version__},
        "commit": commit(),
    }


def opened(table: str, folder: Path | None, nsid: Path | None) -> RankedData | None:
    """A set by its name; none where its folder was not given."""
    if table == "NSID":
        return None if nsid is None else scene_features(nsid)
    return None if folder is None else read_mat(folder / f"{table}.mat")


def scene_features(folder: Path) -> RankedData:
    """The training images of the natural scenes as a table; the test images stay unseen."""
    scenes = read_nsid(folder).subset("train")
    features = photo_features(preset("cpu", "photo"), scenes, say=print)
    return from_arrays(features.numpy(), scenes.ranks, labels=scenes.labels)


def read_cells() -> dict[str, dict[str, dict[int, dict[str, Any]]]]:
    """Measured cells by table, ranker and seed."""
    found: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    for table in TABLES:
        file = OUT / f"{table.lower()}.jsonl"
        cells = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
        for name in RANKERS:
            seeds = {one["seed"]: one for one in cells if one["ranker"] == name}
            if seeds:
                found.setdefault(table, {})[name] = seeds
    return found


def add_cell(table: str, found: dict[str, Any]) -> None:
    """Add a line; the file is written whole."""
    file = OUT / f"{table.lower()}.jsonl"
    before = file.read_text("utf-8") if file.exists() else ""
    write_text(file, before + json.dumps({"table": table, **found}) + "\n")


def values(cells: dict[int, dict[str, Any]], metric: str, seeds: list[int]) -> np.ndarray[Any, Any]:
    return np.array([100 * cells[seed]["metrics"][metric] for seed in seeds])


def spread(found: np.ndarray[Any, Any]) -> str:
    """Mean and standard deviation, which one seed alone does not have."""
    return f"{found.mean():.1f} ± {found.std(ddof=1):.1f}" if len(found) > 1 else f"{found.mean():.1f}"


def shared_seeds(by_ranker: dict[str, dict[int, dict[str, Any]]]) -> list[int]:
    return sorted(set.intersection(*(set(cells) for cells in by_ranker.values())))


def markdown(found: dict[str, dict[str, dict[int, dict[str, Any]]]]) -> str:
    """The tables, made from the cells alone."""
    lines = [
        "# Estimators on tables and on features of photographs",
        "",
        "Made by `benchmarks/tables.py` from the JSON lines beside this page, which hold settings,",
        "recipes, versions and commits. A seed draws training and test rows, the same for every ranker; mean",
        "and standard deviation over seeds, in percent. Defaults everywhere, chosen on seeds from 1000.",
        "CPU seconds are of one thread, of cells measured on different days: compare them by their order.",
        "NSID: its training images alone, as features of the frozen backbone of the preset `cpu`,",
        "which was chosen among backbones by cross-validation on these same images, alike for every ranker.",
        "Features are those of torch or of onnxruntime, equal to 1e-3; fingerprints in the lines differ.",
    ]
    for table, by_ranker in found.items():
        counts = TABLES[table]
        seeds = sorted(set.union(*(set(cells) for cells in by_ranker.values())))
        lines += [
            "",
            f"## {table}",
            "",
            f"{counts.train:,} rows to train, {counts.test:,} to test, seeds {seeds[0]} to {seeds[-1]}.",
            "",
            f"| ranker | seeds | {' | '.join(METRICS)} | CPU seconds |",
            "| --- " * (len(METRICS) + 3) + "|",
        ]
        for name, cells in by_ranker.items():
            there = sorted(cells)
            shown = [values(cells, metric, there) for metric in METRICS]
            spent = np.mean([cells[seed]["cpu_seconds"] for seed in there])
            numbers = " | ".join(spread(one) for one in shown)
            lines.append(f"| {name} | {len(there)} | {numbers} | {spent:.0f} |")
        lines += ["", *(f"- {text}: {'holds' if holds else 'missed'}" for text, holds in bars(by_ranker))]
    return "\n".join([*lines, ""])


def bars(by_ranker: dict[str, dict[int, dict[str, Any]]]) -> list[tuple[str, bool]]:
    """What is promised of GaussianMLR, and whether it holds on the seeds that all have."""
    ours = by_ranker.get("GaussianMLR")
    rivals = {name: by_ranker[name] for name in RIVALS if name in by_ranker}
    if ours is None or not rivals:
        return []
    seeds = shared_seeds({"ours": ours, **rivals})
    if len(seeds) < 2:
        return []
    best = max(rivals, key=lambda name: values(rivals[name], "tau_b", seeds).mean())
    gap = values(ours, "tau_b", seeds) - values(rivals[best], "tau_b", seeds)
    noise = gap.std(ddof=1) / len(gap) ** 0.5
    least = min(rivals, key=lambda name: values(rivals[name], "hamming_loss", seeds).mean())
    more = values(ours, "hamming_loss", seeds) - values(rivals[least], "hamming_loss", seeds)
    unsure = more.std(ddof=1) / len(more) ** 0.5
    return [
        (
            f"tau-b against the best rival, {best}: {gap.mean():+.2f}, standard error {noise:.2f}",
            bool(gap.mean() >= -noise),
        ),
        (
            f"Hamming loss against the smallest, {least}: {more.mean():+.2f}, standard error {unsure:.2f}",
            bool(more.mean() <= LARGER),
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the .mat files")
    parser.add_argument("--nsid", type=Path, help="folder of the natural scenes")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--rankers", nargs="+", choices=RANKERS, default=list(RANKERS))
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.data is None and arguments.nsid is None:
        print("neither --data FOLDER nor --nsid FOLDER: nothing to measure on")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    for table in arguments.tables:
        data = opened(table, arguments.data, arguments.nsid)
        if data is None:
            print(f"{table}: its folder was not given; nothing to measure on")
            continue
        for seed in range(arguments.seeds):
            for name in arguments.rankers:
                if seed in read_cells().get(table, {}).get(name, {}):
                    continue
                found = measure(data, TABLES[table], name, seed)
                add_cell(table, found)
                tau = 100 * found["metrics"]["tau_b"]
                print(f"{table} {name} seed {seed}: tau-b {tau:.1f}, {found['cpu_seconds']} s", flush=True)
    found = read_cells()
    write_text(OUT / "README.md", markdown(found))
    missed = [
        f"{table}: {text}" for table, cells in found.items() for text, holds in bars(cells) if not holds
    ]
    for text in missed:
        print("missed:", text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
