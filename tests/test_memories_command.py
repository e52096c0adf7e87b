"""Several memories from the command line and in Python: chips, budgets, what is shown and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import onchip
from onchip import cli
from onchip.base.errors import ChipError, UsageError
from onchip.machines.chip import Memory, builtin_chips, load_chip

CHIP = """
name = "two"
alignment_bytes = 4
element = "int8"

[[memory]]
name = "sram"
bytes = 200_000
bytes_per_second = 1e9

[[memory]]
name = "psram"
bytes = 4_000_000
bytes_per_second = 1e8
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "chip.toml"
    path.write_text(text)
    return path


def test_a_chip_states_its_memories(tmp_path: Path) -> None:
    chip = load_chip(written(tmp_path, CHIP))
    assert chip.memories == (Memory("sram", 200_000, True, 1e9), Memory("psram", 4_000_000, True, 1e8))
    assert chip.scratchpad_bytes is None


def test_banks_are_memories_unless_interleaved_and_one_memory_is_the_scratchpad(tmp_path: Path) -> None:
    banked = CHIP.replace("bytes = 200_000", "bytes = 200_000\nbanks = 4")
    names = [(m.name, m.bytes) for m in load_chip(written(tmp_path, banked)).memories]
    assert names == [*((f"sram{i}", 50_000) for i in range(4)), ("psram", 4_000_000)]
    together = banked.replace("banks = 4", "banks = 4\ninterleaved = true")
    assert len(load_chip(written(tmp_path, together)).memories) == 2
    one = load_chip(written(tmp_path, CHIP[: CHIP.rindex("[[memory]]")]))
    assert (one.memories, one.scratchpad_bytes, one.rates.scratchpad_bytes_per_second) == ((), 200_000, 1e9)


@pytest.mark.parametrize(
    ("was", "now", "key"),
    [
        ('name = "psram"', 'name = "sram"', "memory"),
        ('name = "psram"', 'name = "<b>"', "memory 2 name"),
        ('name = "psram"', "", "memory 2 name"),
        ("bytes = 4_000_000", "", "memory 2 bytes"),
        ("bytes = 4_000_000", "bytes = 0", "memory 2 bytes"),
        ("bytes = 4_000_000", "bytes = 4.5", "memory 2 bytes"),
        ("bytes = 4_000_000", "bytes = true", "memory 2 bytes"),
        ("bytes = 4_000_000", "bytes = 10\nbanks = 3", "memory 2 bytes"),
        ("bytes = 4_000_000", "bytes = 4_000_000\nbanks = 4000", "memory 2 banks"),
        ("bytes = 4_000_000", "bytes = 4_000_000\ninterleaved = true", "memory 2 interleaved"),
        ("bytes = 4_000_000", "bytes = 4_000_000\nspeed = 1", "memory 2 speed"),
        ("bytes_per_second = 1e8", "bytes_per_second = 0", "memory 2 bytes_per_second"),
        ("bytes_per_second = 1e8", "", "memory bytes_per_second"),
        ("alignment_bytes = 4", "alignment_bytes = 4\nscratchpad_bytes = 5", "scratchpad_bytes"),
        ("bytes_per_second", "operands = false\nbytes_per_second", "memory"),
    ],
)
def test_a_chip_file_with_a_wrong_memory_is_refused_by_its_key(
    was: str, now: str, key: str, tmp_path: Path
) -> None:
    at = CHIP.rindex(was)
    changed = CHIP.replace(was, now) if was == "bytes_per_second" else CHIP[:at] + now + CHIP[at + len(was) :]
    with pytest.raises(ChipError) as refusal:
        load_chip(written(tmp_path, changed))
    assert refusal.value.item == key, refusal.value


def command(monkeypatch: pytest.MonkeyPatch, *args: object) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *map(str, args)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_planning_checking_showing_and_exporting_just_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    chip, plan, page = written(tmp_path, CHIP), tmp_path / "plan.json", tmp_path / "plan.html"
    assert not command(
        monkeypatch, "plan", "zoo:squeezenet1_0@64x64", "--chip", chip, "--no-moves", "-o", plan
    )
    out = capsys.readouterr().out
    assert "Memories" in out
    assert "psram" in out
    assert not command(monkeypatch, "check", plan)
    assert not command(monkeypatch, "report", plan, "-o", page)
    assert '"memories":[["sram",0,' in page.read_text().replace(" ", "")
    assert not command(monkeypatch, "export", plan, "--to", "executorch", "-o", tmp_path / "banks.json")
    assert command(monkeypatch, "export", plan, "--to", "c", "-o", tmp_path / "plan.h") == 2
    assert "c knows one memory, and the plan uses sram, psram" in capsys.readouterr().err
    assert not (tmp_path / "plan.h").exists()


def test_a_budget_is_given_for_each_memory(tmp_path: Path) -> None:
    chip = written(tmp_path, CHIP)
    plan = onchip.plan("zoo:squeezenet1_0@64x64", chip, "sram=100KiB,psram=2MiB", fuse=False, time_limit=8)
    assert [m.bytes for m in plan.chip.memories] == [100 << 10, 2 << 20]
    assert plan.budget == (100 << 10) + (2 << 20)
    assert plan.check() == plan.result
    rest = onchip.plan("zoo:squeezenet1_0@64x64", chip, "sram=1,048,576", fuse=False, time_limit=8)
    assert [m.bytes for m in rest.chip.memories] == [1 << 20, 4_000_000]
    assert rest.result.status == "optimal"


@pytest.mark.parametrize(
    "budget", ["512KiB", "MR", "flash=1MiB", "sram=1MiB,sram=2MiB", "sram=", "sram=0", ""]
)
def test_a_budget_that_names_no_memory_is_refused(budget: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--budget"):
        onchip.plan("zoo:squeezenet1_0@64x64", written(tmp_path, CHIP), budget)


def test_planners_for_one_memory_say_what_such_a_chip_does_not_state() -> None:
    for verb in (onchip.fuse, onchip.branches):
        with pytest.raises(ChipError, match="states no scratchpad_bytes"):
            verb("zoo:squeezenet1_0@64x64", "esp32-s3")


def test_the_built_in_chips_with_several_memories_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    several = {chip.name: [m.name for m in chip.memories] for chip in builtin_chips() if chip.memories}
    assert several == {
        "esp32-s3": ["sram", "psram"],
        "banked-npu": ["bank0", "bank1", "bank2", "bank3", "l2"],
        "occamy-cluster": ["tcdm", "spm"],
    }
    assert not command(monkeypatch, "chips", "--json")
    assert {row["name"] for row in json.loads(capsys.readouterr().out) if row["memories"]} == set(several)
