"""Groups that run as nests of loops, shown: the tree of loops, what stays in which body, what crosses.

`shown` turns a group and its layout into records; every figure in them is the checker's
(`onchip.check.layout_of`). `axis_names` finds words for the axes that loops go along. `table` writes the
records for a terminal, `drawing` for the page, `data` as JSON.
"""

from onchip.report.nest.shown import ShownBuffer, ShownLeaf, ShownLoop, ShownNest, shown_nests

__all__ = ["ShownBuffer", "ShownLeaf", "ShownLoop", "ShownNest", "shown_nests"]
