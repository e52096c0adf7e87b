"""Random small networks in random tilings: what crosses is what the definition says, the values are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, parser

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.check.as_nests import OF_BYTES
from onchip.plans import Alloc, Free, Instruction, Load, Plan
from onchip.readers import ReadOptions, load
from onchip.readers.source import Executable, Source
from onchip.run import run
from run.models import HEADER
from run.small_cnns import small_cnns
from run.tilings import Sketch, plan_of, shapes_of


def found(model: ModelProto, granularity: str, dtype: str) -> Source:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "small.onnx"
        path.write_bytes(model.SerializeToString())
        return load(path, ReadOptions(granularity, dtype))  # type: ignore[arg-type]


def sketches_of(source: Source, data: st.DataObject) -> list[Sketch]:
    """The network in 1 to 3 groups of consecutive operators, each tiled at random."""
    network, executable = source.network, source.executable
    assert isinstance(executable, Executable)
    shapes = shapes_of(network, executable.shape)
    order = [network.operators[v] for v in network.order]
    cuts = sorted({0, len(order), *data.draw(st.lists(st.integers(0, len(order)), max_size=2))})
    alignment, images = data.draw(st.sampled_from([1, 4])), shapes[0][0]
    result = []
    for a, b in pairwise(cuts):
        operators = order[a:b]
        names = sorted({t for op in operators for t in (*op.inputs, *op.outputs)})
        streamed = data.draw(st.sets(st.sampled_from(names)))
        many = data.draw(st.booleans())
        if not many:
            streamed = set(list(streamed)[:1])
        resident = data.draw(st.sets(st.sampled_from([op.id for op in operators])))
        sketch = Sketch(
            network,
            operators,
            shapes,
            streamed,
            data.draw(st.integers(1, 5)),
            data.draw(st.integers(1, 5)),
            data.draw(st.integers(1, images)),
            resident,
            alignment,
        )
        operands = [t for t in (*sketch.external, *sketch.escaping) if t not in streamed]
        sketch.whole = data.draw(st.sets(st.sampled_from(operands))) if operands else set()
        result.append(sketch)
    return result


def certified(plan: Plan) -> Plan:
    """The same program as the checker sees it: the third that derives the figures, on its own."""
    return certify(
        plan.network,
        plan.chip,
        plan.budget,
        plan.program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
        groups=plan.groups,
    )


def judge(plan: Plan, source: Source, sketches: list[Sketch]) -> None:
    """The checker agrees with the sketches: on what is legal, and on every figure. So does the executor, but
    where the nest that it runs moves something else, and says why."""
    if not all(sketch.legal() for sketch in sketches):
        with pytest.raises(IllegalPlan, match="tiling-passes"):
            certified(plan)
        return
    result = certified(plan).result
    for figure in ("compulsory_bytes", "reload_bytes", "spill_bytes", "weight_bytes"):
        assert getattr(result, figure) == getattr(plan.result, figure)
    report = run(plan, source, checked=False)
    assert len(report.tiled) == len(sketches)
    for moved, sketch in zip(report.tiled, sketches, strict=True):
        crossed = sum(map(sketch.crossing, sketch.crosses))
        assert moved.stated_bytes == crossed + sketch.weights()
        assert moved.counted_bytes == moved.stated_bytes or OF_BYTES.intersection(moved.why)


@pytest.mark.slow
@settings(max_examples=80)
@given(
    st.integers(1, 3).flatmap(small_cnns),
    st.sampled_from(["fused", "op"]),
    st.sampled_from(["file", "int16", "int8"]),
    st.data(),
)
def test_tiled_groups_move_what_the_definition_says(
    model: ModelProto, granularity: str, dtype: str, data: st.DataObject
) -> None:
    source = found(model, granularity, dtype)
    try:
        sketches = sketches_of(source, data)
    except ValueError:
        return  # strides of two paths disagree
    plan = plan_of(source.network, sketches)
    judge(plan, source, sketches)
    if all(sketch.legal() for sketch in sketches):
        for over in overlaid(plan, sketches, data):
            judge(over, source, sketches)


def overlaid(plan: Plan, sketches: list[Sketch], data: st.DataObject) -> Iterator[Plan]:
    """Plans in which a whole output lies over a whole input that its group ends: those that are proved."""
    network = plan.network
    names = [t.name for t in network.tensors]
    for sketch in sketches:
        for x, y in product(sketch.external, sketch.escaping):
            if not {x, y} <= set(sketch.whole):
                continue
            by = data.draw(
                st.one_of(
                    st.sampled_from((0, network.tensors[y].bytes - network.tensors[x].bytes)),
                    st.integers(-network.tensors[x].bytes, network.tensors[y].bytes),
                )
            )
            by -= by % sketch.alignment
            address = plan.budget + network.tensors[y].bytes
            address += -address % sketch.alignment
            program: list[Instruction] = []
            for step in plan.program:
                if isinstance(step, Alloc) and step.tensor == names[y]:
                    program.append(Alloc(names[y], address - by, names[x], by))
                elif isinstance(step, Load | Alloc) and step.tensor == names[x]:
                    program.append(replace(step, address=address))  # where nothing else is
                elif step != Free(names[x]):
                    program.append(step)
            room = address + network.tensors[x].bytes + network.tensors[y].bytes + 8
            moved = replace(plan, program=tuple(program), budget=room)
            try:
                yield certified(moved)
            except IllegalPlan:
                continue


# Channels that meet at a distance: what is joined beside something made of it, and two maps out of step.
APART = {
    "ghost": """ghost (float[1,3,6,5] x) => (float[1,6,6,5] y, float[1,3,6,5] z) {
        a = Abs(x)
        b = Tanh(a)
        c = Concat<axis=1>(b, a)
        y = Relu(c)
        z = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(b)
    }""",
    "crossed": """crossed (float[1,3,6,5] x, float[1,1,6,5] p, float[1,1,6,5] q) => (float[1,4,6,5] y) {
        a = Abs(x)
        w = Concat<axis=1>(a, p)
        v = Concat<axis=1>(q, a)
        y = Sub(w, v)
    }""",
    "three": """three (float[1,2,6,5] x, float[1,2,6,5] p, float[1,4,6,5] q) => (float[1,4,6,5] y) {
        a = Abs(p)
        w = Concat<axis=1>(x, a)
        v = Tanh(w)
        y = Sum(w, v, q)
    }""",
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "channels"),
    [
        *((name, 1) for name in APART),
        pytest.param("ghost", 3, marks=pytest.mark.slow),
        *(
            pytest.param(name, channels, marks=pytest.mark.campaign)
            for channels in (2, 3)
            for name in APART
            if (name, channels) != ("ghost", 3)
        ),
    ],
)
def test_channels_that_meet_at_a_distance(name: str, channels: int) -> None:
    """Every set of streamed tensors runs with right values where the checker proves it, and only there."""
    source = found(parser.parse_model(HEADER + APART[name]), "op", "file")
    network, executable = source.network, source.executable
    assert isinstance(executable, Executable)
    shapes = shapes_of(network, executable.shape)
    operators = [network.operators[v] for v in network.order]
    tensors = range(len(network.tensors))
    legal = Counter[bool]()
    for streamed in chain.from_iterable(combinations(tensors, n) for n in range(len(tensors) + 1)):
        sketch = Sketch(network, operators, shapes, streamed, 2, channels)
        legal[sketch.legal()] += 1
        judge(plan_of(network, [sketch]), source, [sketch])
    assert legal[True] > 20
    assert legal[False] > 5


def test_rows_stay_for_a_reader_that_pauses() -> None:
    """The mean needs all but the last row of `a` at once; that row comes bands later, and needs rows of x."""
    text = """pauses (float[1,2,5,4] x) => (float[1,2,1,1] g, float[1,2,5,4] c) {
        a = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)
        p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
        g = GlobalAveragePool(p)
        c = Abs(a)
    }"""
    source = found(parser.parse_model(HEADER + text), "op", "file")
    network, executable = source.network, source.executable
    assert isinstance(executable, Executable)
    shapes = shapes_of(network, executable.shape)
    sketch = Sketch(network, [network.operators[v] for v in network.order], shapes, (), 1, 2)
    x = network.tensor_id["x"]
    assert [low[x] for low in sketch.low] == [0, 5, 3]
    judge(plan_of(network, [sketch]), source, [sketch])
