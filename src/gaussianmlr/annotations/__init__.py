"""Orders that people give: where they are kept, how they come in and go out, how far people agree."""

from gaussianmlr.annotations.agreeing import Overview, disagreement, overview
from gaussianmlr.annotations.exporting import export_answers, manifest_of
from gaussianmlr.annotations.importing import Imported, import_answers
from gaussianmlr.annotations.items import Found, read_items, read_labels
from gaussianmlr.annotations.store import Answer, Item, Person, Store

__all__ = [
    "Answer",
    "Found",
    "Imported",
    "Item",
    "Overview",
    "Person",
    "Store",
    "disagreement",
    "export_answers",
    "import_answers",
    "manifest_of",
    "overview",
    "read_items",
    "read_labels",
]
