"""Operators that stream maps in patches run part by part, in exactly the scratch that a part needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from onchip.base.errors import IllegalPlan, Mismatch
from onchip.check import streaming_scratch
from onchip.network import Network, Operator, bits
from onchip.plans import (
    Alloc,
    Free,
    Instruction,
    Load,
    PinnedWeights,
    Plan,
    PlanChip,
    Run,
    Scratch,
    Store,
)
from onchip.readers import ReadOptions
from onchip.readers.source import Source
from onchip.run import run
from run.models import read
from run.patched import certified, in_patches, onnx_source, planned, steps
from run.small_cnns import small_cnns

WINDOWS = ("conv", "depthwise", "pool", "pad")


def line_rows(op: Operator, network: Network) -> int:
    """Rows of input patches that lie there at once when each comes once, in order, and strips find theirs."""
    g = op.geometry
    assert g is not None
    source, made = (network.tensors[t].patches for t in (op.inputs[0], op.outputs[0]))
    assert source is not None
    assert made is not None
    most, newest = 1, -1
    if g.kind == "pad":
        g = replace(g, kernel=(1, 1), stride=(1, 1))
    for first in range(0, made.rows, made.height):
        touched = {
            row * g.stride[0] - g.padding[0] + tap * (g.dilation[0] if g.dilation else 1)
            for row in range(first, min(first + made.height, made.rows))
            for tap in range(g.kernel[0])
        }
        patches = {row // source.height for row in touched if 0 <= row < source.rows}
        if patches:
            newest = max(newest, *patches)
            most = max(most, newest - min(patches) + 1)
    return most


def least_scratch(op: Operator, network: Network, streamed: list[int]) -> int | None:
    """Bytes that a part needs, from the definition of the walk over patches; None when it has no parts."""
    g, out = op.geometry, op.outputs[0]
    element, patch = {}, {}
    for t in streamed:
        stored = network.tensors[t].patches
        assert stored is not None
        element[t] = network.tensors[t].bytes // stored.elements
        patch[t] = stored.height * stored.width * element[t]
    if g is None:
        return None
    if g.kind in ("elementwise", "concat"):
        return sum(patch.values())
    if g.kind not in WINDOWS or len(op.outputs) > 1:
        return None
    source = network.tensors[op.inputs[0]].patches
    assert source is not None
    channels = g.input[1]
    groups = channels if g.kind != "conv" else g.groups
    across = source.grid[1] * source.width
    line = channels // groups * line_rows(op, network) * source.height * across * element[op.inputs[0]]
    weights = -(-op.weight_bytes // groups)
    return line + weights + patch.get(out, 0)


def streamed_plan(network: Network, sends: bool) -> tuple[Plan, dict[str, int]]:
    """Every operator from and to DRAM; those that can stream in parts do, in the least scratch.

    Returns the scratch of those for which a byte less is too little, too.
    """
    names, sizes = ([getattr(t, key) for t in network.tensors] for key in ("name", "bytes"))
    program: list[Instruction] = []
    workspaces, tight, reload, spill = {}, {}, 0, 0
    come: set[int] = set()
    for op in (network.operators[v] for v in network.order):
        [out] = op.outputs
        patched = [t for t in (op.inputs[0], out) if network.tensors[t].patches is not None]
        if op.geometry is not None and op.geometry.kind == "elementwise":
            patched = [
                t for t in (*op.inputs, out) if network.tensors[t].patches == network.tensors[out].patches
            ]
            patched = patched if network.tensors[out].patches is not None else []
        if op.geometry is not None and op.geometry.kind == "concat":
            patched = [t for t in (*op.inputs, out) if network.tensors[t].patches is not None]
        if not sends and out in patched:
            patched.remove(out)
        streams = patched if patched and patched != [out] and network.tensors[out].patches is not None else []
        need = least_scratch(op, network, streams) if streams else None
        streams = [] if need is None else streams
        if need is not None:
            assert min(need, sum(sizes[t] for t in streams)) == streaming_scratch(network, op.id, streams)
        at = 0
        if need is not None:
            whole = sum(sizes[t] for t in streams)
            workspaces[op.name] = max(1, min(need, whole))
            if need < whole:
                tight[op.name] = need
            program.append(Scratch(op.name, 0))
            at = workspaces[op.name]
        for t in op.inputs:
            reload += sizes[t] if t in come or network.tensors[t].kind != "input" else 0
            come.add(t)
            if t not in streams:
                program.append(Load(names[t], at))
                at += sizes[t]
        if out not in streams:
            program.append(Alloc(names[out], at))
        program.append(Run(op.name, tuple((names[t], sizes[t]) for t in streams)))
        if out not in streams:
            program += [Store(names[out]), Free(names[out])]
        spill += 0 if network.output_roots >> out & 1 else sizes[out]
        program += [Free(names[t]) for t in op.inputs if t not in streams]
    operators = tuple(replace(op, workspace=workspaces.get(op.name, 0)) for op in network.operators)
    compulsory = sum(sizes[t] for t in {*come} & {*bits(network.input_roots)})
    compulsory += sum(sizes[t] for t in bits(network.output_roots))
    plan = planned(
        replace(network, operators=operators),
        program,
        1 << 20,
        compulsory=compulsory,
        reload=reload,
        spill=spill,
    )
    return plan, tight


def executed(source: Source, sends: bool, patch: tuple[int, int] = (4, 4)) -> set[str]:
    """Execute in the least scratch, and see that a byte less is too little; the operators run in parts."""
    network = in_patches(source, None, *patch)
    plan, tight = streamed_plan(network, sends)
    report = run(certified(plan), source)
    assert report.relative_difference <= 1e-4
    assert not report.streamed_whole
    assert set(report.in_parts) == set(tight)
    for name, need in list(tight.items())[:2]:
        operators = tuple(
            replace(op, workspace=need - 1) if op.name == name else op for op in plan.network.operators
        )
        less = replace(plan, network=replace(plan.network, operators=operators))
        with pytest.raises(IllegalPlan, match=f"streaming-unproved: a part of {name} needs"):
            run(less, source, checked=False)
    return set(tight)


@pytest.mark.thorough
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(small_cnns(), st.sampled_from(["op", "fused"]), st.booleans())
def test_any_small_network_streams_in_the_least_scratch(
    model: ModelProto, granularity: str, sends: bool
) -> None:
    source = read(model, Path(mkdtemp()) / "net.onnx", ReadOptions(granularity, "file"))  # type: ignore[arg-type]
    executed(source, sends, (2, 2))


def test_a_convolution_all_of_whose_windows_lie_outside_streams(tmp_path: Path) -> None:
    text = """outside (float[1,2,4,4] x) => (float[1,2,1,8] y) {
        a = Relu(x)
        y = Conv<kernel_shape=[1,1], strides=[9,1], pads=[2,2,2,2]>(a, w)
    }"""
    source = onnx_source(tmp_path, text, {"w": (2, 2, 1, 1)}, "int8")
    executed(source, False, (2, 2))


STEM = """stem (float[2,3,21,19] x) => (float[2,8,5,4] y) {
    a = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w1, b1)
    b = Relu(a)
    c = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=8>(b, w2)
    d = Clip(c)
    e = MaxPool<kernel_shape=[3,3], strides=[2,2]>(d)
    f = Conv<kernel_shape=[1,1], group=2>(e, w3)
    g = Sigmoid(f)
    y = Mul(f, g)
}"""


@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "file"])
def test_a_stem_of_two_images_streams(dtype: str, sends: bool, tmp_path: Path) -> None:
    weights = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 1, 3, 3), "w3": (8, 4, 1, 1)}
    source = onnx_source(tmp_path, STEM, weights, dtype)
    assert {"a", "c", "e", "f"} <= executed(source, sends)


PADS = """pads (float[2,3,9,7] x) => (float[2,7,9,7] y)
<int64[8] around = {0, 0, 2, 1, 0, 0, 3, 0}, int64[8] cut = {0, 0, -2, -1, 0, 0, -3, 0}> {
    a = Pad(x, around)
    b = Pad(a, cut)
    c = Tanh(b)
    d = Conv<kernel_shape=[1,1]>(c, w)
    e = Concat<axis=1>(b, d)
    f = BatchNormalization(e, s, s, s, s)
    y = Relu(f)
}"""


@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("granularity", ["op", "fused"])
def test_pads_and_concats_with_a_norm_stream(granularity: str, sends: bool, tmp_path: Path) -> None:
    source = onnx_source(tmp_path, PADS, {"w": (4, 3, 1, 1), "s": (7,)}, "int8", granularity)
    run_in_parts = executed(source, sends)
    assert len(run_in_parts) == len(source.network.operators)


def test_a_streamed_operand_is_added_to_one_that_is_written_over(tmp_path: Path) -> None:
    text = """over (float[1,3,9,9] x) => (float[1,3,9,9] y) {
        a = Tanh(x)
        b = Exp(a)
        y = Add(a, b)
    }"""
    source = onnx_source(tmp_path, text, {}, "int8")
    network = in_patches(source, {"y": 3 * 16})
    program = """
        load x @1000
        alloc a @100
        run a
        free x
        store a
        alloc b @1000
        run b
        free a
        scratch y @0
        alloc y @{at} over b by {by}
        run y streaming a:432
        store y
    """
    for by in (0, 1, 16, 100):
        plan = planned(network, steps(program, at=1000 - by, by=by), compulsory=864, reload=432, spill=432)
        report = run(plan, source, checked=False)
        assert report.in_parts == ("y",)
        assert not report.streamed_whole
    for by in (-1, -64):  # what is written runs ahead of what is read
        plan = planned(network, steps(program, at=1000 - by, by=by), compulsory=864, reload=432, spill=432)
        with pytest.raises(Mismatch, match="tensor y, rows"):
            run(plan, source, checked=False)


@pytest.mark.parametrize("pads", ["1,0,1,0", "4,0,1,0", "9,0,9,0"])
def test_a_dilated_window_finds_rows_that_come_back(pads: str, tmp_path: Path) -> None:
    """Its taps come out of the padding one after another, into rows that other taps have left."""
    text = f"""d (float[1,2,23,3] x) => (float[1,2,r,3] y) {{
        y = Conv<kernel_shape=[3,1], dilations=[7,1], pads=[{pads}]>(x, w)
    }}"""
    rows = 23 + sum(map(int, pads.split(","))) - 14
    source = onnx_source(tmp_path, text.replace("2,r,3", f"2,{rows},3"), {"w": (2, 2, 3, 1)}, "int8")
    assert executed(source, sends=True) == {"y"}
    executed(source, True, (2, 2))


@pytest.mark.parametrize("pinned", [False, True])
def test_weights_that_lie_elsewhere_take_no_scratch(pinned: bool, tmp_path: Path) -> None:
    text = "one (float[1,3,9,9] x) => (float[1,5,9,9] y) { y = Conv<kernel_shape=[1,1]>(x, w) }"
    source = onnx_source(tmp_path, text, {"w": (5, 3, 1, 1)}, "int8")
    need = 3 * 4 * 12 + 16
    network = in_patches(source, {"y": need})
    plan = planned(network, steps("scratch y @0\nrun y streaming x:432 y:720"), compulsory=432 + 720)
    with pytest.raises(IllegalPlan, match="streaming-unproved"):
        run(plan, source, checked=False)
    if pinned:
        result = replace(plan.result, weight_bytes=0, dram_bytes=432 + 720)
        plan = replace(plan, pins=(PinnedWeights("y", 1000),), result=result)
    else:
        plan = replace(plan, chip=PlanChip("test", 1, weight_scratchpad_bytes=100))
    assert run(plan, source, checked=False).in_parts == ("y",)


def test_an_output_leaves_in_patches_bit_for_bit(tmp_path: Path) -> None:
    text = "one (float[1,3,9,9] x) => (float[1,5,9,9] y) { y = Conv<kernel_shape=[1,1]>(x, w) }"
    source = onnx_source(tmp_path, text, {"w": (5, 3, 1, 1)}, "int8")
    network = in_patches(source, {"y": 16})
    plan = planned(network, steps("load x @16\nscratch y @0\nrun y streaming y:720"), compulsory=432 + 720)
    assert run(plan, source, checked=False).bit_exact
    network = in_patches(source, {"y": 15})
    with pytest.raises(IllegalPlan, match="no room for a patch"):
        run(replace(plan, network=network), source, checked=False)


def test_what_cannot_run_in_parts_says_so(tmp_path: Path) -> None:
    text = "s (float[1,3,9,9] x) => (float[1,3,9,9] y) { y = Softmax<axis=3>(x) }"
    source = onnx_source(tmp_path, text, {}, "int8")
    network = in_patches(source, {"y": 500})
    program = "scratch y @0\nrun y streaming x:432 y:432"
    report = run(planned(network, steps(program), compulsory=864), source, checked=False)
    assert report.bit_exact
    assert report.streamed_whole.keys() == {"y"}
    assert any(line.startswith("y streamed whole: ") for line in report.lines())
