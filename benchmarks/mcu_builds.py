"""The written project in other build systems: built with each, programs run here and on an emulated M4.

    .venv/bin/python benchmarks/mcu_builds.py [--python PYTHON] [--reentrant] [MODEL ...]

A MODEL is a file or `made:NAME`; several with commas between them become one project. `--python` is an
interpreter with `platformio`, `scons`, `idf-component-manager` and `kconfiglib` (PyPI), `arduino-builder` is
Debian's. The folder is compiled as C99 and as C++17 by gcc and clang, warnings being errors, and runs under
sanitizers. PlatformIO and Arduino have boards and cores of ours here, which compile for Cortex-M4 and start
in QEMU; ESP-IDF and Zephyr are tried with stand-ins for the functions of their CMake. Every program's output
bytes are compared with the reference's. What is not installed is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from xml.etree import ElementTree

import onchip
from onchip.machines.board import load_board
from onchip.microcontroller.emulator import find_toolchain
from onchip.microcontroller.emulator.link import linker_script
from onchip.microcontroller.emulator.program import program_main
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.project.several import several_files
from onchip.microcontroller.project.write import project_files, write_project

BOARD = load_board("nucleo-f411re")
FLAGS = "-mcpu=cortex-m4 -mthumb -O2 -ffunction-sections"
LINK = "-mcpu=cortex-m4 -mthumb -nostartfiles --specs=nano.specs -Wl,--gc-sections"

WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Werror"
SANE = "-g -fsanitize=address,undefined -fno-sanitize-recover=all"
LANGUAGES = {"C99": ("gcc", "clang", "-std=c99"), "C++17": ("g++", "clang++", "-std=c++17 -xc++")}


@dataclass(frozen=True)
class Project:
    """A written project: how a program uses it, what it is given, and what it is to make."""

    name: str
    files: Mapping[str, str]
    main: str
    given: bytes
    wanted: bytes

    def save(self, folder: Path) -> None:
        write_project(self.files, folder)

    @property
    def sources(self) -> list[str]:
        return [name for name in self.files if name.endswith(".c") and "/" not in name]


def project_of(paths: list[str], *, reentrant: bool) -> Project:
    """Plan and write the network, or the networks in one array."""
    if len(paths) == 1:
        made = onchip.mcu(paths[0], BOARD, reentrant=reentrant)
        models, sources, header, arena = [made.model], [made.sources], f"{made.sources.name}.h", ""
        name, files = made.sources.name, project_files(made.sources, made.model, BOARD)
    else:
        all_of = onchip.mcu_several(paths, BOARD, reentrant=reentrant)
        models, sources, name = [*all_of.models], [*all_of.sources.networks], all_of.sources.name
        header, arena = all_of.sources.header, all_of.sources.arena
        files = several_files(all_of.sources, models, BOARD)
    inputs = [inputs_of(model, 1)[0] for model in models]
    wanted = b"".join(Session(model).bytes_of(model, x) for model, x in zip(models, inputs, strict=True))
    main = "#define RUNS 1\n" + program_main(sources, header, layers=0, marks=False, arena=arena)
    return Project(name, files, main, b"".join(x.tobytes() for x in inputs), wanted)


def ran(*command: object, where: Path, env: dict[str, str] | None = None) -> str:
    """Run a command; what it printed, or an end with its last lines."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=where, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=3600
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout + done.stderr


def firmware(folder: Path) -> None:
    """Write the start-up code of the emulated core, and where the linker puts things."""
    folder.mkdir(parents=True, exist_ok=True)
    files = resources.files("onchip.microcontroller.emulator") / "firmware"
    for name in ("start.c", "start_arm.c", "guard_arm.h", "host.c", "host.h"):
        (folder / name).write_text((files / name).read_text())


