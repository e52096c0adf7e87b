"""Fused groups executed in tiles: bands of rows, slices of channels, weights through a tile.

A group with a `tiling` runs inside the bytes of its `scratch`: the tensors that it keeps lie there, its other
operands come from DRAM by rows or slices, and every copy is counted. Bands follow from the network's geometry
and the tiling by demand, without a planner's cost model. Optimus (Cai, Wang, Zhang), sections 4 and 5.
"""

from onchip.run.moved import GroupMoved
from onchip.run.tiled.execute import Tiles

__all__ = ["GroupMoved", "Tiles"]
