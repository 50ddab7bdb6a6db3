"""Checks of texts: empty ones, ones without letters, long ones, and ones that differ in case alone."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from gaussianmlr.data.columns import fit_columns, texts_at
from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.data.tokens import cut_lengths, default_encoder
from gaussianmlr.errors import shorten

__all__ = ["check_texts"]


def check_texts(data: RankedData, problems: Problems) -> None:
    """Warn of texts that a model learns little from; duplicates are reported as rows."""
    for place, column in enumerate(data.encoding or ()):
        if column.kind != "text" or data.features is None:
            continue
        name = str(place) if data.feature_names is None else data.feature_names[place]
        held = np.asarray(data.features[:, place : place + 1], dtype=np.float64)
        _check_column(data, texts_at(column, held[:, 0]), name, problems)
        (coded,) = fit_columns(held, (column,), default_encoder()) or ()
        assert coded.text is not None
        used = [column.categories[int(code)] for code in np.unique(held[~np.isnan(held)]).tolist()]
        if lengths := cut_lengths(used, coded.text):
            message = (
                f"{len(lengths):,} of {len(used):,} texts are longer than the {coded.text.tokens} tokens "
            )
            message += f"that {coded.text.encoder} reads, up to {max(lengths):,}: what follows is cut"
            problems.add("text", f"column {name!r}", message, "warning")


def _check_column(data: RankedData, texts: list[str], name: str, problems: Problems) -> None:
    assert data.ids is not None
    twins: dict[str, list[int]] = defaultdict(list)
    for row, text in enumerate(texts):
        where = f"row {data.ids[row]!r}"
        if not text:
            problems.add("text", where, f"nothing in column {name!r}; read as an empty text", "warning")
            continue
        if not any(sign.isalpha() for sign in text):
            problems.add("text", where, f"{shorten(text, 40)} in column {name!r} holds no letter", "warning")
        twins[" ".join(text.casefold().split())].append(row)
    for first, *others in twins.values():
        for other in others:
            if texts[other] != texts[first]:  # the same ones are reported as the same rows
                message = f"its text is that of {data.ids[first]!r} but for case and spaces"
                problems.add("duplicate", f"row {data.ids[other]!r}", message, "warning")
