"""The page of the paper's claims, with the two ablations that they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gaussianmlr._utils.files import write_text
from gaussianmlr.errors import DataError
from gaussianmlr.model.presets import Preset
from gaussianmlr.paper.claims import claims_of
from gaussianmlr.paper.court import Court
from gaussianmlr.paper.evidence import Evidence
from gaussianmlr.paper.pairs import NINE
from gaussianmlr.paper.plans import OWN_LOSS
from gaussianmlr.paper.published import published

__all__ = ["BEGIN", "END", "fill_page", "to_markdown", "write_claims"]

BEGIN, END = "<!-- claims: begin -->", "<!-- claims: end -->"


def _votes(court: Court) -> Iterator[str]:
    """How much of CRPC's printed rows each deviation of its published code explains."""
    landed, rows = court.evidence.landed, []
    for dataset, table in (("gray-s", "gray"), ("nsid", "real")):
        printed = published()[table, dataset, "crpc", "strong"]
        paper = f"{printed['tau_b'].mean:.2f} | {printed['hamming_loss'].mean:.2f}"
        rows.append(f"| {dataset} | printed in the paper | {paper} |")
        for name, settings, reading in (
            ("correct votes", (), ""),
            ("published vote", (), "vote=published"),
            ("published vote, tied pairs as losses", ("method_settings.ties=losses",), "vote=published"),
            (
                "both, with the paper's linear head",
                ("head=linear", "method_settings.ties=losses"),
                "vote=published",
            ),
        ):
            if dataset == "nsid" and "head=linear" in settings:
                continue  # its head is linear anyway
            cell = court.cell(dataset, "crpc", "strong", *settings).at(reading=reading)
            facts = landed.get(cell)
            shown = "not run | not run"
            if facts is not None:
                shown = f"{facts['metrics']['tau_b']:.2f} | {facts['metrics']['hamming_loss']:.2f}"
            rows.append(f"| {dataset} | {name} | {shown} |")
    yield "| set | CRPC strong, seed 0 | tau-b | Hamming loss |\n| --- | --- | ---: | ---: |\n" + "\n".join(
        rows
    )


def _loss(court: Court) -> Iterator[str]:
    """What the preset's loss changes."""
    rows = []
    for dataset in (*NINE, "nsid"):
        own = (OWN_LOSS, "method_settings.gauge=free") if dataset == "nsid" else (OWN_LOSS,)
        theirs, ours = court.cell(dataset, "gmlr", "strong", *own), court.cell(dataset, "gmlr")
        seeds = court.common_seeds(ours, theirs)
        metrics = ("tau_b", "hamming_loss")
        numbers = [
            f"{court.mean(cell, seeds, one):.2f}" for one in metrics for cell in (theirs, ours) if seeds
        ]
        rows.append(f"| {dataset} | {len(seeds)} | {' | '.join(numbers or ['not run'] * 4)} |")
    losses = "the paper's loss | the preset's"
    head = f"| set | seeds | tau-b, {losses} | Hamming loss, {losses} |"
    yield "\n".join([head, "| --- | ---: | ---: | ---: | ---: | ---: |", *rows])


def to_markdown(evidence: Evidence, preset: Preset) -> str:
    """Claims, evidence and verdicts, and the two ablations they rest on."""
    court = Court(evidence, preset)
    claims = claims_of(evidence, preset)
    lines = ["| claim | verdict |", "| --- | --- |"]
    lines += [f"| {claim.title} | **{claim.verdict}** |" for claim in claims]
    for claim in claims:
        lines += ["", f"### {claim.title}: {claim.verdict}", "", f"The paper: {claim.paper}", ""]
        lines += [f"- {line}" for line in claim.evidence]
    lines += ["", "### What CRPC's printed rows come from", "", *_votes(court)]
    lines += ["", "### The preset's loss and the paper's", "", *_loss(court)]
    return "\n".join(lines) + "\n"


def fill_page(page: str, text: str) -> str:
    r"""A page with the part between its marks replaced.

    Examples
    --------
    >>> page = f"# Claims\n{BEGIN}\nold\n{END}\nmore\n"
    >>> fill_page(page, "new\n").splitlines()
    ['# Claims', '<!-- claims: begin -->', '', 'new', '', '<!-- claims: end -->', 'more']
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise DataError(f"the page has no lines {BEGIN} and {END}, between which claims are written")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def write_claims(evidence: Evidence, preset: Preset, folder: Path, page: Path | None = None) -> list[Path]:
    """Write ``claims-PRESET.md``, and the part of a page between its marks."""
    text = to_markdown(evidence, preset)
    file = folder / f"claims-{preset}.md"
    filled = None if page is None else fill_page(page.read_text(encoding="utf-8"), text)
    write_text(file, f"# The paper's claims, preset `{preset}`\n\n{text}")
    if page is None or filled is None:
        return [file]
    write_text(page, filled)
    return [file, page]
