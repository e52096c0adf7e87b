"""The report: a plan shown on a terminal, as one HTML file and in a notebook.

It reads only a `Plan`: the contents of memory at each step come from the checker's replay of the program
(`timeline`), so that the report shows what was proved, not a planner's intention.
"""

from typing import TYPE_CHECKING

from onchip.base.lazy import exports

if TYPE_CHECKING:
    from onchip.report.as_data import data
    from onchip.report.in_notebook import notebook
    from onchip.report.page import html
    from onchip.report.steps import Residency, Step, Timeline, Traffic, timeline
    from onchip.report.terminal import Summary, summary
else:
    __getattr__, __dir__ = exports(
        __name__,
        as_data="data",
        in_notebook="notebook",
        page="html",
        steps="Residency Step Timeline Traffic timeline",
        terminal="Summary summary",
    )

__all__ = [
    "Residency",
    "Step",
    "Summary",
    "Timeline",
    "Traffic",
    "data",
    "html",
    "notebook",
    "summary",
    "timeline",
]
