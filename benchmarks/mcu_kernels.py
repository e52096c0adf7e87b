"""Kernels beside CMSIS-NN's: executed instructions on an emulated core, every output byte compared.

    git clone https://github.com/ARM-software/CMSIS-NN
    .venv/bin/python benchmarks/mcu_kernels.py --cmsis CMSIS-NN [--core cortex-m4] MODEL.tflite ...

All distinct convolution and depthwise layers of the models (same shape: once), each with its own weights on
random input, through onchip's kernels, row by row as a program runs them, and through the function that
CMSIS-NN chooses for the layer. Same compiler, same flags. Ratios below 1 are onchip's gain. `--known` adds
the pointwise layers for which docs/kernels.md states figures.
"""

from __future__ import annotations

import argparse
import math
import re
import struct
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from mcu_tflm import absolute

from onchip.base.errors import OnchipError
from onchip.machines.board import Board
from onchip.machines.cores import CORES, core_names
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.int8.model import Conv, Depthwise
from onchip.microcontroller.kernel_language import c_prelude, c_prototype, c_source
from onchip.microcontroller.kernels.conv import conv, conv_words
from onchip.microcontroller.kernels.depthwise import depthwise, depthwise_words
from onchip.microcontroller.kernels.library import library_for
from onchip.microcontroller.kernels.windows import conv_shape, depthwise_shape

HERE = Path(__file__).resolve().parent
FLAGS = ("-O3", "-std=c11", "-ffunction-sections", "-fdata-sections", "-w")
CMSIS = {
    "ConvolutionFunctions": (
        "arm_convolve_wrapper_s8",
        "arm_convolve_s8",
        "arm_convolve_1x1_s8",
        "arm_convolve_1x1_s8_fast",
        "arm_convolve_1_x_n_s8",
        "arm_depthwise_conv_wrapper_s8",
        "arm_depthwise_conv_s8",
        "arm_depthwise_conv_s8_opt",
        "arm_depthwise_conv_3x3_s8",
        "arm_nn_mat_mult_kernel_s8_s16",
        "arm_nn_mat_mult_kernel_row_offset_s8_s16",
        "arm_convolve_get_buffer_sizes_s8",
        "arm_depthwise_conv_get_buffer_sizes_s8",
    ),
    "NNSupportFunctions": (
        "arm_nn_mat_mult_nt_t_s8",
        "arm_s8_to_s16_unordered_with_offset",
        "arm_q7_to_q15_with_offset",
    ),
}
KNOWN = ((80, 16, 16), (48, 8, 16), (24, 32, 32), (20, 16, 48), (20, 48, 16))
"""Pointwise layers: rows and columns, channels in, channels out."""
CONV, PATCH, DEPTHWISE = range(3)


def distinct(models: list[Path]) -> list[Conv | Depthwise]:
    """The layers, one of each shape."""
    from onchip.microcontroller.int8.read import read_model

    found: dict[object, Conv | Depthwise] = {}
    for path in models:
        for layer in read_model(path).layers:
            if isinstance(layer, Conv | Depthwise):
                key = (type(layer), layer.input_shapes, layer.output_shape, layer.weights.shape)
                key += (layer.stride, layer.dilation, layer.padding)
                found.setdefault(key, replace(layer, name=f"{path.stem.split('_')[0]} {layer.name[:24]}"))
    return list(found.values())


