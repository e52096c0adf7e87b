"""The cost of the circular pool's modulo, by segment size (section 5.3): a kernel with it and without."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from mcu_tinyengine import random_pointwise

from onchip.machines.board import Board
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.emulator.counting import Counts
from onchip.microcontroller.int8.reference import layer_output
from onchip.microcontroller.kernel_language import c_prelude, c_prototype, c_source
from onchip.papers.vmcu.segment_kernel import segment_kernel, segment_words

__all__ = ["SEGMENTS", "modulo", "overheads", "ran"]

BOARD = Board("bench", "cortex-m7", 1 << 20, 1 << 20)
SEGMENTS = (1, 2, 4, 8, 16)
LAYERS = ((20, 48, 16), (20, 16, 48), (24, 16, 16))
"""Rows and columns, channels in and out; the paper's segment is the smaller of both channels: 16."""

MAIN = """#include "host.h"
#include "kernels.h"

static int8_t pool[{size}];
static const int32_t words[] = {{{words}}};

{marks}
int main(void)
{{
    const int plain = host_open_to_read("plain.bin"), turned = host_open_to_read("turned.bin");
    const int to = host_open_to_write("output.bin");
    {calls}
    return 0;
}}
"""
CALL = """if (host_read({file}, pool, 0, {size}))
        return 3;
    onchip_mark_{mark}();
    {name}(pool, {size}, {source}, {target}, {rows}, words);
    onchip_mark_0();
    host_write(to, pool, {size});
    """


def ran(shape: tuple[int, int, int]) -> dict[tuple[int, bool], Counts]:
    """Return the counts of a layer's kernel by segment, with the modulo and without, each output compared.

    The pool holds both tensors side by side; for kernels with the modulo it is turned, so that the input goes
    on at the pool's start.
    """
    layer = random_pointwise(*shape)
    side, inputs, outputs = shape
    rows, size = side * side, side * side * (inputs + outputs)
    cases = [(segment, circular) for segment in SEGMENTS for circular in (True, False)]
    source = rows * outputs
    turn = rows * inputs // 2 // SEGMENTS[-1] * SEGMENTS[-1]
    functions = [
        segment_kernel(
            layer, segment, circular=circular, name=f"by_{segment}_{'modulo' if circular else 'plain'}"
        )
        for segment, circular in cases
    ]
    marks = "".join(
        f'__attribute__((noinline)) void onchip_mark_{i}(void) {{ __asm__ volatile("nop"); }}\n'
        for i in range(len(cases) + 1)
    )
    calls = "".join(
        CALL.format(
            file="turned" if circular else "plain",
            size=size,
            mark=i,
            name=f.name,
            source=source + turn * circular,
            target=turn * circular,
            rows=rows,
        )
        for i, (f, (_, circular)) in enumerate(zip(functions, cases, strict=True), 1)
    )
    words = ", ".join(map(str, np.array(segment_words(layer), "<i8").astype("<i4")))
    sources = {
        "main.c": MAIN.format(size=size, words=words, marks=marks, calls=calls),
        "kernels.c": '#include "kernels.h"\n\n' + "\n".join(c_source(f) for f in functions),
        "kernels.h": c_prelude() + "".join(c_prototype(f) + ";\n" for f in functions),
    }
    x = np.random.default_rng(3).integers(-128, 128, layer.input_shapes[0]).astype(np.int8)
    with tempfile.TemporaryDirectory(prefix="onchip-") as folder:
        image = build(sources, BOARD, Path(folder))
        plain = bytes(source) + x.tobytes()
        pools = {"plain.bin": plain, "turned.bin": plain[-turn:] + plain[:-turn]}
        done = emulate(image, pools, outputs=("output.bin",), memory=True)
    wanted = layer_output(layer, [x]).tobytes()
    for i, case in enumerate(cases):
        at = i * size + turn * case[1]
        if done.files["output.bin"][at : at + len(wanted)] != wanted:
            raise SystemExit(f"{layer.name}: segments of {case[0]} give other bytes")
    return {case: done.by_mark[i] for i, case in enumerate(cases, 1)}


def overheads(shape: tuple[int, int, int]) -> dict[int, float]:
    """Return by segment how many more instructions the modulo takes."""
    counts = ran(shape)
    return {n: counts[n, True].instructions / counts[n, False].instructions - 1 for n in SEGMENTS}


def modulo() -> Iterator[str]:
    yield (
        "| layer | segment, bytes | without modulo: instructions | with | more | loads "
        "| of the largest segment's |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for shape in LAYERS:
        counts = ran(shape)
        best = counts[SEGMENTS[-1], True].instructions
        for segment in SEGMENTS:
            plain, with_ = counts[segment, False], counts[segment, True]
            more = with_.instructions / plain.instructions - 1
            yield (
                f"| {shape[0]} x {shape[0]}, {shape[1]} > {shape[2]} | {segment} | {plain.instructions:,} "
                f"| {with_.instructions:,} | {more:.1%} | {with_.loads:,} | {with_.instructions / best:.2f} |"
            )
