"""Accesses and cycles of a dataflow, against a machine that walks through the loops one word at a time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import ceil, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.planners.fusion.dataflow import Array, Dataflow, Work, accesses

DATAFLOWS: tuple[Dataflow, ...] = ("ow-cout", "oh-ow", "cin-cout")


@st.composite
def works(draw: st.DrawFn) -> Work:
    groups = draw(st.sampled_from((1, 1, 2)))
    mixes = draw(st.booleans())
    in_channels = draw(st.integers(1, 5)) if mixes else 1
    out_channels = groups * draw(st.integers(1, 5)) if mixes else draw(st.integers(1, 6))
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rows = draw(st.integers(1, 7))
    return Work(
        rows=rows,
        bands=draw(st.integers(1, rows)),
        columns=draw(st.integers(1, 7)),
        out_channels=out_channels,
        in_channels=in_channels,
        groups=groups if mixes else 1,
        kernel_rows=kernel[0],
        kernel_columns=kernel[1],
        stride=draw(st.integers(1, 3)),
        weights=draw(st.sampled_from((0, 1))) * out_channels * in_channels * prod(kernel),
        mixes=mixes,
        slices=draw(st.integers(1, 3)),
    )


def arrays() -> st.SearchStrategy[Array]:
    return st.builds(
        Array, st.integers(1, 3), st.integers(1, 3), st.integers(3, 12), st.sampled_from(DATAFLOWS)
    )


def pieces(length: int, size: int) -> list[range]:
    return [range(i, min(i + size, length)) for i in range(0, length, size)]


def bands(work: Work) -> list[range]:
    """Rows in bands that differ by one row at most."""
    each, more = divmod(work.rows, work.bands)
    ends = list(itertools.accumulate([each + 1] * more + [each] * (work.bands - more), initial=0))
    return [range(a, b) for a, b in itertools.pairwise(ends)]


def window(positions: range, kernel: int, stride: int) -> set[int]:
    return {o * stride + k for o in positions for k in range(kernel)}


def walk(work: Work, on: Array, block: tuple[int, int, int]) -> int:
    """Words read from the buffer and written to it, sums staying in the registers, one fetch at a time."""
    down, deep = (1, on.rows) if on.dataflow == "ow-cout" else (on.rows, 1)
    words = 0
    group = work.out_channels // work.groups
    for band in bands(work):
        for rows in pieces(len(band), down * block[0]):
            for columns in pieces(work.columns, on.columns * block[1]):
                seen = window(rows, work.kernel_rows, work.stride)
                wide = window(columns, work.kernel_columns, work.stride)
                for _ in range(work.groups):
                    for channels in pieces(group, deep * block[2]):
                        read = work.in_channels if work.mixes else len(channels)
                        words += read * len(seen) * len(wide)
                words += work.weights
                words += len(rows) * len(columns) * work.out_channels * (2 * work.slices - 1)
    return words


@pytest.mark.thorough
@given(works(), arrays())
def test_words_are_those_of_the_best_block_walked_through(work: Work, on: Array) -> None:
    if on.dataflow == "cin-cout":
        return
    room = max(1, on.registers - 2)
    tallest = ceil(work.rows / work.bands)
    blocks = [
        (r, c, d)
        for r, c, d in itertools.product(range(1, room + 1), repeat=3)
        if r * c * d <= room and r <= tallest and c <= work.columns and d <= work.out_channels
    ]
    assert accesses(work, on).buffer == min(walk(work, on, block) for block in blocks)


@given(works(), arrays())
def test_the_array_is_never_faster_than_all_its_elements(work: Work, on: Array) -> None:
    found = accesses(work, on)
    assert found.cycles * on.rows * on.columns >= work.window
    assert found.macs == (work.window if work.weights else 0)


@given(works(), arrays())
def test_every_word_is_read_and_written_at_least_once(work: Work, on: Array) -> None:
    least = work.weights + work.outputs
    assert accesses(work, on).buffer >= least


@given(works(), arrays(), st.integers(1, 8))
def test_more_registers_never_read_the_buffer_more(work: Work, on: Array, more: int) -> None:
    larger = Array(on.rows, on.columns, on.registers + more, on.dataflow)
    assert accesses(work, larger).buffer <= accesses(work, on).buffer


@given(works(), arrays(), st.tuples(st.floats(0, 8), st.floats(0, 8)))
def test_a_block_chosen_by_prices_is_the_cheapest(work: Work, on: Array, prices: tuple[float, float]) -> None:
    def spent(by: tuple[float, float]) -> float:
        found = accesses(work, replace(on, prices=by))
        return prices[0] * found.buffer + prices[1] * found.array

    assert spent(prices) <= min(map(spent, [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (6.0, 2.0)]))


@pytest.mark.parametrize(
    ("dataflow", "cycles"),
    # 14 x 14 outputs of 32 channels from 3 x 3 x 64: columns fill 14 of 16, channels two rounds of 16.
    [("ow-cout", 14 * 1 * 2 * 576), ("oh-ow", 1 * 1 * 32 * 576), ("cin-cout", 14 * 14 * 2 * 9 * 4)],
)
def test_cycles_of_a_known_layer(dataflow: Dataflow, cycles: int) -> None:
    layer = Work(14, 1, 14, 32, 64, 1, 3, 3, 1, weights=32 * 576)
    assert accesses(layer, Array(16, 16, 32, dataflow)).cycles == cycles


def test_nothing_made_is_nothing_spent() -> None:
    nothing = Work(0, 0, 4, 4, 4, 1, 1, 1, 1, weights=16)
    assert accesses(nothing, Array(4, 4, 8, "ow-cout")).buffer == 0
