"""The page of a run or a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gaussianmlr.console import clock
from gaussianmlr.describing import describe
from gaussianmlr.errors import DataError
from gaussianmlr.measuring import open_model
from gaussianmlr.model import read_config
from gaussianmlr.reporting.downloads import downloads_section, of_evidence
from gaussianmlr.reporting.gathering import Evidence, Progress, Wanted, find_evidence
from gaussianmlr.reporting.history import best_epoch, curves_section, read_history
from gaussianmlr.reporting.html import Section, download, element, facts, note, page, section
from gaussianmlr.reporting.measured import figures_of, measured_sections, warnings_of, where
from gaussianmlr.reporting.recipes import made_with, recipe_section

__all__ = ["run_page"]

_LABELS = 40


def run_page(folder: Path, wanted: Wanted, examples: int, progress: Progress) -> bytes:
    """The report of the run or model in a folder.

    Raises
    ------
    DataError
        Where data was asked for and cannot be measured on; else the page says what is missing.
    """
    config, recipe, labels = _config(folder)
    evidence, why = _evidence(folder, wanted, progress)
    history = read_history(folder)
    about: dict[str, Any] = config.get("about", {})
    found: dict[str, Any] = {
        "recipe": recipe,
        "versions": config.get("versions", {}),
        "recorded": {"metrics": about.get("metrics", {}), "measured_on": about.get("measured_on")},
    }
    best = best_epoch(history, str(recipe.get("select", "tau_b")))
    if best is not None:
        found["best_epoch"] = best + 1
    sections = [_glance(folder, config, recipe, labels, evidence, why, history)]
    links = []
    if evidence is not None:
        sections += measured_sections(evidence, examples, about.get("metrics", {}))
        links = of_evidence(evidence, found)
    else:
        text = json.dumps(found, indent=1, ensure_ascii=False)
        links.append(download("run.json", text, "application/json", "recipe, versions and recorded metrics"))
    if history:
        text = (folder / "epochs.csv").read_text("utf-8")
        links.append(download("epochs.csv", text, "text/csv", "the measures of every epoch"))
    sections.insert(2 if evidence else 1, curves_section(history, str(recipe.get("select", "tau_b"))))
    sections += [
        recipe_section(recipe),
        made_with(
            config.get("versions", {}),
            about.get("commit"),
            {
                "fingerprint of the training data": about.get("fingerprint"),
                "SHA-256 of the weights": config.get("weights_sha256"),
            },
        ),
        downloads_section(links),
    ]
    kind = "Run" if (folder / "run.json").is_file() else "Model"
    return page(f"{kind} {folder.resolve().name}", _title(recipe, labels), sections)


def _config(folder: Path) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """What the model says of itself, or an unfinished run; with its recipe and labels."""
    inner = folder / "model" if (folder / "run.json").is_file() else folder
    try:
        if inner.is_dir():
            config = read_config(inner)
            return config, dict(config["recipe"]), list(map(str, config["labels"]))
        run = json.loads((folder / "run.json").read_text("utf-8"))
        return {}, dict(run["recipe"]), list(map(str, run["data"]["labels"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder} is no run of gaussianmlr, or was changed: {error}") from None


def _evidence(folder: Path, wanted: Wanted, progress: Progress) -> tuple[Evidence | None, str]:
    """What was measured, or why nothing was."""
    try:
        return find_evidence(open_model(folder), folder, wanted, progress), ""
    except DataError as error:
        if wanted.data is not None or wanted.split is not None:
            raise
        return None, str(error)


def _title(recipe: dict[str, Any], labels: list[str]) -> str:
    supervision = recipe.get("method_settings", {}).get("supervision", "strong")
    return f"{recipe['method']} ({supervision}) on {recipe['backbone']}, {len(labels)} labels"


def _glance(
    folder: Path,
    config: dict[str, Any],
    recipe: dict[str, Any],
    labels: list[str],
    evidence: Evidence | None,
    why: str,
    history: list[dict[str, Any]],
) -> Section:
    about: dict[str, Any] = config.get("about", {})
    parts: list[Any] = []
    if evidence is not None:
        parts += [element("p", f"Measured on {where(evidence)}."), figures_of(evidence)]
        parts += warnings_of(evidence)
    else:
        parts.append(
            note(
                f"Nothing was measured for this page: {why}. "
                "With --data, metrics, reliability, order and examples are added."
            )
        )
    if not config:
        parts.append(note("The run has not come to its end: the same command goes on, and leaves a model."))
    elif about.get("interrupted"):
        parts.append(note("The run was stopped before its end; the model is the best so far."))
    pairs: list[tuple[Any, Any]] = [
        ("method", recipe["method"]),
        ("supervision", recipe.get("method_settings", {}).get("supervision", "strong")),
        ("backbone", recipe["backbone"]),
        ("head", recipe["head"]),
    ]
    if config:
        inner = folder / "model" if (folder / "run.json").is_file() else folder
        pairs.append(("parameters", f"{describe(inner)['parameters']:,}"))
        pairs.append(("inputs", _inputs(config["inputs"])))
    if about.get("images"):
        pairs.append(("instances seen in training", f"{about['images']:,}"))
    seconds = about.get("seconds") or (history[-1]["seconds"] if history else None)
    if seconds:
        pairs.append(("time of training", clock(seconds)))
    pairs.append(("seed", recipe["seed"]))
    more = f" and {len(labels) - _LABELS} more" if len(labels) > _LABELS else ""
    parts += [facts(pairs), facts([("labels", ", ".join(labels[:_LABELS]) + more)], class_="lines")]
    return section("At a glance", parts, anchor="glance")


def _inputs(inputs: dict[str, Any]) -> str:
    if inputs.get("kind") == "table":
        return f"{inputs['channels']} columns"
    size = inputs.get("size")
    shape = f" of {size[0]} x {size[1]}" if size else ""
    return f"{'gray' if inputs['channels'] == 1 else 'colour'} pictures{shape}"
