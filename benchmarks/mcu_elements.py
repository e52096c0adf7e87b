"""Layers without weights, and fully connected ones, beside CMSIS-NN's on emulated cores, byte by byte.

    git clone https://github.com/ARM-software/CMSIS-NN
    .venv/bin/python benchmarks/mcu_elements.py --cmsis CMSIS-NN [--cores cortex-m55,...] [--only TEXT]
        [--counts FILE.json] [--into docs/kernels.md]

Sums, products, extremes, pools, softmax, padding and concatenation of usual shapes, on random input, through
onchip's kernels, row by row as a program runs them, and through CMSIS-NN's function for the layer. Same
compiler, same flags. A cell is the share of CMSIS-NN's instructions. `--counts` keeps the counts of cores in
a file, and takes from it those of cores that are not asked for. Exit code 1 if any output byte differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mcu_tflm import absolute, defined_in
from page_marks import write

from onchip.base.errors import OnchipError
from onchip.machines.board import Board
from onchip.machines.cores import CORES, Core, Forms, core_names
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.int8.arithmetic import quantised_multiplier
from onchip.microcontroller.int8.model import (
    Add,
    AveragePool,
    Concat,
    Extremum,
    FullyConnected,
    Layer,
    MaxPool,
    Mul,
    Pad,
    Softmax,
)
from onchip.microcontroller.int8.shapes import window_count
from onchip.microcontroller.kernel_language import c_prelude, c_source
from onchip.microcontroller.kernels import kernel_for

FLAGS = ("-O3", "-std=c11", "-ffunction-sections", "-fdata-sections", "-w")
ROOM = 1 << 16
RNG = np.random.default_rng(0)
Map = tuple[int, int, int, int]


@dataclass(frozen=True)
class Case:
    """A layer, and the statements that call CMSIS-NN for it; `before` are not counted."""

    says: str
    layer: Layer
    calls: str
    before: str = ""


def _head(says: str, shapes: Sequence[Map], made: Map) -> dict[str, Any]:
    inputs = tuple(range(len(shapes)))
    return {
        "name": says,
        "inputs": inputs,
        "output": len(shapes),
        "input_shapes": tuple(shapes),
        "output_shape": made,
    }


def _size(shape: Map) -> str:
    return f"{shape[1]}x{shape[2]}x{shape[3]}"


def _dims(name: str, shape: Sequence[int]) -> str:
    return f"const cmsis_nn_dims {name} = {{{', '.join(map(str, shape))}}};"


def added(shape: Map, reals: tuple[float, float]) -> Case:
    """A sum; one operand has the larger scale, and with it the factor of a half."""
    (m, s), pairs = quantised_multiplier(2.0**-19), [quantised_multiplier(r) for r in reals]
    layer = Add(
        **_head(f"sum, {_size(shape)}{', one scale' if reals[0] == reals[1] else ''}", [shape, shape], shape),
        input_offsets=(3, -7),
        multipliers=(pairs[0][0], pairs[1][0]),
        shifts=(pairs[0][1], pairs[1][1]),
        left_shift=20,
        multiplier=m * 3 // 4,
        shift=s,
        output_offset=5,
        low=-128,
        high=127,
    )
    call = (
        f"arm_elementwise_add_s8(a, b, 3, {layer.multipliers[0]}, {layer.shifts[0]}, -7,"
        f" {layer.multipliers[1]}, {layer.shifts[1]}, 20, out, 5,"
        f" {layer.multiplier}, {layer.shift}, -128, 127, {np.prod(shape)});"
    )
    return Case(layer.name, layer, call)


def multiplied(shape: Map) -> Case:
    m, s = quantised_multiplier(0.007)
    layer = Mul(
        **_head(f"product, {_size(shape)}", [shape, shape], shape),
        input_offsets=(3, -7),
        multiplier=m,
        shift=s,
        output_offset=5,
        low=-128,
        high=127,
    )
    call = f"arm_elementwise_mul_s8(a, b, 3, -7, out, 5, {m}, {s}, -128, 127, {np.prod(shape)});"
    return Case(layer.name, layer, call)


def extreme(shape: Map) -> Case:
    layer = Extremum(**_head(f"greater of two, {_size(shape)}", [shape, shape], shape), greatest=True)
    call = f"{_dims('d', shape)} arm_maximum_s8(&context, a, &d, b, &d, out, &d);"
    return Case(layer.name, layer, call)


def pooled(shape: Map, kernel: int, stride: int, pad: int, greatest: bool) -> Case:
    made = [window_count(shape[i], kernel, stride, 1, pad, pad) for i in (1, 2)]
    does = "greatest" if greatest else "mean"
    says = f"{does} of {kernel}x{kernel}/{stride}, {_size(shape)}"
    layer = (MaxPool if greatest else AveragePool)(
        **_head(says, [shape], (1, made[0], made[1], shape[3])),
        kernel=(kernel, kernel),
        stride=(stride, stride),
        padding=(pad, pad, pad, pad),
        low=-128,
        high=127,
    )
    name = "arm_max_pool_s8" if greatest else "arm_avgpool_s8"
    return Case(says, layer, _pool_call(name, layer))


def pooled_map(shape: Map) -> Case:
    layer = AveragePool(
        **_head(f"mean of a map, {_size(shape)}", [shape], (1, 1, 1, shape[3])),
        kernel=(shape[1], shape[2]),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        low=-128,
        high=127,
    )
    return Case(layer.name, layer, _pool_call("arm_avgpool_s8", layer))


def _pool_call(name: str, layer: AveragePool | MaxPool) -> str:
    (top, left, *_), (h, w) = layer.padding, layer.stride
    params = f"const cmsis_nn_pool_params p = {{{{{w}, {h}}}, {{{left}, {top}}}, {{-128, 127}}}};"
    return (
        f"{params} {_dims('x', layer.input_shapes[0])} {_dims('k', (1, *layer.kernel, 1))}"
        f" {_dims('y', layer.output_shape)} {name}(&context, &p, &x, a, &k, &y, out);"
    )


def softmax(rows: int, channels: int) -> Case:
    m, s = quantised_multiplier(0.06 * (1 << 26))
    shape = (1, 1, rows, channels)
    least = -int(31 * (1 << 26) / (0.06 * (1 << 26)))
    layer = Softmax(
        **_head(f"softmax, {rows}x{channels}", [shape], shape),
        multiplier=m,
        shift=s,
        diff_min=max(-255, least),
    )
    return Case(layer.name, layer, f"arm_softmax_s8(a, {rows}, {channels}, {m}, {s}, {layer.diff_min}, out);")


def connected(inputs: int, outputs: int) -> Case:
    m, s = quantised_multiplier(0.0007)
    layer = FullyConnected(
        **_head(f"fully connected, {inputs} > {outputs}", [(1, 1, 1, inputs)], (1, 1, 1, outputs)),
        weights=RNG.integers(-127, 128, (outputs, inputs)).astype(np.int8),
        bias=RNG.integers(-4000, 4000, outputs).astype(np.int32),
        multiplier=np.full(outputs, m, np.int32),
        shift=np.full(outputs, s, np.int32),
        input_offset=9,
        output_offset=-4,
        low=-128,
        high=127,
    )
    weights, bias = (", ".join(map(str, values.ravel())) for values in (layer.weights, layer.bias))
    before = (
        f"static const int8_t w[] = {{{weights}}}; static const int32_t bias[] = {{{bias}}};\n"
        "#if defined(ARM_MATH_MVEI)\n"
        f"        arm_vector_sum_s8((int32_t *)scratch, {inputs}, {outputs}, w, 9, 0, bias);\n"
        "#endif\n"
    )
    call = (
        f"const cmsis_nn_fc_params p = {{9, 0, -4, {{-128, 127}}}};"
        f" const cmsis_nn_per_tensor_quant_params q = {{{m}, {s}}};"
        f" {_dims('x', (1, 1, 1, inputs))} {_dims('k', (inputs, 1, 1, outputs))}"
        f" {_dims('y', (1, 1, 1, outputs))}"
        " arm_fully_connected_s8(&context, &p, &q, &x, a, &k, w, &y, bias, &y, out);"
    )
    return Case(layer.name, layer, call, before)


def padded(shape: Map) -> Case:
    made = (1, shape[1] + 2, shape[2] + 2, shape[3])
    layer = Pad(**_head(f"padding by 1, {_size(shape)}", [shape], made), padding=(1, 1, 1, 1), value=-3)
    call = (
        f"{_dims('x', shape)} {_dims('before', (0, 1, 1, 0))} {_dims('behind', (0, 1, 1, 0))}"
        " arm_pad_s8(a, out, -3, &x, &before, &behind);"
    )
    return Case(layer.name, layer, call)


def concatenated(shape: Map) -> Case:
    _, rows, columns, channels = shape
    made = (1, rows, columns, 2 * channels)
    layer = Concat(**_head(f"concatenation, 2 of {_size(shape)}", [shape, shape], made), axis=3)
    calls = "".join(
        f"arm_concatenation_s8_x({x}, {channels}, {columns}, {rows}, 1, out, {2 * channels}, {i * channels});"
        for i, x in enumerate("ab")
    )
    return Case(layer.name, layer, calls)


def cases() -> list[Case]:
    """The layers of the table."""
    return [
        added((1, 20, 20, 24), (0.37, 0.5)),
        added((1, 8, 8, 64), (0.5, 0.5)),
        added((1, 5, 5, 7), (0.5, 0.41)),
        multiplied((1, 20, 20, 24)),
        multiplied((1, 5, 5, 7)),
        extreme((1, 20, 20, 24)),
        pooled((1, 24, 24, 16), 2, 2, 0, True),
        pooled((1, 12, 12, 32), 3, 2, 1, True),
        pooled((1, 14, 14, 6), 2, 2, 0, True),
        pooled((1, 24, 24, 16), 2, 2, 0, False),
        pooled((1, 12, 12, 32), 3, 1, 1, False),
        pooled_map((1, 8, 8, 64)),
        pooled_map((1, 3, 3, 256)),
        softmax(1, 10),
        softmax(1, 1000),
        softmax(20, 12),
        connected(640, 128),
        connected(64, 10),
        connected(256, 2),
        padded((1, 24, 24, 16)),
        concatenated((1, 12, 12, 32)),
    ]


def ours(case: Case, number: int, forms: Forms) -> tuple[str, str]:
    """The kernel with its constants, and the statements that run the layer row by row."""
    layer = case.layer
    use = kernel_for(layer, forms=forms)
    name = f"kernel{number}"
    text = c_source(use.function).replace(f"void {use.function.name}(", f"void {name}(", 1)
    words = ", ".join(map(str, use.words)) or "0"
    text = f"static const int32_t words{number}[] = {{{words.replace('-2147483648', 'INT32_MIN')}}};\n{text}"
    (_, rows, width, channels), (_, made, columns, outputs) = layer.input_shapes[0], layer.output_shape
    kernel, stride, top = 1, 1, 0
    if isinstance(layer, AveragePool | MaxPool):
        kernel, stride, top = layer.kernel[0], layer.stride[0], layer.padding[0]
    elif isinstance(layer, Pad):
        top = layer.padding[0]
    row = width * channels
    given = {
        "lines": "lines",
        "out": f"out + y * {columns * outputs}",
        "x0": "0",
        "x1": f"{columns}",
        "first": "first",
        "last": "last",
        "width": f"{width}",
        "y": "y",
        "patch": "(int8_t *)scratch",
        "weights": f"words{number}",
    }
    arguments = ", ".join(given[p.name] for p in use.function.parameters)
    lines = [f"for (int32_t y = 0; y < {made}; ++y) {{", f"    const int8_t *lines[{kernel + 1}];"]
    lines += [f"    const int32_t at = y * {stride} - {top};", f"    int32_t first = 0, last = {kernel};"]
    lines += [
        "    while (at + first < 0)",
        "        ++first;",
        f"    while (at + last > {rows})",
        "        --last;",
    ]
    lines += [f"    for (int32_t i = 0; i < {kernel}; ++i)", f"        lines[i] = a + (at + i) * {row};"]
    if len(layer.input_shapes) > 1:
        lines += [f"    lines[1] = b + y * {row};"]
    lines += [f"    {name}({arguments});", "}"]
    return text, "\n        ".join(lines)


def measured(core: Core, chosen: list[Case], cmsis: Path) -> dict[str, tuple[int, int]]:
    """(onchip's instructions, CMSIS-NN's) of every layer, on a core."""
    forms = CORES[core].forms
    kernels, body = [], []
    for i, case in enumerate(chosen):
        text, rows = ours(case, i, forms)
        kernels.append(text)
        size = int(np.prod(case.layer.output_shape))
        marks = [f"onchip_mark_{2 * i + j}();" for j in (1, 2)]
        body += [
            "    {",
            f"        {case.before}",
            "        memset(out, 0x55, sizeof out);",
            f"        {marks[0]}",
        ]
        body += [f"        {rows}", "        onchip_mark_0();", f"        host_write(to, out, {size});"]
        body += ["        memset(out, 0x55, sizeof out);", f"        {marks[1]}", f"        {case.calls}"]
        body += ["        onchip_mark_0();", f"        host_write(to, out, {size});", "    }"]
    functions = "\n".join(
        f'__attribute__((noinline)) void onchip_mark_{i}(void) {{ __asm__ volatile("/* {i} */"); }}'
        for i in range(2 * len(chosen) + 1)
    )
    main = [
        '#include <string.h>\n#include "arm_nnfunctions.h"\n#include "arm_nnsupportfunctions.h"',
        f'#include "host.h"\n#include "dsp.h"\n{functions}',
        f"static int8_t a[{ROOM}], b[{ROOM}], out[{ROOM}];",
        f"static int32_t scratch[{ROOM // 4}];",
        *(text.replace("void kernel", "static __attribute__((noinline)) void kernel", 1) for text in kernels),
        "int main(void)\n{\n    const cmsis_nn_context context = {scratch, sizeof scratch};",
        '    const int from = host_open_to_read("in.bin"), to = host_open_to_write("out.bin");',
        "    if (host_read(from, a, 0, sizeof a) || host_read(from, b, sizeof a, sizeof b))",
        "        host_exit(3);",
        *body,
        "    return 0;\n}\n",
    ]
    sources = {"main.c": "\n".join(main), "dsp.h": c_prelude(), **called(cmsis, "\n".join(main))}
    given = np.random.default_rng(1).integers(-128, 128, 2 * ROOM).astype(np.int8).tobytes()
    with tempfile.TemporaryDirectory(prefix="onchip-") as folder:
        board = Board("bench", core, 3 << 20, CORES[core].machine.flash.bytes)
        image = build(
            sources, board, Path(folder), flags=FLAGS, include=(cmsis / "Include",), stack_bytes=16384
        )
        ran = emulate(image, {"in.bin": given}, outputs=("out.bin",))
    made, at, found = ran.files["out.bin"], 0, {}
    for i, case in enumerate(chosen):
        size = int(np.prod(case.layer.output_shape))
        if made[at : at + size] != made[at + size : at + 2 * size]:
            raise SystemExit(f"{core}: {case.says}: the outputs differ")
        at += 2 * size
        found[case.says] = (ran.by_mark[2 * i + 1].instructions, ran.by_mark[2 * i + 2].instructions)
    return found


def called(cmsis: Path, text: str) -> dict[str, str]:
    """The sources of CMSIS-NN whose functions a text names, and those that these name."""
    places, found = defined_in(cmsis), dict[str, str]()
    helpers = (cmsis / "Include" / "arm_nnsupportfunctions.h").read_text()
    texts = [text, *(body for body in re.findall(r"__STATIC_FORCEINLINE[^;]*?\{.*?\n\}", helpers, re.DOTALL))]
    while texts:
        names = set(re.findall(r"\b(arm_\w+)\(", texts.pop()))
        for source in sorted({places[name] for name in names if name in places}):
            if source.name not in found:
                found[source.name] = source.read_text()
                texts.append(found[source.name])
    return found


class Counts:
    """The counts of every core, from a file or measured."""

    def __init__(self, asked: argparse.Namespace) -> None:
        kept: Path | None = asked.counts
        self.counts: dict[str, dict[str, tuple[int, int]]] = {}
        if kept and kept.exists():
            self.counts = json.loads(kept.read_text())
        chosen = [case for case in cases() if asked.only in case.says]
        for core in filter(None, asked.cores.split(",")):
            self.counts[core] = self.counts.get(core, {}) | measured(core, chosen, asked.cmsis)
            if kept:
                kept.write_text(json.dumps(self.counts))
        self.cores = [core for core in core_names() if core in self.counts]

    def table(self) -> Iterator[str]:
        titles = " | ".join(CORES[core].title for core in self.cores)
        yield f"| layer | {titles} | instructions on M55 | CMSIS-NN |"
        yield f"|---|{'--:|' * (len(self.cores) + 2)}"
        for case in cases():
            pairs = [self.counts[core].get(case.says) for core in self.cores]
            cells = [f"{pair[0] / pair[1]:.2f}" if pair else "" for pair in pairs]
            vectors = self.counts.get("cortex-m55", {}).get(case.says)
            counted = [f"{n:,}" for n in vectors] if vectors else ["", ""]
            yield f"| {case.says} | {' | '.join([*cells, *counted])} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cmsis", type=absolute, required=True, help="a checkout of CMSIS-NN")
    parser.add_argument("--cores", default=",".join(core_names()))
    parser.add_argument("--only", default="", help="layers with this text in their names")
    parser.add_argument("--counts", type=Path, help="a file that keeps the counts")
    parser.add_argument("--into", type=Path, help="a page that has the marks of the table")
    asked = parser.parse_args()
    write({"elements": Counts(asked).table}, asked.into)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OnchipError as error:
        sys.exit(str(error))
