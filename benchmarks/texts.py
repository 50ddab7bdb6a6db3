"""Emotions in texts: a constant order, TF-IDF, MiniLM frozen and MiniLM trained, each with several methods.

    python benchmarks/texts.py FOLDER --encoders constant text:tfidf frozen tuned "3 tuned"

FOLDER holds emotions-eng-train.csv, emotions-eng-dev.csv and the like (SemEval-2025 task 11, track B: grades
0 to 3). Every encoder and method is measured by five-fold cross-validation on the training texts, and on dev
after training on all training texts. A tenth of the training texts chooses the epoch and fits temperatures;
"tuned" keeps its last epoch, uncalibrated, and trains on all of them. "3 tuned" averages three trainings with
other seeds.

One JSON line per encoder, method and part goes to results/texts/LANGUAGE.jsonl; lines that are there are not
measured again. README.md beside them is made from these lines alone. What single trainings predict is kept in
runs/texts.

"any" is tau-b over texts with an emotion, "positives" tau-b among true positives, r the mean over emotions
of Pearson's r with the grades. All models rank two more labels, "anchors", which stand in every order between
the grades: grade 3 > anchor 2.5 > grade 2 > anchor 1.5 > grade 1. So they know how strong an emotion is, not
only which is stronger; their expected grade is the sum of the probabilities of being above zero and above
each anchor. "Plain" models rank the emotions alone; their grades are scores. "Last layer" models see the
features of MiniLM's last layer alone, the others those of all its layers.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gaussianmlr._utils.files import aside, write_text
from gaussianmlr._utils.provenance import commit, versions
from gaussianmlr._utils.threads import asked_threads
from gaussianmlr.data import RankedData, read_table
from gaussianmlr.data.loading import RankedSet
from gaussianmlr.estimators import DummyRanker
from gaussianmlr.inference.matching import ready
from gaussianmlr.losses import pair_indices
from gaussianmlr.metrics import evaluate, positives_tau
from gaussianmlr.model.evaluate import outputs, read
from gaussianmlr.model.model import Model
from gaussianmlr.model.presets import preset
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.normal import p_above
from gaussianmlr.orders import densify
from gaussianmlr.training.fit import fit

OUT = Path(__file__).parent.parent / "results" / "texts"
FOLDS = 5
VALIDATION = 0.1
ANCHORS = ("anchor 1.5", "anchor 2.5")
KEPT = Path("runs") / "texts"
LAST = "last layer "
ENCODERS = (
    "constant",
    "text:tfidf",
    "plain frozen",
    f"{LAST}frozen",
    "frozen",
    f"{LAST}tuned",
    "tuned",
    "3 tuned",
)
READINGS = ("scores", "expected grade")
METHODS = ("gmlr", "crpc", "lsep", "ranknet")
Member = dict[str, Any]  # what one training predicts: scores and grades, with its time and epochs


def grades_of(folder: Path, language: str, part: str) -> tuple[RankedData, Any]:
    """Texts with their orders, and the grades [N, K]."""
    import pandas as pd

    file = folder / f"emotions-{language}-{part}.csv"
    frame = pd.read_csv(file)
    labels = list(frame.columns[2:])
    return read_table(file, labels=labels, threshold=0), frame[labels].to_numpy()


def recipe_of(encoder: str, method: str, seed: int) -> Recipe:
    """The settings of an encoder and a method."""
    name = "tuned" if encoder.endswith("tuned") else "cpu"
    recipe = preset(name, "text", method=method)
    settings = {key: value for key, value in recipe.method_settings.items() if key != "supervision"}
    recipe = recipe.replace(method_settings=settings, seed=seed)
    if name == "tuned":  # half the time on a processor with instructions for it
        recipe = recipe.replace(precision="bf16-mixed")
    if encoder.startswith(LAST):
        recipe = recipe.replace(backbone_settings={})
    if encoder == "text:tfidf":
        recipe = recipe.replace(backbone="text:tfidf", freeze="none")
    return recipe


def with_anchors(data: RankedData, grades: Any) -> RankedData:
    """The texts with two more labels, which stand between the grades in every order."""
    doubled = np.concatenate([2 * grades, np.full((len(grades), 2), [3, 5])], axis=1)
    return replace(data, ranks=densify(doubled), labels=(*data.labels, *ANCHORS))


def trained(encoder: str, method: str, known: RankedData, grades: Any, new: RankedData, seed: int) -> Member:
    """Train on some texts and predict others."""
    width, began = len(known.labels), time.process_time()
    if encoder != "plain frozen":
        known = with_anchors(known, grades)
    order = np.random.default_rng(seed).permutation(len(known))
    held = 0 if encoder.endswith("tuned") else round(VALIDATION * len(known))
    model = fit(
        recipe_of(encoder.removeprefix("plain "), method, seed),
        known.subset(order[held:]),
        known.subset(order[:held]) if held else None,
        accelerator="cpu",
    ).model
    spent = time.process_time() - began
    data = ready(new, model)
    found = {"scores": read(model, data)[0].scores[:, :width].numpy()}
    if encoder != "plain frozen":
        found["expected grade"] = expected_grade(model, data, width)
    return found | {"cpu_seconds": round(spent, 1), "epochs": model.recipe.epochs}


@torch.no_grad()
def expected_grade(model: Model, data: RankedSet, width: int) -> Any:
    """Sum of the probabilities of being above zero and above each anchor, by the model of the method."""
    method = model.recipe.method
    if method == "gmlr":
        reading, _ = read(model, data)
        assert reading.mu is not None
        assert reading.sigma is not None
        mu, sigma = reading.mu.double(), reading.sigma.double()
        above = p_above(mu, sigma)[:, :width, width:].sum(-1)
        return (torch.special.ndtr(mu / sigma)[:, :width] + above).numpy()
    batches = [found for found, _ in outputs(model.network, data)]
    raw = {name: torch.cat([one[name] for one in batches]).double() for name in batches[0]}
    if method == "crpc":  # pairs of an emotion with an anchor, or with the virtual label behind them
        left, right = pair_indices(len(model.labels))
        chances = [raw["pair"][:, (left == one) & (right >= width)].sigmoid() for one in range(width)]
        return torch.stack([one.sum(1) for one in chances], 1).numpy()
    scores = raw["score"]  # of lsep, with its thresholds, and of ranknet, where the threshold is zero
    above = (scores[:, :width, None] - scores[:, None, width:]).sigmoid().sum(-1)
    return ((scores - raw.get("threshold", 0.0)).sigmoid()[:, :width] + above).numpy()


def kept(name: str, make: Callable[[], Member]) -> Member:
    """What a training predicts, from its file if there is one."""
    file = KEPT / f"{name.replace(':', '-').replace(' ', '-')}.npz"
    if file.is_file():
        with np.load(file) as found:
            return {key: value if value.ndim else value.item() for key, value in found.items()}
    member = make()
    file.parent.mkdir(parents=True, exist_ok=True)
    with aside(file) as there, there.open("wb") as opened:
        np.savez(opened, **member)
    return member


def measured(
    name: str, encoder: str, method: str, train: tuple[RankedData, Any], test: tuple[RankedData, Any]
) -> dict[str, Any]:
    """Train on some texts and measure on others."""
    (known, grades), (new, wanted) = train, test
    if encoder == "constant":
        nothing = np.zeros((len(known), 1))
        scores = DummyRanker().fit(nothing, known.ranks).decision_function(np.zeros((len(new), 1)))
        return metrics_of(scores, new.ranks, {"scores": scores}, wanted) | {"cpu_seconds": 0.0}
    count, _, single = encoder.rpartition(" ") if encoder[0].isdigit() else ("1", "", encoder)
    members = []
    for seed in range(int(count)):

        def make(seed: int = seed) -> Member:
            with asked_threads(1):
                return trained(single, method, known, grades, new, seed)

        members.append(kept(f"{name} {single} {method} {seed}", make))
    both = {key: np.mean([one[key] for one in members], axis=0) for key in members[0] if key in READINGS}
    both["clipped"] = np.maximum(both["scores"], -2.0)
    found = metrics_of(both["scores"], new.ranks, both, wanted)
    spent = round(sum(one["cpu_seconds"] for one in members), 1)
    return found | {"cpu_seconds": spent, "epochs": members[0]["epochs"]}


def metrics_of(scores: Any, ranks: Any, readings: dict[str, Any], grades: Any) -> dict[str, Any]:
    """Metrics of the orders, and Pearson's r per emotion of each reading as a grade."""
    any_emotion = (ranks > 0).any(1)
    found: dict[str, Any] = evaluate(scores, ranks)
    some = evaluate(scores[any_emotion], ranks[any_emotion])
    found["tau_b_with_any"] = some["tau_b"]
    found["positives_tau"] = float(positives_tau(scores, ranks))
    found["pearson"] = {name: pearson(values, grades) for name, values in readings.items()}
    return found


