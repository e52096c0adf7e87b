"""The passes of a group in bands, as loops over slices of channels around the operators that share them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import NoReturn

from onchip.check.as_nests.cutting import up_to
from onchip.check.as_nests.letters import Letters
from onchip.check.as_nests.unsaid import no_nest
from onchip.check.tiles import Banded

__all__ = ["Over", "Passes"]

Over = tuple[dict[int, int], int]
"""A loop: the axis of every operator in it, by position in the group, and its tile."""


class Passes:
    """The operators that streamed tensors pass through together, and the order of all."""

    def __init__(
        self,
        letters: Letters,
        banded: Banded,
        streamed: Collection[int],
        channels: int,
        bodies: Sequence[Sequence[int]],
    ) -> None:
        """Find the passes of some bodies, which share none; `channels` is the width of a slice."""
        self.letters, self.banded, self.streamed, self.tile = letters, banded, streamed, channels
        bands = banded.bands
        self.leaving = {t for t, out in zip(bands.tensors, bands.escaping, strict=True) if out} - {
            t for t in streamed if banded.maps[t].channels <= channels
        }
        self.cuts, self.buffers = letters.axes.operators, letters.axes.buffers
        self.known = [self._items(body) for body in bodies]
        self.around = {item: self._loops(item) for items in self.known for item in items}

    def passing(self, at: int) -> list[int]:
        """Return the streamed tensors that an operator reads or writes."""
        piece = self.banded.pieces[at]
        return [t for t in (*piece.reads, *piece.writes) if t in self.streamed]

    def items(self, body: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the operators of a body in the order in which they run, those that share slices together."""
        return [item for items in self.known for item in items if set(item) <= set(body)]

    def loops(self, item: tuple[int, ...]) -> list[Over]:
        """Return the loops of a pass, outermost first; none where all channels are there at a time."""
        return self.around[item]

    def kept(self, item: tuple[int, ...]) -> list[int]:
        """Return the buffers from outside, or that leave, of which a pass has a slice at a time."""
        if not self.around[item]:
            return []
        found = []
        for n, buffer in enumerate(self.buffers):
            if buffer.tensor not in self.streamed:
                continue
            users = {at for at, cut in enumerate(self.cuts) if any(use.buffer == n for use in cut.uses)}
            leaves = buffer.maker is not None and buffer.tensor in self.leaving and users <= set(item)
            if leaves or (buffer.maker is None and users & set(item)):
                found.append(n)
        return found

    def keeps(self, buffer: int) -> bool:
        """Return whether some pass has slices of a buffer from outside, or that leaves."""
        return any(buffer in self.kept(item) for item in self.around)

    def again(self, at: int, buffer: int) -> bool:
        """Return whether each slice that passes an operator would fetch one of its constants anew."""
        loops = next(loops for item, loops in self.around.items() if at in item)
        use = next(use for use in self.cuts[at].uses if use.buffer == buffer)
        late = self.cuts[at].sums if use.late else ()
        return not all(over[at] in use.axes or over[at] in late for over, _ in loops)

    # -- finding them --------------------------------------------------------------------------------------

    def _items(self, operators: Sequence[int]) -> list[tuple[int, ...]]:
        """An operator whose operands come in slices takes them all in one pass. Raises `NoNest` if a pass
        would have to wait for itself."""
        belongs = {at: at for at in operators}

        def root(at: int) -> int:
            while belongs[at] != at:
                at = belongs[at]
            return at

        first: dict[int, int] = {}
        for at in operators:
            for use in self.cuts[at].uses:
                t = self.buffers[use.buffer].tensor
                if t in self.streamed and t is not None and self.banded.maps[t].channels > self.tile:
                    belongs[root(at)] = root(first.setdefault(use.buffer, at))
        makers = {piece.writes[0]: at for at, piece in enumerate(self.banded.pieces)}
        inside = {at: root(at) for at in operators}
        groups: dict[int, list[int]] = {}
        for at in operators:
            groups.setdefault(inside[at], []).append(at)
        before = {
            key: {
                inside[makers[t]]
                for at in own
                for t in self.banded.pieces[at].reads
                if makers.get(t) in inside and inside[makers[t]] != key
            }
            for key, own in groups.items()
        }
        found: list[tuple[int, ...]] = []
        done = set[int]()
        while len(done) < len(groups):
            ready = next((k for k in groups if k not in done and before[k] <= done), None)
            if ready is None:
                self._stuck([at for k in groups if k not in done for at in groups[k] if len(groups[k]) > 1])
            own = groups[ready]
            made = {self.banded.pieces[at].writes[0] for at in own}.difference(self.streamed)
            if len(own) > 1 and any(t in made for at in own for t in self.banded.pieces[at].reads):
                self._stuck(own)
            found.append(tuple(own))
            done.add(ready)
        return found

    def _stuck(self, operators: Sequence[int]) -> NoReturn:
        """Refuse passes that wait for what they make themselves: those of operators that join several."""
        name = self.cuts[operators[-1]].name
        no_nest(
            "two-passes", f"the slices that {name} takes wait for one another", self.candidates(operators)
        )

    def candidates(self, operators: Iterable[int]) -> list[int]:
        """Return the streamed tensors that wait in the output of an operator for others."""
        found = dict[int, None]()
        for at in operators:
            piece = self.banded.pieces[at]
            if piece.form in ("elementwise", "concat") and piece.writes[0] not in self.streamed:
                found |= dict.fromkeys(t for t in piece.reads if t in self.streamed)
        return list(found)

    def _loops(self, item: tuple[int, ...]) -> list[Over]:
        wide = [t for at in item for t in self.passing(at) if self.banded.maps[t].channels > self.tile]
        if not wide:
            return []
        along = {at: self.along(at) for at in item}
        if len({len(axes) for axes, _ in along.values()}) > 1:
            detail = f"channels pass {self.cuts[item[0]].name} along other axes than others"
            no_nest("across-axes", detail, self.candidates(item))
        widest = max(item, key=lambda at: prod(self.letters.sizes(at, along[at][0])))
        sizes = self.letters.sizes(widest, along[widest][0])
        return [
            ({at: along[at][0][i] for at in item}, tile)
            for i, tile in up_to(sizes, self.tile * along[widest][1])
        ]

    def along(self, at: int) -> tuple[list[int], int]:
        """Return the axes of an operator that go along the channels that pass, and how many indices of them a
        channel has."""
        cut, piece = self.cuts[at], self.banded.pieces[at]
        read = [use for use in cut.reads if self.letters.axes.buffers[use.buffer].tensor in self.streamed]
        if piece.form == "reduce" and piece.writes[0] not in self.streamed:
            return self.letters.channels(at, read[0])
        axes = self.letters.made(at, "c")
        if any(axis in cut.together for axis in axes):
            detail = f"{cut.name} makes slices of channels that stay together"
            no_nest("together", detail, piece.writes)
        return axes, 1
