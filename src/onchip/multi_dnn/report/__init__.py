"""The page of a schedule of several networks: units over time with contention, other schedules beside.

It reads the judge's timeline and depends on no solver.
"""

from onchip.multi_dnn.report.page import html

__all__ = ["html"]
