"""docs/vmcu.md: what its tables say of each other, and what its scripts find."""

from __future__ import annotations

import shutil
import sys
from math import prod
from pathlib import Path

import pytest

from onchip.machines.board import Board
from onchip.microcontroller.compare.in_place import buffer_bytes, with_buffers
from onchip.microcontroller.compare.lives import Lives
from onchip.microcontroller.compare.segments import METHODS
from onchip.microcontroller.emulator import build, emulate
from onchip.microcontroller.kernel_language import c_prelude, c_prototype, c_source
from onchip.microcontroller.kernels.use import kernel_for
from onchip.papers.vmcu.circular import circular_pool

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

from vmcu_fig7 import beside, least, ninth, obeyed, shapes  # noqa: E402
from vmcu_grown import KINDS  # noqa: E402
from vmcu_modules import BUFFERS, IMAGENET, SHOWN, VWW, clipped  # noqa: E402
from vmcu_networks import PRINTED, Block, depthwise, left_out, network  # noqa: E402
from vmcu_page import numbers, rows  # noqa: E402

needs_toolchain = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)


@pytest.mark.thorough
def test_nine_layers_obey_every_sentence_on_fig_7() -> None:
    """With what is beside the tensors all eight, without it all but both shares."""
    constant, last = ninth()
    low, high = beside()
    assert low <= constant <= high
    assert all(obeyed(constant).values())
    assert [sentence for sentence, holds in obeyed(0).items() if not holds] == [
        "the least saving is 12.01 %",
        "the most is 49.45 %",
    ]
    assert not obeyed(low - 1)["the most is 49.45 %"]
    assert not obeyed(high + 1)["the most is 49.45 %"]
    assert least()[0] > 0.4945
    assert shapes()[-1] == last


def test_a_depthwise_layer_overlapped_and_in_place() -> None:
    """A row and a pixel of distance; 2 bytes for each place of a padded plane."""
    net = depthwise(20, 48, 3)
    assert circular_pool(net).bytes == 20 * 20 * 48 + 21 * 48
    assert with_buffers(Lives.of(net)).ram_bytes == 20 * 20 * 48 + 2 * 22 * 22


def test_table_2_has_the_blocks_with_a_sum_alone() -> None:
    """Of MCUNet-5fps-VWW four of stride 2 are left out, and two of stride 1 that change their channels."""
    out = left_out("made:mcunet_vww")
    assert sorted(block.strides[1] for block in out) == [1, 1, 2, 2, 2, 2]
    assert all(2 in block.strides or block.channels != block.outputs for block in out)
    errata = (ROOT / "docs" / "vmcu.md").read_text("utf-8")
    assert "4 of stride 2 in all and 2 of stride 1 that change their channels" in errata


def block(name: str) -> Block:
    return next(one for blocks in PRINTED.values() for one in blocks if one.name == name)


def test_tinyengines_buffers() -> None:
    """S1's largest is its depthwise layer's plane; B1's stem has windows of 3 x 3 x 3, weights in 16 bits."""
    s1 = block("S1").network
    assert [buffer_bytes(op.geometry) for op in s1.operators] == [
        (4 * 16, 0),
        (2 * 22 * 22, 0),
        (4 * 48, 0),
        (0, 0),
    ]
    assert SHOWN[BUFFERS](s1).ram_bytes == SHOWN["in place"](s1).ram_bytes + 968
    stem = block("B1").network.operators[0].geometry
    assert buffer_bytes(stem) == (4 * 27, 2 * 27 * 16)


def test_the_two_shares_of_s1_are_of_one_number_of_bytes() -> None:
    """71.6 % less than HMCOS and 61.5 % less than TinyEngine: with its buffers, not without."""
    s1 = block("S1").network
    order, place, buffers = (SHOWN[m](s1).ram_bytes for m in ("order", "in place", BUFFERS))

    def of(bytes_: int, share: float) -> set[int]:
        return {n for n in range(bytes_) if round(1 - n / bytes_, 3) == share}

    both = of(order, 0.716) & of(buffers, 0.615)
    assert (min(both), max(both)) == (12_701, 12_709)
    assert not of(order, 0.716) & of(place, 0.615)
    assert SHOWN["window"](s1).ram_bytes == 12_705 - 5_473


