"""A group in bands of rows as a nest.

What the first band makes in full comes before the loop over bands, slices of channels pass in loops of their
own inside, and what bands share is a ring.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from math import gcd, prod

from onchip.check.as_nests.cutting import up_to
from onchip.check.as_nests.letters import Letters
from onchip.check.as_nests.passes import Over, Passes
from onchip.check.as_nests.unsaid import no_nest
from onchip.check.bands import bands_of
from onchip.check.nest_windows import MOST_WALKED
from onchip.check.tiles import Banded
from onchip.network.maps import Maps
from onchip.plans import Group, Leaf, Loop, Nest, Tiling

__all__ = ["bands_as_nest"]


def bands_as_nest(
    maps: Maps,
    group: Group,
    tiling: Tiling,
    letters: Letters,
    banded: Banded,
    whole: Collection[int],
    held: Collection[int] = (),
    *,
    read_before: bool = False,
) -> tuple[Nest, list[int]]:
    """Return the nest of a legal group in bands, and streamed tensors that it may be better to hold.

    Those `held` are there with all their channels, though the tiling streams them. With `read_before` one of
    them may lie in the place of an output though others read it, before. Raises `NoNest`.
    """
    if banded.bands.count * len(banded.bands.tensors) > MOST_WALKED:
        no_nest("law", f"nest-windows: {banded.bands.count:,} turns are too many")
    streamed = {t for t, one in zip(banded.bands.tensors, banded.bands.streamed, strict=True) if one}
    if held:
        rows = {t: m.rows for t, m in banded.maps.items()}
        leaving = [t for t, out in zip(banded.bands.tensors, banded.bands.escaping, strict=True) if out]
        left = streamed.difference(held)
        bands = bands_of(banded.pieces, rows, leaving, left, tiling.rows, group.name)
        banded = replace(banded, bands=bands)
    made = _Nested(maps, group, tiling, letters, banded, whole, held, read_before)
    return made.nest(), [*made.passes.candidates(range(len(banded.pieces))), *made.made_again()]


class _Nested:
    def __init__(
        self,
        maps: Maps,
        group: Group,
        tiling: Tiling,
        letters: Letters,
        banded: Banded,
        whole: Collection[int],
        held: Collection[int],
        read_before: bool,
    ) -> None:
        self.held, self.read_before = held, read_before
        self.network, self.group, self.tiling = maps.network, group, tiling
        self.letters, self.axes, self.banded, self.whole = letters, letters.axes, banded, whole
        self.bands = bands = banded.bands
        self.place = {t: i for i, t in enumerate(bands.tensors)}
        self.streamed = {t for t, one in zip(bands.tensors, bands.streamed, strict=True) if one}
        self.cuts = self.axes.operators
        self.made = [piece.writes[0] for piece in banded.pieces]
        everyone = range(len(self.cuts))
        self.looped = [at for at in everyone if not self.at_once(self.made[at])]
        if bands.count == 1 and not self.leaves_rows():
            self.looped = []
        self.first = [at for at in everyone if at not in self.looped]
        self.passes = Passes(letters, banded, self.streamed, tiling.channels, (self.first, self.looped))
        self.users = [
            [at for at, cut in enumerate(self.cuts) if any(use.buffer == n for use in cut.uses)]
            for n in range(len(self.axes.buffers))
        ]
        self.shared = self.overlapping()

    def nest(self) -> Nest:
        resident, root, in_loop = self.homes()
        body = self.body(self.first)
        for tile, operators in self.loops(in_loop):
            over = tuple((self.cuts[at].name, self.rows(at)) for at in operators)
            used = {use.buffer for at in operators for use in self.cuts[at].uses}
            mine = {self.axes.buffers[n].name for n in used}
            keep = tuple(name for name in in_loop if name in mine)
            ring = tuple(name for name in self.rings(in_loop) if name in mine and self.slides(operators))
            body = (*body, Loop(over, tile, self.body(operators), keep, ring))
        return self.over_images(body, resident, root)

    # -- what lies where -----------------------------------------------------------------------------------

    def at_once(self, t: int) -> bool:
        return self.bands.at_once[self.place[t]]

    def leaves_rows(self) -> bool:
        """Return whether the last band does not go to the end of every tensor that is made."""
        *_, (_, _, high) = self.bands
        return any(high[self.place[t]] < self.bands.rows[self.place[t]] for t in self.made)

    def homes(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Return resident constants, and what lives around the loop over bands and in it.

        These are buffers from outside, and those that leave. Constants that come anew for every band are not
        among them, unless slices would fetch them once more.
        """
        resident, root, in_loop = list[str](), list[str](), list[str]()
        for n, buffer in enumerate(self.axes.buffers):
            users, t = self.users[n], buffer.tensor
            looped = [at for at in users if at in self.looped]
            if t is None:
                if self.cuts[users[0]].name in self.group.resident_weights:
                    resident.append(buffer.name)
                elif self.passes.again(users[0], n):
                    (in_loop if looped else root).append(buffer.name)
            elif t in self.whole or self.passes.keeps(n):
                continue
            elif buffer.maker is None and t in self.streamed and looped:
                in_loop.append(buffer.name)
            elif buffer.maker is None or self.bands.escaping[self.place[t]]:
                (root if self.at_once(t) or len(looped) < len(users) else in_loop).append(buffer.name)
        return tuple(resident), tuple(root), tuple(in_loop)

    def overlapping(self) -> set[int]:
        """Return the tensors of which some band needs rows of the one before."""
        found = set[int]()
        for before, low, _ in self.bands:
            rows = zip(self.bands.tensors, before, low, strict=True)
            found |= {t for t, there, first in rows if first < there}
        return found

    def made_again(self) -> list[int]:
        """Return the streamed tensors that leave and are read here: slices may be made, and weights fetched,
        again."""
        leaving = {t for t, out in zip(self.bands.tensors, self.bands.escaping, strict=True) if out}
        read = {t for piece in self.banded.pieces for t in piece.reads}
        return sorted(leaving & self.streamed & set(self.made) & read)

    def rings(self, in_loop: Collection[str]) -> tuple[str, ...]:
        """Return the names of what keeps rows from band to band."""
        waiting = {self.over(at) for at in range(len(self.cuts))}
        return tuple(
            buffer.name
            for buffer in self.axes.buffers
            if buffer.tensor in self.shared - self.streamed - set(self.whole)
            and (buffer.name in in_loop or buffer.maker in self.looped)
            and not (self.read_before and buffer.name in waiting)
        )

    def slides(self, operators: Collection[int]) -> bool:
        """Return whether windows slide along the rows of some operators."""
        slides = (w for at in operators for use in self.cuts[at].reads for w in use.slides)
        axes = {self.rows(at) for at in operators}
        return any(window is not None and window.axis in axes for window in slides)

    # -- loops ---------------------------------------------------------------------------------------------

    def rows(self, at: int) -> int:
        along = self.letters.made(at, "h")
        if len(along) != 1:
            no_nest("rows", f"{self.cuts[at].name} makes its rows along {len(along)} axes")
        return along[0]

    def loops(self, in_loop: Collection[str]) -> list[tuple[int, list[int]]]:
        """Return the operators of every loop over bands, each with its tile.

        What is linked goes on together, by its least whole numbers times the tile. Parts that nothing links
        have loops of their own, one behind the other.
        """
        found = []
        for part in self.parts(in_loop):
            tensors = [self.axes.buffers[n].tensor for n in part]
            tile = gcd(*(self.bands.step[self.place[t]] for t in tensors if t is not None))
            found.append((tile, [at for at in self.looped if self.cuts[at].writes.buffer in part]))
        return found

    def parts(self, in_loop: Collection[str]) -> list[list[int]]:
        """Return the buffers in loops over bands, those together that operators link."""
        near: dict[int, set[int]] = {self.cuts[at].writes.buffer: set() for at in self.looped}
        for n, b in enumerate(self.axes.buffers):
            if b.tensor is not None and b.maker is None and (b.name in in_loop or self.passes.keeps(n)):
                near.setdefault(n, set())
        for at in self.looped:
            made = self.cuts[at].writes.buffer
            for use in self.cuts[at].reads:
                if use.buffer in near:
                    near[use.buffer].add(made)
                    near[made].add(use.buffer)
        for item in self.passes.items(self.looped):
            writes = [self.cuts[at].writes.buffer for at in item]
            for one, other in pairwise(writes):
                near[one].add(other)
                near[other].add(one)
        found, seen = list[list[int]](), set[int]()
        for at in self.looped:
            start = self.cuts[at].writes.buffer
            part = [start] if start not in seen else []
            seen.add(start)
            for n in part:  # grows
                new = near[n] - seen
                seen |= new
                part += new
            if part:
                found.append(part)
        return found

    def over_images(
        self, body: tuple[Loop | Leaf, ...], resident: tuple[str, ...], keep: tuple[str, ...]
    ) -> Nest:
        """Return the nest around a body for some images at a time."""
        images = next(iter(self.banded.maps.values())).images
        if images <= self.banded.together:
            return Nest(body, resident + keep)
        over = []
        for at, cut in enumerate(self.cuts):
            along = self.letters.made(at, "n")
            if len(along) != 1:
                no_nest("rows", f"{cut.name} makes its images along {len(along)} axes")
            over.append((cut.name, along[0]))
        return Nest((Loop(tuple(over), self.banded.together, body, keep),), resident)

    def body(self, operators: Sequence[int]) -> tuple[Loop | Leaf, ...]:
        """Return the items that run some operators once: leaves, and loops of slices that pass."""
        found: list[Loop | Leaf] = []
        for item in self.passes.items(operators):
            loops = self.passes.loops(item)
            inner: tuple[Loop | Leaf, ...] = tuple(self.leaf(at, loops) for at in item)
            keep = tuple(self.axes.buffers[n].name for n in self.passes.kept(item))
            for n, (over, tile) in enumerate(reversed(loops)):
                named = tuple((self.cuts[at].name, axis) for at, axis in over.items())
                inner = (Loop(named, tile, inner, () if n else keep),)
            found += inner
        return tuple(found)

    def leaf(self, at: int, loops: Sequence[Over]) -> Leaf:
        """Return the leaf of an operator: its weights come tile by tile, unless they are kept."""
        cut, piece = self.cuts[at], self.banded.pieces[at]
        if piece.id not in self.banded.by_tiles:
            return Leaf(cut.name, over=self.over(at))
        made = [axis for axis in self.letters.made(at, "c") if axis not in cut.together]
        summed = prod(self.letters.sizes(at, cut.sums)) // max(1, piece.kernel.inputs)
        slices: list[tuple[int, int]] = []
        taken = {over[at]: tile for over, tile in loops}
        for along, each in ((made, 1), (list(cut.sums), max(1, summed))):
            sizes = [
                min(taken.get(axis, n), n)
                for axis, n in zip(along, self.letters.sizes(at, along), strict=True)
            ]
            slices += [(along[i], tile) for i, tile in up_to(sizes, self.tiling.channels * each)]
        return Leaf(cut.name, tuple(slices), self.over(at))

    def over(self, at: int) -> str | None:
        """Return the operand that waits in the place of an element-wise operator's output, if one can."""
        cut = self.cuts[at]
        if self.banded.pieces[at].form != "elementwise":
            return None
        for use in cut.reads:
            buffer = self.axes.buffers[use.buffer]
            users = self.users[use.buffer]
            alone = users == [buffer.maker, at] or (self.read_before and max(users) == at)
            inner = buffer.tensor is not None and not self.bands.escaping[self.place[buffer.tensor]]
            made = buffer.maker is not None
            if buffer.tensor in self.held and made and alone and inner and use.axes == cut.writes.axes:
                return buffer.name
        return None
