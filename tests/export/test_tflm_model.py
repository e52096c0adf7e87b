"""A model's own copy for TFLM: lives as TFLM computes them, packed, and the interpreter computes the same."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import tflite
from typer.testing import CliRunner

from export.test_tflm import in_tflm, saved, two_outputs, views
from onchip.base.errors import UsageError
from onchip.cli.app import app
from onchip.export.tflm_model import ALIGNMENT, in_arena, packed
from onchip.microcontroller.made import WideBuilder
from onchip.readers.tflite_graph import parse
from readers.tflite_build import Op, T, branching, model


def random_model(rng: Random) -> bytes:
    """Sums and negations of two sizes, with reshapes between, and up to three outputs."""
    tensors, operators = [T((16,), name="x"), T((8,), name="w"), T((1,), "int32", [-1])], list[Op]()
    sizes = {0: 16, 1: 8}
    for _ in range(rng.randint(3, 8)):
        a = rng.choice(list(sizes)[-4:])
        same = [t for t, n in sizes.items() if n == sizes[a]]
        tensors.append(T((sizes[a],)))
        y = len(tensors) - 1
        kind = rng.choice(("ADD", "NEG", "RESHAPE", "CONCATENATION"))
        if kind == "ADD":
            operators.append(Op("ADD", [a, rng.choice(same)], [y], ("AddOptions", {})))
        elif kind == "NEG":
            operators.append(Op("NEG", [a], [y]))
        elif kind == "RESHAPE":
            operators.append(Op("RESHAPE", [a, 2], [y], ("ReshapeOptions", {})))
        else:
            tensors[y] = T((sizes[a] * 2,))
            operators.append(
                Op("CONCATENATION", [a, rng.choice(same)], [y], ("ConcatenationOptions", {"Axis": 0}))
            )
        sizes[y] = tensors[y].shape[0]
    made = [t for t in sizes if t > 2]
    outputs = sorted({made[-1], *rng.sample(made, min(2, len(made)))})
    return model(tensors, operators, [0, 1], outputs)


@pytest.mark.parametrize("seed", range(12))
def test_the_copy_computes_the_same_in_no_more_bytes(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    content = random_model(Random(seed))
    copy = packed(content, "net.tflite")
    before, old = in_tflm(content, seed, capfd)
    after, new = in_tflm(copy, seed, capfd)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    arena = in_arena(parse(content, where="net.tflite", states=True))
    assert new == arena.bytes <= old
    assert all(at == -1 or at % ALIGNMENT == 0 for at in arena.offsets)


def test_states_in_a_second_subgraph_go_on_from_one_inference_to_the_next() -> None:
    b = WideBuilder(1)
    end = b.conv(b.delayed(b.input((1, 3, 2, 4)), 2), 6, 3)
    content = b.file(end)
    copy = packed(content, "net.tflite")
    count = tflite.Model.GetRootAs(content, 0).SubgraphsLength()
    assert count == 2
    assert runs(content) == runs(copy)
    words = offsets_of(copy)
    graphs = [tflite.Model.GetRootAs(copy, 0).Subgraphs(i).TensorsLength() for i in range(count)]
    assert (words[1], words[2], len(words) - 3) == (2, sum(graphs), sum(graphs))


def runs(content: bytes) -> list[bytes]:
    """Return the outputs of four inferences in turn."""
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 20)
    rng, found = np.random.default_rng(3), list[bytes]()
    for _ in range(4):
        of = interpreter.get_input_details(0)
        interpreter.set_input(rng.integers(-100, 100, of["shape"]).astype(of["dtype"]), 0)
        interpreter.invoke()
        found.append(bytes(interpreter.get_output(0)))
    assert len(set(found)) > 1
    return found


def offsets_of(copy: bytes) -> list[int]:
    m: Any = tflite.Model.GetRootAs(copy, 0)
    [entry] = [
        e for i in range(m.MetadataLength()) if (e := m.Metadata(i)).Name() == b"OfflineMemoryAllocation"
    ]
    data = bytes(m.Buffers(entry.Buffer()).DataAsNumpy())
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def test_a_better_order_is_found_and_the_command_writes_the_copy(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wide = [T((256,), name="x"), T((256,)), T((16,)), T((256,)), T((16,)), T((16,)), T((1,), "int32", [0])]
    content = model(
        wide,
        [
            Op("NEG", [0], [1]),
            Op("NEG", [0], [3]),
            Op("REDUCE_MAX", [1, 6], [2], ("ReducerOptions", {"KeepDims": 0})),
            Op("REDUCE_MAX", [3, 6], [4], ("ReducerOptions", {"KeepDims": 0})),
            Op("ADD", [2, 4], [5], ("AddOptions", {})),
        ],
        [0],
        [5],
    )
    arena = in_arena(parse(content, where="net.tflite", states=True))
    assert arena.order is not None
    assert arena.bytes < 3 * 1024
    path = saved(content, tmp_path)
    result = CliRunner().invoke(
        app, ["export", str(path), "--to", "tflm", "-o", str(tmp_path / "out.tflite")]
    )
    assert result.exit_code == 0
    assert (tmp_path / "out.tflite").read_bytes() == packed(content, str(path))
    refused = CliRunner().invoke(app, ["export", str(path), "--to", "c", "-o", str(tmp_path / "out.h")])
    assert isinstance(refused.exception, UsageError)


@pytest.mark.parametrize("content", [branching(), views(), two_outputs()])
def test_known_models_keep_their_outputs(content: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    before, old = in_tflm(content, 0, capfd)
    after, new = in_tflm(packed(content, "net.tflite"), 0, capfd)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert new <= old
