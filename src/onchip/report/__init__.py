"""The report: a plan shown to people, on a terminal, as one HTML file and in a notebook.

It reads a `Plan` and nothing else: what lies where at which step is what the checker's replay of the program
tells (`timeline`), so that it shows what was proved and not what a planner meant.
"""

from onchip.report.notebook import notebook
from onchip.report.page import html
from onchip.report.terminal import Summary, summary
from onchip.report.timeline import Residency, Step, Timeline, Traffic, timeline

__all__ = ["Residency", "Step", "Summary", "Timeline", "Traffic", "html", "notebook", "summary", "timeline"]
