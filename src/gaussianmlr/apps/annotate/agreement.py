"""Progress, times and agreement of people."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gaussianmlr.apps.annotate.store import Answer, Person, Store
from gaussianmlr.errors import DataError
from gaussianmlr.orders import UNKNOWN, to_ranks
from gaussianmlr.rankers import agreement, reliability

__all__ = ["Overview", "Read", "Table", "disagreement", "overview", "table"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Read = dict[tuple[str, int], IntArray]  # the ranks of an order, by its text and the number of labels


class Table(NamedTuple):
    """Everybody's orders: ranks [N, R, K] of items and people, -1 where a person gave no order."""

    ranks: IntArray
    items: list[int]
    people: list[Person]
    answers: list[Answer]

    def places(self) -> tuple[list[int], list[int]]:
        """The row and the column of each answer in `ranks`."""
        row_of = {item: row for row, item in enumerate(self.items)}
        column_of = {person.id: column for column, person in enumerate(self.people)}
        return (
            [row_of[answer.item] for answer in self.answers],
            [column_of[answer.person] for answer in self.answers],
        )


def table(store: Store, read_before: Read | None = None) -> Table:
    """The current orders as one array, without skipped items.

    `read_before` caches orders that were read; pass the same dict to each call.
    """
    answers = [answer for answer in store.answers() if answer.state == "ranked"]
    labels = store.labels
    items = sorted({answer.item for answer in answers})
    speaking = {answer.person for answer in answers}
    people = [person for person in store.people() if person.id in speaking]
    found = Table(
        np.full((len(items), len(people), len(labels)), UNKNOWN, dtype=np.int64), items, people, answers
    )
    if answers:
        read = _read_ranks(answers, labels, {} if read_before is None else read_before)
        # An answer says nothing about labels that were added after it.
        known = store.known_labels()
        limits = np.array([known.get(answer.id, len(labels)) for answer in answers])
        found.ranks[found.places()] = np.where(np.arange(len(labels)) < limits[:, None], read, UNKNOWN)
    return found


def _read_ranks(answers: list[Answer], labels: Sequence[str], cache: Read) -> IntArray:
    """The ranks of answers [N, K]; each order is read once."""
    texts = [(answer.ranking, len(labels)) for answer in answers]
    if new := list({text for text in texts if text not in cache}):
        cache.update(zip(new, to_ranks([ranking for ranking, _ in new], labels).ranks))
    return np.stack([cache[text] for text in texts])


