"""The paper's fused window kernel (section 5.2), generated, run on the emulated core and counted."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from vmcu_executed import MODEL
from vmcu_modules import VWW
from vmcu_networks import blocks_of, layers_of_blocks

from onchip.base.errors import ModelError
from onchip.machines.board import Board
from onchip.microcontroller.compare.segments import METHODS
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.emulator.counting import Counts
from onchip.microcontroller.int8.model import Int8Model, Layer
from onchip.microcontroller.int8.reference import layer_output
from onchip.microcontroller.load import int8_model
from onchip.papers.vmcu.window_kernel import WindowKernel, window_kernel

__all__ = ["Ran", "run_block", "window"]

BOARD = Board("bench", "cortex-m7", 1 << 20, 2 << 20)

MAIN = """#include "host.h"
#include "block.h"

static int8_t pool[{pool}], workspace[{workspace}];

__attribute__((noinline)) void onchip_mark_1(void) {{ __asm__ volatile("nop"); }}
__attribute__((noinline)) void onchip_mark_0(void) {{ __asm__ volatile("nop"); }}

int main(void)
{{
    if (host_read(host_open_to_read("input.bin"), pool + {input_at}, 0, {given}))
        return 3;
    onchip_mark_1();
    block(pool, workspace);
    onchip_mark_0();
    host_write(host_open_to_write("output.bin"), pool, {made});
    return 0;
}}
"""


@dataclass(frozen=True)
class Ran:
    """A block's kernel as it ran: linked bytes of RAM without the stack, counts, and whether E is right."""

    kernel: WindowKernel
    linked_bytes: int
    counts: Counts
    equal: bool


def run_block(layers: list[Layer], *, keep_columns: bool = False) -> Ran:
    """Generate a block's kernel, run it once on random input, and compare it with the layers' reference."""
    kernel = window_kernel(layers, keep_columns=keep_columns)
    given, made = (int(np.prod(s)) for s in (layers[0].input_shapes[0], layers[-1].output_shape))
    sizes = {"pool": kernel.pool_bytes, "workspace": kernel.workspace_bytes, "input_at": kernel.input_at}
    sources = {**kernel.sources, "main.c": MAIN.format(**sizes, given=given, made=made)}
    x = np.random.default_rng(2).integers(-128, 128, layers[0].input_shapes[0]).astype(np.int8)
    with tempfile.TemporaryDirectory(prefix="onchip-") as folder:
        image = build(sources, BOARD, Path(folder))
        ran = emulate(image, {"input.bin": x.tobytes()}, outputs=("output.bin",), memory=True)
    values = {layers[0].inputs[0]: x}
    for layer in layers:
        values[layer.output] = layer_output(layer, [values[t] for t in layer.inputs])
    wanted = values[layers[-1].output].tobytes()
    linked = image.data_bytes + image.bss_bytes
    return Ran(kernel, linked, ran.by_mark[1], ran.files["output.bin"] == wanted)


def window() -> Iterator[str]:
    model: Int8Model = int8_model(MODEL)
    real = {block.name: block for _, block in blocks_of(VWW)}
    yield (
        "| block | segments of workspace | their bytes | by formula, with the ends | linked RAM "
        "| instructions | loads | stores | work | columns kept: instructions | outputs |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for name, layers in layers_of_blocks(MODEL):
        planned = METHODS["window"](real[name].network)
        once = METHODS["whole"](real[name].network).macs
        try:
            ran, kept = (run_block([model.layer[x] for x in layers], keep_columns=k) for k in (False, True))
        except ModelError as error:
            yield f"| {name} | - | - | {planned.ram_bytes:,} | - | - | - | - | - | - | {error.reason} |"
            continue
        counts = " | ".join(f"{n:,}" for n in (ran.counts.instructions, ran.counts.loads, ran.counts.stores))
        same = "equal" if ran.equal and kept.equal else "DIFFERENT"
        assert kept.linked_bytes == ran.linked_bytes
        yield (
            f"| {name} | {ran.kernel.segments} | {ran.kernel.workspace_bytes:,} | {planned.ram_bytes:,} "
            f"| {ran.linked_bytes:,} | {counts} | {planned.macs / once:.2f} "
            f"| {kept.counts.instructions:,} | {same} |"
        )