def known() -> list[Conv | Depthwise]:
    """Layers of random weights with the shapes of `KNOWN`."""
    rng = np.random.default_rng(0)
    return [
        Conv(
            name=f"{size}x{size} {channels}>{outputs}",
            inputs=(0,),
            output=1,
            input_shapes=((1, size, size, channels),),
            output_shape=(1, size, size, outputs),
            weights=rng.integers(-127, 128, (outputs, 1, 1, channels)).astype(np.int8),
            bias=rng.integers(-4000, 4000, outputs).astype(np.int32),
            multiplier=rng.integers(1 << 30, (1 << 31) - 1, outputs).astype(np.int32),
            shift=np.full(outputs, -7, np.int32),
            input_offset=3,
            output_offset=-5,
            low=-128,
            high=127,
        )
        for size, channels, outputs in KNOWN
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--cmsis", type=absolute, required=True, help="a checkout of CMSIS-NN")
    parser.add_argument("--known", action="store_true", help="the pointwise layers of the docs too")
    parser.add_argument("--pixels", type=int, default=0, help="pixels of a step, instead of the best")
    parser.add_argument("--library", action="store_true", help="the kernels for all shapes instead")
    parser.add_argument("--core", choices=core_names(), default="cortex-m4")
    parser.add_argument("--keep", type=Path, help="a folder for sources and program")
    options = parser.parse_args()
    layers = (known() if options.known else []) + distinct(options.models)
    with tempfile.TemporaryDirectory(prefix="onchip-") as folder:
        board = Board("bench", options.core, 3 << 20, CORES[options.core].machine.flash.bytes)
        keep = options.keep or Path(folder)
        return measured(layers, options.cmsis, keep, options.pixels, options.library, board)


def measured(
    layers: list[Conv | Depthwise], cmsis: Path, folder: Path, pixels: int, library: bool, board: Board
) -> int:
    forms = board.core_type.forms
    tables: dict[int, dict[str, int]] = {CONV: {}, PATCH: {}, DEPTHWISE: {}}
    functions, content, sizes = {}, b"", []
    rng = np.random.default_rng(1)
    for layer in layers:
        if library:
            use = library_for(layer, forms=forms)
            function, words, kind = use.function, list(use.words), PATCH
        elif isinstance(layer, Conv):
            shape = conv_shape(layer, pixels=pixels, forms=forms)
            words, kind = conv_words(layer, shape), PATCH if shape.gathers else CONV
            function = conv(name_of(shape), shape)
        else:
            deep = depthwise_shape(layer, forms=forms)
            words, kind = depthwise_words(layer, deep), DEPTHWISE
            function = depthwise(name_of(deep), deep)
        functions[function.name] = function
        index = tables[kind].setdefault(function.name, len(tables[kind]))
        (_, in_h, in_w, in_c), (_, out_h, out_w, out_c) = layer.input_shapes[0], layer.output_shape
        groups = layer.groups if isinstance(layer, Conv) else in_c
        multiplier = 1 if isinstance(layer, Conv) else layer.depth_multiplier
        top, left, _, _ = layer.padding
        head = (kind, index, in_h, in_w, in_c, out_h, out_w, out_c, *layer.kernel, *layer.stride)
        head += (*layer.dilation, top, left, layer.input_offset, layer.output_offset, layer.low, layer.high)
        head += (
            in_c // groups if isinstance(layer, Conv) else 1,
            multiplier,
            len(words),
            int(isinstance(layer, Depthwise)),
        )
        content += struct.pack(f"<{len(head)}i", *head)
        content += rng.integers(-128, 128, in_h * in_w * in_c).astype(np.int8).tobytes()
        content += layer.weights.tobytes() + layer.bias.astype("<i4").tobytes()
        for values in (layer.multiplier, layer.shift):
            content += np.broadcast_to(values, layer.bias.shape).astype("<i4").tobytes()
        content += np.array(words, "<i8").astype("<i4").tobytes()
        sizes.append(out_h * out_w * out_c)
    sources = {
        "main.c": (HERE / "mcu_kernels.c").read_text(),
        "kernels.c": '#include "kernels.h"\n\n' + "\n".join(c_source(f) for f in functions.values()),
        "kernels.h": c_prelude() + "".join(c_prototype(f) + ";\n" for f in functions.values()),
        "layers.h": header(tables, len(layers)),
    }
    for room, names in CMSIS.items():
        sources |= {f"{n}.c": (cmsis / "Source" / room / f"{n}.c").read_text() for n in names}
    # Helium's variants call more helpers; those that a core does not take are not linked.
    helpers = sorted((cmsis / "Source" / "NNSupportFunctions").glob("arm_nn_*s8.c"))
    helpers += [cmsis / "Source" / "TransposeFunctions" / "arm_transpose_s8.c"]
    sources |= {path.name: path.read_text() for path in helpers if forms == "vector"}
    image = build(sources, board, folder, flags=FLAGS, include=(cmsis / "Include",), stack_bytes=16384)
    ran = emulate(image, {"layers.bin": content}, outputs=("outputs.bin",))
    bytes_of = {f.name: f.bytes for f in image.functions}
    print(f"{'layer':34}{'shape':26}{'onchip':>12}{'CMSIS-NN':>12}{'ratio':>8}  bytes")
    at, logs, worst, wrong = 0, [], (0.0, ""), 0
    groups: dict[str, list[tuple[int, int]]] = {}
    for i, (layer, size) in enumerate(zip(layers, sizes, strict=True)):
        ours, theirs = (ran.files["outputs.bin"][at + j * size : at + (j + 1) * size] for j in (0, 1))
        at += 2 * size
        a, b = (ran.by_mark[2 * i + j].instructions for j in (1, 2))
        same = "equal" if ours == theirs else "DIFFERENT"
        wrong += ours != theirs
        kind = "dw" if isinstance(layer, Depthwise) else ""
        (_, h, w, c), n = layer.input_shapes[0], layer.output_shape[3]
        shape = f"{kind}{layer.kernel[0]}x{layer.kernel[1]}/{layer.stride[1]} {h}x{w} {c}>{n}"
        print(f"{layer.name:34}{shape:26}{a:12,}{b:12,}{a / b:8.3f}  {same}")
        logs.append(math.log(a / b))
        group = f"{'depthwise' if kind else 'convolution'} {layer.kernel[0]}x{layer.kernel[1]}"
        groups.setdefault(group, []).append((a, b))
        worst = max(worst, (a / b, f"{layer.name} {shape}"))
    print(f"\n| layers | number | onchip | CMSIS-NN | geometric mean | worst |\n|{'---|' * 6}")
    for group, pairs in sorted(groups.items()):
        ratios = [a / b for a, b in pairs]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        total = [sum(pair[i] for pair in pairs) for i in (0, 1)]
        print(f"| {group} | {len(pairs)} | {total[0]:,} | {total[1]:,} | {mean:.3f} | {max(ratios):.3f} |")
    code = sum(bytes_of[name] for name in functions)
    print(f"{len(layers)} layers, {len(functions)} kernels in {code:,} bytes of code; {wrong} outputs differ")
    print(f"geometric mean {math.exp(sum(logs) / len(logs)):.3f}; worst {worst[0]:.3f}: {worst[1]}")
    return 1 if wrong else 0


def name_of(shape: object) -> str:
    """A name for a kernel: its shape's own fields."""
    return "k_" + re.sub(r"\W+", "_", "_".join(str(v) for v in vars(shape).values()))


def header(tables: dict[int, dict[str, int]], layers: int) -> str:
    types = {
        CONV: ("conv_kernels", ""),
        PATCH: ("patch_kernels", "int32_t, int32_t, int32_t, int8_t *, "),
        DEPTHWISE: ("depthwise_kernels", "int32_t, int32_t, int32_t, "),
    }
    lines = ['#include "kernels.h"', f"#define LAYERS {layers}"]
    for kind, (name, more) in types.items():
        takes = f"const int8_t *const *, int8_t *, int32_t, int32_t, {more}const int32_t *"
        entries = ", ".join(tables[kind]) or "0"
        lines.append(f"static void (*const {name}[])({takes}) = {{{entries}}};")
    for i in range(2 * layers + 1):
        body = '__asm__ volatile("nop")'
        lines.append(f"__attribute__((noinline)) void onchip_mark_{i}(void) {{ {body}; }}")
    every = ", ".join(f"onchip_mark_{i}" for i in range(2 * layers + 1))
    return "\n".join([*lines, f"static void (*const marks[])(void) = {{{every}}};", ""])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OnchipError as error:
        sys.exit(str(error))
