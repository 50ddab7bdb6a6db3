"""Where modules went: old import paths keep working for one release, with a `DeprecationWarning`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

MODULES = {
    "_checked": "_utils.arrays",
    "_estimator_base": "estimators.base",
    "_grammar": "orders.grammar",
    "_kemeny": "rankers.kemeny",
    "_notebook": "model.display",
    "_quadrature": "normal.quadrature",
    "_reading": "orders.reading",
    "_rows": "estimators.random_state",
    "_stage": "training.stage",
    "allocation": "_utils.memory",
    "annotations": "apps.annotate",
    "annotations._schema": "apps.annotate.schema",
    "annotations.agreeing": "apps.annotate.agreement",
    "annotations.exporting": "apps.annotate.exports",
    "annotations.foreign": "apps.annotate.other_tools",
    "annotations.importing": "apps.annotate.imports",
    "annotations.suggesting": "apps.annotate.suggestions",
    "backbones": "nn.backbones",
    "backbones.freezing": "nn.backbones.trainable",
    "backbones.layout": "nn.backbones.memory_format",
    "batches": "data.loading",
    "calibration": "model.calibration",
    "checkpoints": "training.run_folder",
    "classic": "estimators.classic",
    "cluster": "inference.cluster",
    "commands": "cli",
    "commands.settings": "model.settings",
    "comparing": "comparison.run",
    "console": "_utils.progress",
    "contenders": "comparison.participants",
    "data._archives": "data.readers.archives",
    "data._assembly": "data.readers.assembly",
    "data._columns": "data.ranked_mnist.columns",
    "data._frames": "data.readers.frames",
    "data._kernels": "data.ranked_mnist.kernels",
    "data._parts": "data.readers.parts",
    "data._problems": "data.problems",
    "data._progress": "_utils.progress",
    "data._slips": "data.checks.slips",
    "data._sources": "data.ranked_mnist.digit_sources",
    "data.architecture": "data.readers.avdp",
    "data.check_cli": "cli.check",
    "data.check_export": "data.checks.exports",
    "data.check_plot": "data.checks.plot",
    "data.check_text": "data.checks.report",
    "data.checking": "data.checks.run",
    "data.cli": "cli.data",
    "data.digits": "data.ranked_mnist.digits",
    "data.download": "data.ranked_mnist.download",
    "data.export": "data.ranked_mnist.export",
    "data.idx": "data.ranked_mnist.idx",
    "data.images": "data.readers.images",
    "data.manifests": "data.readers.manifests",
    "data.probes": "data.ranked_mnist.probes",
    "data.recipes": "data.ranked_mnist.drawing",
    "data.recognising": "data.recognise",
    "data.scenes": "data.readers.nsid",
    "data.settings": "data.ranked_mnist.settings",
    "data.sheet": "data.ranked_mnist.sheet",
    "data.tables": "data.readers.tables",
    "defaults": "training.defaults",
    "demo": "cli.demo",
    "describing": "training.describe",
    "epochs": "training.epochs",
    "estimator": "estimators.networks",
    "exporting": "model.export",
    "features": "training.features",
    "files": "_utils.files",
    "fitting": "training.fit",
    "frozen": "training.frozen",
    "heads": "nn.heads",
    "judging": "comparison.verdict",
    "logs": "training.loggers",
    "measuring": "inference.matching",
    "metrics.shells": "metrics.modular",
    "network": "nn.network",
    "optimisers": "training.optimisers",
    "origin": "training.origin",
    "pages": "apps",
    "pages.annotate": "apps.annotate.app",
    "pages.base": "apps.web.server",
    "pages.batching": "apps.serve.batches",
    "pages.desk": "apps.web.limits",
    "pages.filming": "apps.play.film",
    "pages.guard": "apps.web.access",
    "pages.playing": "apps.play.app",
    "pages.serving": "apps.serve.app",
    "paired": "metrics.paired",
    "paper.figures._studio": "paper.figures.shared",
    "paper.following": "metrics.sequences",
    "paper.probing": "paper.probes",
    "paper.running": "paper.run",
    "plots.comparison": "comparison.plot",
    "predicting": "inference.predict",
    "prediction": "model.prediction",
    "presets": "model.presets",
    "provenance": "_utils.provenance",
    "recipe": "model.recipe",
    "reporting": "report",
    "reporting.comparisons": "report.comparison_page",
    "reporting.drawing": "report.svg",
    "reporting.gathering": "report.measure",
    "reporting.measured": "report.quality",
    "reporting.numbers": "report.counts",
    "reporting.ordering": "report.order_errors",
    "reporting.recipes": "report.recipe_tables",
    "reporting.report": "report.write",
    "reporting.runs": "report.run_page",
    "scorers": "estimators.scorers",
    "sources": "data.open",
    "splitting": "comparison.splits",
    "streams": "inference.streams",
    "tabulating": "comparison.tables",
    "writing": "inference.writers",
}
"""Old and new names of modules and packages; removed in 0.3."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules under their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module that moved; none for any other."""
        if new_name(fullname) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that has its place now under the old name too, so that both are one."""
        old = module.__name__
        new = new_name(old)
        assert new is not None
        found = importlib.import_module(new)
        warnings.warn(f"{old} moved to {new}; the old name goes in 0.3", DeprecationWarning, stacklevel=2)
        sys.modules[old] = found


def new_name(old: str) -> str | None:
    """The name that a module has now; none for one that did not move.

    Examples
    --------
    >>> new_name("gaussianmlr.recipe"), new_name("gaussianmlr.backbones.mlp"), new_name("gaussianmlr.losses")
    ('gaussianmlr.model.recipe', 'gaussianmlr.nn.backbones.mlp', None)
    """
    package, _, rest = old.partition(".")
    if package != __package__:
        return None
    known, more = rest, ""
    while known:
        if known in MODULES:
            return f"{package}.{MODULES[known]}{more}"
        known, _, last = known.rpartition(".")
        more = f".{last}{more}"
    return None


NAMES = {
    "data.dataset": {"ReadFrom": "data.readers.layout"},
    "estimators.networks": {"GaussianMLR": "estimators.gaussian"},
    "plots": {"ComparisonDisplay": "comparison.plot"},
}
"""Names that left a module which is still there, and the modules that hold them now."""


def moved_name(module: str, name: str) -> object:
    """A name that left a module, for the module's ``__getattr__``."""
    below = module.partition(".")[2]
    if name not in NAMES.get(below, {}):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home = f"{__package__}.{NAMES[below][name]}"
    warnings.warn(
        f"{module}.{name} moved to {home}; the old name goes in 0.3", DeprecationWarning, stacklevel=3
    )
    return getattr(importlib.import_module(home), name)


def install() -> None:
    """Find old names from now on; calling it again changes nothing."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
