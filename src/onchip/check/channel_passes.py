"""The proof that a tiling's streamed tensors can be made in passes over slices of channels.

A streamed tensor is made once in every sub-group, one slice of channels after the other, while all its
readers in the group take their part. Tensors that must hold a slice at the same time form one pass. A pass
needs the held tensors that it reads whole, and a held tensor needs every pass that adds to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onchip.check.rules import broken
from onchip.network import Network
from onchip.network.access import Access

__all__ = ["Order", "prove_passes"]


@dataclass(frozen=True)
class Order:
    """The order of passes and held tensors in every sub-group.

    `passes` names the pass of each streamed tensor, by one of its tensors; `after` lists, for each pass and
    held tensor, those that wait for it.
    """

    passes: Mapping[int, int]
    after: Mapping[int, Collection[int]]

    def precedes(self, first: Access, second: Access) -> bool:
        """Return whether the first operator always ends a sub-group before the second one writes in it."""
        slices = [self.passes[x] for x in second.reads if x in self.passes]
        starts = slices or [self.passes.get(y, y) for y in second.writes]
        ends = [self.passes.get(y, y) for y in first.writes]
        return all(set(starts) <= self._later(end) for end in ends)

    def _later(self, node: int) -> set[int]:
        found: set[int] = set()
        waiting = [node]
        while waiting:
            for x in self.after.get(waiting.pop(), ()):
                if x not in found:
                    found.add(x)
                    waiting.append(x)
        return found


def prove_passes(network: Network, pieces: Sequence[Access], streamed: Collection[int], group: str) -> Order:
    """Raise `Broken` (`tiling-passes`) unless ordered passes make all streamed tensors of a group."""
    for piece in pieces:
        _channels(network, piece, streamed, group)
    passes = _passes(network, pieces, streamed, group)
    return Order(passes, _order(network, pieces, streamed, passes, group))


def _channels(network: Network, piece: Access, streamed: Collection[int], group: str) -> None:
    """Refuse to stream an operand that is needed whole, or a sum of slices."""
    for operand in piece.operands:
        t = operand.tensor
        name = network.tensors[t].name
        if t not in streamed:
            continue
        if operand.broadcast:
            broken("tiling-passes", f"group {group} streams {name}, which {piece.name} broadcasts")
        if piece.form == "rowwise":
            broken("tiling-passes", f"group {group} streams {name}, of which {piece.name} needs all channels")
        for y in piece.writes:
            if piece.form == "reduce" and y in streamed:
                broken(
                    "tiling-passes",
                    f"group {group} streams both {name} and {network.tensors[y].name}, "
                    f"and {piece.name} sums over the channels of one for every channel of the other",
                )


def _together(piece: Access, streamed: Collection[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (tensor, tensor, distance): channel c + distance of the second comes with c of the first."""
    if piece.form in ("reduce", "rowwise"):
        return
    (y,) = piece.writes
    if y in streamed:
        for operand in piece.operands:
            if operand.tensor in streamed:
                yield operand.tensor, y, operand.channel
    elif piece.form == "elementwise" and len(piece.reads) > 2:
        # The first of two slices can wait in the place of the output; a second one has no place.
        slices = [x for x in piece.reads if x in streamed]
        for x in slices[1:]:
            yield slices[0], x, 0


def _passes(
    network: Network, pieces: Sequence[Access], streamed: Collection[int], group: str
) -> dict[int, int]:
    """Return the pass of each streamed tensor, named by one of its tensors."""
    beside: dict[int, list[tuple[int, int]]] = {t: [] for t in streamed}
    for piece in pieces:
        for x, y, distance in _together(piece, streamed):
            beside[x].append((y, distance))
            beside[y].append((x, -distance))
    passes: dict[int, int] = {}
    for start in beside:
        if start in passes:
            continue
        place, waiting = {start: 0}, [start]
        while waiting:
            x = waiting.pop()
            for y, distance in beside[x]:
                if y not in place:
                    place[y] = place[x] + distance
                    waiting.append(y)
                elif place[y] != place[x] + distance:
                    broken(
                        "tiling-passes",
                        f"group {group} streams {network.tensors[y].name}, and needs two of its channels "
                        "at the same time",
                    )
        passes |= dict.fromkeys(place, start)
    return passes


def _order(
    network: Network,
    pieces: Sequence[Access],
    streamed: Collection[int],
    passes: dict[int, int],
    group: str,
) -> dict[int, set[int]]:
    """Return what waits for each pass and held tensor. Refuse a pass that waits for itself."""
    after: dict[int, set[int]] = {}

    def edge(x: int, y: int) -> None:
        a, b = passes.get(x, x), passes.get(y, y)
        after.setdefault(b, set())
        after.setdefault(a, set())
        if a != b:
            after[a].add(b)

    for piece in pieces:
        for x in piece.reads:
            for y in piece.writes:
                edge(x, y)
        slices = [x for x in piece.reads if x in streamed]
        if piece.form == "elementwise" and len(piece.reads) > 2 and len(slices) > 1:
            for x in piece.reads:  # none of the slices can wait until a held operand is there
                edge(x, slices[0])
    waiting = dict.fromkeys(after, 0)
    for later in after.values():
        for y in later:
            waiting[y] += 1
    ready = [x for x, n in waiting.items() if not n]
    for x in ready:  # grows
        for y in after[x]:
            waiting[y] -= 1
            if not waiting[y]:
                ready.append(y)
    stuck = [x for x, n in waiting.items() if n and x in streamed]
    if stuck:
        broken(
            "tiling-passes",
            f"in group {group} the pass that makes {network.tensors[stuck[0]].name} needs what it makes",
        )
    return after
