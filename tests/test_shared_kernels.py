"""Kernels that layers share: the choice among them, and networks made with them."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onchip
from onchip.machines.board import Board
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.result.microcontroller_kernels import Kind, Saving, fewest_instructions, shareable
from onchip.microcontroller.result.microcontroller_table import advice

needs_toolchain = pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)

KINDS: tuple[Kind, ...] = ("conv", "depthwise")

SAVINGS = st.lists(
    st.builds(
        lambda kind, size, cost: (kind, size, cost),
        st.sampled_from(KINDS),
        st.integers(-50, 900),
        st.integers(0, 300),
    ),
    max_size=8,
).map(lambda rows: [Saving(frozenset({f"layer{i}"}), *row) for i, row in enumerate(rows)])


@given(
    savings=SAVINGS, needed=st.integers(1, 2500), library=st.tuples(st.integers(0, 500), st.integers(0, 500))
)
def test_no_other_choice_saves_as_much_for_fewer_instructions(
    savings: list[Saving], needed: int, library: tuple[int, int]
) -> None:
    sizes: dict[Kind, int] = dict(zip(KINDS, library, strict=True))

    def saves(chosen: tuple[Saving, ...]) -> bool:
        beside = sum(sizes[kind] for kind in {s.kind for s in chosen})
        return sum(s.bytes for s in chosen) >= needed + beside

    every = [c for n in range(1, len(savings) + 1) for c in combinations(savings, n) if saves(c)]
    least = min((sum(s.instructions for s in c) for c in every), default=None)
    found = fewest_instructions(savings, needed, sizes)
    if found is None:
        assert least is None
        return
    chosen = tuple(s for s in savings if s.layers <= found)
    assert saves(chosen)
    assert sum(s.instructions for s in chosen) == least


@pytest.mark.thorough
@needs_toolchain
@pytest.mark.parametrize("mode", ["held", pytest.param("once", marks=pytest.mark.campaign)])
def test_a_network_of_shared_kernels_makes_every_byte(mode: str) -> None:
    model = int8_model("made:kws")
    made = onchip.mcu(model, kernels="shared", run=True, runs=1, input=mode, objective="once")
    assert made.run is not None
    assert made.run.match
    assert set(made.shared) == shareable(model)
    assert sum("any_" in name for name in made.sources.users) == 2


@needs_toolchain
@pytest.mark.slow
def test_kernels_are_shared_where_the_flash_demands_it() -> None:
    model = int8_model("made:resnet8")
    alone = onchip.mcu(model, "disco-f407vg", run=True, runs=1)
    assert alone.run is not None
    assert alone.shared == ()
    board = Board("small", "cortex-m4", 64 << 10, alone.flash_bytes - 3000)
    some = onchip.mcu(model, board, run=True, runs=1)
    assert some.run is not None
    assert some.run.match
    assert some.fits
    assert 0 < len(some.shared) < len(shareable(model))
    every = onchip.mcu(model, board, kernels="shared", run=True, runs=1)
    assert every.run is not None
    assert alone.run.total.instructions < some.run.total.instructions < every.run.total.instructions


@needs_toolchain
@pytest.mark.slow
def test_what_fits_in_no_form_is_said_with_the_bytes(tmp_path: Path) -> None:
    model = int8_model("made:ad01")
    constants = onchip.mcu(model, Board("tiny", "cortex-m4", 64 << 10, 280_000)).constant_bytes
    made = onchip.mcu(model, Board("tiny", "cortex-m4", 64 << 10, constants - 1))
    assert not made.fits
    assert made.shared == ()
    assert made.shared_flash is None  # no kernels would help: constants alone are too many
    short = Board("tiny", "cortex-m4", 64 << 10, made.constant_bytes + 500)
    made = onchip.mcu(model, short)
    assert made.kernels == made.data()["kernels"] == "specialised"
    assert made.shared_flash is not None
    assert made.shared_flash > short.flash_bytes
    (said,) = (line for line in advice(made) if "specialised" in line)
    assert (
        f"{made.shared_flash:,} bytes of flash: then {made.shared_flash - short.flash_bytes:,} are missing"
        in said
    )
