"""Checks a data set: lists all problems at once, with statistics."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gaussianmlr._utils.extras import require
from gaussianmlr._utils.progress import progress
from gaussianmlr.data.checks.exports import assemble_export
from gaussianmlr.data.checks.report import Report
from gaussianmlr.data.checks.slips import check_slips
from gaussianmlr.data.checks.texts import check_texts
from gaussianmlr.data.columns import Column, show_cell
from gaussianmlr.data.dataset import ORDERS_ALONE, RankedData
from gaussianmlr.data.open import find_data
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.arrays import array_frame
from gaussianmlr.data.readers.avdp import assemble_avdp
from gaussianmlr.data.readers.frames import FRAME_SUFFIXES, suffix_of
from gaussianmlr.data.readers.grades import Grading
from gaussianmlr.data.readers.images import MAX_PIXELS, open_image, read_image
from gaussianmlr.data.readers.instances import NO_ROW
from gaussianmlr.data.readers.layout import Layout
from gaussianmlr.data.readers.manifests import assemble_images
from gaussianmlr.data.readers.nsid import assemble_nsid, pictures_of
from gaussianmlr.data.readers.parts import LABEL_PREFIX, check_wanted
from gaussianmlr.data.readers.tables import assemble, read_with
from gaussianmlr.data.readers.texts import assemble_texts
from gaussianmlr.data.readers.xmlc import ranked_xmlc
from gaussianmlr.data.recognise import Kind, recognise
from gaussianmlr.data.sparse import SparseRankedData
from gaussianmlr.data.splits import left_out, unknown_splits
from gaussianmlr.data.statistics import describe_ranks
from gaussianmlr.errors import DataError, shorten
from gaussianmlr.rankers import agreement, reliability

_TRAIN = ["train", "validation", "val"]


def check(
    path: str | os.PathLike[str],
    *,
    labels: Sequence[str] | None = None,
    threshold: float | None = None,
    tolerance: float = 0.0,
    layout: Layout | None = None,
    max_pixels: int = MAX_PIXELS,
    workers: int | None = None,
    shown: bool = False,
) -> Report:
    r"""List every problem of a data set, and its statistics.

    Errors: orders, cells and pictures that cannot be read, labels that are not listed, an image or
    id named twice, the same picture or features in two splits, a table without features. Warnings: the
    same picture or features twice in one split, constant feature columns, labels that apply never or
    always, labels that were probably mistyped, splits that training does not know, animations.

    Parameters
    ----------
    path : path-like
        A table, a manifest of pictures or a folder with one, NSID, AVDP, or what `export_sets` wrote; folders
        may be archives.
    labels : sequence of str, optional
        The known labels; any other is an error.
    threshold, tolerance : float
        Read label columns as grades, as in `read_table`.
    layout : Layout, optional
        How a table or manifest is to be read.
    max_pixels : int
        Larger pictures are an error.
    workers : int, optional
        Threads that read pictures; the number of processors if left out.
    shown : bool
        Draw a progress bar on standard error.

    Returns
    -------
    Report

    Raises
    ------
    DataError
        Where nothing can be said: no such file, no orders in it, rows of other lengths than the header,
        options that cannot be meant.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gaussianmlr.data import check
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pathlib.Path(folder, "hills.csv")
    ...     _ = table.write_text("height,ranking\n3.1,mountain > sky\nhigh,sky >\n0.3,sky\n")
    ...     report = check(table)
    >>> for problem in report.problems:
    ...     print(problem.severity, problem)
    error row 1: 'sky >': empty bucket at the end; a label must stand there
    error row 1: 'high' in column 'height'; expected a number, or categories with --categories 'height',
    in Python kinds={'height': 'category'}
    warning label 'sky': applies to every instance; there is nothing to learn but its place
    """
    given = Path(path)
    check_wanted(labels)
    layout = layout or Layout()
    grading = Grading(threshold, tolerance, layout.missing, layout.positions)
    kind, root, notes = recognise(given, layout)
    problems = Problems()
    data: RankedData | None
    try:
        if kind == "export":
            data, digests = assemble_export(root, problems)
            _check_twins(data, digests, "image", problems)
        else:
            data = _read(kind, root, problems, labels, grading, layout)
    except DataError as error:
        if not problems:
            raise
        data = None
        more = str(error)
        if "\n" not in more and not more.endswith(NO_ROW):  # otherwise the problems say it already
            problems.add(kind, root.name, more.removeprefix(f"{root.name}: "))
    if data is not None:
        if kind in ("table", "texts") and data.kind == "orders":
            problems.add("feature", data.source, ORDERS_ALONE)
        _check_inputs(data, problems, max_pixels, workers, shown)
        _check_labels(data, problems)
        if labels is None and kind in ("table", "images", "texts", "parts"):
            check_slips(data, problems)
        _check_splits(data, problems)
    said = set(map(str, problems))
    return Report(
        path=str(given),
        kind=kind,
        problems=tuple(problems),
        notes=tuple(
            note for note in (*notes, *(problems.notes if data is None else data.notes)) if note not in said
        ),
        statistics={} if data is None else _statistics(data),
        data=data,
    )


def _read(
    kind: Kind,
    root: Path,
    problems: Problems,
    labels: Sequence[str] | None,
    grading: Grading,
    layout: Layout,
) -> RankedData:
    if kind == "nsid":
        return assemble_nsid(root, problems, orders_only=not pictures_of(root))
    if kind == "avdp":
        return assemble_avdp(root, problems)
    if kind == "xmlc":
        return ranked_xmlc(root, problems, labels=labels, layout=layout)
    settings: dict[str, Any] = {"labels": labels, "grading": grading, "layout": layout}
    if kind == "parts":  # whose bad rows are raised with their file
        grades: dict[str, Any] = {"threshold": grading.threshold, "tolerance": grading.tolerance}
        found = find_data(root, labels=labels, layout=layout, **grades)
        assert isinstance(found, RankedData)
        return found
    if kind == "texts":
        return assemble_texts(root, problems, **settings)
    if kind == "images":
        return assemble_images(root, root.parent, problems, image=None, allow_outside=False, **settings)
    if suffix_of(root) in FRAME_SUFFIXES:
        return assemble(root, problems, **settings)
    return _read_arrays(root, problems, labels, grading, layout)


def _read_arrays(
    root: Path, problems: Problems, labels: Sequence[str] | None, grading: Grading, layout: Layout
) -> RankedData:
    """NPZ and MATLAB files; what their reader refuses is read as a frame, which lists every problem."""
    try:
        return read_with(
            root, layout, labels=labels, threshold=grading.threshold, tolerance=grading.tolerance
        )
    except DataError:
        frame = array_frame(root, labels)
        if frame is None:  # the shapes are wrong, which the reader reported
            raise
        if suffix_of(root) == ".mat":
            grading = Grading(grading.threshold or 0.0, grading.tolerance)
        layout = Layout(features=_numbered(frame))
        found = assemble(frame, problems, labels=None, grading=grading, layout=layout)
        return replace(found, source=root.name)


def _numbered(frame: Any) -> tuple[str, ...]:
    """The features of a frame of arrays, whose columns are numbered."""
    return tuple(name for name in frame.columns if name.isdecimal())


class _Seen(NamedTuple):
    digest: bytes | None
    trouble: str
    frames: int


def _unread(problems: Problems, kind: str) -> set[str]:
    """The columns of a kind that could not be read and hold placeholders."""
    kinds = (kind, "number")
    return {one.where for one in problems if one.kind in kinds and one.where.startswith("column ")}


def _check_inputs(
    data: RankedData, problems: Problems, max_pixels: int, workers: int | None, shown: bool
) -> None:
    assert data.ids is not None  # RankedData fills them in
    if isinstance(data, SparseRankedData):
        found = data.features
        every = [slice(*both) for both in pairwise(found.indptr.tolist())]
        _check_twins(
            data,
            [
                hashlib.sha256(found.indices[row].tobytes() + found.data[row].tobytes()).digest()
                for row in every
            ],
            "row",
            problems,
        )
    elif data.features is not None:
        unread = _unread(problems, "feature")
        same = (data.features == data.features[:1]) | (np.isnan(data.features) & np.isnan(data.features[:1]))
        constant = np.flatnonzero(same.all(axis=0)) if len(data) > 1 else ()
        for column in map(int, constant):
            name = str(column) if data.feature_names is None else data.feature_names[column]
            held = Column() if data.encoding is None else data.encoding[column]
            value = show_cell(float(data.features[0, column]), held)
            if f"column {name!r}" not in unread:
                problems.add("feature", f"column {name!r}", f"is {value} in every row", "warning")
        _check_unseen(data, problems)
        check_texts(data, problems)
        if not unread:  # unreadable columns are not compared
            rows = np.ascontiguousarray(data.features)
            _check_twins(data, [hashlib.sha256(row.tobytes()).digest() for row in rows], "row", problems)
    if data.images is None:
        return
    seen = _look(data.images, max_pixels, workers, shown)
    for name, image, found in zip(data.ids, data.images, seen):
        if found.trouble:
            problems.add("image", name, found.trouble.removeprefix(f"{image}: "))
        elif found.frames > 1:
            problems.add("image", name, f"holds {found.frames} pictures; the first is used", "warning")
    _check_twins(data, [found.digest for found in seen], "image", problems)


def _check_unseen(data: RankedData, problems: Problems) -> None:
    """Warn of categories in the test part that no training row has."""
    if data.encoding is None or data.features is None or data.split is None:
        return
    train, test = (np.isin(data.split, names) for names in (_TRAIN, ["test"]))
    for place, column in enumerate(data.encoding):
        if column.kind != "category" or not train.any():
            continue
        values = data.features[:, place]
        new = test & ~np.isnan(values) & ~np.isin(values, values[train])
        if new.any():
            name = str(place) if data.feature_names is None else data.feature_names[place]
            first = show_cell(float(values[new][0]), column)
            what = f"{int(new.sum()):,} test rows hold categories that no training row has, such as {first!r}"
            problems.add("feature", f"column {name!r}", what, "warning")


def _look(images: Iterable[Path], max_pixels: int, workers: int | None, shown: bool) -> list[_Seen]:
    """Read every picture, in threads: decoders release the interpreter's lock."""
    require("checking pictures", "PIL")
    files = list(images)
    with (
        progress("reading pictures", len(files), shown=shown) as done,
        ThreadPoolExecutor(workers or min(8, os.cpu_count() or 1)) as pool,
    ):
        seen = []
        for found in pool.map(lambda file: _look_at(file, max_pixels), files):
            seen.append(found)
            done(1)
    return seen


