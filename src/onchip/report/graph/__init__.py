"""The network's graph with a plan's groups, laid out for the page: boxes, links, and the buffers' content.

`layers` assigns boxes to columns in reading order, `flow` breaks the columns into lines as a page breaks
text and routes the links, `units` selects the drawn parts of the plan, `picture` combines them. This package
depends on neither HTML nor a planner.
"""

from onchip.report.graph.flow import Box, Drawing, Link, draw
from onchip.report.graph.picture import picture

__all__ = ["Box", "Drawing", "Link", "draw", "picture"]
