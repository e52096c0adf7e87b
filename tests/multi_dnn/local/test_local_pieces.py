"""Networks in pieces: run one after the other they make what the whole network makes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from multi_dnn.local.local_work import in_groups
from onchip.base.errors import UsageError
from onchip.multi_dnn.local.engines import load_engine
from onchip.multi_dnn.local.pieces import Cut, Piece, cut
from onchip.readers.source import ReadOptions, Source
from run.models import MODELS, TYPED, read, source, typed


def run_pieces(cut: Cut, pieces: tuple[Piece, ...], engine: str) -> dict[str, bytes]:
    """The bytes of the outputs, in this process."""
    loader, values = load_engine(engine), cut.draw_inputs(0)
    for piece in pieces:
        outputs = [np.empty(cut.signature[n][1], cut.dtype[n]) for n in piece.outputs]
        loader.load(cut.model(piece, "it")).bind([values[n] for n in piece.inputs], outputs)()
        values |= zip(piece.outputs, outputs, strict=True)
    return {name: values[name].tobytes() for name in cut.outputs}


@pytest.mark.parametrize("name", [*MODELS, *(name for name in TYPED if name != "half")])
def test_pieces_make_what_the_whole_makes(name: str, tmp_path: Path) -> None:
    """Bit for bit without optimisations; half precision is rounded only between pieces, and left out."""
    for granularity in ("op", "fused"):
        options = ReadOptions(granularity=granularity)
        if name in MODELS:
            model = source(name, tmp_path, options)
        else:
            model = read(typed(name), tmp_path / "m.onnx", options)
        count, rng = len(model.network.operators), Random(name)
        whole = in_groups(model, 1)
        expected = run_pieces(whole, (whole.whole,), "onnxruntime-plain")
        for groups in {2, count}:
            parts = in_groups(model, groups)
            assert run_pieces(parts, parts.pieces, "onnxruntime-plain") == expected
        # Groups need not be ranges of ids, only come one after the other.
        marks = sorted(rng.randrange(3) for _ in range(count))
        chosen = [[op for op in range(count) if marks[op] == n] for n in range(3)]
        parts = cut(model, [group for group in chosen if group])
        assert run_pieces(parts, parts.pieces, "onnxruntime-plain") == expected
        assert any(any(value) for value in expected.values())


def hostile(names: list[str], path: Path) -> Source:
    """A chain of six operators with these names for its values, weight and nodes."""
    x, a, b, c, d, y, w = names
    nodes = [
        helper.make_node("Relu", [x], [a], name=x),
        helper.make_node("MatMul", [a, w], [b], name=x),
        helper.make_node("Tanh", [b], [c]),
        helper.make_node("Add", [c, a], [d], name=w),
        helper.make_node("MatMul", [d, w], [y]),
    ]
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3, 3]) for n in (x, y)]
    graph = helper.make_graph(nodes, "\x00", info[:1], info[1:])
    graph.initializer.append(TensorProto(name=w, dims=(3, 3), data_type=TensorProto.FLOAT))
    return read(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


@pytest.mark.parametrize(
    "names",
    [
        ["v1", "v0", "v2", "v6", "v5", "v4", "v3"],
        ["x" * 9000, "a\nb", "a\tb", "'; --", "../../etc/passwd", "%s%n", "\x1b[2J"],
        ["é", "é\u0301", "\u202e", "🙂", " ", "  ", "/"],
        ["n\x00a", "n\x00b", "n", "n\x00", "n\x00c", "n\x00d", "n\x00e"],
    ],
)
@pytest.mark.parametrize("engine", ["onnxruntime", "onnxruntime-plain"])
def test_names_from_the_model_reach_no_engine(names: list[str], engine: str, tmp_path: Path) -> None:
    model = hostile(names, tmp_path / "m.onnx")
    simple = in_groups(hostile(list("xabcdyw"), tmp_path / "s.onnx"), 5)
    parts = in_groups(model, 5)
    for piece in parts.pieces:
        made = onnx.load_from_string(parts.model(piece, "it"))
        seen = {n for node in made.graph.node for n in (*node.input, *node.output, node.name)}
        assert all(n == "" or (n[0] == "v" and n[1:].isdigit()) for n in seen)
    # The weight depends on its name: what must agree is the split with the whole.
    found = run_pieces(parts, parts.pieces, engine)
    assert len(found) == len(simple.outputs)
    assert found == run_pieces(parts, (parts.whole,), engine)


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([[0, 1], [2]], "is in no group"),
        ([[0, 1, 1], [2, 3, 4]], "is in two groups"),
        ([[0, 1, 2], [3, 4, 99]], "has an operator 99, which there is not"),
        ([[0, 1, 2, 3, 4], []], "group 1 is empty"),
        ([[4], [0, 1, 2, 3]], "which a later group makes"),
    ],
)
def test_groups_that_are_none_are_refused(groups: list[list[int]], reason: str, tmp_path: Path) -> None:
    model = hostile(list("xabcdyw"), tmp_path / "m.onnx")
    if len(model.network.operators) != 5:  # fused: as operators
        model = read(onnx.load(tmp_path / "m.onnx"), tmp_path / "m.onnx", ReadOptions(granularity="op"))
    with pytest.raises(UsageError, match=reason):
        cut(model, groups)


def test_a_network_of_sizes_has_no_pieces(tmp_path: Path) -> None:
    model = hostile(list("xabcdyw"), tmp_path / "m.onnx")
    with pytest.raises(UsageError, match="sizes only"):
        cut(Source(model.network, None), [[0]])
