"""Picoseconds that every plan of a network takes: its work, and the bytes that must cross at the full rate.

*Work*: steps run one after the other. The steps of an operator together take no less than its products in one
step over all of its axes, laid on the array in the best way, nor than its vector operations: cutting an axis
only adds sides that do not fill, for the ceilings of two parts are no less than that of both. *Bytes*: every
channel makes one transfer at a time.
"""

from __future__ import annotations

from onchip.check.nest_durations import PICOSECONDS, Work
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.network.axes import Cut, GroupAxes, axes_of
from onchip.network.vector_work import vector_operations
from onchip.planners.joint.timed.arrays import choices, cycles_of, whole_extents

__all__ = ["least_picoseconds", "least_work", "least_work_of"]


def least_picoseconds(network: Network, tiles: TileRates, least_bytes: int) -> int:
    """Return the larger of the work of all operators and of `least_bytes` at the rate of all channels."""
    rate = sum(channel.bytes_per_second for channel in tiles.channels)
    crossing = -(-least_bytes * PICOSECONDS // rate)
    return max(crossing, sum(least_work(network, v, tiles) for v in network.order))


def least_work(network: Network, operator: int, tiles: TileRates) -> int:
    """Return the picoseconds that the steps of an operator take at least; 0 where its axes are not known."""
    axes = axes_of(network, [operator])
    if not isinstance(axes, GroupAxes):
        return 0
    [cut] = axes.operators
    indices = 1
    for size in cut.axes:
        indices *= size
    products, rest = divmod(network.operators[operator].work, indices)
    if rest:
        return 0
    return least_work_of(cut, Work(products, vector_operations(network, operator)), tiles)


def least_work_of(cut: Cut, work: Work, tiles: TileRates) -> int:
    """Return the same of an operator with its axes."""
    cycles = tiles.step_cycles
    if work.products:
        whole = whole_extents(cut)
        cycles += work.products * min(cycles_of(array, whole, tiles) for array in choices(cut, tiles))
    least = -(-cycles * PICOSECONDS // tiles.clock_hertz)
    if tiles.vector_operations_per_second is not None:
        made = 1
        for size in cut.axes[: cut.outputs]:
            made *= size
        least = max(least, -(-work.vector * made * PICOSECONDS // tiles.vector_operations_per_second))
    return least
