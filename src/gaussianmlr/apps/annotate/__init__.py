"""Orders that people give: the store, import and export, agreement."""

from gaussianmlr.apps.annotate.agreement import Overview, disagreement, overview
from gaussianmlr.apps.annotate.connections import StoreError
from gaussianmlr.apps.annotate.exports import export_answers, manifest_of
from gaussianmlr.apps.annotate.imports import Imported, import_answers
from gaussianmlr.apps.annotate.items import Found, read_items
from gaussianmlr.apps.annotate.store import Answer, Item, Person, Store
from gaussianmlr.data.readers.labels import read_labels

__all__ = [
    "Answer",
    "Found",
    "Imported",
    "Item",
    "Overview",
    "Person",
    "Store",
    "StoreError",
    "disagreement",
    "export_answers",
    "import_answers",
    "manifest_of",
    "overview",
    "read_items",
    "read_labels",
]
