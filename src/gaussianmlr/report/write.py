"""Write the report of a run or a comparison."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gaussianmlr._utils.files import write_bytes
from gaussianmlr.errors import DataError
from gaussianmlr.model.evaluate import Progress
from gaussianmlr.report.comparison_page import comparison_page
from gaussianmlr.report.measure import Evidence, Wanted
from gaussianmlr.report.run_page import run_page

__all__ = ["write_report"]

_NAME = "report.html"
_OURS = b'<meta name="generator" content="gaussianmlr '
_HEAD = 2_000  # bytes of a page that hold the generator tag


def write_report(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    wanted: Wanted | Evidence | None = None,
    examples: int = 6,
    chosen: Sequence[int] = (),
    title: str = "",
    progress: Progress = lambda done, total: None,
    escape_formulas: bool = False,
) -> Path:
    """Write the report of a run, a model or a comparison: one self-contained HTML file.

    Parameters
    ----------
    folder : path-like
        Output folder of `gmlr train` or `gmlr compare`.
    out : path-like, optional
        The file, by default ``report.html`` in the folder. A file that is not a report is never replaced.
    wanted : Wanted, optional
        For runs: the data to measure on, by default the validation part of the run's own data; or what was
        measured already.
    examples : int
        For runs: number of best and of worst instances to show.
    chosen : sequence of int
        For runs: measured instances to show first, by their place among them.
    title : str
        For runs: the heading, the name of the folder if left out.
    progress : callable
        Called with the number of measured instances and the total.
    escape_formulas : bool
        Put an apostrophe before texts of its CSV files that a spreadsheet would run as formulas.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    DataError
        If the folder holds nothing to report on.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.training.fit import fit
    >>> from gaussianmlr.data import from_arrays
    >>> from gaussianmlr.model.recipe import Recipe
    >>> data = from_arrays([[0.0, 1.0], [1.0, 0.0]] * 4, [["a", "b"], ["b"]] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = fit(Recipe(backbone="mlp", epochs=1), data, data, out=f"{folder}/run")
    ...     write_report(f"{folder}/run").name
    'report.html'
    """
    place = Path(folder)
    file = place / _NAME if out is None else Path(out)
    refuse_others(file)
    if (place / "plan.json").is_file():
        if isinstance(wanted, Wanted) and wanted.data is not None:
            raise DataError(f"{place} is a comparison, which has been measured already; only runs take data")
        made = comparison_page(place, escape_formulas=escape_formulas)
    elif (place / "run.json").is_file() or (place / "config.json").is_file():
        wanted = wanted or Wanted()
        made = run_page(
            place, wanted, examples, progress, chosen=chosen, title=title, escape_formulas=escape_formulas
        )
    else:
        found = "holds no run, model or comparison" if place.exists() else "does not exist"
        raise DataError(f"{place} {found}; expected an output folder of `gmlr train` or `gmlr compare`")
    write_bytes(file, made)
    return file


def refuse_others(file: Path) -> None:
    """Refuse to replace a file that is not a report."""
    if file.is_dir():
        raise DataError(f"{file} is a folder; expected the name of a file")
    if file.exists():
        with file.open("rb") as stream:
            if _OURS not in stream.read(_HEAD):
                raise DataError(f"{file} exists and is not a report; choose another name")
