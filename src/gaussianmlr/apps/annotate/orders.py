"""Orders in a store: from buckets of labels to text, and back."""

from __future__ import annotations

from collections.abc import Sequence

from gaussianmlr.apps.annotate.connections import StoreError
from gaussianmlr.errors import shorten
from gaussianmlr.orders import to_ranks, to_text
from gaussianmlr.orders.grammar import OrderSyntaxError, parse


def write_order(order: Sequence[Sequence[str]], labels: Sequence[str]) -> str:
    """Buckets as text; checks that the labels are known and occur once.

    Examples
    --------
    >>> write_order([["sky"], ["sea", "sun"]], ["sea", "sky", "sun"])
    'sky > sea = sun'
    """
    return to_text(to_ranks([[list(bucket) for bucket in order]], labels).ranks, labels)[0]


def read_order(text: str) -> list[list[str]]:
    """The buckets of an order in a store.

    Examples
    --------
    >>> read_order("sky > sea = sun")
    [['sky'], ['sea', 'sun']]
    """
    try:
        return parse(text).ranked
    except OrderSyntaxError as error:
        raise StoreError(f"an order in the store is damaged: {shorten(text)}: {error}", "damaged") from None