def pearson(values: Any, grades: Any) -> float:
    """Mean over labels of the correlation with the grades; 0 where a column is constant."""
    each = [
        np.corrcoef(one, other)[0, 1] if one.std() > 0 and other.std() > 0 else 0.0
        for one, other in zip(values.T, grades.T)
    ]
    return float(np.mean(each))


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The lines that are there."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def work(folder: Path, language: str, encoders: list[str], methods: list[str], parts: list[str]) -> None:
    """Measure what is missing, line by line."""
    file = OUT / f"{language}.jsonl"
    train, dev = (grades_of(folder, language, part) for part in ("train", "dev"))
    folds = np.array_split(np.random.default_rng(0).permutation(len(train[0])), FOLDS)
    done = {(row["encoder"], row["method"], row["part"]) for row in rows_of(file)}
    for encoder in encoders:
        for method in methods if encoder != "constant" else ["-"]:
            for part in parts:
                if (encoder, method, part) in done:
                    continue
                known, new = train, dev
                if part != "dev":
                    held = folds[int(part)]
                    kept = np.setdiff1d(np.arange(len(train[0])), held)
                    known, new = ((train[0].subset(some), train[1][some]) for some in (kept, held))
                name = f"{language} {part}"
                found = measured(name, encoder, method, known, new)
                about = {"commit": commit(), "versions": versions()}
                row = {"encoder": encoder, "method": method, "part": part, **found, "about": about}
                with file.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")
                print(encoder, method, part, {k: v for k, v in found.items() if k != "about"}, flush=True)


