"""`alloc T @A over X by D`: proof that every byte of X is read before it is overwritten.

The operator writes T in steps (see `operator_walk`), and a step may overwrite a byte of X only if no later
step reads it. Both sides are known exactly from the geometry: for each pixel of X the last step that reads
it, and the first step that writes one of its bytes. The proof compares the two for every pixel; nothing is
estimated. That X dies with the operator is judged in `interpreter`.
`group_overlap` proves the same of groups in tiles, `ring_overlap` of groups in rings, and `joins` of concats
whose operands lie in their output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onchip.check.operator_walk import BY_PIXEL, Elementwise, Windows, element_bytes, steps_of
from onchip.check.rules import Broken, broken
from onchip.network import Network, Operator
from onchip.network.windows import last_readers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Steps = NDArray[np.int64]

__all__ = ["may_be_broadcast", "may_overwrite", "prove_overlap"]

MAX_PIXELS = 1 << 24
"""The most pixels of a proof, and the most positions times taps of an axis."""

CHUNK = 1 << 20


def may_overwrite(network: Network, operator: int, t: int, x: int) -> bool:
    """Return whether `operator` is proved safe to write tensor `t` over root tensor `x`, at its address.

    The program decides the other demand of `alloc ... over`, that `x` dies with the operator.
    """
    if network.root[t] != t:
        return False
    try:
        prove_overlap(network, operator, t, x, 0)
    except Broken:
        return False
    return True


def prove_overlap(network: Network, operator: int, t: int, x: int, by: int) -> None:
    """Prove that `operator` may write tensor `t` with root tensor `x` lying `by` bytes above it.

    Raises `Broken`: `overlap-unproved` when the geometry says too little, `overlap-unsafe` when a byte is
    lost.
    """
    op = network.operators[operator]
    for operand in (i for i in op.inputs if network.root[i] == x):
        repeated = may_be_broadcast(network, op, operand)
        # All operands share the order of writing: the largest has a walk, if any has.
        largest = max(op.inputs, key=lambda i: network.tensors[i].bytes)
        walk = steps_of(network, operator, largest if repeated else operand)
        if isinstance(walk, str):
            broken("overlap-unproved", walk)
        distance = by + network.offset[operand]
        size, name = network.tensors[operand].bytes, network.tensors[operand].name
        if repeated:
            if not _meets_the_last_step_alone(network.tensors[t].bytes, walk, distance, size):
                broken("overlap-unproved", f"{name} may be broadcast, so that any step reads any byte of it")
            safe = True
        elif isinstance(walk, Elementwise):
            width = element_bytes(size, walk.steps)
            if width is None:
                broken("overlap-unproved", f"{name} is not read element by element")
            if network.tensors[operand].patches != walk.patches:
                written = network.tensors[t].name
                broken("overlap-unproved", f"{name} and {written} do not lie in the same patches")
            safe = _elementwise_is_safe(walk, width, network.tensors[t].bytes // walk.steps, distance)
        elif operand != op.inputs[0] and not _by_pixel(op):
            broken("overlap-unproved", f"{name} is not the input that the windows read")
        else:
            safe = _windows_are_safe(op.name, walk, distance)
        if not safe:
            broken("overlap-unsafe", f"{op.name} overwrites a byte of {name} before it has read it")


def _by_pixel(op: Operator) -> bool:
    """Return whether an operator reads all of its inputs pixel by pixel."""
    return op.geometry is not None and op.geometry.kind in (*BY_PIXEL, "elementwise")


def may_be_broadcast(network: Network, op: Operator, operand: int) -> bool:
    """Return whether an operand may be repeated: one element, or pixel, read for several of the output.

    The largest operands are not repeated. A smaller one may be, along any axis: its shape is not stated, and
    its bytes do not tell, because fewer and wider elements may take as many.
    """
    if op.geometry is None or op.geometry.kind not in ("elementwise", "rowwise"):
        return False
    size = {i: network.tensors[i].bytes for i in op.inputs}
    return size[operand] < max(size.values())


def _meets_the_last_step_alone(written: int, walk: Elementwise | Windows, distance: int, size: int) -> bool:
    """Return whether the output's last step writes all of its bytes in [distance, distance + size)."""
    low, high = max(0, distance), min(written, distance + size)
    if low >= high:
        return True
    if isinstance(walk, Elementwise):
        width = written // walk.steps
        return high <= width if walk.reverse else low >= written - width
    pixel, columns = walk.write_bytes, walk.columns.outputs
    chunk = walk.chunk if 0 < walk.chunk < pixel else pixel
    own = columns - (columns - 1) // walk.pixels * walk.pixels  # pixels of a row's last step
    if walk.reverse:
        inside = high <= own * pixel
        first, end = 0, chunk
    else:
        inside = low >= written - own * pixel
        first, end = (pixel - 1) // chunk * chunk, pixel
    start = low - low % pixel
    return inside and (chunk == pixel or start + first <= low < high <= start + end)


