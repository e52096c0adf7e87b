"""The homes of a nest's buffers: where each is filled and given back.

A buffer serves all uses below its home: a body of the nest, or for one use alone a depth in the slices of
its leaf.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from onchip.check.nest_tree import Path, Turns
from onchip.check.rules import broken
from onchip.network.axes import ALL, GroupAxes
from onchip.plans import Loop, Nest

__all__ = ["Home", "UseAt", "homes_of"]

Where = tuple[int, ...]
"""A body, by the item of every body that leads to it."""

UseAt = tuple[int, int]
"""An operator's position in the group, and the number of one of its uses (`Cut.uses`)."""


@dataclass(eq=False)
class Home:
    """A buffer from the moment in which it is filled, or first written, to that in which it is given back.

    `body` says which item of every body leads to that of its home; `above` are the loops, and for a use of
    its own the slices, around it. `uses` are the uses that share it, by operator and number; `guests` are
    those of tensors that lie in its place before it. `ring` is the loop, if any, in whose body it keeps what
    the next turn needs again. It has `copies`, and comes and goes through the channels `load` and `store`,
    None: the chip's first. The fetches of `late` more steps stand before its stores.
    """

    buffer: int
    body: tuple[int, ...]
    above: tuple[Turns, ...]
    uses: list[UseAt]
    guests: list[UseAt] = field(default_factory=list)
    ring: Turns | None = None
    copies: int = 1
    load: int | None = None
    store: int | None = None
    late: int = 0


@dataclass(frozen=True)
class _Kept:
    """A name that a body keeps; `items` lead to the body."""

    name: str
    items: tuple[int, ...]


def homes_of(
    group: str,
    nest: Nest,
    axes: GroupAxes,
    paths: Sequence[Path],
    leaving: Collection[int],
    whole: Collection[int],
) -> list[Home]:
    """Return the homes of all buffers.

    `leaving` are the tensors (roots) that leave the group, `whole` those that lie on chip while it runs and
    have no home. Raises `Broken` by the rules nest-keep and nest-over.
    """
    return _Homes(group, nest, axes, paths, leaving, whole).found()


