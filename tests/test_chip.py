"""Chips: what is built in, what a user's file may say, and every way it can be wrong."""

from __future__ import annotations

import warnings
from dataclasses import astuple, fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.errors import ChipError
from onchip.base.units import MAX_BYTES
from onchip.machines.chip import (
    DATAFLOWS,
    ELEMENTS,
    MAX_ALIGNMENT,
    RATES,
    AccessCosts,
    Chip,
    PartialWeights,
    PatchSize,
    PEArray,
    Rates,
    SplitBuffer,
    builtin_chips,
    chip_of,
    load_chip,
    parse_chip,
)
from onchip.plans import PlanChip

ARRAY = "pe_rows = 4\npe_columns = 4\n"
PARTS = "input_buffer_bytes = 1\noutput_buffer_bytes = 2\nweight_buffer_bytes = 4\n"
GOOD = 'name = "c"\nalignment_bytes = 16\nelement = "int8"\n'


def test_the_chips_that_must_exist() -> None:
    chips = {chip.name: chip for chip in builtin_chips()}
    assert next(iter(chips)) == "generic"
    assert set(chips) >= {"generic", "optimus", "exynos-npu"}
    generic = chips["generic"]
    assert (generic.alignment_bytes, generic.element) == (1, "int8")
    assert generic == Chip("generic", 1, description=generic.description)
    assert (chips["optimus"].scratchpad_bytes, chips["optimus"].element) == (128 * 1024, "int16")
    assert chips["exynos-npu"].scratchpad_bytes == 1024 * 1024
    assert all(load_chip(name) == chip for name, chip in chips.items())


def test_the_accelerators_of_optimus() -> None:
    chips = {chip.name: chip for chip in builtin_chips()}
    assert replace(chips["optimus-1"], name="optimus", description="") == replace(
        chips["optimus"], description=""
    )
    table = [
        (*astuple(c.array), (c.scratchpad_bytes or 0) >> 10)
        for c in (chips[f"optimus-{i}"] for i in range(1, 9))
    ]
    assert table == [
        (16, 16, 64, 128), (32, 32, 64, 128), (16, 16, 64, 256), (32, 32, 64, 256),
        (8, 8, 64, 512), (16, 16, 64, 512), (32, 32, 32, 512), (64, 64, 32, 512),
    ]  # fmt: skip
    for name in ("optimus", *(f"optimus-{i}" for i in range(1, 9)), "shidiannao", "eyeriss", "lower-bound"):
        chip = chips[name]
        assert chip.access_costs == AccessCosts(dram=200, buffer=6, array=2, register=1)
        assert chip.element == "int16"
        assert chip.rates.macs_per_second == chip.array.rows * chip.array.columns * chip.clock_hertz
    assert chips["shidiannao"].scratchpad_bytes == 256 * 1024


def test_the_chip_of_the_simple_method() -> None:
    chip = load_chip("exynos-npu")
    assert (chip.patch, chip.partial_weights) == (PatchSize(4, 4), PartialWeights(16, 2))
    assert chip.stages_strided
    for other in builtin_chips():
        if other != chip:
            assert other.patch is other.partial_weights is None
            assert not other.stages_strided


def test_how_maps_and_weights_are_kept_may_be_said_in_part() -> None:
    def read(text: str) -> Chip:
        return parse_chip((GOOD + text).encode(), "my.toml")

    plain = Chip("c", 16)
    assert read("") == plain
    assert read("patch_rows = 1\npatch_columns = 1024") == replace(plain, patch=PatchSize(1, 1024))
    assert read("parallel_channels = 65_536") == replace(plain, partial_weights=PartialWeights(65_536))
    assert read("parallel_channels = 1\nweight_buffers = 16") == replace(
        plain, partial_weights=PartialWeights(1, 16)
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
    array = Chip("c", 1, array=PEArray(4, 8))
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
    chip = Chip("c", 16, "int8", "d", 1000, Rates(1.5e9, 20))
    assert load_chip(file) == load_chip(str(file)) == chip


FULL = Chip(
    "c",
    16,
    "int16",
    "d",
    7,
    Rates(1, 2.0, 3.0, 4.0, 5.0, 6.0),
    9,
    PEArray(4, 8, 64),
    7.0,
    "oh-ow",
    AccessCosts(200, 6.0, 2.0, 1.0),
    SplitBuffer(1, 2, 4),
    2.0,
    PatchSize(4, 2),
    PartialWeights(16, 2),
    True,
    4,
)
"""A chip that states everything but several memories."""


def test_a_table_of_all_figures_is_the_chip() -> None:
    stated = FULL.figures()
    assert stated.pop("memories") == ()
    assert None not in stated.values()
    assert chip_of(stated, "my.toml") == FULL


def test_every_figure_has_its_key_in_files() -> None:
    stated = FULL.figures()
    assert list(stated) == [
        "name", "alignment_bytes", "element", "description", "scratchpad_bytes", *RATES,
        "weight_scratchpad_bytes", "pe_rows", "pe_columns", "register_file_bytes", "clock_hertz", "dataflow",
        "dram_access_macs", "buffer_access_macs", "array_access_macs", "register_access_macs",
        "input_buffer_bytes", "output_buffer_bytes", "weight_buffer_bytes", "feature_map_compression",
        "patch_rows", "patch_columns", "parallel_channels", "weight_buffers", "stages_strided",
            "accumulator_bytes", "memories",
    ]  # fmt: skip
    assert set(RATES) == {f.name for f in fields(PlanChip)} & set(stated) - UNRATED


UNRATED = {"accumulator_bytes", "name", "alignment_bytes", "weight_scratchpad_bytes", "memories"}


@pytest.mark.parametrize("chip", [FULL, Chip("c", 16)])
def test_a_figure_under_its_former_name_is_one_line_of_warning(chip: Chip) -> None:
    for key, value in chip.figures().items():
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert getattr(chip, key) == value
        assert len(said) == (0 if key in {f.name for f in fields(Chip)} else 1)
    with pytest.warns(FutureWarning, match=r"^Chip\.pe_rows is Chip\.array\.rows now$") as caught:
        getattr(chip, "pe_rows")  # noqa: B009
    assert caught[0].filename == __file__
    with pytest.raises(AttributeError, match="'Chip' object has no attribute 'pe_rowz'"):
        getattr(chip, "pe_rowz")  # noqa: B009


def test_a_clock_may_be_stated_without_an_array() -> None:
    chip = parse_chip((GOOD + "clock_hertz = 1e6").encode(), "my.toml")
    assert (chip.clock_hertz, chip.array) == (1e6, None)


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
        assert "`onchip chips` lists those built in" in str(caught.value)
        assert ("did you mean generic" in str(caught.value)) == name.lower().startswith("generic")


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
