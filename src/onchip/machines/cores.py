"""Cores of microcontrollers, as data: how code for one is compiled, which kernels it runs, what emulates it.

Programs run on emulated boards with more memory than most real ones: what is asked of the emulator is the
core, and a real board's RAM and flash are judged by the linker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["CORES", "PIECE", "Core", "CoreType", "Family", "Forms", "Machine", "Memory", "core_names"]

Core = Literal["cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "rv32imc"]

Family = Literal["arm", "riscv"]
"""The compiler and the emulator that a core takes."""

Forms = Literal["packed", "vector", "plain", "narrow"]
"""The ways to make products: packed halves (DSP extension), vectors of sixteen bytes (Helium), one
multiply-accumulate a product, or one multiplication with few registers (Thumb-1)."""

PIECE = 32
"""Bytes of the finest piece that a guard opens or closes: the end of RAM must have one more behind it."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A piece of an emulated machine's memory: its first address and its bytes."""

    base: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """An emulated machine, by its name in QEMU: its memories, and where the table of vectors lies.

    `guarded` tells whether it can close memory, so that an access beyond a program's own faults. `defines`
    are what its guard must be told where that is compiled.
    """

    name: str
    flash: Memory
    ram: Memory
    vectors: Memory | None = None
    guarded: bool = True
    defines: tuple[str, ...] = ()

    @property
    def usable_ram(self) -> int:
        """The bytes of RAM that a program may take: the guard may begin at the last piece."""
        return self.ram.bytes - (PIECE if self.guarded else 0)


@dataclass(frozen=True, slots=True)
class CoreType:
    """A core: the compiler's flags for it, the forms of its kernels, and the machines that emulate it.

    Programs run on `machine`; those that are small enough run on `also` as well, from the same bytes, and
    those that are too large on `large`: the same machine with its memories for data that is outside the chip.
    """

    title: str
    family: Family
    flags: tuple[str, ...]
    forms: Forms
    machine: Machine
    large: Machine
    also: Machine | None = None
    note: str = ""


def _arm(core: str, *more: str) -> tuple[str, ...]:
    return (f"-mcpu={core}", "-mthumb", *more)


_MIB = 1 << 20
_FLASH, _RAM = Memory(0, 4 * _MIB), Memory(0x2000_0000, 4 * _MIB)


def _mps2(name: str) -> Machine:
    return Machine(name, _FLASH, _RAM)


def _mps2_large(name: str, base: int = 0x2100_0000) -> Machine:
    """Return the machine with its PSRAM of 16 MiB as flash and RAM: 8 MiB are the most that a guard of
    Armv7-M closes to the piece."""
    return Machine(
        name,
        Memory(base, 8 * _MIB),
        Memory(base + 8 * _MIB, 8 * _MIB),
        _FLASH,
        defines=("MEMORY_LOG2=23",),
    )


CORES: dict[Core, CoreType] = {
    "cortex-m0plus": CoreType(
        "Cortex-M0+",
        "arm",
        _arm("cortex-m0plus"),
        "narrow",
        _mps2("mps2-an385"),
        _mps2_large("mps2-an385"),
        Machine("microbit", Memory(0, 256 << 10), Memory(0x2000_0000, 16 << 10), guarded=False),
        "code for M0+ on the M3 machine, where unaligned accesses are made faults; within 16 KiB on M0 too",
    ),
    "cortex-m3": CoreType(
        "Cortex-M3", "arm", _arm("cortex-m3"), "plain", _mps2("mps2-an385"), _mps2_large("mps2-an385")
    ),
    "cortex-m4": CoreType(
        "Cortex-M4", "arm", _arm("cortex-m4"), "packed", _mps2("mps2-an386"), _mps2_large("mps2-an386")
    ),
    "cortex-m7": CoreType(
        "Cortex-M7",
        "arm",
        _arm("cortex-m7"),
        "packed",
        _mps2("mps2-an500"),
        _mps2_large("mps2-an500", 0x6000_0000),
    ),
    "cortex-m33": CoreType(
        "Cortex-M33",
        "arm",
        _arm("cortex-m33"),
        "packed",
        Machine("mps2-an505", Memory(0x1000_0000, 4 * _MIB), Memory(0x3800_0000, 4 * _MIB)),
        Machine("mps2-an505", Memory(0x1000_0000, 4 * _MIB), Memory(0x8000_0000, 16 * _MIB)),
    ),
    "cortex-m55": CoreType(
        "Cortex-M55",
        "arm",
        _arm("cortex-m55", "-mfloat-abi=hard"),
        "vector",
        Machine(
            "mps3-an547", Memory(0x0100_0000, 2 * _MIB), Memory(0x2100_0000, 4 * _MIB), Memory(0, 512 << 10)
        ),
        Machine(
            "mps3-an547", Memory(0x7000_0000, 64 * _MIB), Memory(0x7400_0000, 64 * _MIB), Memory(0, 512 << 10)
        ),
        note="with Helium; code for it passes floating-point numbers in registers",
    ),
    "rv32imc": CoreType(
        "RV32IMC",
        "riscv",
        ("-march=rv32imc", "-mabi=ilp32"),
        "plain",
        Machine("virt", Memory(0x8000_0000, 4 * _MIB), Memory(0x8040_0000, 4 * _MIB)),
        Machine("virt", Memory(0x8000_0000, 64 * _MIB), Memory(0x8400_0000, 64 * _MIB)),
    ),
}
"""Every core by its name, which a board's file gives."""


def core_names() -> tuple[Core, ...]:
    """Return the names of all cores."""
    return get_args(Core)
