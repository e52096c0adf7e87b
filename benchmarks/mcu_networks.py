"""Whole int8 networks on an emulated Cortex-M4: linked RAM, flash and instructions, beside layer by layer.

    .venv/bin/python benchmarks/mcu_networks.py [--input held,once,again] MODEL.tflite|made:NAME ...

Every network is planned, written as C, linked with no more stack than it needs and run behind the guard; each
output byte is compared. Beside it the same kernels layer by layer, every tensor in a place of its own: what
fusing and overlapping cost in instructions. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from onchip.board import Board
from onchip.check import certify
from onchip.errors import OnchipError
from onchip.mcu.load import int8_model
from onchip.mcu.model import Int8Model
from onchip.mcu.network import network_of
from onchip.mcu.project import sources_of
from onchip.plan import Alloc, Free, Instruction, Load, Plan, PlanChip, Run, Scratch, Store
from onchip.run.mcu.verify import Verified, verify
from onchip.segments import SegmentOptions
from onchip.segments import plan as plan_segments

BOARD = Board("bench", "cortex-m4", 4 << 20, 4 << 20)


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


def measured(plan: Plan, model: Int8Model, runs: int) -> Verified:
    with tempfile.TemporaryDirectory() as folder:
        return verify(sources_of(plan, model), model, BOARD, Path(folder), runs=runs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument("--input", default="held", help="held, once, again, or several with commas")
    parser.add_argument("--runs", type=int, default=2)
    asked = parser.parse_args()
    print("| network | input | plan | linked RAM | stack | flash | instructions | against layer by layer |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    good = True
    for path in asked.models:
        try:
            model = int8_model(path)
            alone = measured(layer_by_layer(model), model, 1)
            for mode in asked.input.split(","):
                plan = plan_segments(network_of(model), BOARD.ram_bytes, SegmentOptions(input=mode))
                made = measured(plan, model, asked.runs)
                good &= made.match and alone.match
                ratio = made.total.instructions / alone.total.instructions
                row = (plan.result.extent_bytes, made.image.ram_bytes, made.image.stack_bytes)
                row += (made.image.flash_bytes, made.total.instructions)
                cells = " | ".join(f"{n:,}" for n in row)
                print(
                    f"| {model.name} | {mode} | {cells} | {ratio:.3f}{'' if made.match else ' DIFFERENT'} |"
                )
        except OnchipError as problem:
            print(f"{path}: {problem}", file=sys.stderr)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
