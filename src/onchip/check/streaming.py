"""`run ... streaming T:N`: how many bytes cross, derived from the operator and the room in its scratch.

Nothing crosses twice in what is proved here, so N is the tensor's size: either the whole tensors fit the
scratch at once, or the operator's walk needs a line buffer that does, so that no halo is fetched again. A
scratch too small for the line buffer would have to fetch halos again; how often depends on a tiling. A group
that states one streams all its operands, and `onchip.check.tiles` derives their bytes; all else is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.check.walk import Elementwise, Windows, element_bytes, walk_of
from onchip.network import Network

__all__ = ["crossing_bytes"]


def crossing_bytes(network: Network, unit: Unit, streamed: Sequence[int]) -> dict[int, int]:
    """For each streamed root tensor of a unit, the bytes that cross; `streaming-unproved` when unknown."""
    if unit.crossing is not None:
        return dict(unit.crossing)
    sizes = {t: network.tensors[t].bytes for t in streamed}
    room = unit.workspace - unit.held
    if sum(sizes.values()) > room:
        _pieces_fit(network, unit, streamed, room)
    return sizes


def _pieces_fit(network: Network, unit: Unit, streamed: Sequence[int], room: int) -> None:
    """Refuse unless one piece of each streamed operand fits at once, and no byte has to come twice."""
    if unit.group:
        broken(
            "streaming-unproved",
            f"the scratch of group {unit.name} has {room:,} bytes to spare, too few at once",
        )
    op = network.operators[unit.operators[0]]
    walk = walk_of(network, op.id)
    if isinstance(walk, str):
        broken("streaming-unproved", f"the operands do not fit the {room:,} bytes at once, and {walk}")
    need = 0
    for t in streamed:
        name = network.tensors[t].name
        readings = [i for i in op.inputs if network.root[i] == t]
        if t not in op.outputs and readings != [t]:
            broken("streaming-unproved", f"{name} is read through a view")
        if isinstance(walk, Elementwise):
            width = element_bytes(network.tensors[t].bytes, walk.steps)
            if width is None:
                broken("streaming-unproved", f"{name} is not read element by element")
            need += width
        elif t in op.outputs:
            need += walk.write_bytes
        elif t == op.inputs[0]:
            need += _line_buffer(walk, op.name)
        else:
            broken("streaming-unproved", f"{name} is not the input that the windows read")
    if need > room:
        broken("streaming-unproved", f"the pieces need {need:,} bytes of scratch, and {room:,} are there")


def _line_buffer(walk: Windows, name: str) -> int:
    """Bytes of the input rows that a window spans: with them in the scratch no row comes twice."""
    if walk.fan_out > 1:
        broken("streaming-unproved", f"{name} walks over its whole input for every output channel")
    planes = walk.fan_in
    return planes * min(walk.rows.span, walk.rows.size) * walk.columns.size * walk.read_bytes
