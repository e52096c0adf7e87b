"""The table of modules is what a reader counts on the program, instruction by instruction."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from legal_plans import legal_plan

from onchip.check.joins import plain_concat
from onchip.network import Geometry, Network, OperatorSpec, Patches, TensorKind
from onchip.planners.modules.regions import regions_of
from onchip.planners.modules.table import (
    ModuleTable,
    kernel_bytes,
    module_table,
    sections_in_words,
    skip_rows,
)
from onchip.plans import (
    Alloc,
    Free,
    Instruction,
    Join,
    Load,
    Plan,
    PlanChip,
    Result,
    Run,
    Scratch,
    Section,
    Store,
)

NOTHING = Result("feasible", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0)
ROOM = 2000  # to stream through
PLANE = 6  # stored in patches of 4 x 4: 64 bytes a channel


def conv(name: str, source: str, out: str, channels: tuple[int, int], kernel: int = 1) -> OperatorSpec:
    """A convolution over a 6 x 6 map, with four bytes of parameters an output channel."""
    return OperatorSpec(
        name, "Conv", [source], [out],
        weight_bytes=channels[0] * channels[1] * kernel**2 + 4 * channels[1],
        workspace=ROOM,
        geometry=Geometry(
            "conv", (1, channels[0], PLANE, PLANE), (1, channels[1], PLANE, PLANE), (kernel, kernel), (1, 1),
            (kernel // 2,) * 4, (1, 1),
        ),
    )  # fmt: skip


def sample() -> Network:
    """x -> stem -> s; s -> left -> l, s -> right -> r; l, r -> cat -> y; y, s -> head -> z."""
    channels = {"x": 3, "s": 8, "l": 16, "r": 4, "y": 20, "z": 5}
    kinds: dict[str, TensorKind] = {"x": "input"}
    both = Geometry("concat", (1, 16, PLANE, PLANE), (1, 20, PLANE, PLANE))
    return Network.build(
        "sample",
        [(name, 64 * n, kinds.get(name, "activation")) for name, n in channels.items()],
        [
            conv("stem", "x", "s", (3, 8), 3),
            conv("left", "s", "l", (8, 16)),
            conv("right", "s", "r", (8, 4), 3),
            OperatorSpec("cat", "Concat", ["l", "r"], ["y"], geometry=both),
            OperatorSpec("head", "Odd", ["y", "s"], ["z"], weight_bytes=77, workspace=ROOM),
        ],
        ["z"],
        patches={name: Patches(n, PLANE, PLANE, 4, 4) for name, n in channels.items()},
    )


def planned(program: list[Instruction], *sections: Section) -> Plan:
    return Plan(sample(), PlanChip("test"), 10_000, tuple(program), NOTHING, sections=sections)


STEM: list[Instruction] = [Scratch("stem", 0), Run("stem", (("x", 192), ("s", 512)))]
BRANCHES = (("left",), ("right",))


def kept_on_chip() -> Plan:
    """The module as with processing I: its input comes in once, its output stays."""
    module: list[Instruction] = [
        Load("s", 0), Alloc("l", 512), Scratch("left", 5000), Run("left"),
        Alloc("r", 1536), Scratch("right", 5000), Run("right"), Alloc("y", 512, parts=("l", "r")), Run("cat"),
    ]  # fmt: skip
    head: list[Instruction] = [Scratch("head", 5000), Alloc("z", 2000), Run("head"), Free("y"), Store("z")]
    return planned(
        STEM + module + head,
        Section("before", 0, 2),
        Section("module", 2, 11, "s", "cat", BRANCHES, "I"),
        Section("after", 11, 16),
    )


def kept_in_dram() -> Plan:
    """The module as with processing II: every branch's output leaves, and joins there."""
    module: list[Instruction] = [
        Load("s", 0), Scratch("left", 5000), Run("left", (("l", 1024),)), Alloc("r", 1536),
        Scratch("right", 5000), Run("right"), Store("r"), Free("r"), Free("s"), Join("cat"),
    ]  # fmt: skip
    head: list[Instruction] = [Load("y", 0), Scratch("head", 5000), Alloc("z", 2000),
                               Run("head", (("s", 512),)), Store("z")]  # fmt: skip
    return planned(
        STEM + module + head,
        Section("before", 0, 2),
        Section("module", 2, 12, "s", "cat", BRANCHES, "II"),
        Section("after", 12, 17),
    )


def test_naive_figures_are_every_operand_and_output_and_no_concat() -> None:
    for plan in (kept_on_chip(), kept_in_dram()):
        before, module, after = module_table(plan).rows
        assert (before.naive_fm_bytes, before.naive_reads, before.naive_writes) == (192 + 512, 1, 1)
        assert module.naive_read_bytes == 512 + 512
        assert module.naive_written_bytes == 1024 + 256
        assert (module.naive_reads, module.naive_writes) == (2, 2)
        assert (after.naive_fm_bytes, after.naive_reads, after.naive_writes) == (1280 + 512 + 320, 2, 1)


