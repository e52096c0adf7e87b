"""A network cut into groups where one tensor alone goes on: which cuts need the fewest bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from onchip.network import bits
from onchip.segments.group import Figures, StageChoice, figures
from onchip.segments.layers import Layers
from onchip.segments.options import InputMode
from onchip.segments.place import Traversal

__all__ = ["Chain", "GroupChoice", "best_chain"]


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """Layers [first, end) as one group: its stages, and its figures forward and in reverse.

    A group of one layer that keeps no ring is that layer alone.
    """

    first: int
    end: int
    stages: tuple[StageChoice, ...]
    forward: Figures
    reverse: Figures
    fetches: bool

    def way(self, traversal: Traversal) -> Figures:
        """The figures of running forward, or in reverse."""
        return self.forward if traversal == "forward" else self.reverse

    @property
    def alone(self) -> bool:
        return self.end - self.first == 1 and not self.fetches


@dataclass(frozen=True)
class Chain:
    """The layers with their cuts; `network` may be cut before layer c for every c in `cuts`."""

    net: Layers

    @cached_property
    def mirrored(self) -> Layers:
        return self.net.mirrored()

    @cached_property
    def input(self) -> int:
        """The graph input, which is one."""
        (found,) = (t.id for t in self.net.network.tensors if t.kind == "input")
        return found

    @cached_property
    def readers(self) -> dict[int, tuple[int, ...]]:
        """The layers that read each tensor."""
        found: dict[int, list[int]] = {}
        for i, layer in enumerate(self.net.layers):
            for t in layer.reads:
                found.setdefault(t, []).append(i)
        return {t: tuple(layers) for t, layers in found.items()}

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Before which layers one tensor alone goes on: the last one made. From 0 to the number of layers."""
        last = {t: layers[-1] for t, layers in self.readers.items()}
        found, reach = [0], last.get(self.input, -1)
        for i, layer in enumerate(self.net.layers):
            kept = set(bits(self.net.network.output_roots)) - {layer.makes}
            older = any(t in kept for t in (m.makes for m in self.net.layers[:i]))
            if reach <= i and not older:
                found.append(i + 1)
            reach = max(reach, last.get(layer.makes, i))
        if found[-1] != len(self.net.layers):
            found.append(len(self.net.layers))
        return tuple(found)

    def entering(self, first: int) -> int:
        """The tensor that goes into a group that begins with this layer."""
        return self.input if first == 0 else self.net.layers[first - 1].makes

    def bytes_needed(self, group: GroupChoice) -> int:
        """The fewest bytes in which the group runs, whichever way."""
        source, made = (
            self.net.maps[self.entering(group.first)],
            self.net.maps[self.net.layers[group.end - 1].makes],
        )
        if group.fetches:
            return made.bytes + min(group.forward.scratch, group.reverse.scratch)
        return min(
            max(source.bytes + (source.bytes if f.distance is None else f.distance), made.bytes) + f.scratch
            for f in (group.forward, group.reverse)
        )

    def group(self, first: int, end: int, mode: InputMode) -> GroupChoice:
        """Layers [first, end) as a group, in the stages without recomputation that need the fewest bytes."""
        fetches = first == 0 and mode != "held"
        tried = [self._group(first, end, stages, mode, fetches) for stages in self._stagings(first, end)]
        return min(tried, key=self.bytes_needed)

    def _stagings(self, first: int, end: int) -> list[tuple[StageChoice, ...]]:
        single = tuple(StageChoice((i,)) for i in range(first, end))
        joined = self._joined(first, end)
        return [single] if joined == single else [single, joined]

    def _joined(self, first: int, end: int) -> tuple[StageChoice, ...]:
        """Layers that read pixel by pixel in one stage with the layer before: nothing is made twice."""
        stages: list[list[int]] = []
        for i in range(first, end):
            layer = self.net.layers[i]
            flat = all(w.span == 1 and w.stride <= 1 for w in (*layer.rows, *layer.columns))
            if stages and flat and not layer.adds_up:
                before = self.net.layers[stages[-1][-1]]
                if not before.adds_up and self.readers.get(before.makes) == (i,):
                    stages[-1].append(i)
                    continue
            stages.append([i])
        return tuple(StageChoice(tuple(stage)) for stage in stages)

    def _group(
        self, first: int, end: int, stages: tuple[StageChoice, ...], mode: InputMode, fetches: bool
    ) -> GroupChoice:
        entering = self.entering(first)
        both = []
        for net in (self.net, self.mirrored):
            if fetches:
                both.append(
                    figures(net, stages, streamed=entering, fetched="rows" if mode == "once" else "columns")
                )
            else:
                both.append(figures(net, stages, resident=entering))
        return GroupChoice(first, end, stages, both[0], both[1], fetches)


def best_chain(chain: Chain, mode: InputMode) -> tuple[GroupChoice, ...]:
    """The cuts whose largest group needs the fewest bytes; among those, the most groups: the least fused."""
    cuts = chain.cuts
    best: dict[int, tuple[int, int, GroupChoice | None]] = {cuts[-1]: (0, 0, None)}
    for first in reversed(cuts[:-1]):
        found: tuple[int, int, GroupChoice | None] | None = None
        for end in (c for c in cuts if c > first):
            group = chain.group(first, end, mode)
            rest = best[end]
            cost = max(chain.bytes_needed(group), rest[0]), rest[1] - 1, group
            if found is None or cost[:2] < found[:2]:
                found = cost
        assert found is not None
        best[first] = found
    return _path(best, cuts)


def _path(
    best: dict[int, tuple[int, int, GroupChoice | None]], cuts: Sequence[int]
) -> tuple[GroupChoice, ...]:
    groups, at = [], cuts[0]
    while at != cuts[-1]:
        group = best[at][2]
        assert group is not None
        groups.append(group)
        at = group.end
    return tuple(groups)