def test_b16_by_the_pixels_of_its_map() -> None:
    """36 pixels of B, one of C and D; of A 6 x 6 and the distance: a row of 6, and 3 rows and 3 pixels."""
    row, bytes_ = clipped()
    assert bytes_ == (36 + 1) * 480 + 96 + 36 * 96 + (3 * 6 + 3) * 96
    assert round(1 - bytes_ / row.ram[BUFFERS], 3) == 0.107


def test_the_smallest_block_grows_by_a_third() -> None:
    """S8 in the RAM that it needs in place with TinyEngine's buffers: 4 x 4 for 3 x 3, 124 channels."""
    s8 = block("S8")
    limit = SHOWN[BUFFERS](s8.network).ram_bytes
    for kind, most in (("image", 4), ("channels", 124)):
        grown, _ = KINDS[kind]
        takes = [SHOWN["window"](grown(s8, n).network).ram_bytes for n in (most, most + 1)]
        assert takes[0] <= limit < takes[1], kind
    assert rows("fig11", 5)[10][0] == rows("fig12", 5)[10][0] == "S8"
    assert rows("fig11", 5)[10][3] == "1.33 (4)"
    assert rows("fig12", 5)[10][3] == "1.29 (124)"


def test_an_order_of_least_peak_saves_nothing_where_there_is_one_order() -> None:
    """Each layer reads what the one before made, so *order* can close holes between tensors only."""
    said = next(row for row in rows("claims", 5) if row[0].startswith("HMCOS"))
    bytes_ = []
    for name in (VWW, IMAGENET):
        net = network(name)
        before, *rest = (net.operators[v] for v in net.order)
        for op in rest:
            assert before.outputs[0] in op.inputs
            before = op
        bytes_ += [METHODS[m](net).ram_bytes for m in ("order", "whole")]
    assert said[2] == "{:,} of {:,} bytes, {:,} of {:,}".format(*bytes_)
    assert bytes_[0] == bytes_[1]


def test_savings_of_fig_8_are_those_of_its_counts() -> None:
    counts = [numbers([*row[2:8], *row[10:13]]) for row in rows("fig8", 14)]
    savings = [numbers(row[1:]) for row in rows("fig8", 8)[:9]]
    assert len(counts) == len(savings) == len(shapes()) == 9
    assert [row[1] for row in rows("fig8", 14)] == [f"{n}x{n} {c} > {k}" for n, c, k in shapes()]
    for i, (ours, share) in enumerate(zip(counts, savings, strict=True)):
        assert share[0] == round(100 * (1 - ours[0] / ours[3]), 1), i
        assert share[4] == round(100 * (1 - ours[0] / ours[6]), 1), i
        assert share[6] == round(100 * (1 - (ours[1] + ours[2]) / (ours[4] + ours[5])), 1), i
    for price, row in zip((0, 1, 2, 4), rows("fig8", 8)[9:], strict=True):
        saved = [1 - (n[0] + price * (n[1] + n[2])) / (n[3] + price * (n[4] + n[5])) for n in counts]
        assert row[1] == f"{min(saved):.1%} to {max(saved):.1%}"
        saved = [1 - (n[0] + price * (n[1] + n[2])) / (n[6] + price * (n[7] + n[8])) for n in counts]
        assert row[5] == f"{min(saved):.1%} to {max(saved):.1%}"


def test_ratios_of_table_3_are_those_of_its_counts() -> None:
    found = [numbers(row[1:]) for row in rows("table3_beside", 12) if row[0] != "mean"]
    assert len(found) == 8
    for row in found:
        assert row[7] == round(row[3] / row[0], 2)
        assert row[8] == round((row[4] + row[5]) / (row[1] + row[2]), 2)
        assert row[9] == round(row[6] / row[0], 2)
    (mean,) = (numbers(row[8:]) for row in rows("table3_beside", 12) if row[0] == "mean")
    for column, value in enumerate(mean):
        assert value == pytest.approx(sum(row[7 + column] for row in found) / 8, abs=0.006)


