"""AVDP: pictures of architecture, each with up to three of nine design principles in order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaussianmlr._utils.strict_json import loads
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.archives import find_file, folder_of
from gaussianmlr.data.readers.manifests import locate
from gaussianmlr.errors import DataError, shorten

LABELS = (
    "asymmetric",
    "color",
    "crystallographic",
    "flowing",
    "isolation",
    "progressive",
    "regular",
    "shape",
    "symmetric",
)
LABELS_FILE = "splitted_labels.json"
PARTS = ("train", "val", "test")
_WHERE = (
    "AVDP is a folder (or archive) with the pictures and `splitted_labels.json`, "
    '{domain: {"train" | "val" | "test": [[relative path, [first, second, third]], ...]}} with class '
    "numbers 1..9 and -1 for none; it is private, ask the authors of the paper"
)


class Entry(NamedTuple):
    """One picture of the label file."""

    domain: str
    part: str
    name: str
    ranks: list[int]


def read_avdp(
    path: str | os.PathLike[str], *, domain: str | None = None, orders_only: bool = False
) -> RankedData:
    """Read the architecture set by the layout of its label file.

    Parameters
    ----------
    path : path-like
        The folder or archive (zip, tar) with ``splitted_labels.json`` and the pictures, below the label file
        or below a folder named by the domain.
    domain : str, optional
        One of the domains; all of them if left out.
    orders_only : bool
        Do not look for the pictures.

    Returns
    -------
    RankedData
        The first label has the highest rank; the split says ``train``, ``val`` or ``test``; ids are
        ``domain/relative path``.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from gaussianmlr.data import read_avdp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = {"houses": {"train": [["a.jpg", [9, 2, -1]]], "test": [["b.jpg", [4, -1, -1]]]}}
    ...     _ = pathlib.Path(folder, "splitted_labels.json").write_text(json.dumps(rows))
    ...     data = read_avdp(folder, orders_only=True)
    >>> data.orders(), data.splits
    (['symmetric > color', 'flowing'], {'train': 1, 'test': 1})
    """
    problems = Problems()
    data = assemble_avdp(path, problems, domain=domain, orders_only=orders_only)
    problems.raise_errors(data.source)
    return data


def assemble_avdp(
    path: str | os.PathLike[str], problems: Problems, *, domain: str | None = None, orders_only: bool = False
) -> RankedData:
    """The readable part of the set; problems are noted."""
    folder = folder_of(path)
    labels_file = find_file(folder, LABELS_FILE)
    if labels_file is None:
        raise DataError(f"{path}: no {LABELS_FILE}. {_WHERE}")
    try:
        domains = loads(labels_file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{labels_file}: cannot be read as JSON: {error}") from None
    if not isinstance(domains, dict) or not all(isinstance(parts, dict) for parts in domains.values()):
        raise DataError(f"{labels_file}: not the layout expected. {_WHERE}")
    if domain is not None and domain not in domains:
        raise DataError(f"{path}: no domain {domain!r}; there are {shorten(sorted(domains))}")
    chosen = domains if domain is None else {domain: domains[domain]}
    entries = list(_entries(chosen, problems))
    images: list[Path] | None = None
    if not orders_only:
        entries, images = _pictures(entries, labels_file.parent, problems)
    if not entries:
        problems.raise_errors(Path(path).name)
        raise DataError(f"{path}: no picture with an order. {_WHERE}")
    return RankedData(
        ranks=np.array([entry.ranks for entry in entries]),
        labels=LABELS,
        images=None if images is None else tuple(images),
        split=np.array([entry.part for entry in entries]),
        ids=tuple(f"{entry.domain}/{entry.name}" for entry in entries),
        source=f"AVDP ({Path(path).name})",
        notes=(f"domains: {', '.join(map(str, chosen))}",),
    )


def _entries(domains: dict[str, Any], problems: Problems) -> Iterator[Entry]:
    for domain, parts in domains.items():
        for part, rows in parts.items():
            where = f"{domain}/{part}"
            if part not in PARTS or not isinstance(rows, list):
                problems.add("split", where, f"expected lists called {', '.join(PARTS)}")
                continue
            for number, row in enumerate(rows):
                try:
                    name, classes = row
                    yield Entry(domain, part, str(name), _ranks(classes))
                except (TypeError, ValueError) as error:
                    reason = (
                        error if isinstance(error, DataError) else "expected [path, [first, second, third]]"
                    )
                    problems.add("order", f"{where}[{number}]", f"{shorten(row)}: {reason}")


def _ranks(classes: Any) -> list[int]:
    ranks = [0] * len(LABELS)
    if not isinstance(classes, list) or len(classes) > 3:
        raise DataError("expected up to three class numbers")
    named = [number for number in classes if number != -1]
    for place, number in enumerate(named):
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(LABELS):
            raise DataError(f"class {number!r}; expected 1..{len(LABELS)}, or -1 for none")
        if ranks[number - 1]:
            raise DataError(f"class {number} is named twice")
        ranks[number - 1] = len(named) - place
    return ranks


def _pictures(entries: list[Entry], folder: Path, problems: Problems) -> tuple[list[Entry], list[Path]]:
    kept: list[Entry] = []
    files: list[Path] = []
    for entry in entries:
        file, trouble = locate(folder, entry.name)
        if trouble == "does not exist":
            below, worse = locate(folder, f"{entry.domain}/{entry.name}")
            file, trouble = (below, "") if not worse else (file, trouble)
        if trouble:
            problems.add("image", entry.name, f"{trouble} ({entry.domain}/{entry.part})")
            continue
        kept.append(entry)
        files.append(file)
    return kept, files
