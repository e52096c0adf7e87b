"""Random networks with quantising pairs anywhere: operator by operator, and in parts, they give the whole."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import save
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from test_random_graphs import check, models, relaxed

import onchip
from onchip.base.errors import Infeasible, InputError
from onchip.readers import load
from onchip.run import run

SCALES = {"s0": 0.02, "s1": 0.05}


def with_pairs(draw: st.DrawFn, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with pairs behind some of its values; every reader may read the pair or the value itself."""
    graph = model.graph
    constant = {tensor.name for tensor in graph.initializer}
    for name, scale in SCALES.items():
        graph.initializer.append(numpy_helper.from_array(np.array(scale, np.float32), name))
    for name, zero in (("z0", 128), ("z1", 100)):
        graph.initializer.append(numpy_helper.from_array(np.array(zero, np.uint8), name))
    nodes = list(graph.node)
    del graph.node[:]
    often = draw(st.sampled_from([(True,), (True, True, True, False)]))
    usual = draw(st.sampled_from([("s0",), ("s0", "s0", "s0", "s1")]))
    pairs: dict[str, str] = {}

    def pair(name: str) -> None:
        if not draw(st.sampled_from(often)):
            return
        scale, zero = draw(st.sampled_from(usual)), draw(st.sampled_from(["z0", "z0", "z0", "z1"]))
        for op, read, made in (("Quantize", name, f"{name}.q"), ("Dequantize", f"{name}.q", f"{name}.d")):
            graph.node.append(helper.make_node(f"{op}Linear", [read, scale, zero], [made], name=made))
        pairs[name] = f"{name}.d"

    for info in graph.input:
        pair(info.name)
    for node in nodes:
        for i, name in enumerate(node.input):
            if name not in constant and name in pairs and draw(st.sampled_from(often)):
                node.input[i] = pairs[name]
        graph.node.append(node)
        for name in node.output:
            pair(name)
    for output in graph.output:
        if output.name in pairs and draw(st.booleans()):
            output.name = pairs[output.name]
    return model


@st.composite
def quantised_models(draw: st.DrawFn) -> onnx.ModelProto:
    return with_pairs(draw, draw(models()))


def check_parts(model: onnx.ModelProto, folder: Path) -> None:
    """Plans at half of what everything takes are executed, or refused in one line."""
    path = save(model, folder)
    source = load(path)
    budget = sum(t.bytes for t in source.network.tensors) // 2
    try:
        plan = onchip.plan(path, fuse=True, budget=budget)
    except Infeasible:
        return
    with contextlib.suppress(InputError):  # the executor says in a line what it cannot cut
        run(plan, source)


@pytest.mark.thorough
@given(model=quantised_models())
@settings(relaxed, max_examples=20)
def test_random_quantised_graphs_run_bit_for_bit(model: onnx.ModelProto, tmp_path: Path) -> None:
    check(model, tmp_path)


@pytest.mark.slow
@given(model=quantised_models())
@settings(relaxed, max_examples=40, derandomize=False)
def test_many_random_quantised_graphs_run_bit_for_bit(model: onnx.ModelProto, tmp_path: Path) -> None:
    check(model, tmp_path)


@pytest.mark.slow
@given(model=quantised_models())
@settings(relaxed, max_examples=30, derandomize=False)
def test_parts_of_random_quantised_graphs(model: onnx.ModelProto, tmp_path: Path) -> None:
    check_parts(model, tmp_path)
