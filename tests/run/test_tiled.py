"""Groups in bands, executed as nests: they move what their tiles do, or say why not; errors are found."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, parser

from onchip.base.errors import IllegalPlan, InputError, Mismatch
from onchip.check import certify
from onchip.check.as_nests import plan_as_nests
from onchip.plans import Alloc, Free, Load, Plan, Result, Run, Tiling
from onchip.readers import ReadOptions
from onchip.readers.source import Executable, Source
from onchip.run import RunReport, run
from run.models import HEADER, read
from run.tilings import Sketch, plan_of, shapes_of

CHAIN = """chain (float[2,3,17,9] x) => (float[2,8,4,3] y) {
    a = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w1)
    b = Relu(a)
    c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(b, w2, b2)
    d = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[0,1,0,1]>(c)
    y = Conv<kernel_shape=[1,1]>(d, w3)
}"""

FORK = """fork (float[1,4,9,6] x) => (float[1,14,9,6] y) {
    s = Conv<kernel_shape=[1,1]>(x, w1)
    a = Conv<kernel_shape=[1,1]>(s, w2)
    b = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(s, w3)
    c = Concat<axis=1>(a, b)
    d = Conv<kernel_shape=[1,1]>(c, w4)
    e = Add(d, s)
    p = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(e)
    y = Conv<kernel_shape=[1,1]>(p, w5)
}"""

PARKED = """parked (float[1,4,6,5] x) => (float[1,5,6,5] y, float[1,4,6,5] z) {
    a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)
    b = Conv<kernel_shape=[1,1]>(a, w2)
    c = Conv<kernel_shape=[1,1]>(a, w3)
    d = Sub(b, c)
    y = Conv<kernel_shape=[1,1]>(d, w4)
    z = Sub(a, x)
}"""

AHEAD = """ahead (float[2,3,6,5] x) => (float[2,5,4,3] a, float[2,4,2,1] y) {
    a = Conv<kernel_shape=[3,3]>(x, w1)
    y = Conv<kernel_shape=[3,3]>(a, w2)
}"""

WEIGHTS = {
    "ahead": {"w1": (5, 3, 3, 3), "w2": (4, 5, 3, 3)},
    "parked": {"w1": (4, 4, 3, 3), "w2": (7, 4, 1, 1), "w3": (7, 4, 1, 1), "w4": (5, 7, 1, 1)},
    "chain": {"w1": (5, 3, 3, 3), "w2": (6, 5, 3, 3), "b2": (6,), "w3": (8, 6, 1, 1)},
    "fork": {
        "w1": (3, 4, 1, 1),
        "w2": (5, 3, 1, 1),
        "w3": (7, 3, 3, 3),
        "w4": (3, 12, 1, 1),
        "w5": (14, 3, 1, 1),
    },
}


def model(name: str) -> ModelProto:
    proto = parser.parse_model(
        HEADER + {"ahead": AHEAD, "chain": CHAIN, "fork": FORK, "parked": PARKED}[name]
    )
    for weight, shape in WEIGHTS[name].items():
        proto.graph.initializer.append(TensorProto(name=weight, dims=shape, data_type=TensorProto.FLOAT))
    return proto


@cache
def found(name: str) -> Source:
    return read(model(name), Path(mkdtemp()) / f"{name}.onnx", ReadOptions("fused", "int16"))


def sketch(
    name: str,
    rows: int,
    streamed: Collection[str] = (),
    channels: int = 2,
    images: int = 1,
    resident: Collection[str] = (),
) -> Sketch:
    """All of a network as one group."""
    source = found(name)
    network = source.network
    assert isinstance(source.executable, Executable)
    return Sketch(
        network,
        [network.operators[v] for v in network.order],
        shapes_of(network, source.executable.shape),
        {network.tensor_id[t] for t in streamed},
        rows,
        channels,
        images,
        {network.operator_id[v] for v in resident},
        4,
    )


def plan(*args: object, **named: object) -> Plan:
    made = sketch(*args, **named)  # type: ignore[arg-type]
    return plan_of(made.network, [made])


def executed(name: str, wrong: Plan) -> RunReport:
    return run(wrong, found(name), checked=False)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("streamed", [(), ("x",), ("x", "c"), ("b", "d"), ("y",)])
@pytest.mark.parametrize("images", [1, 2])
def test_a_chain_of_convolutions_and_pools(rows: int, streamed: tuple[str, ...], images: int) -> None:
    made = sketch("chain", rows, streamed, images=images, resident=["y"])
    report = executed("chain", plan_of(made.network, [made]))
    [moved] = report.tiled
    assert moved.subgroups == made.subgroups
    assert moved.counted_bytes == moved.stated_bytes
    assert report.moved.weights == made.weights()
    assert (moved.recomputed > 0) == bool(
        {"b", "c"}.intersection(streamed)
    )  # windows of two bands meet there


def test_one_band_of_whole_maps_is_bit_for_bit() -> None:
    """Its weights are kept: a nest takes refilled ones in slices, and adds up what these make."""
    report = executed("chain", plan("chain", 4, images=2, resident=WEIGHTED))
    assert report.bit_exact
    assert report.tiled[0].subgroups == 1
    assert "1 groups in 1 tiles" in "\n".join(report.lines())


@pytest.mark.parametrize("streamed", [("a", "b", "c"), ("c",), ("b",), ("d", "x"), ("e", "p"), ("x", "p")])
@pytest.mark.parametrize("channels", [2, 3, 16])
def test_branches_and_slices_of_channels(streamed: tuple[str, ...], channels: int) -> None:
    made = sketch("fork", 2, streamed, channels)
    assert made.legal()
    report = executed("fork", plan_of(made.network, [made]))
    assert report.tiled[0].counted_bytes == report.tiled[0].stated_bytes


@pytest.mark.parametrize("streamed", [("b", "c"), ("b",), ("c",), ("a",), ("x",), ("b", "c", "x")])
@pytest.mark.parametrize("channels", [3, 8])
def test_one_of_two_operands_waits_in_the_buffer_of_a_held_output(
    streamed: tuple[str, ...], channels: int
) -> None:
    made = sketch("parked", 2, streamed, channels)
    assert made.legal()
    report = executed("parked", plan_of(made.network, [made]))
    [moved] = report.tiled
    assert moved.counted_bytes <= moved.stated_bytes
    assert moved.counted_bytes == moved.stated_bytes or "held" in moved.why


WEIGHTED = ("a", "c", "y")
"""The operators of the chain that have weights."""


def changed(good: Plan, **fields: object) -> Plan:
    return replace(good, groups=(replace(good.groups[0], **fields),))  # type: ignore[arg-type]


@pytest.mark.parametrize("streamed", [(), ("x",), ("a",), ("y",)])
@pytest.mark.parametrize("images", [1, 2])
def test_bands_that_make_nothing_new_run_and_refill(streamed: tuple[str, ...], images: int) -> None:
    # Two bands of y ask for all of a, which leaves as four.
    made = sketch("ahead", 1, streamed, images=images, resident=["a"])
    assert len(made.new) == 4
    assert all(rows[0] == rows[1] for t, rows in made.new[3].items() if t not in made.external)
    stated = plan_of(made.network, [made])
    proved = figures(stated)
    assert proved is not None
    report = run(replace(stated, result=proved), found("ahead"))
    assert report.tiled[0].subgroups == 4 * (2 // images)
    assert report.tiled[0].counted_bytes == report.tiled[0].stated_bytes
    assert report.moved.weights == made.weights()


@pytest.mark.parametrize(
    "change",
    [
        {"stride": (1, 1)},
        {"stride": (2, 1)},
        {"kernel": (2, 2)},
        {"kernel": (5, 5)},
        {"padding": (0, 0, 0, 0)},
        {"padding": (2, 2, 2, 2)},
        {"dilation": (2, 2)},
        {"output": (2, 8, 3, 4)},
        {"output": (2, 4, 8, 3)},
        {"output": (1, 8, 8, 3)},
    ],
)
@pytest.mark.parametrize("streamed", [(), ("x", "c")])
@pytest.mark.parametrize("which", ["a", "c", "d", "y"])
def test_a_geometry_that_contradicts_the_model_is_one_line(
    which: str, streamed: tuple[str, ...], change: dict[str, Any]
) -> None:
    good = plan("chain", 3, streamed)
    operators = [
        replace(op, geometry=replace(op.geometry, **change))
        if op.name == which and op.geometry is not None
        else op
        for op in good.network.operators
    ]
    wrong = replace(good, network=replace(good.network, operators=tuple(operators)))
    try:
        line = "" if executed("chain", wrong).relative_difference < 1e-4 else "two lines\n"
    except (IllegalPlan, InputError, Mismatch) as refusal:
        line = str(refusal)
    assert "\n" not in line


def test_streams_that_wait_for_one_another_are_found() -> None:
    # e is a sum of d, which needs all of c, and c is made with e's operand in one pass.
    made = sketch("fork", 2, ("c", "a", "b", "e", "s"), 2)
    assert not made.legal()


def test_weights_that_are_not_fetched_are_found() -> None:
    told = plan_as_nests(plan("chain", 2))
    assert told is not None
    result = replace(told.plan.result, weight_bytes=told.plan.result.weight_bytes - 2)
    with pytest.raises(Mismatch, match="weight_bytes: the copies moved"):
        executed("chain", replace(told.plan, result=result))


def test_an_operand_that_neither_streams_nor_is_there_is_refused_by_name() -> None:
    good = plan("chain", 2)
    for drop, rule in ((1, "input-not-resident: x"), (-1, "output-not-reserved: y")):
        program = tuple(
            Run(i.operator, i.streaming[1:] if drop > 0 else i.streaming[:-1]) if isinstance(i, Run) else i
            for i in good.program
        )
        with pytest.raises(IllegalPlan, match=rule):
            executed("chain", replace(good, program=program))


@pytest.mark.parametrize("name", ["chain", "fork", "parked", "ahead"])
@pytest.mark.parametrize("whole", ["x", "y", "xy"])
def test_whole_operands_lie_in_ranges_of_their_own(name: str, whole: str) -> None:
    made = sketch(name, 2)
    everything = [made.network.tensor_id[t] for t in whole]
    # "a" leaves `ahead`, and "z" `parked`, besides y.
    more = [t for t in made.escaping if made.network.tensors[t].name in "az" and "y" in whole]
    made.whole = [*everything, *more]
    good = plan_of(made.network, [made])
    proved = figures(good)
    assert proved is not None
    report = run(replace(good, result=proved), found(name))
    assert report.tiled[0].counted_bytes == sum(map(made.crossing, made.crosses)) + made.weights()
    held = sum(made.network.tensors[t].bytes for t in made.whole)
    assert proved.peak_bytes == made.scratch + held
    assert not made.crosses or made.scratch < sketch(name, 2).scratch
    small = changed(good, scratch_bytes=good.groups[0].scratch_bytes - 1)
    with pytest.raises(IllegalPlan, match="group-scratch"):
        executed(name, small)


def test_one_band_of_whole_operands_is_bit_for_bit() -> None:
    made = sketch("chain", 4, images=2, resident=WEIGHTED)
    made.whole = [*made.external, *made.escaping]
    report = executed("chain", plan_of(made.network, [made]))
    assert report.bit_exact
    assert report.tiled[0].counted_bytes == made.weights()


@pytest.mark.parametrize("name", ["parked", "fork"])
def test_an_output_that_may_lie_over_an_input_in_tiles_lies_apart_in_the_nest(name: str) -> None:
    """A nest works in place or not at all; what its law does not allow is said, and executed all the same."""
    made = sketch(name, 1)
    (y,) = made.escaping[-1:]
    made.whole = [made.network.tensor_id["x"], y]
    good = plan_of(made.network, [made])
    names = {t.name: t for t in made.network.tensors}
    output = made.network.tensors[y].name
    _, channels, rows, _ = made.shapes[names["x"].id]
    row = names["x"].bytes // (channels * rows)
    address = good.budget + names[output].bytes

    def over(by: int) -> Plan:
        program = []
        for i in good.program:
            if isinstance(i, Alloc) and i.tensor == output:
                i = Alloc(output, address - by, "x", by)
            elif isinstance(i, Load):
                i = Load("x", address)
            if i != Free("x"):
                program.append(i)
        return replace(good, program=tuple(program), budget=2 * address)

    for by, proved, apart in (
        (names[output].bytes, True, True),
        (0, name == "fork", True),
        (-4 * row, False, False),
    ):
        told = figures(over(by))
        assert (told is not None) == proved
        if told is not None:
            report = executed(name, over(by))
            assert report.tiled
            notes = "".join(report.notes)
            assert (f"{output} lay apart from the input" in notes) == apart


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fork", "parked", "chain"])
def test_any_change_of_a_tiling_that_the_checker_proves_runs(name: str) -> None:
    random, verdicts = Random(name), set()
    made = sketch(name, 2)
    good, tensors = plan_of(made.network, [made]), [made.network.tensors[t].name for t in made.tensors]
    for _ in range(120):
        tiling = Tiling(
            random.choice([0, 1, 2, 2, 3, 9]),
            tuple(random.sample(tensors, random.choice([0, 0, 1, 1, 2, 3]))),
            random.choice([0, 1, 2, 3, 16]),
            random.choice([1, 1, 1, 2]),
        )
        group = replace(
            good.groups[0],
            tiling=tiling,
            subgroups=random.choice([1, 2, 3, 4, 5, 8, 9]),
            scratch_bytes=random.choice([300, 800, 1 << 14]),
        )
        if random.random() < 0.8:
            resident = random.sample(group.operators, random.choice([0, 1, 2]))
            refills = tuple((v, group.subgroups) for v in group.operators if v not in resident)
            group = replace(group, resident_weights=tuple(resident), refills=refills)
        changed = replace(good, groups=(group,), budget=1 << 14)
        proved = figures(changed)
        verdicts.add(proved is not None)
        if proved is not None:
            assert executed(name, replace(changed, result=proved)).tiled
    assert len(verdicts) == 2


def figures(changed: Plan) -> Result | None:
    """What the checker derives, or None where it refuses."""
    try:
        return certify(
            changed.network,
            changed.chip,
            changed.budget,
            changed.program,
            status="feasible",
            lower_bound_bytes=0,
            seconds=0.0,
            groups=changed.groups,
        ).result
    except IllegalPlan:
        return None
