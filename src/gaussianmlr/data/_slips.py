"""Labels that were probably mistyped."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from difflib import SequenceMatcher

from gaussianmlr.data._problems import Problems
from gaussianmlr.data.dataset import RankedData

_RARE = 0.01  # of the orders; once is rare too
_OFTEN = 10  # times as often as the rare one
_ALIKE = 0.8
_SHORTEST = 4  # words below it are too often one letter apart: cat, car
_SIGNS = re.compile(r"[<≤≥≺≻→;]|(?<=\s)-$")  # "sky -> sea" leaves "sky -" before the ">"
_WORD = re.compile(r"[^\W\d_]+")  # numbers tell labels apart: step 1, step 2


def check_slips(data: RankedData, problems: Problems) -> None:
    """Warn of labels that hold foreign signs, or differ too little from another one."""
    orders = data.ranks if data.by_ranker is None else data.by_ranker.reshape(-1, len(data.labels))
    counts = dict(zip(data.labels, (orders > 0).sum(axis=0).tolist()))
    parts = {label: {part.strip() for part in _SIGNS.split(label)} for label in data.labels}
    seen = Counter(part for found in parts.values() for part in found)
    for label in data.labels:
        sign = _SIGNS.search(label)
        # A sign between labels that stand elsewhere was meant to order them; "age < 18" is a label.
        if sign and (sign[0] == "-" or any(part and seen[part] > 1 for part in parts[label])):
            shown = "->" if sign[0] == "-" else sign[0]
            message = f"holds {shown!r}; orders are written with '>' and, for ties, '='"
            problems.add("label", f"label {label!r}", message, "warning")
    same: dict[str, list[str]] = defaultdict(list)
    for label in data.labels:
        same["".join(label.casefold().split())].append(label)
    for group in same.values():
        first, *others = sorted(group, key=lambda label: -counts[label])
        for label in others:
            message = f"differs from {first!r} in case or spaces alone{_often(counts, label, first)}"
            problems.add("label", f"label {label!r}", message, "warning")
    given = int((orders >= 0).any(axis=1).sum())
    for label, other in _mistyped(counts, max(1.0, _RARE * given)):
        message = f"is it {other!r}?{_often(counts, label, other)}"
        problems.add("label", f"label {label!r}", message, "warning")


def _often(counts: dict[str, int], label: str, other: str) -> str:
    return f" (applies {counts[label]:,} times, the other {counts[other]:,})"


def _mistyped(counts: dict[str, int], rare: float) -> list[tuple[str, str]]:
    """Rare labels, and the frequent one each looks like."""
    words = {label: _WORD.findall(label.casefold()) for label in counts}
    # Two texts that are one slip apart agree in one of their keys, so that not every pair is compared.
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for label in sorted(counts, key=lambda label: -counts[label]):
        for key in _keys(words[label]):
            alike[key].append(label)
    found = []
    for label in counts:
        if not 0 < counts[label] <= rare:
            continue
        near = (other for key in _keys(words[label]) for other in alike[key])
        often = (other for other in near if counts[other] >= _OFTEN * counts[label])
        other = next((other for other in often if _one_slip(words[label], words[other])), None)
        if other is not None:
            found.append((label, other))
    return found


def _keys(words: list[str]) -> set[tuple[str, ...]]:
    """The words with one letter of one word left out, or none."""
    found = {tuple(words)}
    for place, word in enumerate(words):
        for letter in range(len(word) if len(word) >= _SHORTEST else 0):
            found.add((*words[:place], word[:letter] + word[letter + 1 :], *words[place + 1 :]))
    return found


def _one_slip(words: list[str], others: list[str]) -> bool:
    different = [(word, other) for word, other in zip(words, others) if word != other]
    if len(different) != 1:
        return False
    word, other = different[0]
    if min(len(word), len(other)) < _SHORTEST or word[0] != other[0]:  # slips spare the first letter
        return False
    return SequenceMatcher(None, word, other, autojunk=False).ratio() >= _ALIKE
