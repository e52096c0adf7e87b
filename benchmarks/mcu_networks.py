"""Whole int8 networks on an emulated core: linked RAM, flash and instructions, beside layer by layer.

    .venv/bin/python benchmarks/mcu_networks.py [--core CORE] [--input held,once,again]
        [--objective free|once|least] [--into docs/mcu.md] MODEL.tflite|made:NAME ...

Every network is planned, written as C, linked with no more stack than it needs and run behind the guard; each
output byte is compared. Beside it the same kernels layer by layer, every tensor in a place of its own: what
fusing and overlapping cost in instructions. The exit code says whether no plan executed more than 1.02 times
as many (with the objective `free`), and every byte was right. Prints a table in Markdown, or puts it into a
page (see `page_marks`; its name is `networks` and the core).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from page_marks import write

from onchip.base.errors import OnchipError
from onchip.check import certify
from onchip.machines.board import Board
from onchip.machines.cores import core_names
from onchip.microcontroller.emulator.verify import Verified, verify
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments import plan as plan_segments
from onchip.plans import Alloc, Free, Instruction, Load, Plan, PlanChip, Run, Scratch, Store

BOARD = Board("bench", "cortex-m4", 4 << 20, 4 << 20)
MOST = 1.02
"""Instructions of a plan, as a multiple of those layer by layer, that the objective `free` may take."""


def layer_by_layer(model: Int8Model) -> Plan:
    """Every layer alone, every tensor in a place of its own, nothing over anything."""
    network = network_of(model)
    name = [t.name for t in model.tensors]
    last = {t: i for i, layer in enumerate(model.layers) for t in layer.inputs}
    program: list[Instruction] = [Load(name[model.inputs[0]], 0)]
    free = _up(model.tensors[model.inputs[0]].bytes)
    for i, layer in enumerate(model.layers):
        program.append(Alloc(name[layer.output], free))
        free += _up(model.tensors[layer.output].bytes)
        work = network.operators[network.operator_id[layer.name]].workspace
        if work:
            program.append(Scratch(layer.name, free))
            free += _up(work)
        program.append(Run(layer.name))
        program += [Free(name[t]) for t in dict.fromkeys(layer.inputs) if last[t] == i]
    out = name[model.outputs[0]]
    return certify(
        network,
        PlanChip("mcu"),
        BOARD.ram_bytes,
        [*program, Store(out), Free(out)],
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
    )


def _up(size: int) -> int:
    return -(-size // 4) * 4


def measured(plan: Plan, model: Int8Model, board: Board, runs: int) -> Verified:
    with tempfile.TemporaryDirectory() as folder:
        return verify(
            sources_of(plan, model, forms=board.core_type.forms), model, board, Path(folder), runs=runs
        )


class Table:
    """The table's lines, each as soon as it is known; `good` once they are all there."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked, self.good = asked, True
        self.board = replace(BOARD, core=asked.core)

    def lines(self) -> Iterator[str]:
        yield (
            "| network | input | plan | linked RAM | stack | flash | instructions | against layer by layer |"
        )
        yield "|---|---|--:|--:|--:|--:|--:|--:|"
        for path in self.asked.models:
            try:
                yield from self.rows(int8_model(path))
            except OnchipError as problem:
                print(f"{path}: {problem}", file=sys.stderr)
                self.good = False

    def rows(self, model: Int8Model) -> Iterator[str]:
        alone = measured(layer_by_layer(model), model, self.board, 1)
        for mode in self.asked.input.split(","):
            options = SegmentOptions(input=mode, objective=self.asked.objective)
            plan = plan_segments(network_of(model), BOARD.ram_bytes, options)
            made = measured(plan, model, self.board, self.asked.runs)
            ratio = made.total.instructions / alone.total.instructions
            self.good &= made.match and alone.match and (ratio <= MOST or options.objective != "free")
            row = (plan.result.extent_bytes, made.image.ram_bytes, made.image.stack_bytes)
            row += (made.image.flash_bytes, made.total.instructions)
            cells = " | ".join(f"{n:,}" for n in row)
            wrong = "" if made.match and alone.match else " DIFFERENT"
            yield f"| {model.name} | {mode} | {cells} | {ratio:.3f}{wrong} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("--input", default="held", help="held, once, again, or several with commas")
    parser.add_argument("--objective", default="free", choices=("free", "once", "least"))
    parser.add_argument("--core", default="cortex-m4", choices=core_names())
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--into", type=Path, help="a page that has the marks of this table")
    asked = parser.parse_args()
    table = Table(asked)
    write({f"networks {asked.core}": table.lines}, asked.into)
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
