"""The printed C, run on an emulated Cortex-M4 and by the host's plain compiler: the reference's bytes, with
DSP instructions and without."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kernel_cases import Windowed, random_input, windowed

from onchip.board import Board
from onchip.mcu.kernel import Function, c_prelude, c_source
from onchip.mcu.kernels.conv import conv, conv_words
from onchip.mcu.kernels.depthwise import depthwise, depthwise_words
from onchip.mcu.kernels.windows import conv_shape, depthwise_shape
from onchip.mcu.model import Conv
from onchip.mcu.reference import layer_output
from onchip.run.mcu import build, emulate

BOARD = Board("test", "cortex-m4", 1 << 19, 1 << 20)


def c_case(layer: Windowed, pixels: int, index: int) -> tuple[str, int]:
    """A C function `case<index>` that makes the layer's whole output and hands it to `put`, and its bytes."""
    if isinstance(layer, Conv):
        shape = conv_shape(layer, pixels=pixels, reverse=index % 2 == 1)
        function, words = conv(f"kernel{index}", shape), conv_words(layer)
    else:
        function = depthwise(f"kernel{index}", depthwise_shape(layer, reverse=index % 2 == 1))
        words = depthwise_words(layer)
    _, rows, width, depth = layer.input_shapes[0]
    _, made_rows, made_width, outputs = layer.output_shape
    size = made_rows * made_width * outputs
    given = {"lines": "lines", "out": f"out + y * {made_width * outputs}", "x0": "0", "x1": str(made_width)}
    given |= {"first": "first", "last": "last", "width": str(width), "patch": "patch", "weights": "weights"}
    call = ", ".join(given[p.name] for p in function.parameters)
    return (
        c_source(function)
        + f"""
static void case{index}(void)
{{
    static const int32_t weights[] = {{{", ".join(str(int(w) & 0xFFFFFFFF) + "u" for w in words)}}};
    static const int8_t in[] = {{{", ".join(map(str, random_input(layer).ravel().tolist()))}}};
    static int8_t out[{size}], patch[4096];
    (void)patch;
    for (int y = 0; y < {made_rows}; ++y) {{
        const int8_t *lines[{layer.kernel[0]}];
        int first = {layer.kernel[0]}, last = 0;
        for (int i = 0; i < {layer.kernel[0]}; ++i) {{
            const int row = y * {layer.stride[0]} - {layer.padding[0]} + i * {layer.dilation[0]};
            lines[i] = 0;
            if (row >= 0 && row < {rows}) {{
                lines[i] = in + row * {width * depth};
                first = i < first ? i : first;
                last = i + 1;
            }}
        }}
        if (last == 0)
            first = 0;
        (void)first;
        kernel{index}({call});
    }}
    put(out, {size});
}}
""",
        size,
    )


def program(layers: list[Windowed], put: str) -> str:
    cases = "\n".join(c_case(layer, 1 + i % 3, i)[0] for i, layer in enumerate(layers))
    calls = "\n".join(f"    case{i}();" for i in range(len(layers)))
    return f"{c_prelude()}\n{put}\n{cases}\nint main(void)\n{{\n    opened();\n{calls}\n    return 0;\n}}\n"


ON_BOARD = """#include "host.h"
static int file;
static void opened(void) { file = host_open_to_write("out.bin"); }
static void put(const int8_t *bytes, int size) { host_write(file, bytes, (uint32_t)size); }
"""
ON_HOST = """#include <stdio.h>
static void opened(void) {}
static void put(const int8_t *bytes, int size) { fwrite(bytes, 1, (size_t)size, stdout); }
"""


def drawn(count: int) -> list[Windowed]:
    """So many random layers, the same in every run."""
    layers: list[Windowed] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(layer=st.one_of(windowed(depthwise=False), windowed(depthwise=True)))
    def draw(layer: Windowed) -> None:
        layers.append(layer)

    draw()
    return layers[:count]


def expected(layers: list[Windowed]) -> bytes:
    return b"".join(layer_output(layer, [random_input(layer)]).tobytes() for layer in layers)


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no cross compiler")
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="no emulator")
@pytest.mark.parametrize("plain", [False, True], ids=["dsp", "plain"])
@pytest.mark.slow
def test_the_emulated_core_makes_the_reference_s_bytes(plain: bool, tmp_path: Path) -> None:
    layers = drawn(24)
    defines = ("ONCHIP_PLAIN_C",) if plain else ()
    image = build({"main.c": program(layers, ON_BOARD)}, BOARD, tmp_path, defines=defines)
    ran = emulate(image, outputs=("out.bin",), count=False)
    assert ran.files["out.bin"] == expected(layers)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_any_compiler_makes_the_reference_s_bytes(tmp_path: Path) -> None:
    """Plain C, every warning an error; undefined behaviour stops the program."""
    layers = drawn(12)
    (tmp_path / "main.c").write_text(program(layers, ON_HOST))
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    sane = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["cc", *flags, *sane, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, check=True)
    assert np.array_equal(np.frombuffer(done.stdout, np.int8), np.frombuffer(expected(layers), np.int8))


def test_a_shape_is_a_function_not_a_layer() -> None:
    """Layers that differ in numbers alone share their code."""
    layers = [layer for layer in drawn(40) if isinstance(layer, Conv)]
    functions: dict[object, Function] = {}
    for layer in layers:
        shape = conv_shape(layer)
        functions.setdefault(shape, conv("k", shape))
        assert conv("k", conv_shape(layer)) == functions[shape]
