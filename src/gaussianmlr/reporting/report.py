"""From the folder of a run or a comparison to a page."""

from __future__ import annotations

import os
from pathlib import Path

from gaussianmlr.errors import DataError
from gaussianmlr.files import write_bytes
from gaussianmlr.reporting.gathering import Progress, Wanted

__all__ = ["write_report"]

_NAME = "report.html"
_OURS = b'<meta name="generator" content="gaussianmlr '
_HEAD = 2_000  # bytes of a page that say who made it


def write_report(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    wanted: Wanted | None = None,
    examples: int = 6,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Write the report of a run, a model or a comparison: one HTML file that needs nothing else.

    Parameters
    ----------
    folder : path-like
        What `gmlr train` or `gmlr compare` made.
    out : path-like, optional
        The file, ``report.html`` in the folder if left out. A file that is no report is not replaced.
    wanted : Wanted, optional
        Of a run: what to measure on; the data of the run, on its validation part, if left out.
    examples : int
        Of a run: best and worst instances to show.
    progress : callable
        Is told how many instances of how many have been measured.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    DataError
        For a folder that holds nothing to report on.

    Examples
    --------
    >>> import tempfile
    >>> from gaussianmlr.fitting import fit
    >>> from gaussianmlr.data import from_arrays
    >>> from gaussianmlr.recipe import Recipe
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
        if wanted is not None and wanted.data is not None:
            raise DataError(f"{place} is a comparison, which has been measured already; data is for runs")
        from gaussianmlr.reporting.comparisons import comparison_page

        made = comparison_page(place)
    elif (place / "run.json").is_file() or (place / "config.json").is_file():
        from gaussianmlr.reporting.runs import run_page

        made = run_page(place, wanted or Wanted(), examples, progress)
    else:
        raise DataError(
            f"{place} holds no run, model or comparison; expected a folder that `gmlr train` or "
            "`gmlr compare` made"
        )
    write_bytes(file, made)
    return file


def refuse_others(file: Path) -> None:
    """Never replace what is not a report."""
    if file.is_dir():
        raise DataError(f"{file} is a folder; expected the name of a file")
    if file.exists():
        with file.open("rb") as stream:
            if _OURS not in stream.read(_HEAD):
                raise DataError(f"{file} is there and is no report; choose another name")
