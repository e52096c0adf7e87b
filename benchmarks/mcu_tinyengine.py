"""Kernels beside TinyEngine's: executed instructions, loads and stores on an emulated Cortex-M7.

    git clone --recursive https://github.com/mit-han-lab/tinyengine
    .venv/bin/python benchmarks/mcu_tinyengine.py --tinyengine tinyengine MODEL.tflite ...

Pointwise convolutions, depthwise layers of stride 1 and sums of a network, each through onchip's kernel, row
by row as a program runs it, and through the function for which TinyEngine's code generator writes a call
(integer requantisation, its default), its depthwise kernels from its own template. Same compiler, same flags,
same input; every output byte compared. No line of TinyEngine is part of onchip: it is read from the checkout.
"""

from __future__ import annotations

import argparse
import runpy
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onchip.base.errors import OnchipError
from onchip.machines.board import Board, Core
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.emulator.counting import Counts
from onchip.microcontroller.emulator.emulate import Emulation
from onchip.microcontroller.int8.model import Add, Conv, Depthwise, Layer
from onchip.microcontroller.kernel_language import c_prelude, c_prototype, c_source
from onchip.microcontroller.kernels.use import KernelUse, kernel_for
from onchip.microcontroller.load import int8_model

__all__ = ["Beside", "beside", "columns", "random_pointwise", "runs_on_tinyengine"]

HERE = Path(__file__).resolve().parent
FLAGS = ("-O3", "-std=c11", "-ffunction-sections", "-fdata-sections", "-w")
UNROLLED = (8, 16, 24, 48)
"""Channels in for which the generator calls a kernel that is unrolled by hand."""
SOURCES = (
    "src/kernels/int_forward_op/convolve_1x1_s8.c",
    *(f"src/kernels/int_forward_op/convolve_1x1_s8_ch{n}.c" for n in UNROLLED),
    "src/kernels/int_forward_op/mat_mult_kernels.c",
    "src/kernels/int_forward_op/add.c",
    "third_party/CMSIS/CMSIS/NN/Source/ConvolutionFunctions/arm_nn_mat_mult_kernel_s8_s16_reordered.c",
)
FLOAT_SOURCES = (
    "src/kernels/fp_requantize_op/convolve_1x1_s8_fpreq.c",
    *(f"src/kernels/fp_requantize_op/convolve_1x1_s8_ch{n}_fpreq.c" for n in UNROLLED),
    "src/kernels/fp_requantize_op/mat_mul_kernels_fpreq.c",
    "src/kernels/fp_requantize_op/add_fpreq.c",
)
INCLUDE = (
    "include",
    "third_party/CMSIS/CMSIS/NN/Include",
    "third_party/CMSIS/CMSIS/DSP/Include",
    "third_party/CMSIS/CMSIS/Core/Include",
)
TEMPLATE = "code_generator/codetemplate/depthwiseTemplate.py"
POINTWISE, DEPTHWISE, ADD = range(3)
SHAPE = "uint16_t, uint16_t, uint16_t"
TAKES_POINTWISE = (
    f"const q7_t *, {SHAPE}, const q7_t *, const int32_t *, const int32_t *, const int32_t *,"
    f" int32_t, int32_t, int32_t, int32_t, q7_t *, {SHAPE}, q15_t *"
)
TAKES_FLOAT = (
    f"const q7_t *, {SHAPE}, const q7_t *, const int32_t *, const float *, int32_t, int32_t, int32_t,"
    f" int32_t, q7_t *, {SHAPE}, q15_t *"
)
TAKES_FLOAT_DEPTHWISE = (
    f"q7_t *, {SHAPE}, const q7_t *, const int32_t *, const int32_t *, const float *,"
    f" int32_t, int32_t, int32_t, int32_t, q7_t *, {SHAPE}, q15_t *, q7_t"
)
TAKES_DEPTHWISE = (
    f"q7_t *, {SHAPE}, const q7_t *, const int32_t *, const int32_t *, const int32_t *, const int32_t *,"
    f" int32_t, int32_t, int32_t, int32_t, q7_t *, {SHAPE}, q15_t *, q7_t"
)


