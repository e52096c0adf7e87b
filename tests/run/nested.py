"""Groups executed in nests of loops, each alone; and random nests of every loop structure, tile and home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from onnx import TensorProto, parser

from onchip.check import plan_chip_of
from onchip.check.nests import Nested, nested
from onchip.check.rules import Broken
from onchip.machines.chip import Chip
from onchip.network import mask
from onchip.network.axes import GroupAxes, axes_of
from onchip.plans import Group, Instruction, Leaf, Loop, Nest, Plan, Result, Run, Scratch
from onchip.readers import ReadOptions, load
from onchip.readers.source import Executable, Source
from onchip.run.compare import Comparison
from onchip.run.engine import engine_of
from onchip.run.machine import Machine
from onchip.run.moved import GroupMoved
from onchip.run.slots import make_slots
from onchip.run.tiled import Tiles
from run.models import HEADER

__all__ = ["Alone", "in_place", "model", "random_nest"]

NO_FIGURES = Result("feasible", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)


def model(text: str, folder: Path, granularity: str = "fused", **weights: tuple[int, ...]) -> Source:
    """A network from the text of an ONNX model, with a header or without; its weights have no data."""
    proto = parser.parse_model(text if text.startswith("<") else HEADER + text)
    for name, dims in weights.items():
        proto.graph.initializer.append(TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT))
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return load(path, ReadOptions(granularity=granularity))  # type: ignore[arg-type]


class Alone:
    """A network of which any group can be executed: everything that is made outside of it is in DRAM."""

    def __init__(self, source: Source, seed: int = 1, accumulator: int | None = None) -> None:
        self.accumulator = accumulator
        self.network = source.network
        executable = source.executable
        assert isinstance(executable, Executable)
        self.slots = make_slots(self.network, executable)
        self.engine = engine_of(self.network, self.slots, executable, seed)
        self.inputs = self.engine.seeded_inputs(seed)
        self.comparison: Comparison | None = None

    @cached_property
    def reference(self) -> dict[int, Any]:
        return self.engine.reference(self.inputs)

    def group(self, *names: str) -> list[int]:
        """The operators of these names, or all."""
        network = self.network
        return [v for v in network.order if not names or network.operators[v].name in names]

    def axes(self, *names: str) -> GroupAxes:
        found = axes_of(self.network, self.group(*names))
        assert isinstance(found, GroupAxes), found
        return found

    def law(self, nest: Nest, *names: str) -> Nested:
        """What the law says of a group whose operands are all streamed."""
        ids = self.group(*names)
        members = tuple(self.network.operators[v].name for v in ids)
        return nested(self.network, Group("g", members, 0, tiling=nest), ids, None, 1, self.accumulator)

    def slides_twice(self, nest: Nest, *names: str) -> bool:
        """Whether windows would slide along one of several loops over an axis."""
        try:
            self.law(nest, *names)
        except Broken as problem:
            if problem.rule != "nest-windows":
                raise
            return True
        return False

    def lawful(self, nest: Nest, *names: str) -> GroupMoved:
        """Run a group with the bytes that the law says, in a scratch of just that size."""
        said = self.law(nest, *names)
        crossing = {self.network.tensors[t].name: n for t, n in said.crossing.items()}
        moved = self.run(nest, crossing, *names, scratch=said.layout.extent)
        assert moved.weight_bytes == said.weights
        return moved

    def leaving(self, ids: Sequence[int]) -> frozenset[str]:
        """The tensors that leave a group."""
        network, members = self.network, mask(ids)
        made = [network.operators[v].outputs[0] for v in ids]
        return frozenset(
            network.tensors[t].name
            for t in made
            if network.readers[t] & ~members or not network.readers[t] or network.output_roots >> t & 1
        )

    def run(
        self,
        nest: Nest,
        streaming: Mapping[str, int],
        *names: str,
        scratch: int = 1 << 20,
        before: Sequence[Instruction] = (),
        budget: int = 1 << 22,
    ) -> GroupMoved:
        """Run a group in a nest; `streaming` are the bytes that cross of each tensor.

        Its scratch lies at byte 0; the other operands lie where the instructions `before` put them.
        """
        ids = self.group(*names)
        members = tuple(self.network.operators[v].name for v in ids)
        group = Group("g", members, scratch, tiling=nest)
        program = (*before, Scratch("g", 0), Run("g", tuple(streaming.items())))
        plan = Plan(
            self.network,
            plan_chip_of(Chip("test", 1, accumulator_bytes=self.accumulator)),
            budget,
            program,
            NO_FIGURES,
            (group,),
        )
        self.comparison = Comparison(
            self.reference, {t.id: t.name for t in self.network.tensors}, None, roots=self.network.root
        )
        tiles = Tiles(self.engine)
        machine = Machine(plan, self.slots, self.inputs, self.engine.kernel, self.comparison, tiles)
        made = {t for v in ids for t in self.network.operators[v].outputs}
        for t, value in self.reference.items():
            if self.network.root[t] == t and t not in made:
                machine.dram[t] = machine.to_slot(t, value)
        for instruction in plan.program:
            machine.step(instruction)
        [moved] = tiles.moved
        return moved


def random_nest(random: Random, axes: GroupAxes, leaving: frozenset[str], deep: int = 3) -> Nest:
    """Draw a nest. `leaving` names the tensors that leave the group."""
    return _Draw(random, axes, leaving).nest(deep)


def in_place(random: Random, axes: GroupAxes, nest: Nest) -> Nest:
    """Let about half of the outputs that have an operand's sides lie in its place; the law may refuse it."""
    over: dict[str, str] = {}
    for cut in axes.operators:
        alike = [
            axes.buffers[use.buffer].name
            for use in cut.reads
            if axes.buffers[use.buffer].maker is not None
            and axes.buffers[use.buffer].sides == axes.buffers[cut.writes.buffer].sides
        ]
        if alike and random.random() < 0.5:
            over[cut.name] = random.choice(alike)

    def changed(item: Loop | Leaf) -> Loop | Leaf:
        if isinstance(item, Leaf):
            return replace(item, over=over.get(item.operator))
        return replace(item, body=tuple(map(changed, item.body)))

    return replace(nest, body=tuple(map(changed, nest.body)))