def emulated(program: Path, given: bytes, wanted: bytes) -> str:
    """Run the program; whether its output bytes are the reference's."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "in").write_bytes(given)
        machine = BOARD.core_type.machine.name
        ran(
            *(find_toolchain().qemu, "-M", machine, "-nographic", "-monitor", "none", "-serial", "none"),
            *("-semihosting-config", "enable=on,target=native", "-kernel", program),
            where=Path(name),
        )
        return "equal" if (Path(name) / "out").read_bytes() == wanted else "DIFFERENT"


def platformio(python: Path, project: Path, folder: Path, name: str, main: str) -> Path:
    """Build with `pio run`, for a platform of ours; the program."""
    platform, home, own = folder / "platform", folder / "home", folder / "own"
    (platform / "builder").mkdir(parents=True)
    (platform / "boards").mkdir()
    package = {"tool-scons": {"type": "scons", "version": "*", "optional": False}}
    about = {"name": "emulated", "title": "emulated", "version": "1.0.0", "packages": package}
    (platform / "platform.json").write_text(json.dumps(about))
    (platform / "platform.py").write_text(
        "from platformio.public import PlatformBase\nclass EmulatedPlatform(PlatformBase):\n    pass\n"
    )
    board = {"name": "m4", "vendor": "-", "url": "https://localhost/", "frameworks": []}
    board |= {"build": {"cpu": "cortex-m4", "mcu": "m4"}}
    board |= {"upload": {"maximum_size": 1 << 20, "maximum_ram_size": 1 << 17}}
    (platform / "boards" / "m4.json").write_text(json.dumps(board))
    (platform / "builder" / "main.py").write_text(
        "from SCons.Script import DefaultEnvironment\nenv = DefaultEnvironment()\n"
        "env.Replace(CC='arm-none-eabi-gcc', CXX='arm-none-eabi-g++', AR='arm-none-eabi-ar',"
        " RANLIB='arm-none-eabi-ranlib', LINK='arm-none-eabi-gcc')\n"
        f"env.Append(CCFLAGS={FLAGS.split()}, LINKFLAGS={[*LINK.split(), '-T', str(folder / 'board.ld')]})\n"
        "env.BuildProgram()\n"
    )
    firmware(own / "src")
    (own / "src" / "main.c").write_text(main)
    shutil.copytree(project, own / "lib" / name)
    (own / "platformio.ini").write_text(f"[env:m4]\nplatform = symlink://{platform}\nboard = m4\n")
    tool = home / "packages" / "tool-scons"
    where = ran(python, "-c", "import SCons; print(SCons.__path__[0])", where=folder).strip()
    shutil.copytree(where, tool / "SCons")
    shutil.copy(python.parent / "scons", tool / "scons.py")
    version = {"name": "tool-scons", "version": "4.41101.0"}
    (tool / "package.json").write_text(json.dumps(version))
    spec = {"owner": "platformio", "id": None, "name": "tool-scons", "requirements": None, "uri": None}
    (tool / ".piopm").write_text(json.dumps({"type": "tool", **version, "spec": spec}))
    ran(python.parent / "pio", "run", where=own, env={"PLATFORMIO_CORE_DIR": str(home)})
    return own / ".pio" / "build" / "m4" / "program"


def arduino(project: Path, folder: Path, name: str, main: str) -> Path:
    """Build the library's sketch, and a sketch that compares, with `arduino-builder`; the second program."""
    core = folder / "hardware" / "emulated" / "m4"
    firmware(core / "cores" / "plain")
    (core / "boards.txt").write_text("m4.name=M4\nm4.build.core=plain\nm4.upload.maximum_size=1000000\n")
    macros = "-w -x c++ -E -CC {includes} {source_file} -o {preprocessed_file_path}"
    objects = "{object_files} {archive_file_path} -o {build.path}/{build.project_name}.elf"
    (core / "platform.txt").write_text(
        "name=emulated\nversion=1.0\n"
        f"recipe.c.o.pattern=arm-none-eabi-gcc {FLAGS} -c {{includes}} {{source_file}} -o {{object_file}}\n"
        f"recipe.cpp.o.pattern=arm-none-eabi-g++ {FLAGS} -fno-exceptions -fno-rtti -c {{includes}}"
        " {source_file} -o {object_file}\n"
        "recipe.ar.pattern=arm-none-eabi-ar rcs {archive_file_path} {object_file}\n"
        f"recipe.c.combine.pattern=arm-none-eabi-gcc {LINK} -T {folder / 'board.ld'} {objects}\n"
        "recipe.size.pattern=arm-none-eabi-size {build.path}/{build.project_name}.elf\n"
        "recipe.size.regex=\\s+([0-9]+)\n"
        f"recipe.preproc.macros=arm-none-eabi-g++ {FLAGS} {macros}\n"
    )
    (core / "cores" / "plain" / "Arduino.h").write_text(
        "#pragma once\n#include <stdint.h>\n"
        "struct Printer { void begin(long) {} void println(int) {} };\nextern Printer Serial;\n"
        "static inline void delay(long) {}\nvoid setup();\nvoid loop();\n"
    )
    (core / "cores" / "plain" / "main.cpp").write_text(
        '#include "Arduino.h"\nPrinter Serial;\nint tried();\n'
        "__attribute__((weak)) int tried() { return 0; }\n"
        'extern "C" int main() { if (&tried) return tried(); for (setup();;) loop(); }\n'
    )
    shutil.copytree(project, folder / "libraries" / name)
    sketch = folder / "tried" / "tried.ino"
    sketch.parent.mkdir()
    body = main.replace('#include "host.h"', 'extern "C" {\n#include "host.h"\n}')
    sketch.write_text(f"{body}\nvoid setup() {{}}\nvoid loop() {{}}\n")
    for source in (folder / "libraries" / name / "examples" / name / f"{name}.ino", sketch):
        out = folder / "out" / source.stem
        out.mkdir(parents=True)
        ran(
            *("arduino-builder", "-hardware", "/usr/share/arduino-builder"),
            *("-hardware", folder / "hardware", "-tools", "/usr/share/arduino-builder"),
            *("-libraries", folder / "libraries", "-fqbn", "emulated:m4:m4", "-build-path", out, source),
            where=folder,
        )
    return folder / "out" / "tried" / "tried.ino.elf"


