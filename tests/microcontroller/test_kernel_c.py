"""The printed C, run on emulated cores and by the host's plain compiler: every byte of RAM as the interpreter
leaves it, with DSP instructions, with vectors and without."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import test_kernel_layers as layers
import test_kernel_library as library
import test_kernel_windows as windows
from hypothesis import HealthCheck, Phase, given, settings
from kernel_cases import Call, recording

from onchip.machines.board import Board
from onchip.machines.cores import CORES, Core
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.kernel_language import Type, c_prelude, c_source
from onchip.microcontroller.kernel_language.ir import Function

PROPERTIES = (
    windows.test_convolutions_make_the_reference_s_bytes_over_their_input,
    windows.test_depthwise_convolutions_make_the_reference_s_bytes_over_their_input,
    windows.test_lines_may_be_columns,
    library.test_any_shape_makes_the_reference_s_bytes_over_its_input,
    layers.test_sums_and_products,
    layers.test_prelu_and_tables,
    layers.test_pools,
    layers.test_means,
    layers.test_a_pool_over_a_map_takes_each_line_as_it_is_made,
    layers.test_softmax,
    layers.test_padding,
    layers.test_concatenation,
    layers.test_resizing,
    layers.test_fully_connected,
)


@cache
def on_board() -> tuple[str, bytes]:
    """The program for a board, and what it puts: the same for every core."""
    return program(recorded(4), ON_BOARD)


def recorded(examples: int) -> list[Call]:
    """The calls of kernels that the interpreter's properties make, the same in every run."""
    few = settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with recording() as calls:
        for claim in PROPERTIES:
            few(given(**stated(claim)._given_kwargs)(unsettled(claim)))()
    return calls


def stated(claim: Any) -> Any:
    """What hypothesis keeps of a property."""
    return claim.hypothesis


def unsettled(claim: Any) -> Callable[..., None]:
    """The property itself, without the settings that it has as a test."""

    def again(**drawn: Any) -> None:
        stated(claim).inner_test(**drawn)

    return again


def words(values: Any) -> str:
    return ", ".join(f"(int32_t){int(v) & 0xFFFFFFFF}u" for v in values) or "0"


def program(calls: list[Call], put: str) -> tuple[str, bytes]:
    """A C program that makes the same calls, and the bytes that it must put: all of RAM after each case."""
    functions: dict[Function, str] = {}
    source, body, expected = [], [], b""
    for i, one in enumerate(calls):
        new = one.function not in functions
        name = functions.setdefault(one.function, f"kernel{len(functions)}")
        if new:
            text = c_source(one.function).replace(f"void {one.function.name}(", f"void {name}(")
            source.append(text.replace("void ", "static __attribute__((noinline)) void ", 1))
        begins = i == 0 or calls[i - 1].ram is not one.ram
        if begins:
            initial = ", ".join(str(b - 256 if b > 127 else b) for b in one.before)
            source.append(f"static int8_t ram{i}[] = {{{initial}}};")
            body.append(f"    ram = ram{i};")
        values = []
        for parameter in one.function.parameters:
            value = one.arguments[parameter.name]
            match parameter.type:
                case Type.INT:
                    values.append(str(value))
                case Type.FLASH:
                    source.append(f"static const int32_t words{i}[] = {{{words(value)}}};")
                    values.append(f"words{i}")
                case Type.LINES:
                    each = ", ".join(f"ram + ({line.address})" for line in value)
                    body.append(f"    {{ const int8_t *const lines[] = {{{each}}};")
                    values.append("lines")
                case _:
                    values.append("0" if value is None else f"ram + ({value.address})")
        closes = "}" if Type.LINES in {p.type for p in one.function.parameters} else ""
        body.append(f"    {name}({', '.join(values)}); {closes}")
        if i + 1 == len(calls) or calls[i + 1].ram is not one.ram:
            body.append(f"    put(ram, {len(one.ram.bytes)});")
            expected += bytes(one.ram.bytes)
    main = "int main(void)\n{\n    int8_t *volatile ram;\n    opened();\n" + "\n".join(body)
    text = "\n".join([c_prelude(), put, *source, main, "    return 0;", "}", ""])
    return text, expected


ON_BOARD = """#include "host.h"
static int file;
static void opened(void) { file = host_open_to_write("out.bin"); }
static void put(const int8_t *bytes, int size) { host_write(file, bytes, (uint32_t)size); }
"""
ON_HOST = """#include <stdio.h>
static void opened(void) {}
static void put(const int8_t *bytes, int size) { fwrite(bytes, 1, (size_t)size, stdout); }
"""


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no cross compiler")
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="no emulator")
@pytest.mark.parametrize(
    ("core", "plain"),
    [
        ("cortex-m4", False),
        ("cortex-m4", True),
        ("cortex-m55", False),
        ("cortex-m0plus", False),
        ("cortex-m3", False),
    ],
)
@pytest.mark.slow
def test_the_emulated_core_leaves_the_interpreter_s_bytes(core: Core, plain: bool, tmp_path: Path) -> None:
    text, expected = on_board()
    defines = ("ONCHIP_PLAIN_C",) if plain else ()
    board = Board("test", core, 1 << 20, CORES[core].machine.flash.bytes)
    image = build({"main.c": text}, board, tmp_path, defines=defines)
    assert emulate(image, outputs=("out.bin",), count=False).files["out.bin"] == expected


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
@pytest.mark.slow
def test_any_compiler_leaves_the_interpreter_s_bytes(tmp_path: Path) -> None:
    """Plain C, every warning an error; undefined behaviour stops the program."""
    text, expected = program(recorded(4), ON_HOST)
    (tmp_path / "main.c").write_text(text)
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    sane = ["-fsanitize=undefined", "-fno-sanitize=pointer-overflow", "-fno-sanitize-recover=all"]
    subprocess.run(["cc", *flags, *sane, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout == expected


@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="no cross compiler")
@pytest.mark.parametrize("how", ["-O3", "-Os", "-O2 -fno-omit-frame-pointer", "-O2 -ffixed-r9", "-O0"])
@pytest.mark.parametrize("core", ["cortex-m0plus", "cortex-m3"])
def test_the_loops_in_assembler_compile_however_the_user_compiles(
    core: str, how: str, tmp_path: Path
) -> None:
    """Thumb-1 has few registers: compilers for size, or with one of them taken, give fewer."""
    sums = ", ".join(f"s + {i}" for i in range(4))
    body = f"dot_words_1x2(s, s + 1, x, &w, 64);\n    dot_words_1x4({sums}, x, &w, 64);"
    text = f"void f(int32_t *s, const int8_t *x, const int32_t *w)\n{{\n    {body}\n}}\n"
    (tmp_path / "main.c").write_text(
        c_prelude() + "\nvoid f(int32_t *, const int8_t *, const int32_t *);\n" + text
    )
    command = ["arm-none-eabi-gcc", f"-mcpu={core}", "-mthumb", *how.split()]
    subprocess.run([*command, "-Wall", "-Werror", "-c", "main.c"], cwd=tmp_path, check=True)
