"""Random small networks in random tilings: what crosses is what the definition says, the values are right."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from onchip.check import certify
from onchip.errors import IllegalPlan
from onchip.plan import Plan
from onchip.readers import ReadOptions, load
from onchip.readers.source import Executable, Source
from onchip.run import run
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
        resident = data.draw(st.sets(st.sampled_from([op.id for op in operators])))
        result.append(
            Sketch(
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
        )
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
    if not all(sketch.legal() for sketch in sketches):
        with pytest.raises(IllegalPlan, match="tiling-passes"):
            certified(plan)
        with pytest.raises(IllegalPlan, match="tiling-passes"):
            run(plan, source, checked=False)
        return
    result = certified(plan).result
    for figure in ("compulsory_bytes", "reload_bytes", "spill_bytes", "weight_bytes"):
        assert getattr(result, figure) == getattr(plan.result, figure)
    report = run(plan, source, checked=False)
    assert len(report.tiled) == len(sketches)
    for moved, sketch in zip(report.tiled, sketches, strict=True):
        crossed = sum(sketch.crossing(t) for t in (*sketch.external, *sketch.escaping))
        assert moved.counted_bytes == moved.stated_bytes == crossed + sketch.weights()
