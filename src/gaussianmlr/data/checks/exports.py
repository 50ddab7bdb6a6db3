"""Checks exports of Ranked MNIST as NPZ or Parquet, which hold no image files."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from gaussianmlr._utils.strict_json import loads
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.ranked_mnist.export import ABOUT, load_export
from gaussianmlr.errors import DataError
from gaussianmlr.orders import check_ranks


def assemble_export(folder: Path, problems: Problems) -> tuple[RankedData, list[bytes]]:
    """The orders of every readable split and one digest per picture; one split is in memory at a time."""
    about: dict[str, Any] = loads((folder / ABOUT).read_text("utf-8"))
    ranks, splits, ids, digests = [], [], [], []
    shapes = set()
    for split, told in about["splits"].items():
        try:
            batch = load_export(folder, split)
            checked = check_ranks(batch.ranks)
            if not len(batch.images) == len(checked) == told["size"]:
                counts = f"{len(batch.images):,} pictures and {len(checked):,} orders"
                raise DataError(f"{counts}; {ABOUT} says {told['size']:,}")
        # a damaged file can make zip, zlib and pyarrow raise anything
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            problems.add("split", f"split {split!r}", f"cannot be read: {error}")
            continue
        ranks.append(checked)
        splits += [split] * len(checked)
        ids += [f"{split} {number}" for number in range(len(checked))]
        digests += [hashlib.sha256(image.tobytes()).digest() for image in batch.images]
        shapes.add(" x ".join(map(str, batch.images.shape[1:])))
    if not ranks:
        raise DataError(f"{folder}: no split can be read")
    data = RankedData(
        ranks=np.concatenate(ranks),
        labels=tuple(about["labels"]),
        split=np.array(splits, dtype=np.str_),
        ids=tuple(ids),
        source=folder.name,
        notes=(f"{about['setting']['name']} as {about['format']}: pictures of {', '.join(sorted(shapes))}",),
    )
    return data, digests
