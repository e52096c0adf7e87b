"""Every core of the table: programs run on what emulates it, guarded, and a network makes the right bytes."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest
from test_firmware import ECHO, TOUCH

from onchip.base.errors import EmulationFailed
from onchip.machines.board import Board, builtin_boards, load_board
from onchip.machines.cores import CORES, Core, core_names
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.emulator.verify import verify
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import Builder
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments import plan as plan_segments

TOOLS = {
    "arm": ("arm-none-eabi-gcc", "qemu-system-arm"),
    "riscv": ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"),
}


def on_each(*cores: Core) -> pytest.MarkDecorator:
    """A test for each core, skipped where its compiler or emulator is not there."""
    marked = [
        pytest.param(
            core,
            marks=pytest.mark.skipif(
                not all(shutil.which(tool) for tool in (*TOOLS[CORES[core].family], "cc")),
                reason="needs a cross compiler and an emulator",
            ),
        )
        for core in cores
    ]
    return pytest.mark.parametrize("core", marked)


def board(core: Core) -> Board:
    machine = CORES[core].machine
    return Board("any", core, machine.usable_ram, machine.flash.bytes)


@pytest.mark.thorough
@on_each("cortex-m0plus", "cortex-m3", "cortex-m33", "cortex-m55", "rv32imc")
def test_a_program_runs_and_cannot_leave_its_memory(core: Core, tmp_path: Path) -> None:
    image = build({"main.c": ECHO}, board(core), tmp_path)
    assert emulate(image, {"in": b"..abcdef"}, outputs=("out",)).files == {"out": b"bdfh"}
    closed = build({"main.c": TOUCH}, board(core), tmp_path, defines=("HELD=2033", "AT=0"))
    with pytest.raises(EmulationFailed, match="main touched address"):
        emulate(closed, count=False)


LARGE = """
#include "host.h"
extern char _ram_end;
static volatile char much[5 << 20];
const char constants[CONSTANTS] = {1, 2, 3};
int main(void) {
    const char *volatile from = constants;
    for (uint32_t i = 0; i < sizeof much; i += 4096) much[i] = (char)(i >> 12);
    for (uint32_t i = 0; i < sizeof much; i += 4096)
        if (much[i] != (char)(i >> 12)) return 1;
    *(volatile char *)((uint32_t)&_ram_end + AT) = 1;
    return from[2] - 3;
}
"""


@pytest.mark.thorough
@on_each("cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "rv32imc")
def test_a_program_larger_than_the_usual_memories_runs_in_the_larger_ones_and_cannot_leave_them(
    core: Core, tmp_path: Path
) -> None:
    """Each machine once: what runs code for M3 runs code for M0+, too."""
    machine, room = CORES[core].large, Board("roomy", core, 64 << 20, 64 << 20)
    constants = f"CONSTANTS={machine.flash.bytes - 65536}"
    image = build({"main.c": LARGE}, room, tmp_path, defines=("AT=-1", constants))
    assert image.machine == machine
    assert emulate(image, count=False).stack_bytes > 0
    for at in ("0", "-(6<<20)"):  # behind RAM, and before it
        closed = build({"main.c": LARGE}, room, tmp_path, defines=(f"AT={at}", "CONSTANTS=3"))
        assert closed.machine == machine
        with pytest.raises(EmulationFailed, match="main touched address"):
            emulate(closed, count=False)


@pytest.mark.thorough
@on_each("cortex-m0plus", "cortex-m7", "cortex-m33", "cortex-m55", "rv32imc")
def test_a_program_that_the_usual_memories_hold_is_linked_for_them(core: Core, tmp_path: Path) -> None:
    machine = CORES[core].machine
    source = "static volatile char held[HELD]; int main(void) { return held[0]; }"
    sizes = {"least": 1, "most": machine.usable_ram - 4096 - 64, "more": machine.usable_ram - 4096 + 64}
    room = Board("roomy", core, 64 << 20, 64 << 20)
    found = {
        name: build({"main.c": source}, room, tmp_path, defines=(f"HELD={held}",)).large
        for name, held in sizes.items()
    }
    assert found == {"least": False, "most": False, "more": True}


@on_each("cortex-m33", "rv32imc")
def test_the_flash_of_every_kind_of_guard_cannot_be_written(core: Core, tmp_path: Path) -> None:
    at = CORES[core].machine.flash.base + 64
    source = f"int main(void) {{ volatile char *volatile at = (char *){at:#x}; *at = 1; return 0; }}"
    with pytest.raises(EmulationFailed, match=f"touched address {at:#x},"):
        emulate(build({"main.c": source}, board(core), tmp_path), count=False)


@on_each("cortex-m33", "rv32imc")
def test_the_stack_of_every_kind_of_guard_cannot_overflow(core: Core, tmp_path: Path) -> None:
    source = """
    __attribute__((noinline)) static int deep(int n) { volatile char kept[64]; kept[0] = (char)n;
        return n ? deep(n - 1) + kept[0] : 0; }
    int main(void) { return deep(100) == -1; }
    """
    with pytest.raises(EmulationFailed, match="overflowed its stack of 1,024 bytes"):
        emulate(build({"main.c": source}, board(core), tmp_path, stack_bytes=1024), count=False)


@on_each("cortex-m0plus")
def test_an_unaligned_access_is_a_fault_where_the_core_has_none(core: Core, tmp_path: Path) -> None:
    """The machine that runs code for M0+ is an M3, which would allow it."""
    source = """
    static char bytes[8];
    int main(void) { volatile int *volatile at = (int *)(bytes + 1); return *at; }
    """
    with pytest.raises(EmulationFailed, match="fault"):
        emulate(build({"main.c": source}, board(core), tmp_path, flags=("-O1",)), count=False)


@cache
def small_network() -> Int8Model:
    """Return a network of the layers whose kernels have forms of their own: odd, at edges, with strides."""
    b = Builder(seed=5)
    x = b.conv(b.input((1, 7, 9, 3)), 6, 3, stride=2, activation="RELU")
    x = b.conv(b.depthwise(x, 3), 5, 1, activation="RELU6")
    return model_of(b.file(b.fully_connected(x, 7)), name="small", where="small")


@cache
def edges() -> Int8Model:
    """Return a network whose windows are cut, by taps of fewer bytes than a word, a vector, and of more."""
    b = Builder(seed=6)
    x = b.conv(b.input((1, 6, 7, 3)), 12, (2, 5))
    x = b.conv(b.conv(x, 20, 3), 4, 3)
    x = b.conv(b.conv(b.conv(x, 9, 3), 6, 3), 33, 2)
    return model_of(b.file(b.conv(x, 4, 3, dilation=2)), name="edges", where="edges")


@pytest.mark.thorough
@on_each("cortex-m0plus", "cortex-m55", "rv32imc")
def test_edges_of_windows_are_gathered_right_on_every_core(core: Core, tmp_path: Path) -> None:
    plan = plan_segments(network_of(edges()), 1 << 20, SegmentOptions())
    sources = sources_of(plan, edges(), forms=CORES[core].forms)
    assert verify(sources, edges(), board(core), tmp_path, runs=2).match


@pytest.mark.thorough
@on_each("cortex-m0plus", "cortex-m3", "cortex-m55", "rv32imc")
def test_a_network_makes_the_reference_s_bytes_on_every_core(core: Core, tmp_path: Path) -> None:
    model = small_network()
    plan = plan_segments(network_of(model), 1 << 20, SegmentOptions())
    sources = sources_of(plan, model, forms=CORES[core].forms)
    run = verify(sources, model, board(core), tmp_path, runs=2)
    also = CORES[core].also
    assert run.match
    assert run.machines == (CORES[core].machine.name, *((also.name,) if also else ()))


def test_every_board_s_core_is_in_the_table_and_every_core_has_a_board() -> None:
    assert {found.core for found in builtin_boards()} == set(CORES) == set(core_names())
    assert load_board("raspberry-pi-pico").core_type is CORES["cortex-m0plus"]


def test_the_page_s_table_of_cores_is_this_one() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mcu.md").read_text()
    for name, core in CORES.items():
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        _, _, flags, machine, boards, _ = row.split("|")
        shown = [flag for flag in core.flags if flag != "-mthumb"]
        assert flags.strip() == f"`{' '.join(shown)}`"
        assert f"`{core.machine.name}`" in machine
        assert core.also is None or f"`{core.also.name}`" in machine
        assert set(boards.strip().split(", ")) == {b.name for b in builtin_boards() if b.core == name}
