"""The page of a run or a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gaussianmlr._utils.display import clock
from gaussianmlr._utils.strict_json import dumps
from gaussianmlr.errors import DataError
from gaussianmlr.inference.matching import open_model
from gaussianmlr.model.evaluate import Progress
from gaussianmlr.model.network import built_of
from gaussianmlr.model.recipe import Recipe
from gaussianmlr.model.schema import read_config, read_run
from gaussianmlr.report.downloads import Download, of_evidence
from gaussianmlr.report.examples import chosen_section, examples_section
from gaussianmlr.report.guarantees import guarantees_section
from gaussianmlr.report.history import read_history, training_section
from gaussianmlr.report.measure import Evidence, Wanted, find_evidence
from gaussianmlr.report.order_errors import order_section
from gaussianmlr.report.page import Data, page
from gaussianmlr.report.quality import (
    abstention_section,
    figures_of,
    metrics_section,
    reliability_section,
    warnings_of,
    where,
)
from gaussianmlr.report.recipe_tables import recipe_section, versions_section
from gaussianmlr.training.describe import describe

__all__ = ["run_page"]

_LABELS = 40


def run_page(
    folder: Path,
    wanted: Wanted | Evidence,
    examples: int,
    progress: Progress,
    *,
    chosen: Sequence[int] = (),
    title: str = "",
    escape_formulas: bool = False,
) -> bytes:
    """The report of the run or model in a folder; `chosen` instances are shown first.

    Raises
    ------
    DataError
        If requested data cannot be measured; otherwise the page says what is missing.
    """
    config, recipe, labels = _config(folder)
    evidence, why = (wanted, "") if isinstance(wanted, Evidence) else _evidence(folder, wanted, progress)
    history, select = read_history(folder), str(recipe.get("select", "tau_b"))
    about: dict[str, Any] = config.get("about", {})
    recorded = about.get("metrics", {})
    sections = {"glance": _glance(folder, config, recipe, labels, evidence, why, history)}
    if evidence is not None and chosen:
        sections["chosen"] = chosen_section(evidence, chosen)
    if evidence is not None:
        sections["metrics"] = metrics_section(evidence, recorded)
    sections["training"] = training_section(history, select)
    if evidence is not None:
        sections["reliability"] = reliability_section(evidence)
        sections["order"] = order_section(evidence)
        sections["abstention"] = abstention_section(evidence)
        if evidence.model.guarantees is not None:
            sections["guarantees"] = guarantees_section(evidence)
        sections["examples"] = examples_section(evidence, examples)
    sections["recipe"] = recipe_section(recipe)
    digests = {
        "commit": about.get("commit"),
        "fingerprint of the training data": about.get("fingerprint"),
        "SHA-256 of the weights": config.get("weights_sha256"),
    }
    sections["versions"] = versions_section(config.get("versions", {}), digests)
    found: dict[str, Any] = {
        "recipe": recipe,
        "versions": config.get("versions", {}),
        "recorded": {"metrics": recorded, "measured_on": about.get("measured_on")},
    }
    if history:
        found["best_epoch"] = sections["training"]["best"]
    sections["downloads"] = {"links": _links(folder, evidence, found, escape_formulas)}
    kind = "Run" if (folder / "run.json").is_file() else "Model"
    return page(title or f"{kind} {folder.resolve().name}", _title(recipe, labels), sections)


def _links(
    folder: Path, evidence: Evidence | None, found: dict[str, Any], escape_formulas: bool
) -> list[Download]:
    if evidence is not None:
        links = of_evidence(evidence, found, escape_formulas=escape_formulas)
    else:
        text = dumps(found, indent=1, ensure_ascii=False)
        links = [Download("run.json", text, "recipe, versions and recorded metrics")]
    if "best_epoch" in found:
        text = (folder / "epochs.csv").read_text("utf-8")
        links.append(Download("epochs.csv", text, "loss and metrics per epoch"))
    return links


def _config(folder: Path) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Config (empty for an unfinished run), recipe and labels."""
    inner = folder / "model" if (folder / "run.json").is_file() else folder
    if inner.is_dir():
        config = read_config(inner)
        return config, {**Recipe().to_dict(), **config["recipe"]}, config["labels"]
    run = read_run(folder)
    return {}, run["recipe"], run["data"]["labels"]


def _evidence(folder: Path, wanted: Wanted, progress: Progress) -> tuple[Evidence | None, str]:
    """The measurements, or why there are none."""
    try:
        return find_evidence(open_model(folder), folder, wanted, progress), ""
    except DataError as error:
        if wanted.data is not None or wanted.split is not None:
            raise
        return None, str(error)


def _supervision(recipe: dict[str, Any]) -> str:
    return str(recipe.get("method_settings", {}).get("supervision", "strong"))


def _title(recipe: dict[str, Any], labels: list[str]) -> str:
    return f"{recipe['method']} ({_supervision(recipe)}) on {recipe['backbone']}, {len(labels)} labels"


def _glance(
    folder: Path,
    config: dict[str, Any],
    recipe: dict[str, Any],
    labels: list[str],
    evidence: Evidence | None,
    why: str,
    history: list[dict[str, Any]],
) -> Data:
    if evidence is not None:
        notes = warnings_of(evidence)
    else:
        more = "Pass --data to add metrics, reliability, order and examples."
        notes = [f"Nothing was measured for this page: {why}. {more}"]
    if not config:
        notes.append("The run is not finished: the same command resumes it and writes the model.")
    elif config.get("about", {}).get("interrupted"):
        notes.append("The run was interrupted; the model is the best so far.")
    more = f" and {len(labels) - _LABELS} more" if len(labels) > _LABELS else ""
    return {
        "verdict": None,
        "setup": f"Measured on {where(evidence)}" if evidence else None,
        "figures": figures_of(evidence) if evidence else None,
        "notes": notes,
        "known": _facts(folder, config, recipe, history),
        "labels": ", ".join(labels[:_LABELS]) + more,
    }


def _facts(
    folder: Path, config: dict[str, Any], recipe: dict[str, Any], history: list[dict[str, Any]]
) -> list[tuple[str, Any]]:
    about: dict[str, Any] = config.get("about", {})
    found = {
        "method": recipe["method"],
        "supervision": _supervision(recipe),
        "backbone": built_of(recipe["backbone"], recipe["model"]),
        "head": recipe["head"],
    }
    if config:
        inner = folder / "model" if (folder / "run.json").is_file() else folder
        facts = describe(inner)
        found |= {"backbone": facts["backbone"], "parameters": f"{facts['parameters']:,}"}
        if facts["chosen"]:
            found["choice"] = facts["chosen"]
        found["inputs"] = _inputs(config["inputs"])
    if images := about.get("images"):
        found["instances seen in training"] = f"{images:,}"
    if seconds := about.get("seconds") or (history[-1]["seconds"] if history else None):
        found["training time"] = clock(seconds)
    return [*found.items(), ("seed", recipe["seed"])]


def _inputs(inputs: dict[str, Any]) -> str:
    if inputs.get("kind") == "table":
        return f"{inputs['channels']} columns"
    size = inputs.get("size")
    shape = f" of {size[0]} x {size[1]}" if size else ""
    return f"{'gray' if inputs['channels'] == 1 else 'colour'} pictures{shape}"
