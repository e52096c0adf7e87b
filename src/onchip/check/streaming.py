"""`run ... streaming T:N`: how many bytes cross, derived from the operator and the room in its scratch.

Nothing crosses twice in any proof here, so N is the tensor's size: either the whole tensors fit the scratch
at once, or the line buffer of the operator's walk does, so that no halo is fetched again. A scratch too small
for the line buffer would fetch halos again, as often as its tiling says. `onchip.check.tiles` derives the
bytes of a group that states a tiling; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.check.operator_overlap import may_be_broadcast
from onchip.check.operator_walk import Elementwise, Windows, element_bytes, walk_of
from onchip.check.patches import patch_pieces
from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.network import Network

__all__ = ["crossing_bytes", "streaming_scratch"]


def crossing_bytes(
    network: Network, unit: Unit, streamed: Sequence[int], *, weights_apart: bool = False
) -> dict[int, int]:
    """Return the crossing bytes of each streamed root tensor of a unit. Raises `Broken` if they are unknown.

    The rule is `streaming-unproved`. With `weights_apart` weights have a scratchpad of their own.
    """
    if unit.crossing is not None:
        return dict(unit.crossing)
    sizes = {t: network.tensors[t].bytes for t in streamed}
    room = unit.workspace - unit.taken_bytes
    if sum(sizes.values()) <= room:
        return sizes
    if unit.group:
        broken(
            "streaming-unproved",
            f"the scratch of group {unit.name} has {room:,} bytes to spare, too few at once",
        )
    # Resident weights are in the scratch already, and `room` is the rest of it.
    need = _pieces(
        network, unit.operators[0], streamed, 0 if weights_apart or unit.taken_bytes else unit.weights
    )
    if isinstance(need, str):
        broken("streaming-unproved", f"the operands do not fit the {room:,} bytes at once, and {need}")
    if need > room:
        broken("streaming-unproved", f"the pieces need {need:,} bytes of scratch, and {room:,} are there")
    return sizes


def streaming_scratch(
    network: Network, operator: int, streamed: Sequence[int], *, weights: int | None = None
) -> int:
    """Return the least bytes of scratch with which an operator may stream root tensors, each crossing once.

    `weights` are the bytes of weights that pass through the same scratch, by default the operator's.
    """
    if weights is None:
        weights = network.operators[operator].weight_bytes
    whole = sum(network.tensors[t].bytes for t in streamed)
    pieces = _pieces(network, operator, streamed, weights)
    return whole if isinstance(pieces, str) else min(whole, pieces)


def _pieces(network: Network, operator: int, streamed: Sequence[int], weights: int) -> int | str:
    """Return the bytes of one piece of each streamed operand, so that no byte comes twice; or the reason."""
    op = network.operators[operator]
    patched = [network.tensors[t].patches is not None for t in streamed]
    if all(patched):
        return patch_pieces(network, operator, streamed, weights)
    if any(patched):
        return "some of them lie in patches, and others do not"
    walk = walk_of(network, op.id)
    if isinstance(walk, str):
        return walk
    need = 0
    for t in streamed:
        name = network.tensors[t].name
        readings = [i for i in op.inputs if network.root[i] == t]
        if t not in op.outputs and readings != [t]:
            return f"{name} is read through a view"
        if isinstance(walk, Elementwise):
            width = element_bytes(network.tensors[t].bytes, walk.steps)
            if width is None or walk.patches is not None:
                return f"{name} is not read element by element"
            if t not in op.outputs and may_be_broadcast(network, op, t):
                return f"{name} may be broadcast"
            need += width
        elif t in op.outputs:
            need += walk.write_bytes
        elif t != op.inputs[0]:
            return f"{name} is not the input that the windows read"
        elif walk.fan_out > 1:
            return f"{op.name} walks over its whole input for every output channel"
        else:
            need += _line_buffer(walk)
    return need


def _line_buffer(walk: Windows) -> int:
    """Return the bytes of the input rows that a window spans: with them in the scratch no row comes twice."""
    return walk.fan_in * min(walk.rows.span, walk.rows.size) * walk.columns.size * walk.read_bytes
