"""Picoseconds that every plan of a network takes: its work, and the bytes that must cross at the full rate.

*Work*: steps run one after the other. The steps of an operator together take no less than its products in one
step over all of its axes, laid on the array in the best way, nor than its vector operations: cutting an axis
only adds sides that do not fill, for the ceilings of two parts are no less than that of both. In a group an
axis may be seen in finer ones, which lie on several sides where these may share an operand: there all sides
together are taken for one. Rows that no reader's windows touch need not be made, and count for nothing.
*Bytes*: every channel makes one transfer at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from onchip.check.nest_durations import PICOSECONDS, Work
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.network.axes import Cut, GroupAxes, axes_of
from onchip.network.needed import in_sides, made_indices
from onchip.network.repeats import folded
from onchip.network.vector_work import vector_operations
from onchip.planners.joint.timed.arrays import choices, outputs_of

if TYPE_CHECKING:
    from onchip.network.needed import Rows

__all__ = ["least_picoseconds", "least_work"]


def least_picoseconds(network: Network, tiles: TileRates, least_bytes: int) -> int:
    """Return the larger of the work of all operators, each run once, and of `least_bytes` at the rate of all
    channels."""
    meant = folded(network).network
    rate = sum(channel.bytes_per_second for channel in tiles.channels)
    crossing = -(-least_bytes * PICOSECONDS // rate)
    return max(crossing, sum(least_work(meant, tiles, apart=meant is not network)))


def least_work(network: Network, tiles: TileRates, *, apart: bool = False) -> list[int]:
    """Return by operator the picoseconds that its steps take at least; 0 where its axes are not known.

    With `apart` some operators run more often than the network says, each time for other readers.
    """
    made = made_indices(network, apart=apart)
    return [_least_work(network, v, made[v], tiles) for v in range(len(network.operators))]


def _least_work(network: Network, operator: int, made: Rows | None, tiles: TileRates) -> int:
    axes = axes_of(network, [operator])
    if made is None or not isinstance(axes, GroupAxes):
        return 0
    [cut] = axes.operators
    products, rest = divmod(network.operators[operator].work, prod(cut.axes))
    if rest:
        return 0
    indices = [int(side.sum()) for side in in_sides(made, cut.axes[: cut.outputs])]
    indices += cut.axes[cut.outputs :]
    if not all(indices):
        return 0
    return _least_work_of(cut, indices, Work(products, vector_operations(network, operator)), tiles)


def _least_work_of(cut: Cut, indices: Sequence[int], work: Work, tiles: TileRates) -> int:
    """Return the picoseconds of one step over so many indices along each axis, on the best sides."""
    cycles = tiles.step_cycles
    if work.products:
        sums = -(-prod(indices[cut.outputs :]) // prod(s.size for s in tiles.sides if s.kind == "sum"))
        cycles += _least_blocks(cut, indices, tiles) * (tiles.block_cycles + work.products * sums)
    least = -(-cycles * PICOSECONDS // tiles.clock_hertz)
    if tiles.vector_operations_per_second is not None:
        made = prod(indices[: cut.outputs])
        least = max(least, -(-work.vector * made * PICOSECONDS // tiles.vector_operations_per_second))
    return least


def _least_blocks(cut: Cut, indices: Sequence[int], tiles: TileRates) -> int:
    """Return the blocks of outputs of one step over so many indices, on the best sides."""
    follows = {axis for use in (*cut.reads, *cut.constants) for axis in use.axes}
    follows |= {
        window.axis for use in (*cut.reads, *cut.constants) for window in use.slides if window is not None
    }
    made = indices[: cut.outputs]
    if tiles.own_operands or any(n > 1 and axis not in follows for axis, n in enumerate(made)):
        return -(-prod(made) // prod(side.size for side in tiles.sides if side.kind == "out"))
    whole = [{n: 1} for n in indices]
    return min(outputs_of(cut, way, whole, tiles) for way in choices(cut, tiles))
