"""The network's graph with a plan's groups, laid out for the page: boxes, links, and what the buffer holds.

`layers` puts boxes into columns in reading order, `flow` breaks the columns into lines as a page breaks
text and routes the links, `units` says what of the plan is drawn, `picture` puts it together. Nothing here
knows HTML or a planner.
"""

from onchip.report.graph.flow import Box, Drawing, Link, draw
from onchip.report.graph.picture import picture

__all__ = ["Box", "Drawing", "Link", "draw", "picture"]