def readme() -> str:
    """The tables, from the lines alone."""
    lines = ["# Emotions in texts", "", __doc__.split("\n\n", 1)[1].strip(), ""]
    for file in sorted(OUT.glob("*.jsonl")):
        groups = defaultdict(list)
        for row in rows_of(file):
            place = "dev" if row["part"] == "dev" else "cross-validation"
            groups[place, row["encoder"], row["method"]].append(row)
        for place in ("cross-validation", "dev"):
            some = {key: rows for key, rows in groups.items() if key[0] == place}
            if not some:
                continue
            lines += ["", f"## {file.stem}, {place}", "", *table(some)]
    return "\n".join(lines) + "\n"


def table(groups: dict[tuple[str, str, str], list[dict[str, Any]]]) -> list[str]:
    """One line per encoder and method; means over folds, in percent but for r and seconds."""
    found = [
        "| encoder | method | epochs | parts | tau-b | any | positives | Hamming | F1 | r | r of | CPU s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (_, encoder, method), rows in sorted(groups.items(), key=lambda item: ENCODERS.index(item[0][1])):

        def mean(name: str, rows: Any = rows) -> float:
            return float(np.mean([row[name] for row in rows]))

        shared = set.intersection(*(set(row["pearson"]) for row in rows))
        each = {name: np.mean([row["pearson"][name] for row in rows]) for name in shared}
        best = next(name for name in ("expected grade", "clipped", "scores") if name in each)
        percent = ("tau_b", "tau_b_with_any", "positives_tau", "hamming_loss", "f1")
        epochs = ", ".join(sorted({str(row.get("epochs", "-")) for row in rows}))
        cells = [encoder, method, epochs, str(len(rows)), *(f"{100 * mean(name):.1f}" for name in percent)]
        cells += [f"{each[best]:.3f}", best, f"{mean('cpu_seconds'):.0f}"]
        found.append("| " + " | ".join(cells) + " |")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--language", default="eng")
    parser.add_argument("--encoders", nargs="+", default=list(ENCODERS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--parts", nargs="+", default=[*map(str, range(FOLDS)), "dev"])
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    work(given.folder, given.language, given.encoders, given.methods, given.parts)
    write_text(OUT / "README.md", readme())