def test_weights_are_kernels_and_parameters_stand_apart() -> None:
    before, module, after = module_table(kept_on_chip()).rows
    assert (before.weight_bytes, before.parameter_bytes) == (3 * 8 * 9, 32)
    assert (module.weight_bytes, module.parameter_bytes) == (8 * 16 + 8 * 4 * 9, 64 + 16)
    assert (after.weight_bytes, after.parameter_bytes) == (77, 0)  # no geometry tells them apart


def test_what_crosses_is_counted_where_it_crosses() -> None:
    before, module, after = module_table(kept_on_chip()).rows
    assert (before.read_bytes, before.reads, before.written_bytes, before.writes) == (192, 1, 512, 1)
    assert (module.read_bytes, module.reads, module.written_bytes, module.writes) == (512, 1, 0, 0)
    assert (after.read_bytes, after.reads, after.written_bytes, after.writes) == (0, 0, 320, 1)
    before, module, after = module_table(kept_in_dram()).rows
    assert (module.read_bytes, module.reads, module.written_bytes, module.writes) == (512, 1, 1280, 2)
    assert (after.read_bytes, after.reads, after.written_bytes, after.writes) == (1280 + 512, 2, 320, 1)


def test_totals_are_over_modules_and_stretches_apart() -> None:
    table = module_table(kept_in_dram())
    assert [row.name for row in table.modules] == ["module"]
    assert [row.name for row in table.outside] == ["before", "after"]
    assert table.total.processing is None
    assert table.network.fm_bytes == table.total.fm_bytes + table.total_outside.fm_bytes
    data = table.total.data()
    assert data["fm_kb"] == 1.75
    assert data["weights_kb"] == 416 / 1024
    assert data["ratio_percent"] == round(100 * (416 + 1792) / (416 + 2304), 4)
    assert data["fm_ratio_percent"] == round(100 * 1792 / 2304, 4)
    first, second = sections_in_words(table)
    assert first == "1 module (1 II): feature maps 1,792 B, 1 read and 2 writes"
    assert second == "2 operators outside modules: 2,816 B, 3 reads and 2 writes"


def test_a_plan_without_sections_has_no_row_and_no_ratio() -> None:
    table = module_table(replace(kept_on_chip(), sections=()))
    assert table == ModuleTable(())
    assert table.total.ratio is table.total.fm_ratio is None


def test_a_long_connection_costs_what_its_reader_fetches_once() -> None:
    plan = kept_in_dram()
    fetched, again, near = skip_rows(plan, [("s", "head"), ("s", "head"), ("y", "head")])
    assert (fetched.reads, fetched.read_bytes, fetched.fetched_in) == (1, 512, "after")
    assert (fetched.writes, fetched.written_bytes, fetched.stored_in) == (1, 512, "before")
    assert (again.reads, again.writes, again.read_bytes, again.written_bytes) == (0, 0, 0, 0)
    assert (near.reads, near.writes, near.stored_in) == (1, 0, None)  # it was joined there
    (kept,) = skip_rows(kept_on_chip(), [("s", "head")])
    assert (kept.reads, kept.fetched_in, kept.writes) == (0, None, 1)  # resident since the module


def test_regions_are_what_lies_there_and_when() -> None:
    plan = kept_on_chip()
    _, module, after = regions_of(plan)
    found = {(r.kind, r.name): (r.address, r.bytes, r.first, r.end) for r in module}
    assert found == {
        ("MIFM", "s"): (0, 512, 2, 11),
        ("MOFM", "l"): (512, 1024, 3, 11),
        ("working", "left"): (5000, ROOM, 4, 6),
        ("MOFM", "r"): (1536, 256, 6, 11),
        ("working", "right"): (5000, ROOM, 7, 9),
        ("MOFM", "y"): (512, 1280, 9, 11),
    }
    assert {r.name for r in after} == {"s", "y", "head", "z"}
    assert {r.kind for r in after} == {"feature map", "working"}
    for kind, name in (("MOFM", "r"), ("MIFM", "s")):
        assert (kind, name) in {(r.kind, r.name) for r in regions_of(kept_in_dram())[1]}


