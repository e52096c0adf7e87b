"""The page of a schedule of several networks: units over time, contention drawn, others beside.

It reads the judge's timeline and nothing of the solver that made the schedule.
"""

from onchip.multi_dnn.report.page import html

__all__ = ["html"]
