"""The nests from which a group's fastest is chosen: its own, and those of fewest bytes in less room.

A nest that takes less of the room leaves some for copies. The search for fewest bytes is asked for rooms down
the stairs: as it is exact, half the room shows what less room costs in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.nests import search_of
from onchip.planners.joint.timed.pricing import Opened, TimedGroup
from onchip.planners.joint.timed.spelled import bare, spelled
from onchip.planners.limits import Limits
from onchip.planners.nests import NestSearch, widened
from onchip.plans import Nest

__all__ = ["STAIRS", "NestsFor", "opened_nest", "spelled_nest"]

STAIRS = (1.0, 0.6, 0.35, 0.2)
"""The parts of the room for which a nest of fewest bytes is asked."""

MOST_SHAPES = 2_000
"""The most shapes of nests that one search looks at."""


class NestsFor:
    """The nests of fewest bytes of one group; nothing is searched before somebody asks."""

    def __init__(self, problem: FusionProblem, group: TimedGroup, limits: Limits) -> None:
        self.problem, self.group, self.limits = problem, group, limits
        axes = axes_of(problem.network, group.operators)
        self.reason = axes if isinstance(axes, str) else ""
        self.search: NestSearch | None = None
        if isinstance(axes, GroupAxes):
            self.axes = axes
            members = sum(1 << v for v in group.operators)
            escaping = problem.escaping(members)
            self.leaving = [
                i for i, b in enumerate(axes.buffers) if b.tensor is not None and escaping >> b.tensor & 1
            ]
            self.whole = [
                i
                for i, b in enumerate(axes.buffers)
                if b.tensor is not None
                and (b.maker is None or i in self.leaving)
                and b.tensor not in group.streamed
            ]
            with suppress(ValueError):  # more operators, buffers or axes than the search takes
                self.search = search_of(problem, axes, self.leaving)

    def fewest_bytes(self, room: int) -> Nest | None:
        """Return the nest of fewest bytes in some room, as far as a search of bounded effort finds it."""
        if self.search is None:
            return None
        answer = self.search.core.best(
            whole=self.whole,
            room=room,
            below=None,
            most_shapes=MOST_SHAPES,
            limits=self.limits.core(lambda _: self.limits.stopped()),
        )
        return None if answer.found is None else self.search.nest(answer.found)

    def wider(self, nest: Nest, room: int) -> Nest:
        """Return a nest with larger tiles, as far as they fit."""
        return widened(
            self.axes,
            self.leaving,
            self.whole,
            nest,
            room,
            alignment=self.group.alignment,
            accumulator=self.group.accumulator,
        )

    def few(self, room: int) -> Iterator[Nest]:
        """Yield nests of fewest bytes for less and less room, each also with tiles that fill the room."""
        seen: set[Nest] = set()
        for part in STAIRS:
            nest = self.fewest_bytes(round(room * part))
            if nest is None or self.limits.over():
                return
            for made in (nest, self.wider(nest, round(room * part))):
                if made not in seen:
                    seen.add(made)
                    yield made


def spelled_nest(group: TimedGroup, nest: Nest) -> Nest | None:
    """Return a nest without copies spelled out, or as it is where spelling it out costs more; None if it is
    not legal.
    """
    plain = bare(nest)
    law = group.lawful(plain)
    if law is None:
        return None
    out = spelled(plain, law.layout)
    other = group.lawful(out)
    if other is None or other.moved != law.moved or other.layout.extent > law.layout.extent:
        return plain
    return out


def opened_nest(group: TimedGroup, nest: Nest) -> Opened | None:
    """Return the same ready to be priced."""
    out = spelled_nest(group, nest)
    return None if out is None else group.opened(out)