@dataclass(frozen=True)
class Beside:
    """A layer by both kernels: counts, and how many bytes of their outputs differ."""

    layer: Layer
    ours: Counts
    theirs: Counts
    different: int

    @property
    def equal(self) -> bool:
        return not self.different


def runs_on_tinyengine(layer: Layer) -> bool:
    """Return whether TinyEngine has a kernel here for the layer."""
    match layer:
        case Conv():
            plain = layer.kernel == (1, 1) and layer.stride == (1, 1) and layer.groups == 1
            return plain and layer.input_shapes[0][3] % 4 == 0 and layer.output_shape[3] % 2 == 0
        case Depthwise():
            same = layer.stride == layer.dilation == (1, 1) and layer.depth_multiplier == 1
            return (
                same and layer.kernel[0] == layer.kernel[1] and set(layer.padding) == {layer.kernel[0] // 2}
            )
        case Add():
            return layer.constant is None and layer.input_shapes[0] == layer.input_shapes[1]
    return False


def random_pointwise(side: int, channels: int, outputs: int) -> Conv:
    """Return a pointwise convolution of random weights."""
    rng = np.random.default_rng(0)
    return Conv(
        name=f"{side}x{side} {channels}>{outputs}",
        inputs=(0,),
        output=1,
        input_shapes=((1, side, side, channels),),
        output_shape=(1, side, side, outputs),
        weights=rng.integers(-127, 128, (outputs, 1, 1, channels)).astype(np.int8),
        bias=rng.integers(-4000, 4000, outputs).astype(np.int32),
        multiplier=rng.integers(1 << 30, (1 << 31) - 1, outputs).astype(np.int32),
        shift=np.full(outputs, -7, np.int32),
        input_offset=3,
        output_offset=-5,
        low=-128,
        high=127,
    )


def beside(
    layers: Sequence[Layer],
    checkout: Path,
    core: Core = "cortex-m7",
    ours: Callable[[Layer], KernelUse] = kernel_for,
    *,
    floats: bool = False,
) -> list[Beside]:
    """Return all layers by both; raises `OnchipError` where the checkout lacks something.

    With `floats`, TinyEngine's kernels that scale sums in floating point, which its generator takes where
    asked to; they round towards zero, so that bytes differ.
    """
    ran = _emulated(layers, checkout, core, ours, floats)
    found, at = [], 0
    for i, layer in enumerate(layers):
        size = int(np.prod(layer.output_shape))
        one, other = (ran.files["outputs.bin"][at + j * size : at + (j + 1) * size] for j in (0, 1))
        at += 2 * size
        different = sum(a != b for a, b in zip(one, other, strict=True))
        found.append(Beside(layer, ran.by_mark[2 * i + 1], ran.by_mark[2 * i + 2], different))
    return found


def columns(layer: Conv, checkout: Path, core: Core = "cortex-m7") -> Counts:
    """Return what TinyEngine's pointwise convolution spends outside of its product of matrices: the columns
    of pixels that it writes in 16 bits first."""
    ran = _emulated([layer], checkout, core, kernel_for, floats=False)
    return sum((c for name, c in ran.by_function.items() if name.startswith("convolve_1x1_s8")), Counts())


def _emulated(
    layers: Sequence[Layer],
    checkout: Path,
    core: Core,
    kernel: Callable[[Layer], KernelUse],
    floats: bool,
) -> Emulation:
    engine = checkout / "TinyEngine"
    units = FLOAT_SOURCES if floats else SOURCES
    missing = [str(p) for p in (*units, *INCLUDE) if not (engine / p).exists()]
    if missing or not (checkout / TEMPLATE).is_file():
        raise OnchipError(
            f"{checkout} is no checkout of TinyEngine with its submodule: no {(missing or [TEMPLATE])[0]}"
        )
    tables: dict[str, dict[str, int]] = {
        name: {} for name in ("plain", "our depthwise", "pointwise", "depthwise")
    }
    functions, templates, content = {}, {}, b""
    rng = np.random.default_rng(1)
    most = [4, 4, 4]
    for layer in layers:
        use = kernel(layer)
        functions[use.function.name] = use.function
        ours = "our depthwise" if isinstance(layer, Depthwise) else "plain"
        index = tables[ours].setdefault(use.function.name, len(tables[ours]))
        their_index = 0
        if isinstance(layer, Conv):
            channels = layer.input_shapes[0][3]
            name = "convolve_1x1_s8" + (f"_ch{channels}" if channels in UNROLLED else "")
            name += "_fpreq" if floats else ""
            their_index = tables["pointwise"].setdefault(name, len(tables["pointwise"]))
        elif isinstance(layer, Depthwise):
            side = layer.kernel[0]
            name = f"depthwise_kernel{side}x{side}_stride1_inplace_CHW" + ("_fpreq" if floats else "")
            templates[name] = side
            their_index = tables["depthwise"].setdefault(name, len(tables["depthwise"]))
        given, size = (int(np.prod(s)) for s in (layer.input_shapes[0], layer.output_shape))
        content += _head(layer, index, their_index, len(use.words))
        content += rng.integers(-128, 128, given).astype(np.int8).tobytes()
        if isinstance(layer, Add):
            content += rng.integers(-128, 128, given).astype(np.int8).tobytes()
        else:
            content += _weights(layer)
            most[1] = max(most[1], layer.weights.size)
        content += np.array(use.words, "<i8").astype("<i4").tobytes()
        most[0], most[2] = max(most[0], given, size), max(most[2], len(use.words))
    depthwise = TAKES_FLOAT_DEPTHWISE if floats else TAKES_DEPTHWISE
    sources = {
        "main.c": (HERE / "mcu_tinyengine.c").read_text(),
        "kernels.c": '#include "kernels.h"\n\n' + "\n".join(c_source(f) for f in functions.values()),
        "kernels.h": c_prelude() + "".join(c_prototype(f) + ";\n" for f in functions.values()),
        "layers.h": _tables(tables, len(layers), most, floats),
        "genInclude.h": "".join(f"tinyengine_status {name}({depthwise});\n" for name in templates),
    }
    sources |= {f"te_{Path(p).name}": (engine / p).read_text() for p in units}
    made = runpy.run_path(str(checkout / TEMPLATE))["depthwiseInplace"] if templates else None
    for name, side in templates.items():
        text = made(side, side, side // 2, side // 2, 1, fp_requantize=floats)._genCode()
        sources[f"{name}.c"] = '#include "arm_nnfunctions.h"\n#include "arm_nnsupportfunctions.h"\n' + text
    board = Board("bench", core, 4 << 20, 4 << 20)
    with tempfile.TemporaryDirectory(prefix="onchip-") as folder:
        image = build(
            sources,
            board,
            Path(folder),
            flags=FLAGS,
            float_abi="hard" if floats else "soft",
            defines=("FLOAT_SCALES",) if floats else (),
            include=(Path(folder), *(engine / path for path in INCLUDE)),
            stack_bytes=16384,
        )
        return emulate(image, {"layers.bin": content}, outputs=("outputs.bin",), memory=True)


def _head(layer: Layer, ours: int, theirs: int, words: int) -> bytes:
    _, height, width, in_c = layer.input_shapes[0]
    kind = POINTWISE if isinstance(layer, Conv) else DEPTHWISE if isinstance(layer, Depthwise) else ADD
    shape = (kind, ours, theirs, height, width, in_c, layer.output_shape[3])
    if isinstance(layer, Add):
        (a, b), (ma, mb), (sa, sb) = layer.input_offsets, layer.multipliers, layer.shifts
        more = (layer.left_shift, b, mb, sb, ma, sa, layer.multiplier, layer.shift)
        window, offset = (1, 0), a
    else:
        assert isinstance(layer, Conv | Depthwise)
        more, window, offset = (0,) * 8, (layer.kernel[0], layer.padding[0]), layer.input_offset
    numbers = (*shape, *window, offset, layer.output_offset, layer.low, layer.high, words, *more)
    return struct.pack(f"<{len(numbers)}i", *numbers)


def _weights(layer: Conv | Depthwise) -> bytes:
    """Return weights, biases, multipliers and shifts as TinyEngine takes them: a depthwise layer's weights
    channel by channel, with the input's zero point in its biases, as its kernel pads with the zero point."""
    weights, bias = layer.weights, layer.bias.astype(np.int64)
    if isinstance(layer, Depthwise):
        weights = weights.transpose(2, 0, 1)
        bias = bias + layer.input_offset * weights.astype(np.int64).sum(axis=(1, 2))
    found = np.ascontiguousarray(weights).tobytes() + bias.astype("<i4").tobytes()
    for values in (layer.multiplier, layer.shift):
        found += np.broadcast_to(values, layer.bias.shape).astype("<i4").tobytes()
    return found


def _tables(tables: dict[str, dict[str, int]], layers: int, most: Sequence[int], floats: bool) -> str:
    lines = ['#include "kernels.h"', f"#define LAYERS {layers}"]
    names = ("MOST_BYTES", "MOST_WEIGHTS", "MOST_WORDS")
    lines += [f"#define {name} {size}" for name, size in zip(names, most, strict=True)]
    takes = "const int8_t *const *, int8_t *, int32_t, int32_t, "
    types = {
        "plain": ("void", "plain_kernels", takes + "const int32_t *"),
        "our depthwise": ("void", "depthwise_kernels", takes + "int32_t, int32_t, int32_t, const int32_t *"),
        "pointwise": ("tinyengine_status", "their_pointwise", TAKES_FLOAT if floats else TAKES_POINTWISE),
        "depthwise": (
            "tinyengine_status",
            "their_depthwise",
            TAKES_FLOAT_DEPTHWISE if floats else TAKES_DEPTHWISE,
        ),
    }
    for kind, (gives, name, takes) in types.items():
        lines.append(f"static {gives} (*const {name}[])({takes}) = {{{', '.join(tables[kind]) or '0'}}};")
    for i in range(2 * layers + 1):
        lines.append(f'__attribute__((noinline)) void onchip_mark_{i}(void) {{ __asm__ volatile("nop"); }}')
    every = ", ".join(f"onchip_mark_{i}" for i in range(2 * layers + 1))
    return "\n".join([*lines, f"static void (*const marks[])(void) = {{{every}}};", ""])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--tinyengine", type=Path, required=True, metavar="DIR", help="a checkout")
    parser.add_argument("--core", choices=("cortex-m4", "cortex-m7"), default="cortex-m7")
    given = parser.parse_args()
    layers = [
        layer for name in given.models for layer in int8_model(name).layers if runs_on_tinyengine(layer)
    ]
    if not layers:
        parser.error("no model with layers that TinyEngine runs")
    wrong = 0
    counted = "instructions | loads | stores"
    print(f"| layer | onchip: {counted} | TinyEngine: {counted} | bytes |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for one in beside(layers, given.tinyengine, given.core):
        counts = [n for c in (one.ours, one.theirs) for n in (c.instructions, c.loads, c.stores)]
        wrong += not one.equal
        same = "equal" if one.equal else "DIFFERENT"
        print(f"| {one.layer.name} | {' | '.join(f'{n:,}' for n in counts)} | {same} |")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OnchipError as error:
        sys.exit(str(error))
