"""NSID: 2,000 natural scenes, each ordered by ten people over nine labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gaussianmlr._utils.strict_json import loads
from gaussianmlr.data.dataset import IntArray, RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.readers.archives import find_file, folder_of
from gaussianmlr.data.readers.instances import aggregated
from gaussianmlr.data.readers.matlab import load_mat
from gaussianmlr.errors import DataError, shorten

LABELS = ("plant", "sky", "cloud", "snow", "building", "desert", "mountain", "water", "sun")
ORDERS_FILE = "pic_scene.mat"
SPLIT_FILE = "config.json"
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp")
_WHERE = (
    "NSID is a folder (or archive) with `pic_scene.mat` (the orders of ten rankers), `config.json` (the "
    'split, {"train": [1-based numbers], "test": [...]}) and the pictures `N.jpg`; its authors (Geng and '
    "Luo, Multilabel ranking with inconsistent rankers, CVPR 2014; pictures: Zhou and Zhang) hand it out "
    "for academic use"
)


def read_nsid(
    path: str | os.PathLike[str],
    *,
    features: str | os.PathLike[str] | npt.ArrayLike | None = None,
    orders_only: bool = False,
    aggregate: str = "mean_rank",
) -> RankedData:
    """Read the natural scenes: aggregated orders of ten rankers, with pictures or features.

    Instances without a relevant label after aggregation are left out (image 254, by mean rank), and
    so are those whose picture is not there; `notes` says how many and why.

    Parameters
    ----------
    path : path-like
        The folder or archive (zip, tar) with ``pic_scene.mat``, ``config.json`` and any of the pictures.
    features : array [2000, D], or path of an NPY or NPZ file, optional
        Features instead of pictures, row i for image i + 1. An NPZ holds ``features`` and, where it has some
        of the images only, their 1-based ``numbers``.
    orders_only : bool
        Read all orders, without pictures or features.
    aggregate : str
        How the rankers are aggregated, see `gaussianmlr.rankers.aggregate`.

    Returns
    -------
    RankedData
        With `by_ranker` [N, 10, 9]; ids are the image numbers.

    References
    ----------
    X. Geng and L. Luo, Multilabel ranking with inconsistent rankers, CVPR 2014.

    Examples
    --------
    >>> import tempfile, numpy as np, scipy.io
    >>> from gaussianmlr.data import read_nsid
    >>> sky_first = [2, 1, 10, 3, 4, 5, 6, 7, 8, 9]  # by number; 10 ends what is relevant
    >>> pictures = np.zeros((1, 1), dtype=[("label", "O")])
    >>> pictures["label"][0, 0] = np.array([sky_first] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scipy.io.savemat(f"{folder}/pic_scene.mat", {"pic": pictures})
    ...     data = read_nsid(folder, orders_only=True)
    >>> data.orders(), data.by_ranker.shape, data.notes
    (['sky > plant'], (1, 10, 9), ('no config.json: the data has no split',))
    """
    problems = Problems()
    data = assemble_nsid(path, problems, features=features, orders_only=orders_only, aggregate=aggregate)
    problems.raise_errors(data.source)
    return data


def assemble_nsid(
    path: str | os.PathLike[str],
    problems: Problems,
    *,
    features: str | os.PathLike[str] | npt.ArrayLike | None = None,
    orders_only: bool = False,
    aggregate: str = "mean_rank",
) -> RankedData:
    """The readable part of the scenes; problems are noted."""
    folder = folder_of(path)
    orders = find_file(folder, ORDERS_FILE)
    if orders is None:
        raise DataError(f"{path}: no {ORDERS_FILE}. {_WHERE}")
    by_ranker, good = _by_ranker(_permutations(orders), problems)
    ranks = aggregated(by_ranker, aggregate)
    count = len(ranks)
    notes: list[str] = []
    split = _split(
        find_file(orders.parent, SPLIT_FILE) or find_file(folder, SPLIT_FILE), count, problems, notes
    )
    keep = good.copy()
    for row in np.flatnonzero(good & ~(ranks > 0).any(axis=1)).tolist():
        notes.append(f"image {row + 1} left out: no label is relevant after aggregation ({aggregate})")
        keep[row] = False
    images: list[Path] | None = None
    matrix = None
    if features is not None:
        matrix, there = _features(features, count)
        keep = _leave_out(keep, there, "no features of theirs were given", notes)
    elif not orders_only:
        found = pictures_of(folder)
        there = np.array([number in found for number in range(1, count + 1)])
        if not there.any():
            raise DataError(
                f"{path}: no pictures such as 1.jpg; features=... or orders_only=True do without. {_WHERE}"
            )
        keep = _leave_out(keep, there, "their pictures are not there", notes)
        images = [found.get(number, folder / f"{number}.jpg") for number in range(1, count + 1)]
    if not keep.any():
        problems.raise_errors(Path(path).name)
        raise DataError(f"{path}: no image of the set has both an order and an input")
    return RankedData(
        ranks=ranks,
        labels=LABELS,
        features=matrix,
        images=None if images is None else tuple(images),
        by_ranker=by_ranker,
        split=split,
        ids=tuple(str(number) for number in range(1, count + 1)),
        source=f"NSID ({Path(path).name})",
        notes=tuple(notes),
    ).subset(keep)


def _permutations(path: Path) -> list[npt.NDArray[Any]]:
    """One matrix [rankers, 10] per image: labels by number, most relevant first, 10 the virtual one."""
    pictures = load_mat(path, ("pic",))["pic"]
    if pictures.dtype.names is None or "label" not in pictures.dtype.names:
        raise DataError(f"{path}: no struct 'pic' with a field 'label'; it holds {shorten(pictures)}")
    if not pictures.size:
        raise DataError(f"{path}: 'pic' is empty; expected a struct per image")
    nothing = np.zeros((1, 1))  # no order
    return [nothing if labels is None or not len(labels) else labels for labels in pictures["label"].flat]


def _by_ranker(
    permutations: list[npt.NDArray[Any]], problems: Problems
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    rankers = max(len(matrix) for matrix in permutations)
    by_ranker = np.full((len(permutations), rankers, len(LABELS)), -1, dtype=np.int64)
    good = np.ones(len(permutations), dtype=bool)
    virtual = len(LABELS) + 1
    for number, matrix in enumerate(permutations):
        bad = [row for row in matrix.tolist() if sorted(row) != list(range(1, virtual + 1))]
        if bad:
            expected = f"expected a permutation of 1..{virtual}"
            problems.add("order", f"image {number + 1}", f"{shorten(bad[0])}; {expected}")
            good[number] = False
            continue
        # Before the virtual label: m, m-1, ..., 1. Behind it: irrelevant.
        places = np.argsort(matrix, axis=1)
        by_ranker[number, : len(matrix)] = np.maximum(places[:, -1:] - places[:, :-1], 0)
    return by_ranker, good


def _split(
    path: Path | None, count: int, problems: Problems, notes: list[str]
) -> npt.NDArray[np.str_] | None:
    if path is None:
        notes.append(f"no {SPLIT_FILE}: the data has no split")
        return None
    try:
        parts = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(parts, dict) or not all(isinstance(numbers, list) for numbers in parts.values()):
        raise DataError(f'{path}: expected {{"train": [1-based numbers], "test": [...]}}')
    split = np.full(count, "", dtype=f"<U{max(map(len, parts), default=1)}")
    for part, numbers in parts.items():
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
                problems.add(
                    "split", path.name, f"{shorten(number)} in {part!r}; expected numbers 1..{count}"
                )
            elif split[number - 1]:
                message = f"image {number} is in {str(split[number - 1])!r} and in {part!r}"
                problems.add("split", path.name, message)
            else:
                split[number - 1] = part
    if (split == "").any():
        notes.append(f"{int((split == '').sum())} images are in no part of the split (split '')")
    return split


def pictures_of(folder: Path) -> dict[int, Path]:
    """The picture of each number; of several, the one nearest to the top."""
    found: dict[int, Path] = {}
    files = (file for file in folder.rglob("*") if file.stem.isdecimal() and file.suffix.lower() in SUFFIXES)
    for file in sorted(files, key=lambda file: (len(file.parts), file)):
        found.setdefault(int(file.stem), file)
    return found


def _features(source: Any, count: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    numbers = None
    if isinstance(source, str | os.PathLike):
        try:
            loaded = np.load(source, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{source}: cannot be read as NPY or NPZ: {error}") from None
        if isinstance(loaded, np.lib.npyio.NpzFile):
            with loaded:
                if "features" not in loaded.files:
                    raise DataError(
                        f"{source}: no array 'features'; it holds {shorten(sorted(loaded.files))}"
                    )
                source = loaded["features"]
                numbers = loaded["numbers"] if "numbers" in loaded.files else None
        else:
            source = loaded
    values = np.asarray(source)
    if numbers is None:
        if len(values) != count:
            raise DataError(
                f"expected features of {count} images, row i for image i + 1, got {len(values)} rows"
            )
        return values, np.ones(count, dtype=bool)
    if numbers.shape != values.shape[:1] or not np.isin(numbers, np.arange(1, count + 1)).all():
        raise DataError(
            f"expected one number 1..{count} per row of features, got {shorten(numbers.tolist())}"
        )
    whole = np.zeros((count, *values.shape[1:]), dtype=values.dtype)
    there = np.zeros(count, dtype=bool)
    whole[numbers - 1], there[numbers - 1] = values, True
    return whole, there


def _leave_out(
    keep: npt.NDArray[np.bool_], there: npt.NDArray[np.bool_], why: str, notes: list[str]
) -> npt.NDArray[np.bool_]:
    lost = int((keep & ~there).sum())
    if lost:
        notes.append(f"{lost} images left out: {why}")
    return keep & there