def disagreement(ranks: npt.ArrayLike) -> FloatArray:
    r"""How much the rankers of each instance disagree: 0 = the same order, 1 = opposite in everything.

    Of two orders, with the virtual label between relevant and irrelevant labels, it is

    .. math:: \frac{\sum_{i<j} |s_{ij} - t_{ij}| / 2}{\sum_{i<j} \max(|s_{ij}|, |t_{ij}|)}

    where :math:`s_{ij}` and :math:`t_{ij}` are 1, 0 or -1 if :math:`i` is above, tied with or below
    :math:`j`: Kendall's distance with ties, over the comparisons that at least one of the two makes. The mean
    over all pairs of rankers.

    Parameters
    ----------
    ranks : array-like [N, R, K]
        The rankers' ranks; -1 = unknown, a missing ranker is a row of -1.

    Returns
    -------
    array [N]
        NaN where fewer than two rankers share a label.

    References
    ----------
    Fagin, Kumar, Mahdian, Sivakumar and Vee (2004), Comparing and aggregating rankings with ties.

    Examples
    --------
    >>> disagreement([[[2, 1, 0], [2, 1, 0]], [[2, 1, 0], [1, 2, 0]], [[1, 0, 0], [-1, -1, -1]]]).round(3)
    array([0.   , 0.167,   nan])
    """
    orders = np.asarray(ranks)
    total = np.zeros(len(orders))
    pairs = np.zeros(len(orders))
    one_row = max(1, orders.shape[1] * (orders.shape[2] + 1) ** 2)
    step = max(1, 4_000_000 // one_row)
    for start in range(0, len(orders), step):
        part = slice(start, start + step)
        signs, known = _signs(orders[part])
        for one, other in combinations(range(orders.shape[1]), 2):
            both = known[:, one] & known[:, other]
            apart = (np.abs(signs[:, one] - signs[:, other]) * both).sum((1, 2)) / 2
            made = (np.maximum(np.abs(signs[:, one]), np.abs(signs[:, other])) * both).sum((1, 2))
            total[part] += np.divide(apart, made, out=np.zeros(len(made)), where=made > 0)
            pairs[part] += made > 0
    means: FloatArray = np.divide(total, pairs, out=np.full(len(orders), np.nan), where=pairs > 0)
    return means


def _signs(orders: IntArray) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
    """Comparisons [N, R, K + 1, K + 1], the virtual label last, and which of them are known."""
    virtual = np.ones((*orders.shape[:2], 1), dtype=orders.dtype)  # ranks doubled leave room for it at 1
    heights = np.concatenate([2 * orders, virtual], axis=-1)
    known = heights >= 0
    signs = np.sign(heights[..., :, None] - heights[..., None, :]).astype(np.int8)
    return signs, known[..., :, None] & known[..., None, :]


@dataclass(frozen=True)
class Overview:
    """The state of the work.

    Attributes
    ----------
    items : int
        Number of items to rank.
    ranked : int
        How many of them at least one person has ranked.
    people : list of dict
        Per person: name, ranked, skipped, median seconds per item, tau-b against the others, and reliability
        (see `gaussianmlr.rankers.reliability`; 1 = typical), both None until it can be known.
    agreement : dict of float
        Mean tau-b between two people, and the paper's metrics of one against the rest; empty until two
        people have ranked the same item.
    disputed : list of (int, float)
        Items that people disagree on and how much, the worst first; see `disagreement`.
    """

    items: int
    ranked: int
    people: list[dict[str, Any]]
    agreement: dict[str, float]
    disputed: list[tuple[int, float]]


def overview(store: Store, read_before: Read | None = None) -> Overview:
    """The current progress, times and agreement; `read_before` as in `table`.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.apps.annotate import Found, Store
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder, create=True) as store:
    ...     store.bring(Found("text", "poems", {"haiku": "an old silent pond"}), ["calm", "sad"])
    ...     for name, order in [("Ann", [["calm"], ["sad"]]), ("Bob", [["sad"]])]:
    ...         _ = store.answer(1, store.person(name).id, order, token=name)
    ...     seen = overview(store)
    >>> seen.ranked, [person["name"] for person in seen.people], [item for item, _ in seen.disputed]
    (1, ['Ann', 'Bob'], [1])
    """
    found = table(store, read_before)
    present = store.present()
    shared = (found.ranks >= 0).any(-1).sum(-1) >= 2
    agreement, tau = _agreement(found.ranks[shared])
    apart = disagreement(found.ranks)
    order = np.argsort(-apart, kind="stable")
    tau_of = {person.id: value for person, value in zip(found.people, tau) if not np.isnan(value)}
    # Only items that people share say whose answers are reliable.
    trust = reliability(found.ranks[shared]).tolist() if tau_of else []
    trust_of = dict(zip((person.id for person in found.people), trust))
    answers: dict[int, list[Answer]] = {}
    for answer in store.answers():
        answers.setdefault(answer.person, []).append(answer)
    people = [
        _summary(person, answers.get(person.id, []))
        | {
            "tau_b": tau_of.get(person.id),
            "reliability": trust_of.get(person.id) if person.id in tau_of else None,
        }
        for person in store.people()
    ]
    return Overview(
        items=len(present),
        ranked=len(present.intersection(found.items)),
        people=people,
        agreement=agreement,
        disputed=[(found.items[row], float(apart[row])) for row in order if apart[row] > 0],
    )


def _summary(person: Person, answers: list[Answer]) -> dict[str, Any]:
    ranked = [answer.seconds for answer in answers if answer.state == "ranked"]
    timed = [seconds for seconds in ranked if seconds > 0]
    return {
        "id": person.id,
        "name": person.name,
        "ranked": len(ranked),
        "skipped": len(answers) - len(ranked),
        "seconds": statistics.median(timed) if timed else None,
    }


def _agreement(ranks: IntArray) -> tuple[dict[str, float], tuple[float, ...]]:
    if ranks.shape[1] < 2 or not len(ranks):
        return {}, ()
    try:
        found = agreement(ranks)
    except DataError:  # no two people share a label
        return {}, ()
    # A metric without instances is NaN, which JSON cannot express.
    rest = {name: value for name, value in found.against_rest.items() if not np.isnan(value)}
    return {"pairwise_tau_b": found.pairwise_tau_b, **rest}, found.tau_b_of_ranker
