"""The machine's instruction `run` for a group in tiles."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.base.errors import InputError, Mismatch
from onchip.network import Operator
from onchip.plans import Blocks, Boxes, Group, Nest, Rings
from onchip.run.arena import Claim
from onchip.run.engine import Engine
from onchip.run.moved import GroupMoved
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.state import State
from onchip.run.tiled.blocks import run_in_blocks
from onchip.run.tiled.boxes import run_in_boxes
from onchip.run.tiled.group import Executed, run_in_bands
from onchip.run.tiled.kernels import Kernels
from onchip.run.tiled.nests import NestRun
from onchip.run.tiled.passes import IllegalTiling
from onchip.run.tiled.shape import group_shape
from onchip.run.tiled.whole import finish_whole, whole_operands

__all__ = ["Tiles"]


class Tiles:
    """Runs groups in tiles, for one engine."""

    def __init__(self, engine: Engine) -> None:
        self.kernels = Kernels(engine) if isinstance(engine, OnnxEngine) else None
        self.moved: list[GroupMoved] = []

    def run(
        self, state: State, name: str, operators: Sequence[Operator], streaming: Sequence[tuple[str, int]]
    ) -> None:
        """Run a group; raises as the machine does."""
        if self.kernels is None:
            raise InputError("TensorFlow Lite models cannot be executed in tiles yet", item=f"group {name}")
        group = state.groups[name]
        if isinstance(group.tiling, Rings):
            raise InputError(
                "rings of rows are executed as C for a microcontroller only", item=f"group {name}"
            )
        if isinstance(group.tiling, Boxes):
            self._in_boxes(state, group, group.tiling, operators, streaming)
            return
        if isinstance(group.tiling, Nest):
            self._in_nest(state, group, group.tiling, operators, streaming)
            return
        shape = group_shape(self.kernels.engine, name, operators)
        stated = {state.tensor(tensor): crossing for tensor, crossing in streaming}
        for t in stated:
            if t not in (*shape.external, *shape.escaping):
                state.refuse("streaming-operand", f"{state.name(t)} is no operand of {name}")
            if t in shape.escaping and t in state.address:
                state.refuse("streaming-reserved", f"{state.name(t)} is streamed and has a range")
            if t in shape.external and t not in state.dram:
                state.refuse("streaming-no-dram-copy", f"{state.name(t)} has no copy in DRAM")
        whole = whole_operands(state, shape, stated)
        try:
            if isinstance(group.tiling, Blocks):
                done = run_in_blocks(state, self.kernels, group, group.tiling, shape, whole)
            else:
                assert group.tiling is not None
                done = run_in_bands(state, self.kernels, group, group.tiling, shape, whole)
        except IllegalTiling as problem:
            state.refuse(problem.rule, f"group {name}: {problem.reason}")
        finally:
            if name in state.scratch:
                start, end = state.scratch[name]
                state.arena.reserve(start, end, Claim(f"the scratch of {name}", state.index))
        self._account(state, name, stated, done)
        state.ran.update(op.id for op in operators)
        finish_whole(state, shape, whole)

    def _in_boxes(
        self,
        state: State,
        group: Group,
        boxes: Boxes,
        operators: Sequence[Operator],
        streaming: Sequence[tuple[str, int]],
    ) -> None:
        """Run an operator in boxes, all its operands streamed."""
        assert self.kernels is not None
        network, name = state.network, group.name
        stated = {state.tensor(tensor): crossing for tensor, crossing in streaming}
        reads = {network.root[t] for op in operators for t in op.inputs}
        writes = {t for op in operators for t in op.outputs}
        if stated.keys() != reads | writes:
            state.refuse("tiling-operands", f"{name} runs in boxes and does not stream all its operands")
        for t in stated:
            if t in writes and t in state.address:
                state.refuse("streaming-reserved", f"{state.name(t)} is streamed and has a range")
            if t in reads and t not in state.dram:
                state.refuse("streaming-no-dram-copy", f"{state.name(t)} has no copy in DRAM")
        try:
            done = run_in_boxes(state, self.kernels.engine, group, boxes, operators)
        except IllegalTiling as problem:
            state.refuse(problem.rule, f"group {name}: {problem.reason}")
        finally:
            if name in state.scratch:
                start, end = state.scratch[name]
                state.arena.reserve(start, end, Claim(f"the scratch of {name}", state.index))
        self._account(state, name, stated, done)
        state.ran.update(op.id for op in operators)

    def _in_nest(
        self,
        state: State,
        group: Group,
        nest: Nest,
        operators: Sequence[Operator],
        streaming: Sequence[tuple[str, int]],
    ) -> None:
        """Run a group in a nest of loops, its operands streamed or whole."""
        assert self.kernels is not None
        network, name = state.network, group.name
        stated = {state.tensor(tensor): crossing for tensor, crossing in streaming}
        reads = {network.root[t] for op in operators for t in op.inputs}
        writes = {t for op in operators for t in op.outputs}
        for t in stated:
            if t not in reads | writes:
                state.refuse("streaming-operand", f"{state.name(t)} is no operand of {name}")
            if t in writes and t in state.address:
                state.refuse("streaming-reserved", f"{state.name(t)} is streamed and has a range")
            if t in reads - writes and t not in state.dram:
                state.refuse("streaming-no-dram-copy", f"{state.name(t)} has no copy in DRAM")
        try:
            run = NestRun(state, self.kernels.engine, group, nest, operators, stated)
            done = run.all()
        except IllegalTiling as problem:
            state.refuse(problem.rule, f"group {name}: {problem.reason}")
        finally:
            if name in state.scratch:
                start, end = state.scratch[name]
                state.arena.reserve(start, end, Claim(f"the scratch of {name}", state.index))
        self._account(state, name, stated, done)
        state.ran.update(op.id for op in operators)
        run.finish_whole()

    def _account(self, state: State, name: str, stated: dict[int, int], done: Executed) -> None:
        for t, crossing in stated.items():
            if done.crossed[t] != crossing:
                raise Mismatch(
                    f"group {name}: {done.crossed[t]:,} bytes of {state.name(t)} crossed, the plan states"
                    f" {crossing:,} ({state.where()})"
                )
        for t, counted in done.crossed.items():
            if t in done.written:
                state.send_out(t, state.to_slot(t, done.written[t]), counted)
            else:
                state.bring_in(t, counted, parts=isinstance(state.groups[name].tiling, Nest))
        state.weights += done.weights
        group = state.groups[name]
        refills = dict(group.refills)
        weights = sum(
            state.network.operators[state.network.operator_id[op]].weight_bytes * refills.get(op, 1)
            for op in group.operators
        )
        if isinstance(group.tiling, (Boxes, Nest)):
            weights = done.weights  # the sum over all groups is compared with the result's
        self.moved.append(
            GroupMoved(
                name,
                done.subgroups,
                sum(done.crossed.values()) + done.weights,
                sum(stated.values()) + weights,
                done.weights,
                done.made,
                done.again / max(done.made, 1),
            )
        )
