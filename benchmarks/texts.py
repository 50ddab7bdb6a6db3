"""Emotions in texts: a constant order, TF-IDF, MiniLM frozen and MiniLM trained, each with several methods.

    python benchmarks/texts.py FOLDER --encoders constant text:tfidf frozen tuned --methods gmlr crpc lsep

FOLDER holds emotions-eng-train.csv, emotions-eng-dev.csv and the like (SemEval-2025 task 11, track B: grades
0 to 3). Every encoder and method is measured by five-fold cross-validation on the training texts, and on dev
after training on all training texts; a tenth of the training texts chooses the epoch and fits temperatures.

One JSON line per encoder, method and part goes to results/texts/LANGUAGE.jsonl; lines that are there are not
measured again. README.md beside them is made from these lines alone.

"any" is tau-b over texts with an emotion, "positives" tau-b among true positives, r the mean over emotions
of Pearson's r with the grades. "Anchors" are two labels that stand in every order between the grades: grade
3 > anchor 2.5 > grade 2 > anchor 1.5 > grade 1. A model that also ranks them knows how strong an emotion
is, not only which is stronger; its expected grade is the sum of the probabilities of being above zero and
above each anchor.
"""

import argparse
import json
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr

from gaussianmlr._utils.files import write_text
from gaussianmlr._utils.provenance import commit, versions
from gaussianmlr._utils.threads import asked_threads
from gaussianmlr.data import RankedData, read_table
from gaussianmlr.estimators import DummyRanker
from gaussianmlr.inference.matching import ready
from gaussianmlr.metrics import evaluate, positives_tau
from gaussianmlr.model.evaluate import read
from gaussianmlr.model.presets import preset
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.orders import densify
from gaussianmlr.training.fit import fit

OUT = Path(__file__).parent.parent / "results" / "texts"
FOLDS = 5
VALIDATION = 0.1
ANCHORS = ("anchor 1.5", "anchor 2.5")
ENCODERS = ("constant", "text:tfidf", "frozen", "frozen + anchors", "tuned", "tuned + anchors")


def grades_of(folder: Path, language: str, part: str) -> tuple[RankedData, Any]:
    """Texts with their orders, and the grades [N, K]."""
    import pandas as pd

    file = folder / f"emotions-{language}-{part}.csv"
    frame = pd.read_csv(file)
    labels = list(frame.columns[2:])
    return read_table(file, labels=labels, threshold=0), frame[labels].to_numpy()


def recipe_of(encoder: str, method: str, seed: int) -> Recipe:
    """The settings of an encoder and a method."""
    name = "tuned" if encoder.startswith("tuned") else "cpu"
    recipe = preset(name, "text", method=method)
    settings = {key: value for key, value in recipe.method_settings.items() if key != "supervision"}
    recipe = recipe.replace(method_settings=settings, seed=seed)
    if name == "tuned":  # a third of the time on a processor with instructions for it
        recipe = recipe.replace(precision="bf16-mixed")
    if encoder == "text:tfidf":
        recipe = recipe.replace(backbone="text:tfidf", freeze="none")
    return recipe


def with_anchors(data: RankedData, grades: Any) -> RankedData:
    """The texts with two more labels, which stand between the grades in every order."""
    doubled = np.concatenate([2 * grades, np.full((len(grades), 2), [3, 5])], axis=1)
    return replace(data, ranks=densify(doubled), labels=(*data.labels, *ANCHORS))


def measured(
    encoder: str, method: str, train: tuple[RankedData, Any], test: tuple[RankedData, Any], seed: int
) -> dict[str, Any]:
    """Train on some texts and measure on others."""
    (known, grades), (new, wanted) = train, test
    width, began = len(known.labels), time.process_time()
    if encoder == "constant":
        nothing = np.zeros((len(known), 1))
        scores = DummyRanker().fit(nothing, known.ranks).decision_function(np.zeros((len(new), 1)))
        return metrics_of(scores, new.ranks, {"scores": scores}, wanted) | {"cpu_seconds": 0.0}
    if encoder.endswith("anchors"):
        known = with_anchors(known, grades)
    order = np.random.default_rng(seed).permutation(len(known))
    held = round(VALIDATION * len(known))
    model = fit(
        recipe_of(encoder, method, seed),
        known.subset(order[held:]),
        known.subset(order[:held]),
        accelerator="cpu",
    ).model
    spent = time.process_time() - began
    reading, _ = read(model, ready(new, model))
    scores = reading.scores[:, :width].numpy()
    readings = {"p_relevant": reading.p_relevant[:, :width].numpy(), "scores": scores}
    readings["clipped"] = np.maximum(scores, -2.0)
    if reading.mu is not None and reading.sigma is not None:
        mu, variance = reading.mu.double().numpy(), reading.sigma.double().numpy() ** 2
        if model.jnd is not None:
            canonical = mu / np.exp(np.log(variance).mean(1, keepdims=True) / 2)
            readings["jnd"] = np.logaddexp(0.0, model.jnd.values(canonical[:, :width]))
        above = ndtr(mu[:, :width] / np.sqrt(variance[:, :width]))
        for place in range(width, mu.shape[1]):
            spread = np.sqrt(variance[:, :width] + variance[:, place : place + 1])
            above = above + ndtr((mu[:, :width] - mu[:, place : place + 1]) / spread)
        readings["expected grade"] = above
    found = metrics_of(scores, new.ranks, readings, wanted)
    return found | {"cpu_seconds": round(spent, 1), "epochs": model.recipe.epochs}


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
                torch.manual_seed(0)
                with asked_threads(1):
                    found = measured(encoder, method, known, new, seed=0)
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

        each = {name: np.mean([row["pearson"][name] for row in rows]) for name in rows[0]["pearson"]}
        best = reading_of(each, encoder.endswith("anchors"))
        percent = ("tau_b", "tau_b_with_any", "positives_tau", "hamming_loss", "f1")
        epochs = ", ".join(sorted({str(row.get("epochs", "-")) for row in rows}))
        cells = [encoder, method, epochs, str(len(rows)), *(f"{100 * mean(name):.1f}" for name in percent)]
        cells += [f"{each[best]:.3f}", best, f"{mean('cpu_seconds'):.0f}"]
        found.append("| " + " | ".join(cells) + " |")
    return found


def reading_of(each: dict[str, Any], anchors: bool) -> str:
    """The reading that is reported: fixed per kind of model, not chosen by the numbers."""
    wanted = ("expected grade",) if anchors else ("jnd", "clipped", "scores")
    return next(name for name in wanted if name in each)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--language", default="eng")
    parser.add_argument("--encoders", nargs="+", default=list(ENCODERS))
    parser.add_argument("--methods", nargs="+", default=["gmlr", "crpc", "lsep"])
    parser.add_argument("--parts", nargs="+", default=[*map(str, range(FOLDS)), "dev"])
    given = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    work(given.folder, given.language, given.encoders, given.methods, given.parts)
    write_text(OUT / "README.md", readme())
