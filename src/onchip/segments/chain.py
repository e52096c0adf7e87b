"""A network cut into groups where one tensor alone goes on: which cuts need the fewest bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
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

    A group of one layer that keeps no ring is that layer alone. `fewest_rings` are bytes of rings, in
    whichever stages have least.
    """

    first: int
    end: int
    stages: tuple[StageChoice, ...]
    forward: Figures
    reverse: Figures
    fetches: bool
    forward_only: bool
    fewest_rings: int = 0

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
            ways = [group.forward] if group.forward_only else [group.forward, group.reverse]
            return made.bytes + min(way.scratch for way in ways)
        return min(
            max(source.bytes + (source.bytes if f.distance is None else f.distance), made.bytes) + f.scratch
            for f in (group.forward, group.reverse)
        )

    def least_bytes(self, group: GroupChoice) -> int:
        """What every group needs that begins with the same layer and does not end before this one."""
        held = 0 if group.fetches else self.net.maps[self.entering(group.first)].bytes
        return held + group.fewest_rings

    def group(self, first: int, end: int, mode: InputMode) -> GroupChoice:
        """Layers [first, end) as a group, in the stages without recomputation that need the fewest bytes."""
        fetches = first == 0 and mode != "held"
        tried = [self._group(first, end, stages, mode, fetches) for stages in self._stagings(first, end)]
        fewest = min(figures.rings for group in tried for figures in (group.forward, group.reverse))
        return replace(min(tried, key=self.bytes_needed), fewest_rings=fewest)

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
        forward_only = fetches and mode == "once"  # a camera gives its first row first
        return GroupChoice(first, end, stages, both[0], both[1], fetches, forward_only)


def best_chain(chain: Chain, mode: InputMode) -> tuple[GroupChoice, ...]:
    """The cuts whose largest group needs the fewest bytes, each group as short as that allows.

    A bisection over the bytes: groups are looked at only where shorter ones need too many.
    """
    known: dict[tuple[int, int], GroupChoice] = {}
    low, high = 0, sum(m.bytes for m in chain.net.maps.values())
    best = _within(chain, mode, high, known)
    while best is None:  # workspaces beside whole tensors
        low, high = high, 2 * high
        best = _within(chain, mode, high, known)
    high = max(map(chain.bytes_needed, best))
    while low < high - 1:
        found = _within(chain, mode, (low + high) // 2, known)
        if found is None:
            low = (low + high) // 2
        else:
            best, high = found, max(map(chain.bytes_needed, found))
    return best


def _within(
    chain: Chain, mode: InputMode, bytes_: int, known: dict[tuple[int, int], GroupChoice]
) -> tuple[GroupChoice, ...] | None:
    """Groups that need no more than `bytes_` each, from the end backwards; None where there are none."""
    cuts = chain.cuts
    rest: dict[int, GroupChoice | None] = {cuts[-1]: None}
    for first in reversed(cuts[:-1]):
        for end in (c for c in cuts if c > first):
            if (first, end) not in known:
                known[first, end] = chain.group(first, end, mode)
            group = known[first, end]
            if end in rest and chain.bytes_needed(group) <= bytes_:
                rest[first] = group
                break
            if chain.least_bytes(group) > bytes_:
                break  # a longer group keeps all these rings, and more
    if cuts[0] not in rest:
        return None
    groups, at = [], cuts[0]
    while at != cuts[-1]:
        chosen = rest[at]
        assert chosen is not None
        groups.append(chosen)
        at = chosen.end
    return tuple(groups)
