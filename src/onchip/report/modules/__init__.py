"""A plan of branch modules on the page: the figures of the simple method, from the plan alone.

`anatomy` maps the plan's sections to its steps, `roles` gives the role of each memory range in them;
the other modules draw one figure each, as SVG that needs no script. None of them depends on a planner.
"""

from onchip.report.modules.page import page_words
from onchip.report.modules.table import terminal_table

__all__ = ["page_words", "terminal_table"]
