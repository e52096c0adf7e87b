"""A plan of branch modules on the page: the figures of the simple method, from the plan alone.

`anatomy` says what the plan's sections are over its steps, `roles` what each stretch of memory is to them;
the other rooms draw one figure each, as SVG that needs no script. Nothing here knows a planner.
"""

from onchip.report.modules.page import page_words
from onchip.report.modules.table import terminal_table

__all__ = ["page_words", "terminal_table"]