def _look_at(file: Path, max_pixels: int) -> _Seen:
    try:
        read_image(file, max_pixels=max_pixels)
        with open_image(file) as image:
            # Phone cameras add a second view of the same scene (MPO); that is not an animation.
            frames = 1 if image.format == "MPO" else int(getattr(image, "n_frames", 1))
        return _Seen(hashlib.sha256(file.read_bytes()).digest(), "", frames)
    except (DataError, OSError) as error:
        return _Seen(None, str(error), 0)


def _check_twins(data: RankedData, digests: Sequence[bytes | None], what: str, problems: Problems) -> None:
    """Report inputs that occur twice: an error in two splits, a warning in one."""
    assert data.ids is not None
    groups: dict[bytes, list[int]] = defaultdict(list)
    for number, digest in enumerate(digests):
        if digest is not None:
            groups[digest].append(number)
    for first, *others in groups.values():
        for other in others:
            where, message = f"{what} {data.ids[other]!r}", f"is the same as {data.ids[first]!r}"
            if data.split is not None and data.split[first] != data.split[other]:
                splits = f"in {str(data.split[other])!r} instead of {str(data.split[first])!r}"
                problems.add("leak", where, f"{message}, but {splits}")
            else:
                problems.add("duplicate", where, message, "warning")


def _check_labels(data: RankedData, problems: Problems) -> None:
    unread = _unread(problems, "order")
    for label, about in describe_ranks(data.ranks, data.labels)["labels"].items():
        applies, said = about["relevant"], len(data) - about["unknown"]
        where = f"label {shorten(label)}"
        if {f"column {label!r}", f"column {LABEL_PREFIX + label!r}"} & unread:
            continue
        if said == 0:
            problems.add("label", where, "is unknown everywhere", "warning")
        elif applies == 0:
            problems.add("label", where, "never applies", "warning")
        elif applies == said:
            message = "applies to every instance; there is nothing to learn but its place"
            problems.add("label", where, message, "warning")


def _check_splits(data: RankedData, problems: Problems) -> None:
    unknown = unknown_splits(data)
    unknown.pop("", None)  # NSID's images of no part, which its notes count
    if unknown:
        problems.add("split", "split", left_out(unknown, len(data)), "warning")


def _statistics(data: RankedData) -> dict[str, Any]:
    found = data.describe()
    if data.by_ranker is not None and data.by_ranker.shape[1] > 1:
        found["rankers"]["agreement"] = _agreement(data)
    return found


def _agreement(data: RankedData) -> dict[str, Any] | None:
    assert data.by_ranker is not None
    assert data.rankers is not None
    try:
        agreed = agreement(data.by_ranker)
    except DataError:  # no two rankers share an instance
        return None
    each = {
        name: None if np.isnan(value) else float(value)
        for name, value in zip(data.rankers, agreed.tau_b_of_ranker)
    }
    trust = zip(data.rankers, reliability(data.by_ranker).tolist())
    return {
        "against_rest": agreed.against_rest,
        "tau_b_of_ranker": each,
        "reliability_of_ranker": {name: None if each[name] is None else value for name, value in trust},
        "pairwise_tau_b": agreed.pairwise_tau_b,
    }
