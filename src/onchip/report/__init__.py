"""The report: a plan shown on a terminal, as one HTML file and in a notebook.

It reads only a `Plan`: the contents of memory at each step come from the checker's replay of the program
(`timeline`), so that the report shows what was proved, not a planner's intention.
"""

from onchip.report.notebook import notebook
from onchip.report.page import html
from onchip.report.terminal import Summary, summary
from onchip.report.timeline import Residency, Step, Timeline, Traffic, timeline

__all__ = ["Residency", "Step", "Summary", "Timeline", "Traffic", "html", "notebook", "summary", "timeline"]
