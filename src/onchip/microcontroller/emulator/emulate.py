"""A linked program run on the emulated core: its output files, its stack, its executed instructions."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field

from onchip.base.errors import EmulationFailed, TooLargeToEmulate
from onchip.base.files import temporary_folder
from onchip.base.guard import dies_with_us
from onchip.machines.cores import Machine
from onchip.microcontroller.emulator.build import Image, Symbol
from onchip.microcontroller.emulator.counting import Counts, counted, plugin
from onchip.microcontroller.emulator.toolchain import find_toolchain

__all__ = ["MARK", "SECONDS", "Emulation", "emulate"]

MARK = "onchip_mark_"
"""The prefix of a mark: instructions after a function of this name and a number count for the number."""

SECONDS = 300.0
"""The time limit of a program whose length is not known."""

_FAULT = 70
_LINE = re.compile(r"^([a-z]+) (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Emulation:
    """One run: the files it wrote, the bytes of stack it touched, and the instructions where counted.

    `by_function` goes by the functions' names, `by_mark` by the numbers of marks (see `MARK`; -1: before the
    first).
    """

    files: Mapping[str, bytes]
    stack_bytes: int
    report: Mapping[str, int]
    total: Counts | None = None
    by_function: Mapping[str, Counts] = field(default_factory=dict)
    by_mark: Mapping[int, Counts] = field(default_factory=dict)


def emulate(
    image: Image,
    inputs: Mapping[str, bytes] | None = None,
    *,
    outputs: tuple[str, ...] = (),
    count: bool = True,
    memory: bool = False,
    seconds: float = SECONDS,
    machine: Machine | None = None,
) -> Emulation:
    """Run `image` to its end, with the files `inputs` to read; `outputs` are the files it is to write.

    Another `machine` than the core's usual one has its memories at the same addresses. With `count`,
    instructions are counted, with `memory` loads and stores too. Raises `EmulationFailed`, naming the
    function and the address, when the program touches memory outside its own, overflows its stack, exits with
    another status than 0, or does not end within `seconds`; `TooLargeToEmulate`.
    """
    core = image.board.core_type
    tools = find_toolchain(core.family)
    on = machine or image.machine
    if short := image.beyond(on.usable_ram, on.flash.bytes):
        raise TooLargeToEmulate(short)
    with temporary_folder() as folder:
        for file, content in (inputs or {}).items():
            (folder / file).write_bytes(content)
        marks = {f.address: int(f.name.removeprefix(MARK)) for f in image.functions if _is_mark(f)}
        command = [
            tools.qemu,
            *("-M", on.name, "-nographic", "-monitor", "none", "-serial", "none"),
            *(("-bios", "none") if core.family == "riscv" else ()),
            *("-semihosting-config", "enable=on,target=native", "-kernel", str(image.elf.resolve())),
        ]
        if count:
            command += plugin(folder, image.functions, marks, core.family, memory=memory)
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
                preexec_fn=dies_with_us(),
            )
        except subprocess.TimeoutExpired:
            raise EmulationFailed(
                f"the program did not end within {seconds:,g} s and was stopped;"
                " `onchip mcu --run-limit SECONDS` gives it longer"
            ) from None
        report = {key: int(value) for key, value in _LINE.findall(done.stdout + "\n" + done.stderr)}
        if done.returncode:
            raise EmulationFailed(_why(done.returncode, report, image, done.stderr))
        missing = [file for file in outputs if not (folder / file).is_file()]
        if missing:
            raise EmulationFailed(f"the program did not write {missing[0]}")
        files = {file: (folder / file).read_bytes() for file in outputs}
        total, by_function, by_mark = counted(folder, image.functions) if count else (None, {}, {})
    return Emulation(files, report.get("stack", 0), report, total, by_function, by_mark)


def _is_mark(function: Symbol) -> bool:
    return function.name.startswith(MARK) and function.name.removeprefix(MARK).isdigit()


def _why(code: int, report: Mapping[str, int], image: Image, printed: str) -> str:
    """Return a sentence that names what stopped the program."""
    if code != _FAULT:
        lines = printed.strip().splitlines()
        return f"the program exited with status {code}" + (f" ({lines[-1][:200]})" if lines else "")
    if "overflow" in report:
        return f"the program overflowed its stack of {image.stack_bytes:,} bytes"
    at = report.get("at")
    inside = [f.name for f in image.functions if at is not None and 0 <= at - f.address < max(f.bytes, 1)]
    where = inside[0] if inside else "the program" if at is None else f"{at:#x}"
    address, fault = report.get("address", 0), report.get("fault", 0)
    return f"{where} touched address {address:#x}, which is not the program's (fault {fault:#x})"
