"""The chips of today: every figure has its document or is unknown, each plans a small network."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

import pytest

import onchip
from onchip import cli, zoo
from onchip.base.errors import ChipError
from onchip.cli.chip_table import figures_of, source_of
from onchip.machines.chip import Chip, builtin_chips, load_chip, parse_chip
from onchip.machines.origin import MARKS
from strategies import random_network

PAGES = Path(__file__).resolve().parents[1] / "docs" / "chips"
CHIPS = {chip.name: chip for chip in builtin_chips()}
TODAY = [chip for chip in CHIPS.values() if chip.unknown]

DATASHEET = (
    "scratchpad_bytes",
    "clock_hertz",
    "macs_per_second",
    "dram_bytes_per_second",
    "scratchpad_bytes_per_second",
    "dram_picojoules_per_byte",
    "mac_picojoules",
    "scratchpad_picojoules_per_byte",
)
"""What the file of a chip of today states, or calls unknown."""

WANTED = (
    *("ethos-u55", "ethos-u65", "ethos-u85", "hexagon", "nvdla-small", "nvdla-large", "edge-tpu", "xdna"),
    *("aie-ml", "gemmini", "snitch", "occamy", "k210", "hailo", "max78000"),
)

GOOD = 'name = "c"\nalignment_bytes = 16\nelement = "int8"\n'
DOCUMENTS = '[documents]\nds = "a datasheet"\n'


def test_the_chips_that_the_issue_names_are_there() -> None:
    assert not [name for name in WANTED if not any(chip.startswith(name) for chip in CHIPS)]


@pytest.mark.parametrize("name", CHIPS)
def test_every_figure_has_a_source(name: str) -> None:
    chip = CHIPS[name]
    assert chip.family
    assert len(chip.description) <= 58  # a line of the list
    assert chip.origin is not None
    assert chip.origin.unsourced == ()
    used = {source.partition(":")[0] for _, source in chip.origin.sources} - {*MARKS}
    derived = " ".join(source for _, source in chip.origin.sources)
    assert used <= dict(chip.origin.documents).keys()
    assert all(f"{document}:" in derived for document, _ in chip.origin.documents), "a document of no figure"


@pytest.mark.parametrize("chip", TODAY, ids=lambda chip: chip.name)
def test_a_chip_of_today_states_each_figure_or_calls_it_unknown(chip: Chip) -> None:
    stated = {key for key, value in chip.figures().items() if value is not None}
    if chip.memories:
        stated |= {"scratchpad_bytes", "scratchpad_bytes_per_second"}
    assert {*DATASHEET} <= stated | {*chip.unknown}
    assert not stated & {*chip.unknown}


@pytest.mark.parametrize("name", CHIPS)
def test_a_small_network_is_planned_on_every_chip(name: str) -> None:
    chip = CHIPS[name]
    unsized = chip.scratchpad_bytes is None and not chip.memories
    made = onchip.plan(random_network(Random(1), 4), name, budget=1 << 20 if unsized else None)
    assert made.check() == made.result
    lacks_time = {"dram_bytes_per_second", "macs_per_second"} & {*chip.unknown}
    said = " ".join(made.notes)
    assert ("no latency" in said) == bool(lacks_time)
    assert all(key in said for key in lacks_time)
    if lacks_time:
        assert made.result.latency_picoseconds is None


def test_what_needs_an_unknown_figure_says_that_it_is_unknown() -> None:
    with pytest.raises(ChipError, match=r"chip hailo-8: states no scratchpad_bytes, which no document"):
        onchip.plan(random_network(Random(1), 4), "hailo-8")


@pytest.mark.parametrize(
    ("content", "item", "reason"),
    [
        (DOCUMENTS + '[sources]\nelement = "other: p. 1"', "sources element", "one of ds, assumed, derived"),
        (DOCUMENTS + '[sources]\nelement = "ds"', "sources element", "NAME: place"),
        (DOCUMENTS + '[sources]\nelement = "ds: "', "sources element", "NAME: place"),
        (DOCUMENTS + '[sources]\nelement = ["ds: 1"]', "sources element", "line of text"),
        ('[sources]\nelement = "derived: a\\nb"', "sources element", "line of text"),
        ('[sources]\nclock_hertz = "assumed: 1"', "sources clock_hertz", "does not state it"),
        ('[sources.x]\ny = "assumed: 1"', "sources x.y", "does not state it"),
        ('[documents]\nderived = "x"', "documents derived", "no name"),
        ('documents = "x"', "documents", "table of texts"),
        ('[documents]\nds = ""', "documents ds", "line of text"),
        ('unknown = ["element"]', "unknown", "element is stated above"),
        ('unknown = ["colour"]', "unknown", "'colour' is the key of no figure"),
        ('unknown = "clock_hertz"', "unknown", "list of keys"),
        ("family = 1", "family", "string"),
        ("caveat = 1\n[documents]", "caveat caveat", "line of text"),
    ],
)
def test_a_wrong_word_on_sources_is_refused_by_name(content: str, item: str, reason: str) -> None:
    with pytest.raises(ChipError) as caught:
        parse_chip((GOOD + content).encode(), "my.toml")
    assert str(caught.value).startswith(f"my.toml: {item}: ")
    assert reason in str(caught.value)


def test_a_chip_is_found_by_the_name_of_its_file() -> None:
    assert all(load_chip(name).name == name for name in CHIPS)


def test_sources_are_no_figures() -> None:
    text = GOOD + '[sources]\nelement = "assumed: 8 bits"'
    chip = parse_chip(text.encode(), "my.toml")
    assert chip == parse_chip(GOOD.encode(), "my.toml")
    assert chip.origin is not None
    assert chip.origin.unsourced == ("alignment_bytes",)


def test_the_sources_of_several_memories() -> None:
    memory = '[[memory]]\nname = "a"\nbytes = 4\nbytes_per_second = 1\n[[memory]]\nname = "b"\nbytes = 8\n'
    memory += 'bytes_per_second = 1\n[sources]\na.bytes = "assumed: 4"\nb.bytes_per_second = "assumed: 1"'
    origin = parse_chip((GOOD + memory).encode(), "my.toml").origin
    assert origin is not None
    assert origin.unsourced == ("alignment_bytes", "element", "a.bytes_per_second", "b.bytes")


@pytest.mark.parametrize("chip", TODAY, ids=lambda chip: chip.name)
def test_the_page_of_a_chip_has_its_figures_and_a_line_for_every_network(chip: Chip) -> None:
    page = (PAGES / f"{chip.name}.md").read_text("utf-8")
    for key, value in figures_of(chip):
        assert f"| `{key}` | {value} | {source_of(chip, key)} |" in page
    assert all(f"| `{key}` | unknown |" in page for key in chip.unknown)
    assert chip.origin is not None
    assert chip.origin.caveat in page
    _, _, table = page.partition("| network |")
    cells = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")]
    assert [row[0].strip() for row in cells] == list(zoo.names())
    assert all(row[1].strip() for row in cells), "no figure, and no reason"


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["onchip", *words])
    monkeypatch.setenv("COLUMNS", "110")
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


def test_the_list_has_every_chip_on_one_line_below_its_family(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "chips") == 0
    family, found = "", {}
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("  ") and line.split()[0] in CHIPS:
            found[line.split()[0]] = family
            assert line.rstrip().endswith(CHIPS[line.split()[0]].description)
        else:
            family = line.strip()
    assert found == {name: chip.family for name, chip in CHIPS.items()}


def test_the_datasheet_of_a_chip_has_every_figure_with_its_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("occamy-cluster", "banked-npu", "edge-tpu"):
        assert command(monkeypatch, "chips", name) == 0
        out = capsys.readouterr().out
        origin = load_chip(name).origin
        assert origin is not None
        keys = [key for key, _ in origin.sources if not key.startswith("bank.")]
        table = out[: out.rindex("unknown figures of")] if origin.unknown else out
        lines = {line.split()[0]: line for line in table.splitlines() if line and not line.startswith(" ")}
        assert all(key in lines and lines[key].rstrip()[-1] != "-" for key in keys)
        assert all("unknown" in lines[key] for key in origin.unknown)
    assert command(monkeypatch, "chips", "tpu-v1", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["sources"]["scratchpad_bytes"].startswith("paper:")
    assert "paper" in row["documents"]
    assert row["unknown"] == list(load_chip("tpu-v1").unknown)
