"""Chips: what is built in, what a user's file may say, and every way it can be wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.errors import ChipError
from onchip.base.units import MAX_BYTES
from onchip.machines.chip import (
    ACCESSES,
    DATAFLOWS,
    ELEMENTS,
    MAX_ALIGNMENT,
    Chip,
    builtin_chips,
    load_chip,
    parse_chip,
)

ARRAY = "pe_rows = 4\npe_columns = 4\n"
PARTS = "input_buffer_bytes = 1\noutput_buffer_bytes = 2\nweight_buffer_bytes = 4\n"
GOOD = 'name = "c"\nalignment_bytes = 16\nelement = "int8"\n'


def test_the_chips_that_must_exist() -> None:
    chips = {chip.name: chip for chip in builtin_chips()}
    assert next(iter(chips)) == "generic"
    assert set(chips) >= {"generic", "optimus", "exynos-npu"}
    generic = chips["generic"]
    assert (generic.alignment_bytes, generic.element) == (1, "int8")
    assert (
        generic.scratchpad_bytes is generic.dram_bytes_per_second is generic.dram_picojoules_per_byte is None
    )
    assert (chips["optimus"].scratchpad_bytes, chips["optimus"].element) == (128 * 1024, "int16")
    assert chips["exynos-npu"].scratchpad_bytes == 1024 * 1024
    assert all(load_chip(name) == chip for name, chip in chips.items())


def test_the_accelerators_of_optimus() -> None:
    chips = {chip.name: chip for chip in builtin_chips()}
    assert replace(chips["optimus-1"], name="optimus", description="") == replace(
        chips["optimus"], description=""
    )
    table = [
        (c.pe_rows, c.pe_columns, c.register_file_bytes, (c.scratchpad_bytes or 0) >> 10)
        for c in (chips[f"optimus-{i}"] for i in range(1, 9))
    ]
    assert table == [
        (16, 16, 64, 128), (32, 32, 64, 128), (16, 16, 64, 256), (32, 32, 64, 256),
        (8, 8, 64, 512), (16, 16, 64, 512), (32, 32, 32, 512), (64, 64, 32, 512),
    ]  # fmt: skip
    for name in ("optimus", *(f"optimus-{i}" for i in range(1, 9)), "shidiannao", "eyeriss", "lower-bound"):
        chip = chips[name]
        assert [getattr(chip, key) for key in ACCESSES] == [200, 6, 2, 1]
        assert chip.element == "int16"
        assert chip.macs_per_second == (chip.pe_rows or 0) * (chip.pe_columns or 0) * (chip.clock_hertz or 0)
    assert chips["shidiannao"].scratchpad_bytes == 256 * 1024


def test_the_chip_of_the_simple_method() -> None:
    chip = load_chip("exynos-npu")
    assert (chip.patch_rows, chip.patch_columns) == (4, 4)
    assert (chip.parallel_channels, chip.weight_buffers, chip.stages_strided) == (16, 2, True)
    for other in builtin_chips():
        if other != chip:
            assert other.patch_rows is other.parallel_channels is other.weight_buffers is None
            assert not other.stages_strided


def test_how_maps_and_weights_are_kept_may_be_said_in_part() -> None:
    def read(text: str) -> Chip:
        return parse_chip((GOOD + text).encode(), "my.toml")

    plain = Chip("c", 16)
    assert read("") == plain
    assert read("patch_rows = 1\npatch_columns = 1024") == replace(plain, patch_rows=1, patch_columns=1024)
    assert read("parallel_channels = 65_536") == replace(plain, parallel_channels=65_536)
    assert read("parallel_channels = 1\nweight_buffers = 16") == replace(
        plain, parallel_channels=1, weight_buffers=16
    )
    assert read("stages_strided = true") == replace(plain, stages_strided=True)
    assert read("stages_strided = false") == plain


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("optimus", (1, 16, 16)), ("optimus-8", (1, 64, 64)), ("shidiannao", (8, 8, 1)),
        ("eyeriss", (1, 1, 16)), ("generic", (1, 1, 16)),
    ],
)  # fmt: skip
def test_a_tile_keeps_the_array_busy(name: str, tile: tuple[int, int, int]) -> None:
    assert load_chip(name).tile == tile


def test_a_tile_of_an_oblong_array() -> None:
    array = Chip("c", 1, pe_rows=4, pe_columns=8)
    assert array.tile == (1, 1, 16)
    tiles = {dataflow: replace(array, dataflow=dataflow).tile for dataflow in DATAFLOWS}
    assert tiles == {"ow-cout": (1, 8, 4), "cin-cout": (1, 1, 8), "oh-ow": (4, 8, 1)}


def test_a_users_file_is_read_by_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        GOOD
        + 'description = "d"\nscratchpad_bytes = 1_000\ndram_bytes_per_second = 1.5e9\n'
        + "dram_picojoules_per_byte = 20\n"
    )
    chip = Chip("c", 16, "int8", "d", 1000, 1.5e9, 20)
    assert load_chip(file) == load_chip(str(file)) == chip


@given(st.integers(0, MAX_BYTES), st.integers(1, MAX_ALIGNMENT))
def test_rounding_up_is_the_least_multiple_that_holds_it(size: int, alignment: int) -> None:
    rounded = Chip("c", alignment).round_up(size)
    assert rounded % alignment == 0
    assert size <= rounded < size + alignment


def test_a_missing_figure_says_what_needs_it() -> None:
    with pytest.raises(ChipError, match="does not state dram_bytes_per_second, which latency needs"):
        load_chip("generic").require("dram_bytes_per_second", "latency")
    assert load_chip("optimus").require("scratchpad_bytes", "a budget") == 131_072


@pytest.mark.parametrize(
    ("content", "item", "reason"),
    [
        ("", "name", "missing"),
        ('name = "c"\nelement = "int8"', "alignment_bytes", "missing"),
        ('name = "c"\nalignment_bytes = 1', "element", "missing"),
        (GOOD + "scratchpad = 4", "scratchpad", "unknown key"),
        (GOOD + "[scratchpad_bytes]\nx = 1", "scratchpad_bytes", "whole number"),
        (GOOD + "description = 1", "description", "string"),
        (GOOD + "dram_bytes_per_second = 0", "dram_bytes_per_second", "positive"),
        (GOOD + "dram_bytes_per_second = -1.0", "dram_bytes_per_second", "positive"),
        (GOOD + "dram_bytes_per_second = nan", "dram_bytes_per_second", "positive"),
        (GOOD + "dram_bytes_per_second = inf", "dram_bytes_per_second", "positive"),
        (GOOD + "dram_bytes_per_second = true", "dram_bytes_per_second", "positive"),
        (GOOD + 'dram_picojoules_per_byte = "20"', "dram_picojoules_per_byte", "positive"),
        (GOOD + "dram_picojoules_per_byte = [1]", "dram_picojoules_per_byte", "positive"),
        (GOOD + "scratchpad_bytes = 0", "scratchpad_bytes", "whole number"),
        (GOOD + "scratchpad_bytes = 1.0", "scratchpad_bytes", "whole number"),
        (GOOD + "scratchpad_bytes = true", "scratchpad_bytes", "whole number"),
        (GOOD + 'scratchpad_bytes = "1MB"', "scratchpad_bytes", "whole number"),
        (GOOD + f"scratchpad_bytes = {MAX_BYTES + 1}", "scratchpad_bytes", "whole number"),
        (GOOD + "scratchpad_bytes = 1979-05-27", "scratchpad_bytes", "whole number"),
        (GOOD + "pe_rows = 16", "pe_columns", "pe_rows, pe_columns go together"),
        (GOOD + "pe_columns = 16", "pe_rows", "pe_rows, pe_columns go together"),
        (GOOD + "pe_rows = 0\npe_columns = 1", "pe_rows", "whole number"),
        (GOOD + "pe_rows = 4\npe_columns = 100_000", "pe_columns", "whole number"),
        (GOOD + "register_file_bytes = 64", "register_file_bytes", "nothing without pe_rows"),
        (GOOD + 'dataflow = "oh-ow"', "dataflow", "nothing without pe_rows"),
        (GOOD + ARRAY + 'dataflow = "row-stationary"', "dataflow", "one of ow-cout, cin-cout, oh-ow"),
        (GOOD + ARRAY + 'dataflow = ["oh-ow"]', "dataflow", "one of"),
        (GOOD + "clock_hertz = -1", "clock_hertz", "positive"),
        (GOOD + "patch_rows = 4", "patch_columns", "patch_rows, patch_columns go together"),
        (GOOD + "patch_columns = 4", "patch_rows", "patch_rows, patch_columns go together"),
        (GOOD + "patch_rows = 0\npatch_columns = 4", "patch_rows", "whole number from 1 to 1,024"),
        (GOOD + "patch_rows = 4\npatch_columns = 1025", "patch_columns", "whole number from 1 to 1,024"),
        (GOOD + "patch_rows = 4.0\npatch_columns = 4", "patch_rows", "whole number"),
        (GOOD + "patch_rows = 4\npatch_columns = true", "patch_columns", "whole number"),
        (GOOD + "patch_rows = [4, 4]\npatch_columns = 4", "patch_rows", "whole number"),
        (GOOD + "parallel_channels = 0", "parallel_channels", "whole number from 1 to 65,536"),
        (GOOD + "parallel_channels = 65_537", "parallel_channels", "whole number"),
        (GOOD + 'parallel_channels = "16"', "parallel_channels", "whole number"),
        (GOOD + "weight_buffers = 2", "weight_buffers", "nothing without parallel_channels"),
        (GOOD + "parallel_channels = 16\nweight_buffers = 0", "weight_buffers", "whole number from 1 to 16"),
        (GOOD + "parallel_channels = 16\nweight_buffers = 17", "weight_buffers", "whole number"),
        (GOOD + "parallel_channels = 16\nweight_buffers = -2", "weight_buffers", "whole number"),
        (GOOD + "parallel_channels = 16\nweight_buffers = 1.5", "weight_buffers", "whole number"),
        (GOOD + "stages_strided = 1", "stages_strided", "true or false"),
        (GOOD + 'stages_strided = "yes"', "stages_strided", "true or false"),
        (GOOD + "patch_rows = 4\npatch_colums = 4", "patch_colums", "did you mean patch_columns"),
        (GOOD + "dram_access_macs = 200", "buffer_access_macs", "go together"),
        (GOOD + "input_buffer_bytes = 4", "output_buffer_bytes", "go together"),
        (GOOD + PARTS, "scratchpad_bytes", "must be 7, the sum"),
        (GOOD + PARTS + "scratchpad_bytes = 8", "scratchpad_bytes", "must be 7, the sum"),
        (GOOD + "feature_map_compression = 0.5", "feature_map_compression", "at least 1"),
        (GOOD.replace("16", "0"), "alignment_bytes", "whole number"),
        (GOOD.replace("16", "-8"), "alignment_bytes", "whole number"),
        (GOOD.replace("16", str(MAX_ALIGNMENT + 1)), "alignment_bytes", "whole number"),
        (GOOD.replace("int8", "int3"), "element", "one of int8"),
        (GOOD.replace('"int8"', "8"), "element", "string"),
        (GOOD.replace('"int8"', '["int8"]'), "element", "string"),
        (GOOD.replace('"c"', "1"), "name", "string"),
        (GOOD.replace('"c"', '""'), "name", "letters"),
        (GOOD.replace('"c"', '"../c"'), "name", "letters"),
        (GOOD.replace('"c"', '"<script>"'), "name", "letters"),
        (GOOD.replace('"c"', '"c\\n"'), "name", "letters"),
        (GOOD.replace('"c"', '"' + "c" * 65 + '"'), "name", "letters"),
        (GOOD + GOOD, "", "TOML"),
        ("name =", "", "TOML"),
        ("\x00", "", "TOML"),
        ('{"name": "c"}', "", "TOML"),
        ("x = " + "[" * 5000, "", "TOML"),
        ("x = " + "9" * 5000, "", "TOML"),
        ("a." * 5000 + "a = 1", "", ""),
    ],
)
def test_what_is_wrong_is_named_with_its_key(content: str, item: str, reason: str) -> None:
    with pytest.raises(ChipError) as caught:
        parse_chip(content.encode(), "my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: " + (f"{item}: " if item else ""))
    assert reason in message
    assert message.isprintable()
    assert len(message) < 500


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ChipError, match="is not TOML"):
        parse_chip(b"\xff\xfe", "my.toml")


@pytest.mark.parametrize(
    "name", ["nope", "", "GENERIC", "generic ", "nope.toml", "folder/nope", "a\nb", "\0.toml"]
)
def test_a_chip_that_is_not_there(name: str) -> None:
    with pytest.raises(ChipError) as caught:
        load_chip(name)
    assert str(caught.value).isprintable()
    if "/" not in name and not name.endswith(".toml"):
        assert "built in: generic, banked-npu" in str(caught.value)


KEYS = ["name", "alignment_bytes", "element", "scratchpad_bytes", "dram_bytes_per_second", "x"]
VALUES = ['"c"', "1", "0", "-1", "1.5", "true", '"int8"', "nan", "[]", "{}", "9e99", "1" * 30]


@given(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)))
def test_any_file_is_a_chip_or_refused(table: dict[str, str]) -> None:
    content = "".join(f"{key} = {value}\n" for key, value in table.items())
    try:
        chip = parse_chip(content.encode(), "my.toml")
    except ChipError:
        return
    assert chip.element in ELEMENTS
    assert 1 <= chip.alignment_bytes <= MAX_ALIGNMENT
    assert chip.scratchpad_bytes is None or 1 <= chip.scratchpad_bytes <= MAX_BYTES
