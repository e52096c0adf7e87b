"""Plans as two threads: the order of the law, and programs that compute what onnxruntime does."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

import onchip
from export.test_loops import BANDS, BANDS_WEIGHTS, ROWS, ROWS_WEIGHTS, source
from onchip.base.errors import UsageError
from onchip.check.nest_durations import Durations
from onchip.check.nest_times import NestTimes, NoTimes
from onchip.export import export
from onchip.export.loops.lower import book_of
from onchip.export.threads.c_threads import threads_of
from onchip.export.threads.order import OrderWalk, order_of
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.plans import Leaf, Loop, Nest, Plan, PlanChip, TensorLayout, Ways
from onchip.readers.source import Source
from onchip.run import run
from oracles.nest_clock_trial import random_plan
from oracles.program_trial import program_trial
from programs_in_turn import loops_ran, turns_ran
from timed_plans import EXAMPLE, SPILLED, WORDED, example, timed_plan

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

TILES = TileRates(
    10**9, (Channel(10**9, 50_000, 4_000, 64),), 30, (ArraySide("out", 8), ArraySide("out", 16))
)
CHIP = Chip("two threads", 64, "float32", tiles=TILES)
STRICT = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wno-psabi", "-Werror", "-pthread")
RACES = ("-fsanitize=thread", "-g")


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_order_has_the_times_of_the_law(first: int) -> None:
    """Random groups: each transfer and step as early as its two numbers allow ends when the law says."""
    compared = 0
    for seed in range(first, first + 50):
        tiles, parts, _ = random_plan(Random(seed))
        if len(tiles.channels) > 1 or not parts:
            continue
        times, walk = NestTimes(tiles), OrderWalk(tiles)
        for tree, layout, work, accumulator, beside, in_tiles in parts:
            durations = Durations(layout, tiles, work, accumulator, in_tiles)
            times.run(tree, durations, lambda _: (0, 0), beside=beside)
        try:
            for tree, layout, work, accumulator, beside, in_tiles in parts:
                walk.run(tree, Durations(layout, tiles, work, accumulator, in_tiles), beside=beside)
        except NoTimes:  # a turn in which nothing uses a buffer
            continue
        order = walk.order()
        assert order.picoseconds == times.finish(), seed
        assert len(order.steps) == sum(totals.steps for totals in times.totals), seed
        assert len(order.transfers) == sum(totals.transfers for totals in times.totals), seed
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("text", [EXAMPLE, SPILLED])
@pytest.mark.parametrize("copies", [{}, {"A": 2}, {"A": 2, "B": 2}])
def test_the_worked_example(text: str, copies: dict[str, int]) -> None:
    plan = timed_plan(WORDED.network, [example(text, **copies)], [["up", "down"]])
    assert order_of(plan).picoseconds == plan.result.latency_picoseconds


def test_tensors_in_tiles_are_refused() -> None:
    plan = timed_plan(WORDED.network, [example(EXAMPLE)], [["up", "down"]])
    tiled = replace(plan, layouts=(TensorLayout("h", (4, 6), (4, 2)),))
    with pytest.raises(UsageError, match=r"tensor h.*--no-dram-tiles"):
        order_of(tiled)


def planned(model: Source, kib: int) -> Plan:
    plan = onchip.plan(
        model, chip=CHIP, budget=kib * 1024, fuse=True, objective="latency", time_limit=4, dram_tiles=False
    )
    assert order_of(plan).picoseconds == plan.result.latency_picoseconds
    return plan


def ran(folder: Path, plan: Plan, model: Source, *flags: str, runs: int = 3) -> dict[str, int]:
    """Compile and run a plan's program; hold its outputs and bytes against onnxruntime's and the plan's."""
    made, book = threads_of(plan, model), book_of(plan, model)
    inputs = book.engine.seeded_inputs(3)
    wanted, ids = book.engine.reference(inputs), plan.network.tensor_id
    (folder / "program.c").write_text(made.source)
    (folder / "constants").write_bytes(made.constants)
    (folder / "inputs").write_bytes(b"".join(inputs[ids[name]].tobytes() for name, _ in made.inputs))
    command = ["gcc", *STRICT, *flags, "program.c", "-o", "program", "-lm"]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    done = subprocess.run(
        ["./program", "constants", "inputs", "outputs", str(runs)],
        cwd=folder, check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    told: dict[str, int] = json.loads(done.stdout)
    data, at = (folder / "outputs").read_bytes(), 0
    for name, size in made.outputs:
        one = wanted[ids[name]].reshape(-1)
        found = np.frombuffer(data[at : at + size], one.dtype)
        at += size
        assert np.abs(found - one).max() <= 1e-4 * np.abs(one).max()
    assert told["copied_bytes"] == plan.result.dram_bytes
    assert told["transfers"] == len(made.order.transfers)
    assert told["steps"] == len(made.order.steps)
    assert told["scratchpad_bytes"] <= plan.budget
    assert told["guard_bytes_broken"] == 0
    return told


@needs_compiler
def test_windows_pools_and_sums(tmp_path: Path) -> None:
    """Convolutions in blocks, with borders and strides, and a pool that keeps the C of one thread."""
    model = source(tmp_path, BANDS, low=np.float32(0), high=np.float32(6), **BANDS_WEIGHTS)
    told = ran(tmp_path, planned(model, 6), model)
    assert told["transfers"] > 4


@needs_compiler
def test_a_ring_that_begins_again_while_it_is_read(tmp_path: Path) -> None:
    """The first rows of the next turn come while the last rows of this one are still in use."""
    text = """net (float[1,4,12,20] x) => (float[1,16,12,20] y) {
      y = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w) }"""
    model = source(tmp_path, text, w=(16, 4, 3, 3))
    [op] = model.network.operators
    ways = Ways(copies=(("x", 2), ("y", 2)))
    rows = Loop(((op.name, 2),), 2, (Leaf(op.name),), ("x", "y"), ("x",), ways)
    nest = Nest((Loop(((op.name, 1),), 4, (rows,)),))
    plan = timed_plan(model.network, [nest], [[op.name]], PlanChip("two threads", 64, tiles=TILES))
    assert any(order_of(plan).slots.values())
    ran(tmp_path, plan, model, runs=20)


def nested(
    folder: Path, text: str, nest: Callable[[tuple[str, ...]], Nest], **weights: tuple[int, ...]
) -> tuple[Source, Plan]:
    """A network from text as one group, in a nest of the names of its operators."""
    model = source(folder, text, **weights)
    names = tuple(model.network.operators[v].name for v in model.network.order)
    chip = PlanChip("two threads", 64, tiles=TILES)
    return model, timed_plan(model.network, [nest(names)], [names], chip)


@needs_compiler
@pytest.mark.parametrize("filters", [4, 24])
@pytest.mark.parametrize(("lanes", "tile"), [(4, 5), (8, 11), (8, 17), (16, 8), (16, 11), (16, 17)])
def test_a_ring_along_lanes(lanes: int, tile: int, filters: int, tmp_path: Path) -> None:
    """The lanes of a map may begin before the end of a ring along its columns, and go on at its begin: those
    that are written, and those that are read, one by one or into a panel (of 24 filters)."""
    text = f"""net (float[1,4,6,40] x) => (float[1,{filters},6,40] y) {{
      a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w1)
      b = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a, w2)
      y = Relu (b) }}"""

    def nest(names: tuple[str, ...]) -> Nest:
        one, two = names
        return Nest((Loop(((one, 3), (two, 3)), tile, (Leaf(one), Leaf(two)), (), ("a",)),))

    model, plan = nested(tmp_path, text, nest, w1=(4, 4, 3, 3), w2=(filters, 4, 3, 3))
    assert len(threads_of(plan, model).arrays) == 2  # both in vectors
    turns_ran(tmp_path, plan, model, f"-DLANES={lanes}")


@needs_compiler
@pytest.mark.parametrize(("lanes", "tile"), [(4, 3), (8, 8), (8, 21), (16, 21)])
def test_a_factor_that_lies_turned(lanes: int, tile: int, tmp_path: Path) -> None:
    """Vectors of the columns of a matrix whose rows are summed: from squares that are turned, and rests."""
    text = """net (float[21,37] x) => (float[21,43] y) {
      y = Gemm <transB = 1> (x, w) }"""

    def nest(names: tuple[str, ...]) -> Nest:
        [op] = names
        return Nest((Loop(((op, 0),), tile, (Loop(((op, 2),), 19, (Leaf(op),)),)),))

    model, plan = nested(tmp_path, text, nest, w=(43, 37))
    assert "vec_turn(q" in threads_of(plan, model).source
    turns_ran(tmp_path, plan, model, f"-DLANES={lanes}")


@needs_compiler
@pytest.mark.parametrize("columns", [6, 8, 13])
def test_rows_of_a_ring_lie_alike_in_every_turn(columns: int, tmp_path: Path) -> None:
    """The first rows of the next columns, which are more or fewer, come while the last of these are read."""
    text = """net (float[1,4,12,20] x) => (float[1,8,12,20] y) {
      y = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w) }"""

    def nest(names: tuple[str, ...]) -> Nest:
        [op] = names
        ways = Ways(copies=(("x", 2), ("y", 2)))
        rows = Loop(((op, 2),), 1, (Leaf(op),), ("x", "y"), ("x",), ways)
        return Nest((Loop(((op, 3),), columns, (rows,)),))

    model, plan = nested(tmp_path, text, nest, w=(8, 4, 3, 3))
    turns_ran(tmp_path, plan, model)


@needs_compiler
def test_windows_over_one_row(tmp_path: Path) -> None:
    """What is made has one row, and no loop goes over rows."""
    text = """net (float[1,4,5,20] x) => (float[1,8,1,20] y) {
      y = Conv <kernel_shape = [5, 3], pads = [0, 1, 0, 1]> (x, w) }"""
    model, plan = nested(tmp_path, text, lambda names: Nest((Leaf(names[0]),)), w=(8, 4, 5, 3))
    turns_ran(tmp_path, plan, model)


@needs_compiler
def test_a_bias_that_is_counted_with_the_kernel(tmp_path: Path) -> None:
    """Of 8 x 3 and 8 floats a plan takes the kernel's elements for 5 bytes wide, and 8 bytes for the rest."""
    text = """net (float[1,3,6,20] x) => (float[1,8,6,20] y) {
      y = Conv <kernel_shape = [1, 1]> (x, w, b) }"""

    def nest(names: tuple[str, ...]) -> Nest:
        [op] = names
        return Nest((Loop(((op, 1),), 4, (Leaf(op),), (f"{op}.kernel", f"{op}.rest")),))

    model, plan = nested(tmp_path, text, nest, w=(8, 3, 1, 1), b=(8,))
    turns_ran(tmp_path, plan, model)


@needs_compiler
def test_a_bias_in_a_ring(tmp_path: Path) -> None:
    """In the first turn of a concat comes all of it, in those behind it nothing; the sum is cut inside."""
    text = """net (float[1,6,4,20] x) => (float[1,8,4,20] y) {
      a = Conv <kernel_shape = [1, 1]> (x, w, b)
      y = Concat <axis = 1> (a, x) }"""

    def nest(names: tuple[str, ...]) -> Nest:
        one, two = names
        body = (Leaf(one, ((4, 5),)), Leaf(two))
        keep = (f"{one}.kernel", "x", f"{one}.rest")
        ways = Ways(copies=tuple((name, 2) for name in keep))
        return Nest((Loop(((one, 1), (two, 1)), 2, body, keep, keep[2:], ways),))

    model, plan = nested(tmp_path, text, nest, w=(2, 6, 1, 1), b=(2,))
    assert run(plan, model).relative_difference <= 1e-4
    loops_ran(tmp_path, plan, model)
    turns_ran(tmp_path, plan, model)


@needs_compiler
@pytest.mark.thorough
@pytest.mark.parametrize(
    "first", [pytest.param(n, marks=() if n < 8 else pytest.mark.campaign) for n in range(0, 24, 4)]
)
def test_random_nests_of_maps(first: int, tmp_path: Path) -> None:
    """The machine, the C of one thread, and two threads in turn: outputs and bytes of random plans."""
    found = Counter[str]()
    for seed in range(first, first + 4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        found += program_trial(seed, folder)
    assert found["plans"] > found["without loops"]
    assert found["groups with rings"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[Source, Plan]:
    """Rows with norms and attention, and their plan."""
    model = source(tmp_path_factory.mktemp("rows"), ROWS, **ROWS_WEIGHTS)
    return model, planned(model, 6)


@needs_compiler
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_rows_norms_and_attention(lanes: int, rows: tuple[Source, Plan], tmp_path: Path) -> None:
    """One program serves machines of any vectors: it is compiled for the widest that a machine has."""
    model, plan = rows
    told = ran(tmp_path, plan, model, f"-DLANES={lanes}")
    assert told["lanes"] == lanes


@needs_compiler
def test_vectors_of_other_widths_are_refused(rows: tuple[Source, Plan], tmp_path: Path) -> None:
    """Of 2 or of 32 floats they would compile, and be wrong."""
    model, plan = rows
    (tmp_path / "program.c").write_text(threads_of(plan, model).source)
    for lanes in (2, 32):
        command = ["gcc", "-std=gnu11", "-fsyntax-only", "-pthread", "-w", f"-DLANES={lanes}", "program.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert "LANES is 4, 8 or 16" in done.stderr
        assert done.returncode


@needs_compiler
@pytest.mark.thorough
def test_no_byte_is_read_while_it_is_written(tmp_path: Path) -> None:
    """The two counters order all that the threads share: no race is found."""
    model = source(tmp_path, ROWS, **ROWS_WEIGHTS)
    ran(tmp_path, planned(model, 5), model, *RACES)


@needs_compiler
def test_the_program_notes_its_times(rows: tuple[Source, Plan], tmp_path: Path) -> None:
    model, plan = rows
    ran(tmp_path, plan, model, "-DONCHIP_TIMES")


def test_plans_without_times_are_refused(tmp_path: Path) -> None:
    model = source(tmp_path, ROWS, **ROWS_WEIGHTS)
    plan = onchip.plan(model, budget=8192, fuse=True)
    with pytest.raises(UsageError, match="no times of nests"):
        export(plan, "threads")