STAND_INS = {
    "ESP-IDF": """
set(ESP_PLATFORM 1)
function(idf_component_register)
  cmake_parse_arguments(A "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
  add_library(component STATIC ${A_SRCS})
  target_include_directories(component PUBLIC ${A_INCLUDE_DIRS})
endfunction()
add_subdirectory(PROJECT component)
""",
    "Zephyr": """
set(CONFIG_ONCHIP_BIG y)
file(WRITE ${CMAKE_BINARY_DIR}/none.c "int none;")
function(zephyr_library_named name)
  set(LIBRARY ${name} PARENT_SCOPE)
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/none.c)
endfunction()
function(zephyr_library_sources)
  target_sources(${LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_include_directories)
  include_directories(${ARGN})
endfunction()
add_subdirectory(PROJECT/zephyr module)
""",
}


def here(project: Project, folder: Path) -> int:
    """Compile the folder as C99 and C++17 with gcc and clang, run it under sanitizers; how many are wrong."""
    wrong = 0
    for language, (*compilers, flags) in LANGUAGES.items():
        for compiler in compilers:
            if shutil.which(compiler) is None:
                print(f"  {language}: {compiler} is not installed")
                continue
            sane = [] if compiler.startswith("clang") else SANE.split()
            built = folder / f"{language}-{compiler}"
            of = ["examples/host/main.c", *project.sources]
            ran(
                *(compiler, *flags.split(), *WARNINGS.split(), *sane, "-O1", "-I.", *of, "-o", built),
                where=folder / "project",
            )
            done = subprocess.run([built], input=project.given, capture_output=True, check=False)
            same = done.returncode == 0 and done.stdout == project.wanted
            wrong += not same
            how = "under sanitizers, " if sane else ""
            print(f"  {language}, {compiler}: no warning, ran {how}bytes {'equal' if same else 'DIFFERENT'}")
    return wrong


