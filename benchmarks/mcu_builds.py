"""The written project in other build systems: built with each, programs run on an emulated Cortex-M4.

    .venv/bin/python benchmarks/mcu_builds.py [--python PYTHON] [MODEL]

`--python` is an interpreter with `platformio`, `scons`, `idf-component-manager` and `kconfiglib` (PyPI),
`arduino-builder` is Debian's. PlatformIO and Arduino have boards and cores of ours here, which compile for
Cortex-M4 and start in QEMU; ESP-IDF and Zephyr are tried with stand-ins for the functions of their CMake.
Every program's output bytes are compared with the reference's. What is not installed is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

import onchip
from onchip.machines.board import load_board
from onchip.microcontroller.emulator import find_toolchain
from onchip.microcontroller.emulator.link import linker_script
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.reference import run as reference_run

BOARD = load_board("nucleo-f411re")
FLAGS = "-mcpu=cortex-m4 -mthumb -O2 -ffunction-sections"
LINK = "-mcpu=cortex-m4 -mthumb -nostartfiles --specs=nano.specs -Wl,--gc-sections"

MAIN = """\
#include <{name}.h>
#include "host.h"
int {main}(void) {{
    int in = host_open_to_read("in"), out = host_open_to_write("out");
    if (host_read(in, {name}_input(), 0, {big}_INPUT_BYTES)) return 3;
    {name}_invoke();
    return host_write(out, {name}_output(), {big}_OUTPUT_BYTES);
}}
"""


def ran(*command: object, where: Path, env: dict[str, str] | None = None) -> str:
    """Run a command; what it printed, or an end with its last lines."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=where, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=300
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="made:kws")
    parser.add_argument("--python", type=Path, help="an interpreter with PlatformIO and the others")
    options = parser.parse_args()
    made = onchip.mcu(options.model, BOARD)
    name, (x,) = made.sources.name, inputs_of(made.model, 1)
    wanted = reference_run(made.model, [x])[0].tobytes()
    words = {"name": name, "big": name.upper()}
    cmake = str(Path(sys.executable).parent / "cmake")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="onchip-builds-") as scratch:
        folder = Path(scratch)
        made.save(folder / "project")
        (folder / "board.ld").write_text(linker_script(8192, BOARD.core_type))
        ran(cmake, "-S", folder / "project", "-B", folder / "cmake", where=folder)
        ran(cmake, "--build", folder / "cmake", where=folder)
        given = x.tobytes()
        done = subprocess.run([folder / "cmake" / "example"], input=given, capture_output=True, check=True)
        print(
            f"CMake: built for this machine, ran, bytes {'equal' if done.stdout == wanted else 'DIFFERENT'}"
        )
        wrong += done.stdout != wanted
        for system, text in STAND_INS.items():
            own = folder / system
            own.mkdir()
            lines = text.replace("PROJECT", str(folder / "project")).replace("BIG", name.upper())
            (own / "CMakeLists.txt").write_text(
                f"cmake_minimum_required(VERSION 3.13)\nproject(p C)\n{lines}"
            )
            ran(cmake, "-S", own, "-B", own / "b", where=own)
            ran(cmake, "--build", own / "b", where=own)
            print(f"{system}: its CMake file built, with stand-ins")
        if options.python is not None:
            programs = options.python.absolute().parent
            ran(programs / "compote", "manifest", "lint", where=folder / "project")
            shutil.copytree(folder / "project", folder / "packed")
            ran(programs / "compote", "component", "pack", "--name", name, where=folder / "packed")
            print("ESP-IDF: compote lints the manifest and packs the component")
            asked = "import kconfiglib; k = kconfiglib.Kconfig('zephyr/Kconfig'); print(list(k.syms))"
            assert f"ONCHIP_{name.upper()}" in ran(programs / "python", "-c", asked, where=folder / "project")
            print("Zephyr: kconfiglib reads the Kconfig")
            (folder / "pio").mkdir()
            shutil.copy(folder / "board.ld", folder / "pio")
            text = MAIN.format(**words, main="main")
            program = platformio(programs / "python", folder / "project", folder / "pio", name, text)
            same = emulated(program, given, wanted)
            wrong += same != "equal"
            print(f"PlatformIO: pio run, ran in QEMU, bytes {same}")
        else:
            print("PlatformIO, compote, kconfiglib: not tried (--python)")
        if shutil.which("arduino-builder"):
            (folder / "arduino").mkdir()
            shutil.copy(folder / "board.ld", folder / "arduino")
            text = MAIN.format(**words, main="tried")
            same = emulated(arduino(folder / "project", folder / "arduino", name, text), given, wanted)
            wrong += same != "equal"
            print(f"Arduino: the sketch and ours built by arduino-builder, ran in QEMU, bytes {same}")
        else:
            print("Arduino: arduino-builder is not installed")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
