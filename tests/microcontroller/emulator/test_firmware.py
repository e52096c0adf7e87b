"""Programs on the emulated core: what is linked, what is guarded, what is counted."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from onchip.base.errors import (
    BuildFailed,
    DoesNotFitBoard,
    EmulationFailed,
    MissingTool,
    TooLargeToEmulate,
    UsageError,
)
from onchip.machines.board import Board, load_board
from onchip.microcontroller.emulator import build, emulate, find_toolchain, toolchain

needs_toolchain = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)

M4 = load_board("nucleo-f411re")

ECHO = """
#include "host.h"
static const char added[4] = {1, 2, 3, 4};
int main(void) {
    char bytes[4];
    int in = host_open_to_read("in"), out = host_open_to_write("out");
    if (host_read(in, bytes, 2, 4)) return 3;
    for (int i = 0; i < 4; i++) bytes[i] = (char)(bytes[i] + added[i]);
    return host_write(out, bytes, 4);
}
"""

TOUCH = """
#include "host.h"
extern char _ram_end;
static volatile char held[HELD];
int main(void) {
    held[0] = 1;
    *(volatile char *)((uint32_t)&_ram_end + AT) = 1;
    return 0;
}
"""

FILL = """
#include "host.h"
static volatile uint32_t first[3], arena[WORDS];
static volatile int set = 1;
int main(void) {
    first[1] = (uint32_t)set;
    volatile uint32_t *volatile at = arena;
    for (int i = 0; i < FILLED; ++i) at[i] = 1;
    return 0;
}
"""


@pytest.mark.thorough
@needs_toolchain
@pytest.mark.parametrize("board", [M4, load_board("nucleo-f767zi")], ids=lambda board: board.core)
def test_a_program_reads_and_writes_files_of_the_host(board: Board, tmp_path: Path) -> None:
    image = build({"main.c": ECHO}, board, tmp_path)
    assert emulate(image, {"in": b"..abcdef"}, outputs=("out",)).files == {"out": b"bdfh"}


@needs_toolchain
def test_another_status_than_zero_is_a_failure(tmp_path: Path) -> None:
    image = build({"main.c": ECHO}, M4, tmp_path)
    with pytest.raises(EmulationFailed, match="status 3"):
        emulate(image, {"in": b"..ab"})


@needs_toolchain
@pytest.mark.parametrize("held", [4, 2033, 4064, 60_000])
@pytest.mark.parametrize(
    ("at", "allowed"), [(-1, True), (0, False), (31, False), (200, False), (70_000, False)]
)
def test_nothing_behind_the_linked_ram_can_be_touched(
    held: int, at: int, allowed: bool, tmp_path: Path
) -> None:
    image = build({"main.c": TOUCH}, M4, tmp_path, defines=(f"HELD={held}", f"AT={at}"))
    if allowed:
        emulate(image)
    else:
        with pytest.raises(EmulationFailed, match="main touched address 0x200"):
            emulate(image)


@pytest.mark.thorough
@needs_toolchain
@pytest.mark.parametrize("words", range(1, 10))
def test_an_arena_one_word_too_small_faults(words: int, tmp_path: Path) -> None:
    image = build({"main.c": FILL}, M4, tmp_path, defines=(f"WORDS={words}", f"FILLED={words}"))
    emulate(image)
    with pytest.raises(EmulationFailed, match="main touched address 0x200"):
        emulate(build({"main.c": FILL}, M4, tmp_path, defines=(f"WORDS={words}", f"FILLED={words + 1}")))
    assert image.ram_bytes == image.stack_bytes + 4 * words + 12 + 4  # the gap before .bss is nobody's


@needs_toolchain
def test_flash_cannot_be_written(tmp_path: Path) -> None:
    source = "int main(void) { volatile char *volatile at = (char *)64; *at = 1; return 0; }"
    with pytest.raises(EmulationFailed, match="touched address 0x40,"):
        emulate(build({"main.c": source}, M4, tmp_path))


@pytest.mark.thorough
@needs_toolchain
def test_a_stack_that_overflows_says_so(tmp_path: Path) -> None:
    source = """
    __attribute__((noinline)) static int deep(int n) { volatile char kept[64]; kept[0] = (char)n;
        return n ? deep(n - 1) + kept[0] : 0; }
    int main(void) { return deep(DEPTH) == -1; }
    """
    emulate(build({"main.c": source}, M4, tmp_path, stack_bytes=4096, defines=("DEPTH=20",)))
    with pytest.raises(EmulationFailed, match="overflowed its stack of 1,024 bytes"):
        emulate(build({"main.c": source}, M4, tmp_path, stack_bytes=1024, defines=("DEPTH=20",)))


@pytest.mark.thorough
@needs_toolchain
def test_a_stack_one_word_too_small_faults(tmp_path: Path) -> None:
    source = """
    __attribute__((naked)) static void push(void) {
        __asm volatile("ldr r0, =_stack_bottom\\n add r0, r0, #FREE\\n mov r1, sp\\n mov sp, r0\\n"
            "push {r0, r2}\\n mov sp, r1\\n bx lr");
    }
    int main(void) { push(); return 0; }
    """
    emulate(build({"main.c": source.replace("FREE", "8")}, M4, tmp_path, stack_bytes=256))
    with pytest.raises(EmulationFailed, match="overflowed its stack of 256 bytes"):
        emulate(build({"main.c": source.replace("FREE", "4")}, M4, tmp_path, stack_bytes=256))


@pytest.mark.thorough
@needs_toolchain
def test_the_stack_is_measured_to_where_it_was_written(tmp_path: Path) -> None:
    source = """
    #include "host.h"
    int main(void) { volatile char kept[KEPT]; for (int i = 0; i < KEPT; i++) kept[i] = 1; return !kept[0]; }
    """
    small, large = (
        emulate(build({"main.c": source}, M4, tmp_path, defines=(f"KEPT={kept}",))).stack_bytes
        for kept in (64, 1064)
    )
    assert large - small == 1000


@needs_toolchain
def test_ram_is_what_is_linked(tmp_path: Path) -> None:
    source = """
    static volatile char zero[1000], set[8] = {1};
    int main(void) { return zero[(int)set[1]]; }
    """
    image = build({"main.c": source}, M4, tmp_path, stack_bytes=512)
    assert (image.bss_bytes, image.data_bytes, image.stack_bytes) == (1000, 8, 512)
    assert image.ram_bytes == 1520
    assert image.flash_bytes == image.code_bytes + 8


@needs_toolchain
def test_what_does_not_fit_is_said_with_the_bytes(tmp_path: Path) -> None:
    source = "static volatile char much[140000]; int main(void) { return much[0]; }"
    with pytest.raises(DoesNotFitBoard, match=r"144,096 bytes of RAM, it has 131,072 \(13,024 missing\)"):
        build({"main.c": source}, M4, tmp_path)


@pytest.mark.thorough
@needs_toolchain
@pytest.mark.parametrize("less", [1, 2, 3])
def test_a_byte_that_is_missing_is_said_like_many(less: int, tmp_path: Path) -> None:
    source = "static volatile char much[8]; int main(void) { return much[0]; }"
    has = build({"main.c": source}, M4, tmp_path)
    for board, there in (
        (replace(M4, ram_bytes=has.ram_bytes - less), has.ram_bytes),
        (replace(M4, flash_bytes=has.flash_bytes - less), has.flash_bytes),
    ):
        with pytest.raises(DoesNotFitBoard, match=rf"needs {there:,} .*\({less} missing\)"):
            build({"main.c": source}, board, tmp_path)


def test_a_tool_that_does_not_end_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "SECONDS", 0.2)
    with pytest.raises(BuildFailed, match=r"sleep did not end within 0\.2 s"):
        toolchain.call(["sleep", "60"], tmp_path)


@pytest.mark.thorough
@needs_toolchain
def test_a_program_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    image = build({"main.c": "int main(void) { for (;;) continue; }"}, M4, tmp_path)
    with pytest.raises(EmulationFailed, match=r"did not end within 0\.5 s and was stopped; .*--run-limit"):
        emulate(image, seconds=0.5)


@needs_toolchain
def test_what_the_emulated_memories_do_not_hold_is_said_with_the_bytes(tmp_path: Path) -> None:
    source = "static volatile char much[9000000]; int main(void) { return much[0]; }"
    image = build({"main.c": source}, Board("large", "cortex-m7", 16 << 20, 8 << 20), tmp_path)
    with pytest.raises(TooLargeToEmulate, match=r"9,004,096 bytes of RAM, not 8,388,576"):
        emulate(image)


@pytest.mark.thorough
@needs_toolchain
def test_instructions_are_counted_by_function_and_by_mark(tmp_path: Path) -> None:
    source = """
    static volatile int sum[4];
    __attribute__((noinline)) void onchip_mark_0(void) { __asm volatile(""); }
    __attribute__((noinline)) void onchip_mark_5(void) { __asm volatile(""); }
    __attribute__((noipa)) static void work(int n) { for (int i = 0; i < n; i++) sum[0] += i; }
    int main(void) { onchip_mark_0(); work(1000); onchip_mark_5(); work(ROUNDS); return 0; }
    """
    few, many = (
        emulate(build({"main.c": source}, M4, tmp_path, defines=(f"ROUNDS={n}",)), memory=True)
        for n in (1000, 3000)
    )
    assert few.total is not None
    assert many.total is not None
    assert few.total.instructions == sum(c.instructions for c in few.by_function.values())
    assert set(few.by_mark) == {-1, 0, 5}
    assert (few.by_mark[0].loads, few.by_mark[0].stores) == (many.by_mark[0].loads, many.by_mark[0].stores)
    per_round, rest = divmod(many.by_function["work"].loads - few.by_function["work"].loads, 2000)
    assert (per_round, rest) == (1, 0)
    assert many.by_mark[5].stores - few.by_mark[5].stores == 2000
    again = emulate(build({"main.c": source}, M4, tmp_path, defines=("ROUNDS=1000",)), memory=True)
    assert again == few  # counts, unlike times, are the same every time


@needs_toolchain
def test_the_compilers_first_complaint_is_the_message(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="undeclared"):
        build({"main.c": "int main(void) { return x; }"}, M4, tmp_path)
    with pytest.raises(UsageError, match=r"\.\./main\.c"):
        build({"../main.c": "int main(void) { return 0; }"}, M4, tmp_path)


def test_a_missing_tool_is_one_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    find_toolchain.cache_clear()
    try:
        with pytest.raises(MissingTool, match="apt-get install gcc-arm-none-eabi"):
            find_toolchain()
    finally:
        find_toolchain.cache_clear()
