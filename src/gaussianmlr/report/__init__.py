"""Reports: a run or a comparison as one self-contained page."""

from gaussianmlr._utils.extras import require

require("a report", "jinja2", "matplotlib", "PIL", extra="report")

from gaussianmlr.report.measure import Wanted  # noqa: E402
from gaussianmlr.report.write import write_report  # noqa: E402

__all__ = ["Wanted", "write_report"]
