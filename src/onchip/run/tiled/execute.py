"""The machine's instruction `run` for a group in a nest of loops.

Groups in bands, blocks and boxes come as the nests that they are (`onchip.check.as_nests`).
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.base.errors import InputError, Mismatch
from onchip.network import Operator
from onchip.plans import Nest, Rings, Rows
from onchip.run.arena import Claim
from onchip.run.engine import Engine
from onchip.run.moved import GroupMoved
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.state import State
from onchip.run.tiled.executed import Executed, IllegalTiling
from onchip.run.tiled.nests import NestRun

__all__ = ["Tiles"]


class Tiles:
    """Runs groups in tiles, for one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine if isinstance(engine, OnnxEngine) else None
        self.moved: list[GroupMoved] = []

    def run(
        self, state: State, name: str, operators: Sequence[Operator], streaming: Sequence[tuple[str, int]]
    ) -> None:
        """Run a group, its operands streamed or whole; raises as the machine does."""
        if self.engine is None:
            raise InputError("TensorFlow Lite models cannot be executed in tiles yet", item=f"group {name}")
        group, network = state.groups[name], state.network
        if isinstance(group.tiling, Rings | Rows):
            raise InputError(
                "rings and rows are executed as C for a microcontroller only", item=f"group {name}"
            )
        if not isinstance(group.tiling, Nest):
            raise InputError("bands, blocks and boxes are executed as nests only", item=f"group {name}")
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
            run = NestRun(state, self.engine, group, group.tiling, operators, stated)
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
                state.bring_in(t, counted)
        state.weights += done.weights  # the sum over all groups is compared with the result's
        self.moved.append(
            GroupMoved(
                name,
                done.subgroups,
                sum(done.crossed.values()) + done.weights,
                sum(stated.values()) + done.weights,
                done.weights,
                done.made,
                done.again / max(done.made, 1),
            )
        )
