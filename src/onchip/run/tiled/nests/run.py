"""A group executed as its nest says: loop by loop, every buffer in its place for as long as it lives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.network import Operator, mask
from onchip.network.axes import Buffer, Cut, axes_of
from onchip.plans import Group
from onchip.plans.nest import Nest
from onchip.run.arena import POISON, Claim
from onchip.run.poison import poison_of
from onchip.run.state import State
from onchip.run.tiled.executed import Executed, IllegalTiling
from onchip.run.tiled.nests.abreast import Abreast
from onchip.run.tiled.nests.chosen import constants_of, kernel_of, operands_of
from onchip.run.tiled.nests.dram import Dram
from onchip.run.tiled.nests.exact import Waiting
from onchip.run.tiled.nests.forms import Span, box_of
from onchip.run.tiled.nests.kernels import Read
from onchip.run.tiled.nests.levels import Beside, Compute, Home, Level, Turns
from onchip.run.tiled.nests.lives import FINAL, NOTHING, PARTIAL, Accumulators, Life, in_slots
from onchip.run.tiled.nests.online import OnlineKernel, Weighed
from onchip.run.tiled.nests.places import places_of
from onchip.run.tiled.nests.sources import in_view
from onchip.run.tiled.nests.tree import Tree
from onchip.run.tiled.nests.whole_operands import finish_whole, lies_under, whole_lives

if TYPE_CHECKING:
    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["NestRun"]

Array = np.ndarray[Any, Any]


class NestRun:
    """Runs a group by its nest; tensors that are `streamed` cross, the others lie whole in their ranges.

    Raises `IllegalTiling` where that cannot be done, `InputError` for elements that cannot be run in tiles.
    """

    def __init__(
        self,
        state: State,
        engine: OnnxEngine,
        group: Group,
        nest: Nest,
        operators: Sequence[Operator],
        streamed: Mapping[int, int],
    ) -> None:
        self.state, self.engine, self.group, self.operators = state, engine, group, operators
        found = axes_of(state.network, [op.id for op in operators])
        if isinstance(found, str):
            raise IllegalTiling("nest-axes", f"it runs in a nest, and {found}")
        self.axes, buffers = found, found.buffers
        self.leaving = {
            b for b, buffer in enumerate(buffers) if buffer.maker is not None and self._leaves(buffer)
        }
        self.whole = {
            b
            for b, buffer in enumerate(buffers)
            if buffer.tensor is not None
            and buffer.tensor not in streamed
            and (buffer.maker is None or b in self.leaving)
        }
        self.tree = Tree(nest, found, self.leaving, self.whole, state.plan.chip.accumulator_bytes)
        pairs = list(zip(operators, found.operators, strict=True))
        self.sources = [operands_of(state, engine, op, cut, buffers) for op, cut in pairs]
        self.kernels = [
            kernel_of(
                engine, op, cut, buffers[cut.writes.buffer], self.tree.computes[o].cut, self.sources[o],
                integers=self._dtype(cut.writes.buffer).kind != "f",
            )
            for o, (op, cut) in enumerate(pairs)
        ]  # fmt: skip
        self.dram = Dram(state, found, constants_of(engine, self.sources), self.leaving - self.whole)
        self.spans: list[list[Span]] = [[(0, n) for n in cut.axes] for cut in found.operators]
        self.lives: dict[tuple[Home | None, int], Life] = {}
        self.home = {key: home for home in self.tree.homes for key in home.uses}
        self._lay_out()
        self.inner = {b for b, x in enumerate(buffers) if x.maker is not None and b not in self.leaving}
        self.values = {b: np.zeros(buffers[b].sides, self._dtype(b)) for b in self.inner}
        self.there = {b: np.zeros(buffers[b].sides, np.bool_) for b in self.inner}
        self.states: dict[int, Accumulators] = {}
        """The values that the sums of an operator carry, while they are not complete."""
        self.made = self.again = 0
        under = lies_under(state, buffers, self.whole)
        ordered = any(life.gone for (_, b), life in self.lives.items() if b not in under)
        # These keep something of every box of a sum, and find it by the box: each part has the same ones.
        keep = (OnlineKernel, Waiting)
        alone = {o for o, kernel in enumerate(self.kernels) if isinstance(kernel, keep)}
        self.abreast = Abreast(self.tree, found, state.slots.scale, ordered=ordered, alone=alone, under=under)

    # -- before the first turn -------------------------------------------------------------------------------

    def _leaves(self, buffer: Buffer) -> bool:
        network, t = self.state.network, buffer.tensor
        assert t is not None
        readers, members = network.readers[t], mask(op.id for op in self.operators)
        return not readers or bool(readers & ~members or network.output_roots >> t & 1)

    def _dtype(self, b: int) -> np.dtype[Any]:
        t = self.axes.buffers[b].tensor
        assert t is not None
        return self.state.slots.dtype[t]

    def _lay_out(self) -> None:
        state, group = self.state, self.group
        start, end = state.scratch.get(group.name, (0, 0))
        self.places, need = places_of(self.tree, self.axes, state.plan.chip)
        if need * state.slots.scale > end - start:
            raise IllegalTiling(
                "group-scratch",
                f"its nest takes {need:,} bytes, and its scratch has {(end - start) // state.slots.scale:,}",
            )
        self.start = start
        self.fills = dict.fromkeys(self.tree.homes, 0)
        """The number of times that each home was given back."""
        for b, life in whole_lives(state, group.name, self.axes.buffers, self.whole).items():
            self.lives[None, b] = life
            for x in self.tree.sharing.get(b, (b,))[:-1]:
                states = np.full(life.data.shape, NOTHING, np.uint8)
                # Planned as wide as the output; elements of another type lie beside it.
                data = (
                    life.data if self._dtype(x) == life.data.dtype else np.zeros(states.shape, self._dtype(x))
                )
                other = Life(state, self.axes.buffers[x].name, life.region, data, states, None, life.claim)
                other.marks = life.marks
                self.lives[None, x] = other
            self._join([self.lives[None, x] for x in self.tree.sharing.get(b, (b,))])

    def _join(self, lives: Sequence[Life]) -> None:
        for life in lives:
            life.beside = [other for other in lives if other is not life]

    # -- the loops -------------------------------------------------------------------------------------------

    def finish_whole(self) -> None:
        """Complete the outputs that lie whole, once all is accounted for."""
        finish_whole(self.state, self.group.name, self.axes.buffers, self.whole)

    def all(self) -> Executed:
        """Run all turns, and return what crossed and what was made."""
        self.level(self.tree.root)
        self._expect_complete()
        for op, kernel in zip(self.operators, self.kernels, strict=True):
            self.state.comparison.follow(op.inputs, op.outputs)
            if kernel.approximate:
                self.state.comparison.make_approximate(*op.outputs)
        written: dict[int, Array] = {}
        for b, buffer in enumerate(self.axes.buffers):
            t = buffer.tensor
            if buffer.maker is None or t is None or b in self.whole:
                continue
            value = self._inner(b, t) if b in self.inner else self.dram.written[b]
            value = value.reshape(self.state.slots.shape[t])
            by = self.operators[buffer.maker].name
            self.state.comparison.same(t, value, f"written by {by} ({self.state.where()})")
            if b in self.leaving:
                written[t] = value
        crossed: dict[int, int] = {}
        weights = 0
        for b, buffer in enumerate(self.axes.buffers):
            if buffer.tensor is None:
                weights += self.dram.crossed[b]
            elif b not in self.whole and b not in self.inner:
                crossed[buffer.tensor] = crossed.get(buffer.tensor, 0) + self.dram.crossed[b]
        return Executed(self.group.subgroups, crossed, weights, self.made, self.again, written)

    def level(self, level: Level) -> None:
        """Run the items of a level, and begin and end the homes among them."""
        for n, (item, begin, end) in enumerate(zip(level.items, level.begin, level.end, strict=True)):
            for home in begin:
                self.begin(home)
            for sums in level.beside.get(n, ()):
                self.accumulate(sums)
            if isinstance(item, Turns):
                self.loop(item)
            elif isinstance(item, Level):
                self.level(item)
            else:
                self.compute(item)
            for sums in level.beside.get(n, ()):
                self.settle(sums)
            for home in end:
                self.finish(home)

    def loop(self, turns: Turns) -> None:
        """Run all turns of a loop."""
        before = [(o, axis, self.spans[o][axis]) for o, axis in turns.over.items()]
        if turns.windows is not None:
            for number in range(turns.windows.turns):
                turns.turn = number
                for o, axis, _ in before:
                    self.spans[o][axis] = turns.windows.made[o][turns.turn]
                for home in turns.rings:
                    self.advance(home)
                self.level(turns.level)
                for home in turns.rings:
                    self.send(home)
            for home in turns.rings:
                self.give_back(home)
        else:
            for span, count in self.abreast.parts(turns, before[0][2]):
                turns.span = span
                for o, axis, _ in before:
                    self.spans[o][axis] = span
                with self.abreast.side_by_side(turns, count):
                    self.level(turns.level)
        for o, axis, span in before:
            self.spans[o][axis] = span

    def compute(self, item: Compute) -> None:
        """Make one box of an operator's output."""
        o = item.operator
        cut, kernel, spans = self.axes.operators[o], self.kernels[o], self.spans[o]
        if any(low >= high for low, high in spans):
            return

        def read(i: int) -> Array:
            life, box = self.used(o, i)
            return life.read([in_view(cut.uses[i], *one) for one in enumerate(box)], cut.name)

        life, box = self.used(o, len(cut.uses) - 1)
        if isinstance(kernel, OnlineKernel):
            value = self.online(o, kernel, read, life, box)
            if value is None:
                return
        elif not kernel.sums:
            value = kernel.part(read, spans, first=True)
        else:
            sums = [(spans[axis], cut.axes[axis]) for axis in cut.sums]
            first = all(span[0] == 0 for span, _ in sums)
            value = kernel.part(read, spans, first=first)
            if not first:
                with np.errstate(over="ignore", invalid="ignore"):  # of what was never made
                    value = life.sum(box, cut.name) + value
            if any(span[1] != size for span, size in sums):
                life.put(box, value, PARTIAL, cut.name)
                return
            value = kernel.finish(value, read, spans)
        life.put(box, value, FINAL, cut.name)
        self._record(cut, box, value)

    def online(
        self, o: int, kernel: OnlineKernel, read: Read, life: Life, box: Sequence[Span]
    ) -> Array | None:
        """Return a box of a result whose sum is complete; else keep the sum with its state: None."""
        cut, spans = self.axes.operators[o], self.spans[o]
        sums = [(spans[axis], cut.axes[axis]) for axis in cut.sums]
        part, rows = kernel.part(read), kernel.box(spans)
        states = self.states.get(o)
        if any(span[0] for span, _ in sums):
            if states is None or states.values is None:
                raise Mismatch(f"the state of {cut.name}'s sums is gone ({self.state.where()})")
            whole = [(0, 2), *rows]
            part = kernel.merged(Weighed(life.sum(box, cut.name), states.values[states.at(whole, ())]), part)
        if all(span[1] == size for span, size in sums):
            return kernel.finished(part).astype(life.data.dtype)
        if states is None:
            raise Mismatch(f"the sums of {cut.name} have no place for their state ({self.state.where()})")
        states.of(part.state.dtype)[states.at([(0, 2), *rows], ())] = part.state
        life.put(box, part.total, PARTIAL, cut.name)
        return None

    def _record(self, cut: Cut, box: Sequence[Span], value: Array) -> None:
        """Count what was made, and keep what stays inside for the comparison."""
        self.made += value.size
        b = cut.writes.buffer
        if b in self.inner:
            at = tuple(slice(*span) for span in box)
            self.again += int(np.count_nonzero(self.there[b][at]))
            self.values[b][at] = value
            self.there[b][at] = True

    def used(self, o: int, i: int) -> tuple[Life, list[Span]]:
        """Return the life of the buffer that a use reads or writes, and the box that it uses."""
        use = self.axes.operators[o].uses[i]
        life = self.lives.get((self.home.get((o, i)), use.buffer))
        buffer = self.axes.buffers[use.buffer]
        if life is None:
            raise Mismatch(
                f"{buffer.name}, used by {self.operators[o].name}: it is not alive ({self.state.where()})"
            )
        return life, box_of(use, buffer.sides, self.spans[o], self.tree.computes[o].cut)

    # -- homes -----------------------------------------------------------------------------------------------

    def begin(self, home: Home) -> None:
        """Give a home its bytes, and fill it if it comes from outside."""
        sizes = self.axes.buffers[home.buffers[-1]].sides
        region = home.region(sizes)
        shape = [high - low for low, high in region]
        if (turning := home.turning) is not None:
            shape[turning] = home.most(sizes)[turning]
            region = tuple((0, 0) if i == turning else span for i, span in enumerate(region))
        state, (start, end) = self.state, self.place(home)
        together = self.abreast.turns_of(home)
        names = " over ".join(self.axes.buffers[b].name for b in reversed(home.buffers))
        claim = Claim(f"{names} in the scratch of {self.group.name}", state.index)
        if together == 1:
            state.arena.reserve(start, end, claim)
        lives: list[Life] = []
        kinds = [
            self._dtype(b) if self.axes.buffers[b].tensor is not None else self.dram.sources[b].dtype
            for b in home.buffers
        ]
        for b, kind in zip(home.buffers, kinds, strict=True):
            buffer = self.axes.buffers[b]
            inside = buffer.maker is not None
            size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
            fits = size <= together * (end - start) and kind == kinds[-1]
            if home.wide:
                data = in_slots(state.arena.bytes[start:end], self.slot(b), shape, kind)
            elif fits and together == 1:
                data = state.arena.bytes[start : start + size].view(kind).reshape(shape)
            elif fits:
                data = np.full(size, POISON, np.uint8).view(kind).reshape(shape)
            else:  # elements that are wider than planned, or of another type than what takes their place
                data = np.zeros(shape, kind)
            held = (start, end) if home.wide or (fits and together == 1) else None
            states = np.full(shape, NOTHING, np.uint8) if inside or turning is not None else None
            life = Life(state, buffer.name, region, data, states, held, claim, turning)
            if home.wide:
                life.accumulators = Accumulators(state.arena.bytes[start:end], self.slot(b), shape, None)
            if not inside and turning is None:
                self.fill(home, b, region, data)
            elif b in self.leaving and any(self.spans[o][axis][0] for o, axis in home.sums):
                self.dram.back(b, life)
            self.lives[home, b] = life
            lives.append(life)
        self._join(lives)

    def fill(self, home: Home, b: int, region: Sequence[Span], to: Array) -> None:
        """Fetch a part of a buffer from outside; a late constant for the last turns of its sums alone."""
        late = self.sums_before(home)
        if any(self.spans[o][axis][1] < size for o, axis, size in late):
            to[...] = poison_of((), to.dtype)  # nobody reads it before the sums are complete
            return
        times = self.abreast.turns_of(home, apart=True, sums=[axis for _, axis, _ in late])
        self.dram.fetch(b, region, to, times)

    def sums_before(self, home: Home) -> list[tuple[int, int, int]]:
        """Return the sums that are complete before a late constant is read: operator, axis, its size."""
        (o, i), *_ = home.uses
        cut = self.axes.operators[o]
        return [(o, axis, cut.axes[axis]) for axis in cut.sums] if cut.uses[i].late else []

    def slot(self, b: int) -> int:
        """Return the bytes in the arena of a sum of a buffer that is not complete."""
        return self.state.plan.chip.accumulated(self.axes.buffers[b].element) * self.state.slots.scale

    def accumulate(self, sums: Beside) -> None:
        """Give accumulators their bytes."""
        cut, sizes = self.axes.operators[sums.operator], self.axes.buffers[sums.buffer].sides
        region = [
            self.spans[sums.operator][axis] if turns is not None else (0, size)
            for axis, turns, size in zip(cut.writes.axes, sums.sides, sizes, strict=True)
        ]
        state, (start, end) = self.state, self.place(sums)
        name = self.axes.buffers[sums.buffer].name
        what = "state" if sums.values else "sums"
        claim = Claim(f"{what} of {name} in the scratch of {self.group.name}", state.index)
        state.arena.reserve(start, end, claim)
        room, slot = state.arena.bytes[start:end], self.slot(sums.buffer)
        if sums.values:
            rows = [(0, sums.values), *(span for n, span in enumerate(region) if n not in sums.shared)]
            shape = [high - low for low, high in rows]
            self.states[sums.operator] = Accumulators(room, slot, shape, rows)
            return
        shape = [high - low for low, high in region]
        life, _ = self.used(sums.operator, len(cut.uses) - 1)
        life.accumulators = Accumulators(room, slot, shape, region)

    def settle(self, sums: Beside) -> None:
        """Give the bytes of accumulators back. Raises `Mismatch` if a sum in them is not complete."""
        life, _ = self.used(sums.operator, len(self.axes.operators[sums.operator].uses) - 1)
        assert life.states is not None
        if (life.states == PARTIAL).any():
            raise Mismatch(f"{life.name}: its accumulators end before its sums do ({self.state.where()})")
        if sums.values:
            del self.states[sums.operator]
        else:
            life.accumulators = None
        claim = Claim(f"the scratch of {self.group.name}", self.state.index)
        self.state.arena.hand_over(*self.place(sums), claim)

    def place(self, home: Home | Beside) -> Span:
        """Return the bytes of a home in the arena: those of the slot in which its fill lies."""
        (low, high), scale = self.places[home], self.state.slots.scale
        if isinstance(home, Home) and home.slots > 1:
            size = (high - low) // home.slots
            low += self.fills[home] % home.slots * size
            high = low + size
        return self.start + low * scale, self.start + high * scale

    def advance(self, home: Home) -> None:
        """Let a ring go on to the positions of this turn; what comes from outside is fetched."""
        if (home, home.buffers[-1]) not in self.lives:
            self.begin(home)
        sizes = self.axes.buffers[home.buffers[-1]].sides
        for b in home.buffers:
            life = self.lives[home, b]
            life.turn(home.region(sizes))
            if self.axes.buffers[b].maker is None:
                new = home.moved(sizes)
                value = np.empty([high - low for low, high in new], life.data.dtype)
                self.fill(home, b, new, value)
                life.put(new, value, FINAL, "DRAM")

    def finish(self, home: Home) -> None:
        """Send an output out, and give the bytes back."""
        self.send(home)
        self.give_back(home)

    def send(self, home: Home) -> None:
        """Send what was made in this turn out, if it leaves the group."""
        for b in home.buffers:
            if b in self.leaving:
                sizes = self.axes.buffers[b].sides
                new, here = home.moved(sizes), home.region(sizes)
                self.dram.send(b, self.lives[home, b], new)
                if home.redone:  # the rest was stored before
                    made, stored = (prod(high - low for low, high in box) for box in (here, new))
                    self.again += made - stored

    def give_back(self, home: Home) -> None:
        """Give a home's bytes back."""
        for b in home.buffers:
            del self.lives[home, b]
        if self.abreast.turns_of(home) > 1:
            return
        claim = Claim(f"the scratch of {self.group.name}", self.state.index)
        self.state.arena.hand_over(*self.place(home), claim)
        self.fills[home] += 1

    def _inner(self, b: int, t: int) -> Array:
        """Return what was made of a tensor that stays inside; what nobody needed is as in the reference."""
        if self.there[b].all():
            return self.values[b]
        expected = self.state.comparison.reference[t].reshape(self.values[b].shape)
        return np.where(self.there[b], self.values[b], expected)

    def _expect_complete(self) -> None:
        """Refuse outputs that the nest did not make to the end."""
        for b, buffer in enumerate(self.axes.buffers):
            if buffer.maker is None:
                continue
            if b in self.inner:
                continue  # what nobody needs is not made
            if b in self.whole:
                states = self.lives[None, b].states
                assert states is not None
                there = states == FINAL
            else:
                there = self.dram.states[b] == FINAL
            if not there.all():
                missing = int(there.size - np.count_nonzero(there))
                raise Mismatch(f"{buffer.name}: {missing:,} elements are not made ({self.state.where()})")