def tried(paths: list[str], python: Path | None, *, reentrant: bool) -> int:
    """Build a project with everything that is here; how many programs are wrong."""
    project = project_of(paths, reentrant=reentrant)
    name, given, wanted, text = project.name, project.given, project.wanted, project.main
    cmake = str(Path(sys.executable).parent / "cmake")
    print(", ".join(Path(path).name for path in paths) + (", re-entrant" if reentrant else ""))
    with tempfile.TemporaryDirectory(prefix="onchip-builds-") as scratch:
        folder = Path(scratch)
        project.save(folder / "project")
        wrong = here(project, folder)
        (folder / "board.ld").write_text(linker_script(8192, BOARD.core_type.machine, BOARD.core_type.family))
        ran(cmake, "-S", folder / "project", "-B", folder / "cmake", where=folder)
        ran(cmake, "--build", folder / "cmake", where=folder)
        done = subprocess.run([folder / "cmake" / "example"], input=given, capture_output=True, check=True)
        same = "equal" if done.stdout == wanted else "DIFFERENT"
        print(f"  CMake: built for this machine, ran, bytes {same}")
        wrong += done.stdout != wanted
        for system, lines in STAND_INS.items():
            own = folder / system
            own.mkdir()
            lines = lines.replace("PROJECT", str(folder / "project")).replace("BIG", name.upper())
            (own / "CMakeLists.txt").write_text(
                f"cmake_minimum_required(VERSION 3.13)\nproject(p C)\n{lines}"
            )
            ran(cmake, "-S", own, "-B", own / "b", where=own)
            ran(cmake, "--build", own / "b", where=own)
            print(f"  {system}: its CMake file built, with stand-ins")
        pack = ElementTree.parse(folder / "project" / f"onchip.{name}.pdsc")
        files = [str(file.get("name")) for file in pack.iter("file")]
        missing = [file for file in files if not (folder / "project" / file).is_file()]
        left = [file for file in project.sources if file not in files]
        wrong += bool(missing or left)
        print(f"  CMSIS-Pack: {len(files)} files, missing: {missing or 'none'}, left out: {left or 'none'}")
        if python is not None:
            programs = python.absolute().parent
            ran(programs / "compote", "manifest", "lint", where=folder / "project")
            shutil.copytree(folder / "project", folder / "packed")
            ran(programs / "compote", "component", "pack", "--name", name, where=folder / "packed")
            print("  ESP-IDF: compote lints the manifest and packs the component")
            asked = "import kconfiglib; k = kconfiglib.Kconfig('zephyr/Kconfig'); print(list(k.syms))"
            assert f"ONCHIP_{name.upper()}" in ran(programs / "python", "-c", asked, where=folder / "project")
            print("  Zephyr: kconfiglib reads the Kconfig")
            (folder / "pio").mkdir()
            shutil.copy(folder / "board.ld", folder / "pio")
            program = platformio(programs / "python", folder / "project", folder / "pio", name, text)
            same = emulated(program, given, wanted)
            wrong += same != "equal"
            print(f"  PlatformIO: pio run, ran in QEMU, bytes {same}")
        else:
            print("  PlatformIO, compote, kconfiglib: not tried (--python)")
        if shutil.which("arduino-builder"):
            (folder / "arduino").mkdir()
            shutil.copy(folder / "board.ld", folder / "arduino")
            main = text.replace("int main(void)", "int tried(void)")
            same = emulated(arduino(folder / "project", folder / "arduino", name, main), given, wanted)
            wrong += same != "equal"
            print(f"  Arduino: the sketch and ours built by arduino-builder, ran in QEMU, bytes {same}")
        else:
            print("  Arduino: arduino-builder is not installed")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["made:kws"], metavar="MODEL")
    parser.add_argument("--python", type=Path, help="an interpreter with PlatformIO and the others")
    parser.add_argument("--reentrant", action="store_true", help="of instances in memory of the caller's")
    options = parser.parse_args()
    wrong = sum(tried(one.split(","), options.python, reentrant=options.reentrant) for one in options.models)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
