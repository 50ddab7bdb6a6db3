"""Labels that were probably mistyped."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from gaussianmlr.data.dataset import RankedData
from gaussianmlr.data.problems import Problems
from gaussianmlr.errors import shorten

_RARE = 0.01  # of the orders; once is rare too
_OFTEN = 10  # times as often as the rare one
_NOTHING = frozenset(("none", "nothing", "no label", "n/a", "na", "nan", "null", "-", "empty", "[]"))
_SHORTEST = 4  # shorter words are often one letter apart: cat, car
_LONGEST = 100  # characters; longer labels are sentences, and the cost is quadratic in the length
_SIGNS = re.compile(r"[<≤≥≺≻→;]|(?<=\s)-$")  # "sky -> sea" leaves "sky -" before the ">"
_WORD = re.compile(r"[^\W\d_]+")  # numbers tell labels apart: step 1, step 2


def check_slips(data: RankedData, problems: Problems) -> None:
    """Warn of labels that contain order signs, say that nothing applies, or nearly equal another label."""
    orders = data.ranks if data.by_ranker is None else data.by_ranker.reshape(-1, len(data.labels))
    counts = dict(zip(data.labels, (orders > 0).sum(axis=0).tolist()))
    parts = {label: {part.strip() for part in _SIGNS.split(label)} for label in data.labels}
    seen = Counter(part for found in parts.values() for part in found)
    for label in data.labels:
        sign = _SIGNS.search(label)
        # A sign between labels that stand elsewhere was meant to order them; "age < 18" is a label.
        if sign and (sign[0] == "-" or any(part and seen[part] > 1 for part in parts[label])):
            shown = "->" if sign[0] == "-" else sign[0]
            message = f"{shown!r} is no order sign; write '>' and, for ties, '='"
            problems.add("label", f"label {shorten(label)}", message, "warning")
        if label.casefold() in _NOTHING:
            message = "is read as a label; if it means that none applies, leave the cell empty"
            problems.add("label", f"label {shorten(label)}", message, "warning")
    same: dict[str, list[str]] = defaultdict(list)
    for label in data.labels:
        same["".join(label.casefold().split())].append(label)
    for group in same.values():
        first, *others = sorted(group, key=lambda label: -counts[label])
        for label in others:
            message = f"differs from {shorten(first)} in case or spaces alone{_often(counts, label, first)}"
            problems.add("label", f"label {shorten(label)}", message, "warning")
    given = int((orders >= 0).any(axis=1).sum())
    for label, other in _mistyped(counts, max(1.0, _RARE * given)):
        message = f"is it {shorten(other)}?{_often(counts, label, other)}"
        problems.add("label", f"label {shorten(label)}", message, "warning")


def _often(counts: dict[str, int], label: str, other: str) -> str:
    return f" (applies {counts[label]:,} times, the other {counts[other]:,})"


def _mistyped(counts: dict[str, int], rare: float) -> list[tuple[str, str]]:
    """Rare labels, and the most frequent one each is a slip away from.

    Two texts that are one slip apart agree in a key, so that each label is looked up instead of compared
    with every other: the cost is linear in labels.
    """
    words = {label: _words(label) for label in counts if len(label) <= _LONGEST}
    frequent: dict[tuple[int, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for label in sorted(words, key=lambda label: -counts[label]):
        if counts[label] < _OFTEN:
            break
        for key in _keys(words[label]):
            others = frequent[key]
            # Two are enough: who has the words of the first is asked about the second.
            if len(others) < 2 and all(words[other] != words[label] for other in others):
                others.append(label)
    found = []
    for label, spelt in words.items():
        if 0 < counts[label] <= rare:
            near = {other for key in _keys(spelt) for other in frequent.get(key, ()) if words[other] != spelt}
            other = min(near, key=lambda other: (-counts[other], other), default=None)
            if other is not None and counts[other] >= _OFTEN * counts[label]:
                found.append((label, other))
    return found


def _words(label: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(label.casefold()))


def _keys(words: tuple[str, ...]) -> set[tuple[int, str, tuple[str, ...]]]:
    """The words with one letter of one word left out, or none; with the place and first letter of that word.

    Words of which two share a key differ by one letter that was left out, added, moved or replaced, and by
    a fifth of their letters at most: of words of four letters, none is left out. Slips spare first letters.
    """
    found = set()
    for place, word in enumerate(words):
        if len(word) < _SHORTEST:
            continue
        found.add((place, word[0], words))
        for letter in range(1, len(word) if len(word) > _SHORTEST else 0):
            changed = word[:letter] + word[letter + 1 :]
            found.add((place, word[0], (*words[:place], changed, *words[place + 1 :])))
    return found