@pytest.mark.parametrize(
    ("geometry", "kernels"),
    [
        (Geometry("conv", (1, 8, 9, 9), (1, 6, 9, 9), (3, 5), groups=2), 4 * 6 * 15),
        (Geometry("conv", (1, 9, 9, 8), (1, 9, 9, 6), (3, 5), groups=2, layout="NHWC"), 4 * 6 * 15),
        (Geometry("gathered conv", (1, 58, 9, 9), (1, 58, 9, 9), (1, 1)), 58 * 58),
        (Geometry("depthwise", (1, 8, 9, 9), (1, 8, 9, 9), (3, 3), groups=8), 8 * 9),
        (Geometry("depthwise", (1, 8, 9, 9), (1, 16, 9, 9), (3, 3), groups=8), 16 * 9),
        (Geometry("fully_connected", (1, 64), (1, 10)), 640),
        (Geometry("elementwise", (1, 64), (1, 64)), 0),
        (Geometry("recurrent", (1, 64), (1, 64)), 4000),
        (None, 4000),
    ],
)
def test_kernels_follow_from_the_geometry(geometry: Geometry | None, kernels: int) -> None:
    net = Network.build(
        "n", [("a", 64, "input"), ("b", 64, "activation")],
        [OperatorSpec("op", "Any", ["a"], ["b"], weight_bytes=4000, geometry=geometry)], ["b"],
    )  # fmt: skip
    assert kernel_bytes(net, net.operators[0]) == kernels
    assert kernel_bytes(replace(net, element="float32"), net.operators[0]) == min(4000, 4 * kernels)


@pytest.mark.thorough
@given(st.integers(0, 2**32), st.lists(st.integers(0, 60), max_size=6))
def test_however_a_legal_program_is_cut_its_sections_add_up_to_what_the_checker_counts(
    seed: int, cuts: list[int]
) -> None:
    plan = legal_plan(Random(seed))
    end = len(plan.program)
    bounds = sorted({0, end, *(cut for cut in cuts if cut < end)})
    sections = tuple(Section(f"s{i}", first, last) for i, (first, last) in enumerate(pairwise(bounds)))
    whole = module_table(replace(plan, sections=sections)).network
    assert whole.fm_bytes == plan.result.dram_bytes - plan.result.weight_bytes
    assert whole.operators == len(plan.network.operators)
    concats = [op for op in plan.network.operators if plain_concat(plan.network, op.id)]
    for naive, side in ((whole.naive_reads, "inputs"), (whole.naive_writes, "outputs")):
        every, free = (sum(len(getattr(op, side)) for op in ops) for ops in (plan.network.operators, concats))
        assert every - free <= naive <= every


def test_a_concat_is_naively_free_where_its_operands_can_lie_in_it() -> None:
    """x, a -> b; a, b -> c; b, b2 -> d; c, d -> e: c claims a and b, so d is a layer; b holds an input."""
    channels = {"x": 1, "a": 1, "b": 2, "c": 3, "b2": 2, "d": 4, "e": 7}
    made = {"a": ["x"], "b": ["x", "a"], "c": ["a", "b"], "b2": ["b"], "d": ["b", "b2"], "e": ["c", "d"]}
    specs = [
        OperatorSpec(
            f"make {out}", "Concat" if len(of) > 1 else "Relu", of, [out],
            geometry=Geometry(
                "concat" if len(of) > 1 else "elementwise",
                *((1, channels[name], PLANE, PLANE) for name in (of[0], out)),
            ),
        )
        for out, of in made.items()
    ]  # fmt: skip
    kinds: dict[str, TensorKind] = {"x": "input"}
    net = Network.build(
        "n", [(name, 64 * n, kinds.get(name, "activation")) for name, n in channels.items()], specs, ["e"],
        patches={name: Patches(n, PLANE, PLANE, 4, 4) for name, n in channels.items()},
    )  # fmt: skip
    assert sum(plain_concat(net, op.id) for op in net.operators) == 4
    program: list[Instruction] = [Load("x", 0)]
    for i, op in enumerate(net.operators):
        program += [Alloc(net.tensors[op.outputs[0]].name, 1000 * i + 1000), Run(op.name)]
    program.append(Store("e"))
    whole = Section("all", 0, len(program))
    plan = Plan(net, PlanChip("test"), 10_000, tuple(program), NOTHING, sections=(whole,))
    row = module_table(plan).network
    assert row.naive_reads == 1 + 2 + 1 + 2  # a, b, b2, d
    assert row.naive_writes == 4
    assert row.naive_read_bytes == 64 * (1 + 2 + 2 + 4)
    assert row.naive_written_bytes == 64 * (1 + 2 + 2 + 4)


@pytest.mark.thorough
@given(st.integers(0, 2**32))
def test_the_regions_of_a_legal_program_hold_its_peak_and_its_extent(seed: int) -> None:
    plan = legal_plan(Random(seed))
    (regions,) = regions_of(replace(plan, sections=(Section("all", 0, len(plan.program)),)))
    most = 0
    for i in range(len(plan.program)):
        taken = {b for r in regions if r.first <= i < r.end for b in range(r.address, r.address + r.bytes)}
        most = max(most, len(taken))
    assert most == plan.result.peak_bytes
    assert max((r.address + r.bytes for r in regions), default=0) == plan.result.extent_bytes
