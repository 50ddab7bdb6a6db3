"""The model card: what a model is, what it was measured on, what it is for, as Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gaussianmlr._utils.display import NAMES
from gaussianmlr._utils.tables import markdown, markdown_table
from gaussianmlr._version import __version__
from gaussianmlr.data.inputs import shown_inputs

if TYPE_CHECKING:
    from gaussianmlr.model.model import Model

__all__ = ["model_card"]

_LABELS = 30
# What the Hub reads. Nothing in it comes from a model, so that no label can change it.
_FRONT = """---
library_name: gaussianmlr
tags:
- multi-label-ranking
- label-ranking
- uncertainty
---
"""
_USE = (
    "To say which of the labels apply to inputs like those of the training data, in which order of "
    "significance, and how sure that is. Check it on your own data first: on other inputs its order, and "
    "even more its probabilities, may be wrong."
)


def model_card(model: Model, *, data: str = "", use: str = "") -> str:
    """A model card, as Markdown.

    Parameters
    ----------
    model : Model
        The model.
    data : str
        What it was trained on, in Markdown of yours.
    use : str
        What it is for and what not, in Markdown of yours, in place of a general sentence.

    Examples
    --------
    >>> from gaussianmlr.model import Model, Recipe, build
    >>> inputs, recipe = {"kind": "table", "channels": 2}, Recipe(backbone="mlp")
    >>> card = model_card(Model(*build(recipe, 2, inputs), ("sky", "sea"), recipe, inputs))
    >>> card.splitlines()[8]
    '# gmlr (strong) on mlp'
    """
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    about, labels = model.about, model.labels
    more = " ..." if len(labels) > _LABELS else ""
    lines = [
        f"# {model.method.name} ({model.method.supervision}) on {model.made_of}",
        "",
        f"A multi-label ranking model of gaussianmlr {__version__}, {parameters:,} parameters.",
        "",
        f"- Labels ({len(labels)}): {', '.join(map(markdown, labels[:_LABELS]))}{more}",
        f"- Inputs: {markdown(json.dumps(shown_inputs(model.inputs), ensure_ascii=False))}",
    ]
    if model.calibration is not None:
        one, other = model.calibration.relevance, model.calibration.pairs
        lines.append(f"- Temperatures: {one:.3g} of relevance, {other:.3g} of pairs")
    if (ties := about.get("ties")) is not None:
        gain = f"{ties['gain']:+.3f} per instance over the rate of ties"
        lines.append(f"- Ties: predicted by a learned threshold, whose log-likelihood gains {gain}")
    if model.conformal is not None:
        lines.append(f"- Guarantees: calibrated on {model.conformal.rows:,} rows")
    lines += ["", "## Training data", ""]
    lines += [data, ""] if data else []
    seen = about.get("images")
    lines.append(
        f"- Training instances seen, over all epochs: {f'{seen:,}' if isinstance(seen, int) else 'unknown'}"
    )
    if fingerprint := about.get("fingerprint"):
        lines.append(f"- Fingerprint: `{str(fingerprint).replace('`', '')}`")
    lines += ["", "## Metrics", ""]
    if metrics := about.get("metrics"):
        columns = {"model": metrics, **_peers(model)}
        rows = [
            [NAMES.get(name, markdown(name)), *(_percent(column.get(name)) for column in columns.values())]
            for name in metrics
        ]
        where = markdown(str(about.get("measured_on", "validation")))
        head = ["metric", *("value" if name == "model" else name for name in columns)]
        lines += [f"Measured on {where} data, in percent:", "", *markdown_table(head, rows)]
    else:
        lines.append("None were recorded in training; `gmlr evaluate FOLDER DATA` measures them.")
    lines += ["", "## Intended use", "", use or _USE, ""]
    ending = (
        "Load it with `gaussianmlr.load(FOLDER)`, from the Hub with "
        "`gaussianmlr.model.Model.from_pretrained(NAME)`; the recipe is in `config.json`."
    )
    return _FRONT + "\n" + "\n".join([*lines, ending, ""])


def _peers(model: Model) -> dict[str, dict[str, float]]:
    """Metrics of simple predictors on the same instances, if the model knows them."""
    peers = model.about.get("peers", {})
    named = {"constant_order": "constant order", "forest": "random forest"}
    return {text: peers[name]["metrics"] for name, text in named.items() if "metrics" in peers.get(name, {})}


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"
