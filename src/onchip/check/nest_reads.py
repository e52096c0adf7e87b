"""Reads of what is written over: whether each comes before, in every turn of the loops around.

An element is overwritten when a writer makes the one that takes its place. Every other read of it has to come
before: by the order of the leaves within one turn of the loops around both, and over their turns because each
loop goes on to elements that none before it wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from onchip.check.nest_homes import Home
from onchip.check.nest_tree import Path, Turns, followed
from onchip.check.nest_windows import Windows
from onchip.check.rules import broken
from onchip.network.axes import ALL, Buffer, Cut, GroupAxes, Use

__all__ = ["element_by_element", "prove_replaced", "read_late"]

Where = tuple[int, ...]


def read_late(
    axes: GroupAxes,
    paths: Mapping[int, Path],
    windows: Mapping[Where, Windows],
    read: tuple[int, Use],
    writer: int,
    above: Collection[Turns] = (),
) -> str:
    """Return why a use (operator, use) may read what a writer has written over; nothing if it never does.

    `paths` are the leaves by operator, `windows` the loops along which windows slide, by their bodies. In the
    loops `above` every turn begins with elements of its own.
    """
    at, _ = read
    if at != writer and paths[at].items > paths[writer].items:
        return "it runs later"
    for turn in _around(paths[at], paths[writer]):
        if turn not in above and not _goes_on(axes, windows, turn, read, writer):
            return "a later turn of a loop around both reads it again"
    return ""


def prove_replaced(
    group: str,
    axes: GroupAxes,
    paths: Sequence[Path],
    homes: Sequence[Home],
    windows: Mapping[Turns, Windows],
) -> None:
    """Prove that all other readers of an operand have read what a leaf writes in its place.

    Raises `Broken` by the rule nest-over.
    """
    path_of = {path.at: path for path in paths}
    slid = {one.where: one for one in windows.values()}
    place = {use: home for home in homes for use in home.guests}
    for path in paths:
        if path.over is None:
            continue
        cut = axes.operators[path.at]
        operand = next(use.buffer for use in cut.reads if axes.buffers[use.buffer].name == path.over)
        for at, other in enumerate(axes.operators):
            for n, use in enumerate(other.reads):
                if use.buffer != operand or at == path.at:
                    continue
                home = place.get((at, n))
                above = () if home is None else home.above
                reason = read_late(axes, path_of, slid, (at, use), path.at, above)
                if any(turn in windows for turn in above):
                    reason = "windows slide in a loop around them"
                if reason:
                    name = axes.buffers[operand].name
                    broken(
                        "nest-over",
                        f"{cut.name} in group {group} is to write in the place of {name}, which {other.name}"
                        f" reads, too: {reason}",
                    )


def _goes_on(
    axes: GroupAxes, windows: Mapping[Where, Windows], turn: Turns, read: tuple[int, Use], writer: int
) -> bool:
    """Return whether no turn of a loop reads what an earlier one wrote over."""
    at, use = read
    buffer, writes = axes.buffers[use.buffer], axes.operators[writer].writes
    slid = windows.get(turn.where)
    if slid is not None:
        return _ahead(slid, turn, (at, use, buffer), (writer, writes))
    if turn.before is None and axes.operators[at].axes[turn.over[at]] <= turn.tile:
        return True  # a single turn
    mine, theirs = turn.over[at], turn.over[writer]
    return any(
        use.axes[side] == mine and writes.axes[side] == theirs and _complete(buffer, side)
        for side in range(len(use.axes))
    )


def _around(a: Path, b: Path) -> Iterator[Turns]:
    """Yield the loops around two leaves."""
    for one, other in zip(a.loops, b.loops, strict=False):
        if one is not other:
            return
        yield one


def _complete(buffer: Buffer, side: int) -> bool:
    """Return whether index i along a side of a part is index i of the tensor."""
    return buffer.sides[side] == buffer.whole[side]


def element_by_element(cut: Cut, use: Use, buffer: Buffer) -> bool:
    """Return whether an operator reads an element, or a row that stays together, as it writes there."""
    if any(cut.axes[axis] > 1 for axis in cut.sums):
        return False
    return all(
        _complete(buffer, side) and (size == 1 or a == b != ALL or (a == ALL and b in cut.together))
        for side, (size, a, b) in enumerate(zip(buffer.whole, use.axes, cut.writes.axes, strict=True))
    )


def _ahead(windows: Windows, turn: Turns, read: tuple[int, Use, Buffer], written: tuple[int, Use]) -> bool:
    """Return whether every turn of a loop along windows reads beyond all that those before it wrote."""
    (at, use, buffer), (writer, writes) = read, written
    mine, theirs = followed(use, turn.over[at]), followed(writes, turn.over[writer])
    side = next((s for s in mine if s in theirs and _complete(buffer, s)), None)
    if side is None:
        return windows.turns <= 1
    window, end = mine[side], 0
    for j in range(windows.turns):
        here, there = windows.made[at][j], windows.made[writer][j]
        if here:
            first = (
                here.start if window is None else (here.start * window.stride - window.before) // window.per
            )
            if max(0, first) < end:
                return False
        if there:
            end = max(end, there.stop)
    return True
