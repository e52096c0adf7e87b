"""The machine's instruction `run` for a group in tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onchip.base.errors import InputError, Mismatch
from onchip.network import Operator
from onchip.plans import Blocks, Boxes, Group, Rings
from onchip.run.arena import Claim
from onchip.run.engine import Engine
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.tiled.blocks import run_in_blocks
from onchip.run.tiled.boxes import run_in_boxes
from onchip.run.tiled.group import Executed, run_in_bands
from onchip.run.tiled.kernels import Kernels
from onchip.run.tiled.passes import IllegalTiling
from onchip.run.tiled.shape import group_shape
from onchip.run.tiled.whole import finish_whole, whole_operands

if TYPE_CHECKING:
    from onchip.run.machine import Machine

__all__ = ["GroupMoved", "Tiles"]


@dataclass(frozen=True, slots=True)
class GroupMoved:
    """One group, executed in tiles: bytes that crossed, as its copies counted and as the plan states them.

    At the plan's sizes. `recomputed` is the share of the `elements` made that had been made before.
    """

    name: str
    subgroups: int
    counted_bytes: int
    stated_bytes: int
    weight_bytes: int
    elements: int
    recomputed: float


class Tiles:
    """Runs groups in tiles, for one engine."""

    def __init__(self, engine: Engine) -> None:
        self.kernels = Kernels(engine) if isinstance(engine, OnnxEngine) else None
        self.moved: list[GroupMoved] = []

    def run(
        self, machine: Machine, name: str, operators: Sequence[Operator], streaming: Sequence[tuple[str, int]]
    ) -> None:
        """Run a group; raises as the machine does."""
        if self.kernels is None:
            raise InputError("TensorFlow Lite models cannot be executed in tiles yet", item=f"group {name}")
        group = machine.groups[name]
        if isinstance(group.tiling, Rings):
            raise InputError(
                "rings of rows are executed as C for a microcontroller only", item=f"group {name}"
            )
        if isinstance(group.tiling, Boxes):
            self._in_boxes(machine, group, group.tiling, operators, streaming)
            return
        shape = group_shape(self.kernels.engine, name, operators)
        stated = {machine.tensor(tensor): crossing for tensor, crossing in streaming}
        for t in stated:
            if t not in (*shape.external, *shape.escaping):
                machine.refuse("streaming-operand", f"{machine.name(t)} is no operand of {name}")
            if t in shape.escaping and t in machine.address:
                machine.refuse("streaming-reserved", f"{machine.name(t)} is streamed and has a range")
            if t in shape.external and t not in machine.dram:
                machine.refuse("streaming-no-dram-copy", f"{machine.name(t)} has no copy in DRAM")
        whole = whole_operands(machine, shape, stated)
        try:
            if isinstance(group.tiling, Blocks):
                done = run_in_blocks(machine, self.kernels, group, group.tiling, shape, whole)
            else:
                assert group.tiling is not None
                done = run_in_bands(machine, self.kernels, group, group.tiling, shape, whole)
        except IllegalTiling as problem:
            machine.refuse(problem.rule, f"group {name}: {problem.reason}")
        finally:
            if name in machine.scratch:
                start, end = machine.scratch[name]
                machine.arena.reserve(start, end, Claim(f"the scratch of {name}", machine.index))
        self._account(machine, name, stated, done)
        machine.ran.update(op.id for op in operators)
        finish_whole(machine, shape, whole)

    def _in_boxes(
        self,
        machine: Machine,
        group: Group,
        boxes: Boxes,
        operators: Sequence[Operator],
        streaming: Sequence[tuple[str, int]],
    ) -> None:
        """Run an operator in boxes, all its operands streamed."""
        assert self.kernels is not None
        network, name = machine.network, group.name
        stated = {machine.tensor(tensor): crossing for tensor, crossing in streaming}
        reads = {network.root[t] for op in operators for t in op.inputs}
        writes = {t for op in operators for t in op.outputs}
        if stated.keys() != reads | writes:
            machine.refuse("tiling-operands", f"{name} runs in boxes and does not stream all its operands")
        for t in stated:
            if t in writes and t in machine.address:
                machine.refuse("streaming-reserved", f"{machine.name(t)} is streamed and has a range")
            if t in reads and t not in machine.dram:
                machine.refuse("streaming-no-dram-copy", f"{machine.name(t)} has no copy in DRAM")
        try:
            done = run_in_boxes(machine, self.kernels.engine, group, boxes, operators)
        except IllegalTiling as problem:
            machine.refuse(problem.rule, f"group {name}: {problem.reason}")
        finally:
            if name in machine.scratch:
                start, end = machine.scratch[name]
                machine.arena.reserve(start, end, Claim(f"the scratch of {name}", machine.index))
        self._account(machine, name, stated, done)
        machine.ran.update(op.id for op in operators)

    def _account(self, machine: Machine, name: str, stated: dict[int, int], done: Executed) -> None:
        for t, crossing in stated.items():
            if done.crossed[t] != crossing:
                raise Mismatch(
                    f"group {name}: {done.crossed[t]:,} bytes of {machine.name(t)} crossed, the plan states"
                    f" {crossing:,} ({machine.where()})"
                )
        for t, counted in done.crossed.items():
            if t in done.written:
                machine.send_out(t, machine.to_slot(t, done.written[t]), counted)
            else:
                machine.bring_in(t, counted)
        machine.weights += done.weights
        group = machine.groups[name]
        refills = dict(group.refills)
        weights = sum(
            machine.network.operators[machine.network.operator_id[op]].weight_bytes * refills.get(op, 1)
            for op in group.operators
        )
        if isinstance(group.tiling, Boxes):
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
