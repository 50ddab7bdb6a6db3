"""Data: the Ranked MNIST family, the real sets of the paper, and people's own tables and pictures.

The public names are loaded on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gaussianmlr._utils.lazy import lazy_names

if TYPE_CHECKING:
    from gaussianmlr.data.checks.report import Report
    from gaussianmlr.data.checks.run import check
    from gaussianmlr.data.dataset import RankedData
    from gaussianmlr.data.ranked_mnist.digits import Digits, fetch_digits, load_digits
    from gaussianmlr.data.ranked_mnist.drawing import Recipes
    from gaussianmlr.data.ranked_mnist.export import check_export, export_sets, load_export
    from gaussianmlr.data.ranked_mnist.probes import Probe, adjusting_sequences, calibration_set
    from gaussianmlr.data.ranked_mnist.sets import Batch, RankedMNIST
    from gaussianmlr.data.ranked_mnist.settings import SETTINGS, Setting
    from gaussianmlr.data.ranked_mnist.sheet import contact_sheet
    from gaussianmlr.data.readers.arrays import from_arrays, read_mat
    from gaussianmlr.data.readers.avdp import read_avdp
    from gaussianmlr.data.readers.images import RankedImages, read_image
    from gaussianmlr.data.readers.manifests import read_images
    from gaussianmlr.data.readers.nsid import read_nsid
    from gaussianmlr.data.readers.tables import read_table
    from gaussianmlr.data.readers.xmlc import read_xmlc, write_xmlc
    from gaussianmlr.data.transforms import Augment, Preprocess

_HOMES = {
    "Augment": "transforms",
    "Batch": "ranked_mnist.sets",
    "Digits": "ranked_mnist.digits",
    "Preprocess": "transforms",
    "Probe": "ranked_mnist.probes",
    "RankedData": "dataset",
    "RankedImages": "readers.images",
    "RankedMNIST": "ranked_mnist.sets",
    "Recipes": "ranked_mnist.drawing",
    "Report": "checks.report",
    "SETTINGS": "ranked_mnist.settings",
    "Setting": "ranked_mnist.settings",
    "adjusting_sequences": "ranked_mnist.probes",
    "calibration_set": "ranked_mnist.probes",
    "check": "checks.run",
    "contact_sheet": "ranked_mnist.sheet",
    "export_sets": "ranked_mnist.export",
    "fetch_digits": "ranked_mnist.digits",
    "from_arrays": "readers.arrays",
    "load_digits": "ranked_mnist.digits",
    "check_export": "ranked_mnist.export",
    "load_export": "ranked_mnist.export",
    "read_avdp": "readers.avdp",
    "read_image": "readers.images",
    "read_images": "readers.manifests",
    "read_mat": "readers.arrays",
    "read_nsid": "readers.nsid",
    "read_table": "readers.tables",
    "read_xmlc": "readers.xmlc",
    "write_xmlc": "readers.xmlc",
}

__all__ = [
    "SETTINGS",
    "Augment",
    "Batch",
    "Digits",
    "Preprocess",
    "Probe",
    "RankedData",
    "RankedImages",
    "RankedMNIST",
    "Recipes",
    "Report",
    "Setting",
    "adjusting_sequences",
    "calibration_set",
    "check",
    "check_export",
    "contact_sheet",
    "export_sets",
    "fetch_digits",
    "from_arrays",
    "load_digits",
    "load_export",
    "read_avdp",
    "read_image",
    "read_images",
    "read_mat",
    "read_nsid",
    "read_table",
    "read_xmlc",
    "write_xmlc",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