def test_the_window_kernels_ram_is_its_formulas() -> None:
    """As linked, to the byte; S5's window is larger than its map."""
    found = rows("window", 11)
    assert [row[0] for row in found] == [f"S{i}" for i in range(1, 9)]
    ran = [row for row in found if row[0] != "S5"]
    assert all(row[3] == row[4] and row[10] == "equal" for row in ran)
    assert [row[1] for row in ran] == ["11", "11", "11", "27", "11", "11", "11"]
    for name in ("S1", "S6", "S7", "S8"):
        planned = SHOWN["window"](block(name).network).ram_bytes
        assert next(row[3] for row in ran if row[0] == name) == f"{planned:,}"


MAIN = """#include "kernels.h"
static int8_t in[{given}], out[{made}];
static const int32_t words[] = {{{words}}};
__attribute__((noinline)) void onchip_mark_1(void) {{ __asm__ volatile("nop"); }}
__attribute__((noinline)) void onchip_mark_0(void) {{ __asm__ volatile("nop"); }}
int main(void)
{{
    onchip_mark_1();
    for (int32_t y = 0; y < {rows}; ++y) {{
        const int8_t *lines[] = {{in + y * {row}}};
        {name}(lines, out + y * {out_row}, 0, {rows}, words);
    }}
    onchip_mark_0();
    return 0;
}}
"""


@pytest.mark.thorough
@needs_toolchain
@pytest.mark.parametrize("case", [6, 8])
def test_our_counts_of_fig_8(case: int, tmp_path: Path) -> None:
    """Counted again without TinyEngine; the page's loop over rows is another program's."""
    from mcu_tinyengine import random_pointwise

    size, channels, outputs = shapes()[case]
    layer = random_pointwise(size, channels, outputs)
    use = kernel_for(layer)
    main = MAIN.format(
        given=prod(layer.input_shapes[0]),
        made=prod(layer.output_shape),
        words=", ".join(map(str, use.words)),
        rows=size,
        row=size * channels,
        out_row=size * outputs,
        name=use.function.name,
    )
    sources = {
        "main.c": main,
        "kernels.c": '#include "kernels.h"\n' + c_source(use.function),
        "kernels.h": c_prelude() + c_prototype(use.function) + ";\n",
    }
    image = build(sources, Board("bench", "cortex-m7", 1 << 20, 1 << 20), tmp_path)
    counts = emulate(image, memory=True).by_mark[1]
    page = numbers(rows("fig8", 14)[case][2:5])
    for mine, shown in zip((counts.instructions, counts.loads, counts.stores), page, strict=True):
        assert mine == pytest.approx(shown, rel=0.01)


def test_reasons_of_section_7_2() -> None:
    """Columns and unrolling, counted again from the rows of Fig. 8; both claims name these figures."""
    counted = [numbers(row[2:10]) for row in rows("fig8", 14)]
    accesses = [(row[4] + row[5]) / (row[1] + row[2]) for row in counted]
    assert (f"{min(accesses):.2f}", f"{max(accesses):.2f}") == ("1.19", "2.57")
    without = [  # a load or store at one instruction beside its own
        100 * (1 - sum(row[:3]) / (row[3] * (1 - row[6] / 100) + (row[4] + row[5]) * (1 - row[7] / 100)))
        for row in counted
    ]
    saved = list(zip(*(numbers(row[1:3]) for row in rows("fig8", 8)[:9]), strict=True))
    assert [(min(each), max(each)) for each in saved] == [(20.6, 62.0), (28.9, 62.0)]
    assert all(unrolled >= plain for plain, unrolled in zip(*saved, strict=True))
    claims = {row[0]: row[2:] for row in rows("claims", 5)}
    first, second = (claims[text] for text in claims if text.startswith("a reason for the energy: "))
    assert f"nothing else changed, {min(without):.1f} to {max(without):.1f}; " in first[2]
    assert second[0] == "unrolled 28.9 to 62.0 % of the instructions, as they are 20.6 to 62.0 %"
