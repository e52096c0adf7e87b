"""Rows of a graph as the unit of allocation: every row of every map is a buffer with an address of its own.

Whole maps, rings of rows, outputs over inputs and sums in place are no choices here: they follow from when
rows are made and when they are read last. `search` looks for the order of rows that needs the fewest bytes at
once, with a bound from minimum cuts beside it; `place` gives every row an address.
"""

from onchip.microcontroller.rows.graph import Operand, RowGraph, RowOperator
from onchip.microcontroller.rows.search import Order, Rules, search

__all__ = ["Operand", "Order", "RowGraph", "RowOperator", "Rules", "search"]
