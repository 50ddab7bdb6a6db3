"""From files to a store: all rows are read once, in parts, and checked as a table in memory is."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr.data.cells import EXPECTED
from gaussianmlr.data.coding import Column
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problem, Problems
from gaussianmlr.data.readers.assembly import as_category
from gaussianmlr.data.readers.chunks import frames_in, known_rows
from gaussianmlr.data.readers.layout import fold
from gaussianmlr.data.readers.manifests import locate
from gaussianmlr.data.readers.numerals import with_numbers
from gaussianmlr.data.readers.parts import find_columns
from gaussianmlr.data.readers.separated import check_names
from gaussianmlr.data.readers.tables import FilePart, assemble
from gaussianmlr.data.streaming.files import RowFiles
from gaussianmlr.data.streaming.look import Look, refuse_others
from gaussianmlr.data.streaming.sets import held_part
from gaussianmlr.data.streaming.store import About, Block, Store, StoreWriter, as_ranks, shard_rows
from gaussianmlr.errors import DataError, shorten

__all__ = ["build", "read_parts"]

MOST_TEXTS = 1_000_000  # different categories of a column
_CELLS, _FEWEST, _MOST = 1 << 22, 64, 65_536  # cells, and rows, that are read at a time
_MOST_PARTS = 100
_EXPECTED = tuple(EXPECTED[kind] for kind in ("number", "boolean", "date"))
Progress = Callable[[int, int], None]


def build(rows: RowFiles, seen: Look, folder: Path, progress: Progress | None = None) -> Store:
    """Read all rows into a folder that does not exist yet.

    Parameters
    ----------
    rows : RowFiles
        The files.
    seen : Look
        What their first rows say.
    folder : Path
        The new folder. A hundred million cells take about a gigabyte.
    progress : callable, optional
        Called with the numbers of read and of all rows; of all, 0 where it is not known.

    Raises
    ------
    DataError
        Naming file and row, if some cannot be read.
    """
    found = _Builder(rows, seen, folder, progress or (lambda done, total: None))
    try:
        return found.build()
    except OSError as error:
        raise DataError(f"cannot write rows to {folder}: {error.strerror or error}") from None


class _Builder:
    def __init__(self, rows: RowFiles, seen: Look, folder: Path, progress: Progress) -> None:
        self.rows, self.seen, self.progress = rows, seen, progress
        sample, columns = seen.sample, seen.columns
        self.pictures = rows.kind == "images"
        used = [] if self.pictures else list(sample.feature_names or ())
        self.found = {label: place for place, label in enumerate(sample.labels)}
        # Of each column of categories, the code of each text.
        self.texts: dict[str, dict[str, int]] = {
            name: {} for name, kind in seen.kinds.items() if kind == "category"
        }
        self.parts: dict[str, int] = {} if columns.split else {"train": 0}
        self.empty = 0
        single = sample.features is not None and sample.features.dtype == np.float32
        about = About(
            source=rows.path.name,
            columns=used,
            kind=rows.kind,
            folder=str(rows.files[0].parent.resolve()) if self.pictures else "",
            single=single,
            weighted=columns.weight is not None,
            named=columns.id is not None,
            split=columns.split is not None,
        )
        name_bytes = 64 if about.named else 0
        about.shard_rows = shard_rows(len(used) * (4 if single else 8) + 2 * len(self.found) + 4 + name_bytes)
        self.about, self.total = about, known_rows(rows.files)
        needed = self.total * (len(used) * (4 if single else 8) + 2 * len(self.found) + 17)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(folder.parent).free) < needed:
            raise DataError(
                f"{rows.path}: {self.total:,} rows take {needed >> 20:,} MB of disk; {folder.parent} has "
                f"{free >> 20:,} MB left"
            )
        self.writer = StoreWriter(folder, about)

    def build(self) -> Store:
        digest = hashlib.sha256()
        with contextlib.closing(self.writer):
            for file in self.rows.files:
                for data in self._chunks(file):
                    block, parts = self._block(data)
                    self.writer.add(block, parts)
                    self.progress(self.about.rows, self.total)
        about = self.about
        if about.rows == 0:
            raise DataError(f"{self.rows.path}: no rows; expected at least one instance")
        about.found = [*self.found]
        in_texts = self.seen.columns.ranking is not None and self.rows.labels is None
        about.labels = sorted(self.found) if in_texts else [*self.found]
        kinds = self.seen.kinds
        held = [
            Column(kinds[name], tuple(self.texts[name])) if name in self.texts else Column(kinds[name])
            for name in about.columns
        ]
        about.encoding = [one.to_dict() for one in held]
        about.parts = [*self.parts]
        about.notes = list(self.seen.sample.notes)
        if self.empty:
            about.notes.append(f"{self.empty:,} of {about.rows:,} orders are empty: no label applies there")
        store = Store.make(self.writer.folder, about)
        for shard in range(store.shards):
            block = store.block(shard)
            for piece in (block.features, block.ranks, block.weights, store.parts_of(shard)):
                digest.update(piece.tobytes())
            digest.update("\0".join(block.names).encode("utf-8", "surrogatepass"))
        digest.update(repr((about.labels, about.columns, about.encoding, about.parts)).encode())
        store.about.fingerprint = digest.hexdigest()
        store.save()
        return store

    def _chunks(self, file: Path) -> Iterator[RankedData]:
        """The rows of a file, checked."""
        name, seen, first = self.rows.name(file), self.seen, 0
        count = min(_MOST, max(_FEWEST, _CELLS // max(1, len(self.about.columns) + len(self.found))))
        folded = {fold(one) for one in seen.texts}
        for frame, written in frames_in(file, seen.texts, seen.layout, count):
            problems = Problems()
            check_names(list(frame.columns), name)
            self._check_roles(frame, name)
            rows = len(frame)
            frame = with_numbers(
                frame, frame if written is None else written, folded, seen.layout.decimal, [], problems
            )
            data = assemble(
                frame,
                problems,
                layout=seen.layout,
                grading=self.rows.grading,
                labels=self._labels_of(frame),
                kinds=seen.kinds,
                part=FilePart(name, first),
            )
            if self.pictures:
                self._check_pictures(data, problems)
            Problems(self._hinted(problems)).raise_errors(name)
            yield data
            first += rows

    def _hinted(self, problems: Problems) -> Iterator[Problem]:
        """Problems, those of cells that do not fit what the first rows say with a hint, once per column."""
        told = set(self.rows.kinds)
        for one in problems:
            found = re.search(r" in column '(.*)'; expected (.*)", one.message)
            if found and found[2] in _EXPECTED and found[1] in self.seen.kinds and found[1] not in told:
                told.add(found[1])
                one = replace(one, message=f"{one.message}, or categories {as_category(found[1])}")
            yield one

    def _check_roles(self, frame: Any, name: str) -> None:
        """Refuse a file whose columns are not those of the first ones."""
        here = find_columns(list(frame.columns), name, self.seen.layout, self.rows.listed)
        refuse_others(name, "label", here.labels or (), self.seen.columns.labels or ())
        if not self.pictures:
            refuse_others(name, "feature", here.features, self.about.columns)
        for role in ("ranking", "split", "weight", "ranker", "id"):
            there = getattr(self.seen.columns, role)
            if (there is None) != (getattr(here, role) is None):
                which = "has no" if there is not None else "alone has a"
                raise DataError(f"{name}: {which} column {there or getattr(here, role)!r} ({role})")

    def _labels_of(self, frame: Any) -> list[str] | None:
        """The labels that are known before orders are read; those so far, if all orders are empty."""
        ranking = self.seen.columns.ranking
        if self.rows.listed is not None or ranking is None:
            return self.rows.listed
        cells = frame[ranking] if ranking in frame.columns else None
        if cells is None or bool((cells.notna() & (cells.astype(str).str.strip() != "")).any()):
            return None
        return [*self.found]

    def _check_pictures(self, data: RankedData, problems: Problems) -> None:
        folder = Path(self.about.folder)
        for name in data.ids or ():
            if "\0" in name:
                problems.add("image", repr(name), "holds a NUL; expected a path")
            elif trouble := locate(folder, name)[1]:
                problems.add("image", name, trouble)

    def _block(self, data: RankedData) -> tuple[Block, npt.NDArray[np.uint8]]:
        for label in data.labels:
            self.found.setdefault(label, len(self.found))
        ranks = np.zeros((len(data), len(self.found)), dtype=np.int16)
        ranks[:, [self.found[label] for label in data.labels]] = as_ranks(data.ranks)
        if self.seen.columns.ranking is not None:
            self.empty += int((data.ranks == 0).all(1).sum())
        if not self.about.ties:
            ordered = np.sort(data.ranks, axis=1)
            self.about.ties = bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any())
        weights = np.zeros(0, dtype=np.float32)
        if data.weights is not None:
            weights = data.weights.astype(np.float32)
        names = list(data.ids or ()) if self.about.named else []
        return Block(self._features(data), ranks, weights, names), self._parts_of(data)

    def _features(self, data: RankedData) -> npt.NDArray[Any]:
        kind = np.float32 if self.about.single else np.float64
        if data.features is None:
            return np.zeros((len(data), 0), dtype=kind)
        features = data.features.astype(kind)
        for place, name in enumerate(data.feature_names or ()):
            if name not in self.texts:
                continue
            known = self.texts[name]
            categories = data.encoding[place].categories if data.encoding else ()
            codes = [known.setdefault(text, len(known)) for text in categories]
            if len(known) > MOST_TEXTS:
                shown = shorten(next(iter(known)), 40)
                raise DataError(
                    f"{self.rows.path}: column {name!r} holds more than {MOST_TEXTS:,} different texts, such "
                    f"as {shown}; leave it out with --drop {name!r}"
                )
            held = ~np.isnan(features[:, place])
            if held.any():
                where = features[held, place].astype(np.intp)
                features[held, place] = np.array(codes, dtype=np.float64)[where]
        return features

    def _parts_of(self, data: RankedData) -> npt.NDArray[np.uint8]:
        if data.split is None:
            return np.zeros(len(data), dtype=np.uint8)
        names, codes = np.unique(data.split, return_inverse=True)
        found = [self.parts.setdefault(str(name), len(self.parts)) for name in names]
        if len(self.parts) > _MOST_PARTS:
            shown = shorten([*self.parts][:5])
            raise DataError(f"{self.rows.path}: more than {_MOST_PARTS} different splits, such as {shown}")
        return np.array(found, dtype=np.uint8)[codes.reshape(-1)]


def read_parts(rows: RowFiles, seen: Look, folder: Path) -> RankedData:
    """All rows in memory; `folder`, which does not exist, is used on the way."""
    try:
        return held_part(build(rows, seen, folder), None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
