"""Reports: a run or a comparison as one page that needs nothing else."""

from gaussianmlr.reporting.gathering import Wanted
from gaussianmlr.reporting.report import write_report

__all__ = ["Wanted", "write_report"]
