"""`alloc T @A over X by D` for a group: proof that every byte of X is read before it is overwritten.

A group without a tiling runs its operators one after the other. A group in bands runs its sub-groups one
after the other; each reads some rows of X, and then, or at the same time, writes some rows of T. So each row
of X has a last sub-group that reads it, each row of T one that writes it, and the proof compares the two
wherever their bytes meet. docs/plan-program.md states the order within a sub-group. (Nests: see
`nest_overlap`; rings: `ring_overlap`.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from onchip.check.nest_overlap import prove_nest_overlap
from onchip.check.operator_overlap import prove_overlap
from onchip.check.rules import broken
from onchip.check.tiles import Banded
from onchip.check.units import Unit
from onchip.check.weight_tile_times import times_by_tiles
from onchip.network import Network
from onchip.network.access import Access
from onchip.network.maps import Map

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Times = NDArray[np.int64]

__all__ = ["prove_group_overlap"]

MAX_STRETCHES = 1 << 24
"""The most contiguous rows of a map (per channel, where channels lie apart) that a proof follows."""

NEVER = -1


def prove_group_overlap(
    network: Network, unit: Unit, t: int, x: int, by: int, *, weights_apart: bool = False
) -> None:
    """Prove that a group may write tensor `t` with root tensor `x` lying `by` bytes above it.

    With `weights_apart` a scratchpad of their own holds all weights of a run. Raises `Broken`:
    `overlap-unproved` when too little is known, `overlap-unsafe` when a byte is lost.
    """
    if unit.banded is not None:
        _prove_in_bands(network, unit, unit.banded, t, x, by, weights_apart)
    elif unit.nest is not None:
        for y in (t, x):
            if y in (unit.crossing or ()):
                broken("overlap-unproved", f"group {unit.name} streams {_name(network, y)}")
        prove_nest_overlap(network, unit.name, unit.nest, t, x, by)
    elif unit.crossing is not None:
        broken("overlap-unproved", f"group {unit.name} runs in blocks")
    else:
        _prove_in_turn(network, unit, t, x, by)


# -- one operator after the other ------------------------------------------------------------------------


def _prove_in_turn(network: Network, unit: Unit, t: int, x: int, by: int) -> None:
    maker = network.producer[t]
    assert maker is not None  # a unit writes it
    before = _ancestors(network, unit.operators, maker)
    for op in unit.operators:
        if not network.reads[op] >> x & 1 or op in before:
            continue
        if op != maker:
            name = network.operators[op].name
            broken(
                "overlap-unproved", f"{name} of group {unit.name} may run when {_name(network, t)} is made"
            )
        prove_overlap(network, maker, t, x, by)


def _ancestors(network: Network, members: Iterable[int], operator: int) -> set[int]:
    inside, found, waiting = set(members), set[int](), [operator]
    while waiting:
        before = network.predecessors[waiting.pop()]
        for op in inside - found:
            if before >> op & 1:
                found.add(op)
                waiting.append(op)
    return found


# -- in bands --------------------------------------------------------------------------------------------


def _prove_in_bands(
    network: Network, unit: Unit, run: Banded, t: int, x: int, by: int, weights_apart: bool
) -> None:
    for y in (t, x):
        if y in (unit.crossing or ()):
            broken("overlap-unproved", f"group {unit.name} streams {_name(network, y)}")
    maker = next(piece for piece in run.pieces if t in piece.writes)
    packed = {y: _channels_last(network, run, y) for y in (t, x)}
    wide, narrow = (_wide(run.maps[y], packed[y]) for y in (x, t))
    writes = _stretches(run, run.maps[t], _written(run, t), packed[t])
    untold = []
    for piece in run.pieces:
        if x not in piece.reads:
            continue
        if piece is maker and piece.id in run.by_tiles and not weights_apart:
            if _by_tiles(network, run, piece, t, x, by, packed):
                continue
        elif piece is maker and _in_step(network, run, piece, t, x, by, packed[t]):
            continue
        reads = _stretches(run, run.maps[x], _read(run, piece, x), packed[x])
        late, tied = _meet(reads, writes, wide, narrow, by)
        if late:
            broken("overlap-unsafe", f"{piece.name} of group {unit.name} reads {_name(network, x)} too late")
        if tied and not (piece is not maker and run.order.precedes(piece, maker)):
            untold.append(piece.name)
    if untold:
        broken(
            "overlap-unproved",
            f"{untold[0]} of group {unit.name} reads {_name(network, x)} in the sub-group that overwrites it",
        )


def _in_step(
    network: Network, run: Banded, maker: Access, t: int, x: int, by: int, channels_last: bool
) -> bool:
    """Return whether the maker's steps prove its own reads safe, over all sub-groups.

    Raises `Broken` when the steps are known and lose a byte.
    """
    if any(y in run.order.passes for y in maker.reads):
        return False
    read, made = run.maps[x], run.maps[t]
    if maker.form == "elementwise" and not _broadcasts(maker, x) and read.element == made.element and not by:
        return True
    geometry = network.operators[maker.id].geometry
    forward = geometry is not None and geometry.traversal == "forward"
    one_by_one = run.together == 1 or run.bands.count == 1
    alone = run.bands.count == 1 and run.together == made.images
    if not alone and not (forward and channels_last and one_by_one):
        return False
    prove_overlap(network, maker.id, t, x, by)
    return True


def _broadcasts(access: Access, tensor: int) -> bool:
    return any(operand.broadcast for operand in access.operands if operand.tensor == tensor)


def _by_tiles(
    network: Network, run: Banded, maker: Access, t: int, x: int, by: int, channels_last: Mapping[int, bool]
) -> bool:
    """Return whether the maker's steps prove its own reads safe, in all tiles of its weights.

    Raises `Broken` when the steps are known and lose a byte.
    """
    if any(y in run.order.passes for y in maker.reads):
        return False
    times = times_by_tiles(network, run, maker, x, _written(run, t), channels_last)
    if times is None:
        return False
    late, _ = _meet(*times, run.maps[x].element, run.maps[t].element, by)
    if late:
        broken(
            "overlap-unsafe",
            f"{maker.name} reads {_name(network, x)} for a later tile of its weights, and has written there",
        )
    return True


def _channels_last(network: Network, run: Banded, tensor: int) -> bool:
    """Return whether a row is contiguous with all its channels, as in NHWC and in matrices."""
    members = {piece.id for piece in run.pieces}
    layouts = set[str]()
    for op in network.operators:
        g = op.geometry
        if g is None or not (tensor in op.outputs or (tensor in op.inputs and op.id in members)):
            continue
        if len(g.output if tensor in op.outputs else g.input) == 4:
            layouts.add(g.layout)
    if len(layouts) > 1:
        broken("overlap-unproved", f"of {_name(network, tensor)} two layouts are stated")
    return layouts <= {"NHWC"}


def _written(run: Banded, t: int) -> Times:
    """Return for each row of a held tensor the band that makes it."""
    import numpy as np

    place = run.bands.tensors.index(t)
    found = np.full(run.maps[t].rows, NEVER, dtype=np.int64)
    for j, (before, _, high) in enumerate(run.bands):
        found[before[place] : high[place]] = j
    return found


def _read(run: Banded, piece: Access, x: int) -> Times:
    """Return for each row of a tensor the last band in which an operator reads it."""
    import numpy as np

    found = np.full(run.maps[x].rows, NEVER, dtype=np.int64)
    windows = [operand.rows for operand in piece.operands if operand.tensor == x]
    places = [run.bands.tensors.index(y) for y in piece.writes]
    for j, (before, low, high) in enumerate(run.bands):
        for place in places:
            first = (low if run.bands.streamed[place] else before)[place]
            if first < high[place]:
                for window in windows:
                    found[window.start(first) : window.end(high[place])] = j
    return found


def _stretches(run: Banded, found: Map, bands: Times, channels_last: bool) -> Times:
    """Return the sub-group of every contiguous row, of one channel or of all, in address order."""
    import numpy as np

    planes = 1 if channels_last else found.channels
    if found.images * planes * found.rows > MAX_STRETCHES:
        broken("overlap-unproved", "the maps are too large for a proof")
    first = np.arange(found.images, dtype=np.int64) // run.together * run.bands.count
    times = np.where(bands[None] == NEVER, NEVER, first[:, None] + bands[None])
    shape = found.images, planes, found.rows
    return np.ascontiguousarray(np.broadcast_to(times[:, None], shape)).reshape(-1)


def _wide(found: Map, channels_last: bool) -> int:
    """Return the bytes of a contiguous row."""
    return found.columns * found.element * (found.channels if channels_last else 1)


def _meet(reads: Times, writes: Times, wide: int, narrow: int, by: int) -> tuple[bool, bool]:
    """Return (late, tied): whether a shared byte is read after it is overwritten, or in the same sub-group.

    Rows of `reads` have `wide` bytes each and lie `by` above those of `writes`, which have `narrow`.
    """
    import numpy as np

    if wide < narrow:
        low = by + np.arange(reads.size, dtype=np.int64) * wide
        size, width, count = wide, narrow, writes.size
    else:
        low = np.arange(writes.size, dtype=np.int64) * narrow - by
        size, width, count = narrow, wide, reads.size
    late = tied = False
    # A shorter stretch meets the longer ones that hold its first and its last byte.
    for other in (low // width, (low + size - 1) // width):
        inside = (other >= 0) & (other < count)
        at = np.clip(other, 0, count - 1)
        read, written = (reads, writes[at]) if wide < narrow else (reads[at], writes)
        inside &= (read != NEVER) & (written != NEVER)
        late = late or bool((inside & (written < read)).any())
        tied = tied or bool((inside & (written == read)).any())
    return late, tied


def _name(network: Network, t: int) -> str:
    return network.tensors[t].name