def _touched(count: int, wide: int, distance: int, written: int) -> tuple[int, int]:
    """Return the pixels of X, `wide` bytes each from `distance` on, that share a byte with [0, written)."""
    return max(0, -distance // wide), min(count, -(-(written - distance) // wide))


def _elementwise_is_safe(walk: Elementwise, read: int, write: int, distance: int) -> bool:
    """Return whether step q, which reads element q of X, comes before that element is overwritten.

    Both sides are linear in q, so the ends of the range decide.
    """
    first, last = _touched(walk.steps, read, distance, walk.steps * write)
    if walk.reverse:  # elements written before step q are those above q: the last element has none
        ends = (first, min(last, walk.steps - 1) - 1)
        return ends[0] > ends[1] or all(distance + (q + 1) * read <= (q + 1) * write for q in ends)
    ends = (max(first, 1), last - 1)
    return ends[0] > ends[1] or all(distance + q * read >= q * write for q in ends)


def _windows_are_safe(name: str, walk: Windows, distance: int) -> bool:
    """Return whether no step writes on a pixel of X before the last step that reads the pixel."""
    import numpy as np

    rows, columns = walk.rows, walk.columns
    area, out_area = rows.size * columns.size, rows.outputs * columns.outputs
    first, last = _touched(walk.planes * area, walk.read_bytes, distance, walk.written * walk.write_bytes)
    work = max(last - first, rows.size * rows.taps, columns.size * columns.taps)
    if work > MAX_PIXELS:
        broken("overlap-unproved", f"{name} is too large for a proof ({work:,} pixels or positions)")
    by_row, by_column = (last_readers(axis, reverse=walk.reverse) for axis in (rows, columns))
    for start in range(first, last, CHUNK):
        pixel = np.arange(start, min(start + CHUNK, last), dtype=np.int64)
        plane, rest = np.divmod(pixel, area)
        row, column = np.divmod(rest, columns.size)
        # The last plane that reads it: the highest of its block, in reverse the lowest.
        block = plane // walk.fan_in * walk.fan_out
        out_plane = block if walk.reverse else block + walk.fan_out - 1
        reader = out_plane * out_area + by_row[row] * columns.outputs + by_column[column]
        read = (by_row[row] >= 0) & (by_column[column] >= 0)
        low = np.maximum(distance + pixel * walk.read_bytes, 0)
        high = distance + (pixel + 1) * walk.read_bytes
        high = np.minimum(high, walk.written * walk.write_bytes) - 1
        if bool((read & _lost(walk, reader, low, high)).any()):
            return False
        if bool((read & _lost_in_its_pixel(walk, distance + pixel * walk.read_bytes, reader)).any()):
            return False
    return True


def _lost(walk: Windows, reader: Steps, low: Steps, high: Steps) -> NDArray[np.bool_]:
    """Return whether one of the output's bytes [low, high] is written before `reader`'s step has read."""
    import numpy as np

    width, size = walk.columns.outputs, walk.write_bytes
    chunk = walk.chunk if 0 < walk.chunk < size else size
    last = (size - 1) // chunk * chunk  # where the chunk that comes last in forward order begins
    across = -(-width // walk.pixels)

    def step(pixel: Steps) -> Steps:
        row, column = np.divmod(pixel, width)
        time: Steps = row * across + column // walk.pixels
        if walk.reverse:
            time = (width - 1 - column) // walk.pixels - row * across
        return time

    # The first byte written, and the bytes of its step: those before the last chunk come too early.
    if walk.reverse:
        writer = high // size
        column = writer % width
        start = np.maximum(width - ((width - 1 - column) // walk.pixels + 1) * walk.pixels, 0)
        low = np.maximum(low, (writer - column + start) * size)
        early = (high % size >= chunk) | ((high % size < high - low) & (chunk < size))
    else:
        writer = low // size
        column = writer % width
        end = np.minimum((column // walk.pixels + 1) * walk.pixels, width)
        high = np.minimum(high, (writer - column + end) * size - 1)
        early = (low % size < last) | ((low % size + high - low >= size) & (last > 0))
    made, wanted = step(writer), step(reader)
    lost: NDArray[np.bool_] = (made < wanted) | ((made == wanted) & early)
    return lost


def _lost_in_its_pixel(walk: Windows, start: Steps, reader: Steps) -> NDArray[np.bool_]:
    """Return whether a step that goes element by element overwrites a part of its pixel before reading it."""
    import numpy as np

    behind, early = start - reader * walk.write_bytes, walk.early
    if early is None:
        return np.zeros(start.shape, dtype=bool)
    if walk.reverse:
        behind = walk.write_bytes - walk.read_bytes - behind
    lost: NDArray[np.bool_] = (behind > -walk.read_bytes) & (behind < early)
    return lost