class _Draw:
    def __init__(self, random: Random, axes: GroupAxes, leaving: frozenset[str]) -> None:
        self.random, self.axes, self.leaving = random, axes, leaving
        self.names = [cut.name for cut in axes.operators]

    def nest(self, deep: int) -> Nest:
        keep = self.keep(range(len(self.names)), frozenset())
        return Nest(self.body(range(len(self.names)), deep, frozenset(keep), []), keep)

    def body(
        self, ops: range, deep: int, kept: frozenset[str], above: list[dict[int, int]]
    ) -> tuple[Loop | Leaf, ...]:
        """Cut the operators into items, each a leaf or a loop."""
        items: list[Loop | Leaf] = []
        at = ops.start
        while at < ops.stop:
            end = self.random.randint(at + 1, ops.stop)
            over = self.over(range(at, end), above) if deep and self.random.random() < 0.8 else None
            if over is None:
                items.append(self.leaf(at))
                at += 1
                continue
            first = self.axes.operators[at].axes[over[at]]
            inside = range(at, end)
            keep = self.keep(inside, kept)
            body = self.body(inside, deep - 1, kept | set(keep), [*above, over])
            tile = self.random.randint(1, first)
            items.append(Loop(tuple((self.names[o], axis) for o, axis in over.items()), tile, body, keep))
            at = end
        return tuple(items)

    def leaf(self, o: int) -> Leaf:
        cut = self.axes.operators[o]
        free = [axis for axis in range(len(cut.axes)) if axis not in cut.together and cut.axes[axis] > 1]
        chosen = self.random.sample(free, self.random.randint(0, min(3, len(free))))
        return Leaf(cut.name, tuple((axis, self.random.randint(1, cut.axes[axis])) for axis in chosen))

    def over(self, ops: range, above: list[dict[int, int]]) -> dict[int, int] | None:
        """Draw an axis of each operator that one loop may go along; None if none is found."""
        for _ in range(8):
            found: dict[int, int] = {}
            size, around = 0, -1
            for o in ops:
                cut = self.axes.operators[o]
                may = [
                    axis
                    for axis in range(len(cut.axes))
                    if axis not in cut.together
                    and (cut.axes[axis] == size or (not found and cut.axes[axis] > 1))
                    and self.alike(o, axis, found)
                    and (not found or _around(above, o, axis) == around)
                    and (axis < cut.outputs or not self.read(o, ops))
                ]
                if not may:
                    break
                found[o] = self.random.choice(may)
                size, around = cut.axes[found[o]], _around(above, o, found[o])
            if len(found) == len(ops):
                return found
        return None

    def alike(self, o: int, axis: int, found: dict[int, int]) -> bool:
        """Return whether a reader's axis cuts what the loop makes along the side that its maker's cuts."""
        for use in self.axes.operators[o].reads:
            maker = self.axes.buffers[use.buffer].maker
            if maker in found:
                made = self.axes.operators[maker].writes.axes
                if any((a == found[maker]) != (b == axis) for a, b in zip(made, use.axes, strict=True)):
                    return False
        return True

    def read(self, o: int, ops: range) -> bool:
        """Return whether another operator of these reads what one makes."""
        made = self.axes.operators[o].writes.buffer
        return any(use.buffer == made for other in ops for use in self.axes.operators[other].reads)

    def keep(self, inside: Sequence[int], kept: frozenset[str]) -> tuple[str, ...]:
        """Draw buffers to keep in a body: from outside, or made for outside with all uses here."""
        found = []
        for b, buffer in enumerate(self.axes.buffers):
            users = {o for o, cut in enumerate(self.axes.operators) if any(u.buffer == b for u in cut.uses)}
            outside = buffer.maker is None and users & set(inside)
            made = buffer.maker is not None and buffer.model_name in self.leaving and users <= set(inside)
            if (outside or made) and buffer.name not in kept and self.random.random() < 0.3:
                found.append(buffer.name)
        return tuple(dict.fromkeys(found))


def _around(above: list[dict[int, int]], o: int, axis: int) -> int:
    """Return the position of the innermost loop above that goes along an axis of an operator; -1: none."""
    return max((i for i, over in enumerate(above) if over.get(o) == axis), default=-1)
