"""From C sources to a linked program for a board: its RAM and flash, to the byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from onchip.base.errors import DoesNotFitBoard, UsageError
from onchip.base.figures import figure
from onchip.machines.board import Board
from onchip.machines.cores import Family, Machine
from onchip.microcontroller.emulator.link import linker_script
from onchip.microcontroller.emulator.objects import objects_of
from onchip.microcontroller.emulator.toolchain import Toolchain, call, failure_of, find_toolchain

__all__ = ["FIRMWARE", "FLAGS", "Image", "Symbol", "build"]

FLAGS = ("-O3", "-std=c11", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections")
"""The compiler flags of all firmware: the same for the programs of other methods."""

LINKING = ("-nostartfiles", "-Wl,--gc-sections", "-Wl,--no-check-sections")
"""The linker's flags. A program that is larger than a memory may reach into the next one's addresses: its
sizes are asked for, it is not run."""

FIRMWARE: dict[Family, tuple[str, ...]] = {
    "arm": ("start.c", "start_arm.c", "guard_arm.h", "host.c", "host.h"),
    "riscv": ("start.c", "start_riscv.c", "host.c", "host.h"),
}

_SOURCE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.[chS]")


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function of the program: its address and its bytes of flash."""

    name: str
    address: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Image:
    """A linked program, with the sizes of its sections as the linker reports them.

    `machine` is the one whose memories it is linked for.
    """

    elf: Path
    board: Board
    code_bytes: int = figure(key="code_and_constants", order=4)
    data_bytes: int = figure(key="data", order=2)
    bss_bytes: int = figure(key="bss", order=1)
    stack_bytes: int = figure(key="stack", order=3)
    functions: tuple[Symbol, ...] = figure()
    large: bool = False

    @property
    def machine(self) -> Machine:
        """The machine whose memories the program is linked for: its core's larger one only if it must."""
        core = self.board.core_type
        return core.large if self.large else core.machine

    @property
    def ram_bytes(self) -> int:
        """The bytes of RAM in use, the stack's reserve included."""
        return self.data_bytes + self.bss_bytes + self.stack_bytes

    @property
    def flash_bytes(self) -> int:
        """The bytes of flash in use: code, constants, and the initial values of .data."""
        return self.code_bytes + self.data_bytes

    def beyond(self, ram_bytes: int, flash_bytes: int) -> tuple[tuple[str, int, int], ...]:
        """Return the needs of the program beyond these memories: (memory, bytes needed, bytes there)."""
        needs = ("RAM", self.ram_bytes, ram_bytes), ("flash", self.flash_bytes, flash_bytes)
        return tuple(row for row in needs if row[1] > row[2])


def build(
    sources: Mapping[str, str],
    board: Board,
    folder: Path,
    *,
    stack_bytes: int = 4096,
    defines: Iterable[str] = (),
    flags: Iterable[str] = FLAGS,
    include: Iterable[Path] = (),
    float_abi: Literal["soft", "hard"] | None = None,
) -> Image:
    """Compile and link `sources` (file name to C, `main` among them) with the start-up code into `folder`.

    Onchip's programs use no floating point; a `float_abi` other than the core's is for those of others. A
    program that its core's usual machine does not hold is linked for the larger one.
    Raises `DoesNotFitBoard` where RAM or flash does not suffice, `BuildFailed` with the compiler's first
    error, `MissingTool` without a cross compiler.
    """
    wrong = [name for name in sources if not _SOURCE_NAME.fullmatch(name)]
    if wrong or stack_bytes < 64:
        raise UsageError(
            "is no name of a C file" if wrong else "at least 64", item=wrong[0] if wrong else "stack"
        )
    core, elsewhere = board.core_type, tuple(include)
    tools = find_toolchain(core.family)
    folder.mkdir(parents=True, exist_ok=True)
    files = {**_firmware(core.family), **sources}
    for name, text in files.items():
        (folder / name).write_text(text)
    units = [name for name in (*FIRMWARE[core.family], *sources) if not name.endswith(".h")]
    elf = folder / "program.elf"
    compiler = [
        tools.gcc,
        *core.flags,
        *((f"-mfloat-abi={float_abi}",) if float_abi else ()),
        *flags,
        *(f"-I{path}" for path in elsewhere),
        tools.libraries,
    ]
    for large in (False, True):
        machine = core.large if large else core.machine
        given = (*defines, *machine.defines)
        objects = objects_of(compiler, files, units, given, folder, remember=not elsewhere)
        (folder / "board.ld").write_text(linker_script(stack_bytes, machine, core.family))
        done = call([*compiler, *LINKING, "-T", "board.ld", "-o", elf.name, *objects], folder)
        if done.returncode:
            raise failure_of(done.stderr)
        image = _image(elf, board, tools, large)
        if short := image.beyond(board.ram_bytes, board.flash_bytes):
            raise DoesNotFitBoard(board.name, short)
        if not image.beyond(machine.usable_ram, machine.flash.bytes):
            break
    return image


def _image(elf: Path, board: Board, tools: Toolchain, large: bool) -> Image:
    sizes = _sections(call([tools.size, "-A", elf.name], elf.parent).stdout)
    return Image(
        elf,
        board,
        code_bytes=sizes.get(".vectors", 0) + sizes.get(".text", 0) + sizes.get(".ARM.exidx", 0),
        data_bytes=sizes.get(".data", 0),
        bss_bytes=sizes.get(".bss", 0),
        stack_bytes=sizes.get(".stack", 0),
        functions=_functions(call([tools.nm, "-S", "--defined-only", elf.name], elf.parent).stdout),
        large=large,
    )


def _firmware(family: Family) -> dict[str, str]:
    folder = resources.files("onchip.microcontroller.emulator") / "firmware"
    return {name: (folder / name).read_text() for name in FIRMWARE[family]}


def _sections(printed: str) -> dict[str, int]:
    rows = (line.split() for line in printed.splitlines())
    return {
        row[0]: int(row[1]) for row in rows if len(row) == 3 and row[0].startswith(".") and row[1].isdigit()
    }


def _functions(printed: str) -> tuple[Symbol, ...]:
    """Return functions by address; a Thumb function's address is odd in the symbol table, its code is not."""
    found: dict[int, Symbol] = {}
    for line in printed.splitlines():
        match line.split():
            case [address, size, "t" | "T" | "w" | "W", name]:
                at = int(address, 16) & ~1
                found.setdefault(at, Symbol(name, at, int(size, 16)))
            case [address, "t" | "T" | "w" | "W", name] if not name.startswith("$"):
                at = int(address, 16) & ~1
                found.setdefault(at, Symbol(name, at, 0))
    return tuple(found[at] for at in sorted(found))
