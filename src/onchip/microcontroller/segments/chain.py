"""A network and its cuts: the places between groups, where exactly one tensor is live."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from onchip.base.errors import ModelError
from onchip.microcontroller.segments.group import Figures, StageChoice, figures
from onchip.microcontroller.segments.layers import Layers
from onchip.microcontroller.segments.place import Traversal
from onchip.network import bits

__all__ = ["Chain", "Fetched", "GroupChoice"]

Fetched = Literal["rows", "columns"]


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """Layers [first, end) as one group: its stages, and its figures forward and in reverse.

    The group runs once for each of `strips` and fetches its input by rows or columns, or finds it in memory.
    A group that takes a camera's rows has no `reverse`. A group of one layer without rings is that layer
    alone.
    """

    first: int
    end: int
    stages: tuple[StageChoice, ...]
    strips: int
    fetched: Fetched | None
    forward: Figures
    reverse: Figures | None

    def way(self, traversal: Traversal) -> Figures:
        """Return the figures of running forward, or in reverse."""
        found = self.forward if traversal == "forward" else self.reverse
        assert found is not None
        return found

    @property
    def alone(self) -> bool:
        return self.end - self.first == 1 and self.fetched is None and self.strips == 1


@dataclass(frozen=True)
class Chain:
    """The layers with their cuts; `network` may be cut before layer c for every c in `cuts`."""

    net: Layers

    @cached_property
    def mirrored(self) -> Layers:
        return self.net.mirrored()

    @cached_property
    def input(self) -> int:
        """The id of the only graph input. Raises `ModelError` for a network that has several."""
        found = [t.id for t in self.net.network.tensors if t.kind == "input"]
        if len(found) != 1:
            raise ModelError("must have one input", where=self.net.network.name)
        return found[0]

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
        """The layers, from 0 to their number, before which only the tensor made last is live."""
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
        """Return the tensor that enters a group that begins with this layer."""
        return self.input if first == 0 else self.net.layers[first - 1].makes

    def bytes_needed(self, group: GroupChoice) -> int:
        """Return the fewest bytes in which the group runs, forward or in reverse."""
        source = self.net.maps[self.entering(group.first)].bytes
        made = self.net.maps[self.net.layers[group.end - 1].makes].bytes
        needs = []
        for way in (group.forward, group.reverse):
            if way is not None:
                ends = made if group.fetched is not None else way.span(source, made)
                needs.append(ends + way.scratch)
        return min(needs)

    def group(
        self,
        first: int,
        end: int,
        stages: tuple[StageChoice, ...],
        *,
        strips: int = 1,
        fetched: Fetched | None = None,
        forward_only: bool = False,
    ) -> GroupChoice:
        """Return layers [first, end) as a group in these stages, with its figures in both directions."""
        entering = self.entering(first)

        def run(net: Layers) -> Figures:
            if fetched is not None:
                return figures(net, stages, strips=strips, streamed=entering, fetched=fetched)
            alone = end - first == 1 and strips == 1
            return figures(net, stages, strips=strips, resident=entering, alone=alone)

        reverse = None if forward_only else run(self.mirrored)
        return GroupChoice(first, end, stages, strips, fetched, run(self.net), reverse)
