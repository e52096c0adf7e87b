"""The project as others build it: as C99 and as C++17 without a warning, by CMake, with memory of the
caller's, and what the other build systems' files say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from native import SANITIZED
from test_project import contents

import onchip
from onchip.machines.board import load_board
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run as reference_run
from onchip.microcontroller.made import Builder
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.project.write import project_files, write_project
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments import plan as plan_segments

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
C99, CPP17 = ("-std=c99",), ("-std=c++17", "-xc++")
COMPILERS = [("gcc", C99), ("g++", CPP17), ("clang", C99), ("clang++", CPP17)]


@cache
def small_network() -> Int8Model:
    b = Builder(seed=3)
    x = b.conv(b.input((1, 8, 8, 3)), 6, 3, stride=2)
    x = b.add(b.conv(b.depthwise(x, 3), 6, 1), x)
    return model_of(b.file(b.fully_connected(b.mean(x), 5)), name="tiny", where="tiny")


def project(folder: Path, mode: str = "held") -> dict[str, str]:
    model = small_network()
    plan = plan_segments(network_of(model), 1 << 20, SegmentOptions(input=mode, objective="least"))  # type: ignore[arg-type]
    files = project_files(sources_of(plan, model), model, load_board("nucleo-f411re"))
    write_project(files, folder)
    return files


def run(*command: str, where: Path, given: bytes = b"") -> bytes:
    done = subprocess.run(command, cwd=where, capture_output=True, check=False, input=given)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    return done.stdout


def given_and_wanted() -> tuple[bytes, bytes]:
    given = inputs_of(small_network(), 3)
    wanted = b"".join(reference_run(small_network(), [x])[0].tobytes() for x in given)
    return b"".join(x.tobytes() for x in given), wanted


@pytest.mark.thorough
@pytest.mark.parametrize(("compiler", "language"), COMPILERS, ids=[name for name, _ in COMPILERS])
def test_it_is_c99_and_cpp17_without_a_warning(
    compiler: str, language: tuple[str, ...], tmp_path: Path
) -> None:
    """Built with every fault an abort, it makes the reference's bytes."""
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    project(tmp_path / "p", "once")
    sources = ("examples/host/main.c", "model.c", "kernels.c", "weights.c")
    sane = SANITIZED.split() if not compiler.startswith("clang") else []
    run(compiler, *language, *WARNINGS, *sane, "-I.", *sources, "-o", "built", where=tmp_path / "p")
    given, wanted = given_and_wanted()
    assert run("./built", where=tmp_path / "p", given=given) == wanted


MAIN = """
#include <cstdio>
#include "tiny.h"
alignas(4) static int8_t first[TINY_ARENA_BYTES], second[TINY_ARENA_BYTES];
int main() {
    for (int i = 0;; ++i) {
        tiny_use(i % 2 ? first : second);
        if (std::fread(tiny_input(), 1, TINY_INPUT_BYTES, stdin) != TINY_INPUT_BYTES) return 0;
        tiny_invoke();
        std::fwrite(tiny_output(), 1, TINY_OUTPUT_BYTES, stdout);
    }
}
"""


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_cpp_program_links_it_and_gives_it_memory(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    project(folder)
    (tmp_path / "main.cpp").write_text(MAIN)
    define = ("-DTINY_ARENA_GIVEN", '-DTINY_WEIGHTS_ATTRIBUTE=__attribute__((section(".flash.tiny")))')
    for unit in ("model", "kernels", "weights"):
        run("gcc", *C99, *define, "-c", f"{unit}.c", "-o", f"{unit}.o", where=folder)
    objects = [f"{unit}.o" for unit in ("model", "kernels", "weights")]
    run("g++", *CPP17[:1], *define, "-I.", "../main.cpp", *objects, "-o", "built", where=folder)
    given, wanted = given_and_wanted()
    assert run("./built", where=folder, given=given) == wanted
    assert b".flash.tiny" in run("objdump", "-h", "weights.o", where=folder)


CONVERT = """
#include <stdio.h>
#include "tiny.h"
int main(void) {
    const float s = TINY_INPUT_SCALE;
    const int z = TINY_INPUT_ZERO_POINT;
    const float reals[] = {0.0f, 3.4f * s, -3.6f * s, 1e30f, -1e30f, 0.0f / 0.0f};
    for (int i = 0; i < 6; ++i) printf("%d ", tiny_quantised(reals[i]) - (i < 3 ? z : 0));
    printf("%d\\n", tiny_real((int8_t)(TINY_OUTPUT_ZERO_POINT - 1)) == -TINY_OUTPUT_SCALE);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_real_numbers_become_bytes_and_bytes_real_numbers(tmp_path: Path) -> None:
    project(tmp_path / "p")
    (tmp_path / "p" / "convert.c").write_text(CONVERT)
    run("gcc", *C99, *WARNINGS, "convert.c", "-o", "built", where=tmp_path / "p")
    assert run("./built", where=tmp_path / "p") == b"0 3 -4 127 -128 -128 1\n"


@pytest.mark.thorough
@pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("gcc") is None, reason="needs cmake and gcc"
)
def test_cmake_makes_the_example(tmp_path: Path) -> None:
    project(tmp_path / "p")
    run("cmake", "-S", "p", "-B", "b", where=tmp_path)
    run("cmake", "--build", "b", where=tmp_path)
    given, wanted = given_and_wanted()
    assert run("b/example", where=tmp_path, given=given) == wanted


def test_every_build_names_the_same_sources_and_they_are_there(tmp_path: Path) -> None:
    files = project(tmp_path / "p")
    code = {name for name in files if re.fullmatch(r"\w+\.c", name)}
    headers = {name for name in files if re.fullmatch(r"\w+\.h", name)}
    described = ElementTree.fromstring(files["onchip.tiny.pdsc"])
    named = {file.attrib["name"]: file.attrib["category"] for file in described.iter("file")}
    assert set(named) <= set(files)
    assert {name for name, kind in named.items() if kind == "source"} == code
    assert {name for name, kind in named.items() if kind == "header"} == headers
    listed = json.loads(files["library.json"])["build"]["srcFilter"]
    assert {rule[2:-1] for rule in listed if rule.startswith("+<")} == code
    for cmake in ("CMakeLists.txt", "zephyr/CMakeLists.txt", "Makefile"):
        assert set(re.findall(r"\b\w+\.c\b", files[cmake])) - {"main.c"} == code
    assert "includes=tiny.h" in files["library.properties"]
    assert "config ONCHIP_TINY\n" in files["zephyr/Kconfig"]
    assert contents(tmp_path / "p") == files


def test_the_licence_in_the_folder_is_the_project_s(tmp_path: Path) -> None:
    root = Path(onchip.__file__).parents[2] / "LICENSE"
    if not root.is_file():
        pytest.skip("not run from a checkout")
    assert project(tmp_path / "p")["LICENSE"] == root.read_text()