class _Homes:
    def __init__(
        self,
        group: str,
        nest: Nest,
        axes: GroupAxes,
        paths: Sequence[Path],
        leaving: Collection[int],
        whole: Collection[int],
    ) -> None:
        self.group, self.axes = group, axes
        self.path = {path.at: path for path in paths}
        self.paths, self.whole = paths, whole
        self.out = [b.maker is not None and b.tensor in leaving for b in axes.buffers]
        self.users: list[list[UseAt]] = [[] for _ in axes.buffers]
        for at, cut in enumerate(axes.operators):
            for n, use in enumerate(cut.uses):
                self.users[use.buffer].append((at, n))
        self.named: dict[str, list[int]] = {}
        for n, buffer in enumerate(axes.buffers):
            self.named.setdefault(buffer.name, []).append(n)
        self.kept = self.keeps(nest)

    def found(self) -> list[Home]:
        homes = [
            home
            for n, buffer in enumerate(self.axes.buffers)
            if buffer.tensor not in self.whole
            for home in self.of_buffer(n)
        ]
        return self.in_place(homes)

    # -- what bodies keep ----------------------------------------------------------------------------------

    def keeps(self, nest: Nest) -> dict[str, list[Where]]:
        """Return by name the bodies that keep it."""
        kept: dict[str, list[Where]] = {}
        for one in _kept(nest, ()):
            meant = [
                i
                for i in self.named.get(one.name, ())
                if (self.axes.buffers[i].maker is None or self.out[i])
                and self.axes.buffers[i].tensor not in self.whole
            ]
            uses = [use for i in meant for use in self.users[i]]
            inside = [use for use in uses if self.below(use, one.items)]
            if not inside:
                reason = "no buffer from outside, and none that leaves"
                if meant:
                    reason = "which nothing in that body uses"
                elif any(self.axes.buffers[i].tensor in self.whole for i in self.named.get(one.name, ())):
                    reason = "which is whole and has no home in the group"
                broken("nest-keep", f"a body of group {self.group} keeps {one.name}, {reason}")
            if any(self.out[i] and not all(self.below(u, one.items) for u in self.users[i]) for i in meant):
                broken(
                    "nest-keep",
                    f"a body of group {self.group} keeps {one.name}, and not all of the operators that make"
                    " and read it are inside",
                )
            before = kept.setdefault(one.name, [])
            if any(one.items[: len(items)] == items for items in before):
                broken("nest-keep", f"a body of group {self.group} keeps {one.name}, which is kept already")
            before.append(one.items)
        return kept

    def below(self, use: UseAt, items: tuple[int, ...]) -> bool:
        return self.path[use[0]].items[: len(items)] == items

    # -- homes ---------------------------------------------------------------------------------------------

    def of_buffer(self, n: int) -> Iterator[Home]:
        buffer, uses = self.axes.buffers[n], self.users[n]
        kept = self.kept.get(buffer.name, ())
        outside = buffer.maker is None
        if outside or self.out[n]:
            for items in kept:
                if shared := [use for use in uses if self.below(use, items)]:
                    yield self.at_body(n, items, shared)
                    uses = [use for use in uses if use not in shared]
        if outside or (len(uses) == 1 and self.out[n]):
            yield from map(self.private, uses)
        elif uses:
            yield self.at_body(n, self.deepest(uses), uses)

    def at_body(self, buffer: int, items: tuple[int, ...], uses: list[UseAt]) -> Home:
        return Home(buffer, items, self.path[uses[0][0]].turns[: len(items)], uses)

    def deepest(self, uses: Sequence[UseAt]) -> tuple[int, ...]:
        """Return the innermost body that holds all uses."""
        first, *rest = (self.path[at].items[:-1] for at, _ in uses)
        for other in rest:
            same = (n for n, (a, b) in enumerate(zip(first, other, strict=False)) if a != b)
            first = first[: next(same, min(len(first), len(other)))]
        return first

    def private(self, use: UseAt) -> Home:
        """Return the home of a use of its own: inside the first slices of the leaf, as far as they cut it."""
        path, used = self.path[use[0]], self.axes.operators[use[0]].uses[use[1]]
        deep = 0
        for turn in path.slices:
            if turn.over[path.at] not in used.axes:
                break
            deep += 1
        return Home(used.buffer, path.items, path.turns[: len(path.loops) + deep], [use])

    # -- outputs in the place of an operand ----------------------------------------------------------------

    def in_place(self, homes: list[Home]) -> list[Home]:
        """Let outputs take the places of the operands that their leaves name; the last first, for chains."""
        shared = {home.buffer: home for home in homes if self.axes.buffers[home.buffer].maker is not None}
        gone: set[int] = set()
        for path in reversed(self.paths):
            if path.over is None:
                continue
            operand, output = self.replaced(path)
            home, place = shared.get(operand), shared.get(output)
            if place is not None:
                private = len(place.body) == len(path.items)
                if private or home is None or home.body[: len(place.body)] != place.body:
                    self.refuse(path, "which has its home further out")
                place.guests += self.users[operand]
                shared[operand] = place
            gone.add(operand)
            if place is None:
                shared.pop(operand, None)
        return [home for home in homes if home.buffer not in gone]

    def replaced(self, path: Path) -> tuple[int, int]:
        """Return the buffer in whose place a leaf writes, and that of its output."""
        cut = self.axes.operators[path.at]
        reads = [use for use in cut.reads if self.axes.buffers[use.buffer].name == path.over]
        if not reads:
            self.refuse(path, "which it does not read")
        read, write = reads[0], cut.writes
        x, y = self.axes.buffers[read.buffer], self.axes.buffers[write.buffer]
        if x.maker is None or self.out[read.buffer]:
            self.refuse(path, "which is not made and read inside alone")
        if sum(use.buffer == read.buffer for use in cut.reads) > 1:
            self.refuse(path, "which it reads elsewhere, too")
        alike = len(x.sides) == len(y.sides) and all(
            a == b != ALL or (a == ALL and b in cut.together)
            for a, b in zip(read.axes, write.axes, strict=True)
        )
        if x.sides != y.sides or x.element != y.element or not alike:
            self.refuse(path, "which it does not replace element by element")
        if any(cut.axes[axis] > 1 for axis in cut.sums):
            self.refuse(path, "which it reads again while it sums")
        return read.buffer, write.buffer

    def refuse(self, path: Path, reason: str) -> None:
        name = self.axes.operators[path.at].name
        broken("nest-over", f"{name} in group {self.group} is to write in the place of {path.over}, {reason}")


def _kept(nest: Nest | Loop, items: tuple[int, ...]) -> Iterator[_Kept]:
    """Yield what bodies keep, outer bodies first."""
    yield from (_Kept(name, items) for name in nest.keep)
    for n, item in enumerate(nest.body):
        if isinstance(item, Loop):
            yield from _kept(item, (*items, n))
