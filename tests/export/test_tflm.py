"""The copy with `OfflineMemoryAllocation`: TFLM follows it, and computes what it computed before."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import tflite

import onchip
from onchip.base.errors import UsageError
from onchip.check import certify
from onchip.export import export
from onchip.machines.chip import Chip, load_chip
from onchip.network import Network, OperatorSpec
from onchip.plans import Alloc, Free, Load, Plan, Run, Store
from readers.tflite_build import Op, T, branching, model
from run.planner import random_plan

Array = np.ndarray[Any, Any]


def saved(content: bytes, folder: Path) -> Path:
    path = folder / "net.tflite"
    path.write_bytes(content)
    return path


def in_tflm(content: bytes, seed: int, capfd: pytest.CaptureFixture[str]) -> tuple[list[Array], int]:
    """Outputs of one inference on the seed's input, and the bytes of the arena's head."""
    from tflite_micro.python.tflite_micro import runtime

    graph = tflite.Model.GetRootAs(content, 0).Subgraphs(0)
    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 21)
    rng = np.random.default_rng(seed)
    for i in range(graph.InputsLength()):
        of = interpreter.get_input_details(i)
        interpreter.set_input(rng.integers(-128, 128, of["shape"]).astype(of["dtype"]), i)
    interpreter.invoke()
    capfd.readouterr()
    interpreter.print_allocations()
    captured = capfd.readouterr()
    head = re.search(r"allocation head (\d+) bytes", captured.err + captured.out)
    assert head is not None
    return [interpreter.get_output(i) for i in range(graph.OutputsLength())], int(head[1])


def same_in_tflm(plan: Plan, original: bytes, capfd: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """The copy computes what the original computes; the head's bytes of both."""
    copy = export(plan, "tflm")
    for seed in range(2):
        before, old = in_tflm(original, seed, capfd)
        after, new = in_tflm(copy, seed, capfd)
        assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    return old, new


def offsets_of(copy: bytes) -> list[int]:
    """The metadata, read with the format's own accessors."""
    m = tflite.Model.GetRootAs(copy, 0)
    entries = [m.Metadata(i) for i in range(m.MetadataLength())]
    found = [e for e in entries if e.Name() == b"OfflineMemoryAllocation"]
    assert len(found) == 1
    words = struct.unpack(f"<{m.Buffers(found[0].Buffer()).DataLength() // 4}i",
                          bytes(m.Buffers(found[0].Buffer()).DataAsNumpy()))  # fmt: skip
    assert words[:3] == (1, 1, m.Subgraphs(0).TensorsLength())
    return list(words[3:])


def test_tflm_runs_the_copy_in_the_plans_bytes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = saved(branching(), tmp_path)
    plan = onchip.plan(path, "tflm", "MP")
    _, head = same_in_tflm(plan, path.read_bytes(), capfd)
    assert head == plan.result.extent_bytes
    copy = export(plan, "tflm")
    assert copy.endswith(path.read_bytes())
    offsets = offsets_of(copy)
    assert [o >= 0 for o in offsets] == [t in (0, 3, 5, 6, 8, 11) for t in range(12)]
    assert offsets[6] == offsets[8]  # a reshape is where its input is


@pytest.mark.parametrize("swapped", [False, True])
def test_an_order_of_the_plans_own_is_written_into_the_copy(
    swapped: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = saved(branching(), tmp_path)
    left, right = [Alloc("left", 512), Run("CONV_2D.0")], [Alloc("right", 1024), Run("CONV_2D.1")]
    plan = program(
        onchip.load(path).network,
        [
            Load("image", 1536), *(right + left if swapped else left + right), Free("image"), Alloc("sum", 0),
            Run("ADD.2"), Free("left"), Alloc("logits", 512), Run("FULLY_CONNECTED.4"), Store("logits"),
        ],
        2048,
    )  # fmt: skip
    same_in_tflm(plan, path.read_bytes(), capfd)
    graph = tflite.Model.GetRootAs(export(plan, "tflm"), 0).Subgraphs(0)
    first = graph.Operators(0).Outputs(0)
    assert graph.Tensors(first).Name() == (b"right" if swapped else b"left")
    assert graph.OperatorsLength() == 5


def views() -> bytes:
    """Parts of an input and of a tensor, read where they lie."""
    return model(
        [
            T((4, 8), name="x"), T((), "int32", 0), T((2, 8), name="top"), T((2, 8), name="bottom"),
            T((2, 8), name="a"), T((2, 8), name="b"), T((16,), name="flat"), T((1,), "int32", [16]),
            T((16,), name="y"),
        ],
        [
            Op("SPLIT", [1, 0], [2, 3], ("SplitOptions", {"NumSplits": 2})),
            Op("ABS", [3], [4]),
            Op("ADD", [4, 2], [5], ("AddOptions", {})),
            Op("RESHAPE", [5, 7], [6], ("ReshapeOptions", {})),
            Op("NEG", [6], [8]),
        ],
        [0],
        [8],
    )  # fmt: skip


def test_views_lie_inside_their_tensor(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = saved(views(), tmp_path)
    plan = onchip.plan(path, "tflm", "MP")
    same_in_tflm(plan, path.read_bytes(), capfd)
    offsets = offsets_of(export(plan, "tflm"))
    assert offsets[3] - offsets[0] == 64
    assert offsets[2] == offsets[0]


def two_outputs() -> bytes:
    return model(
        [T((64,), name="x"), T((64,), name="early"), T((64,), name="a"), T((64,), name="late")],
        [Op("ABS", [0], [1]), Op("NEG", [0], [2]), Op("ABS", [2], [3])],
        [0],
        [1, 3],
    )


def program(network: Network, text: list[object], budget: int) -> Plan:
    return certify(
        network, load_chip("tflm"), budget, text, status="feasible", lower_bound_bytes=0, seconds=0.0,  # type: ignore[arg-type]
        options={"granularity": "fused"},
    )  # fmt: skip


def test_an_output_that_is_stored_early_would_be_lost_in_tflm(tmp_path: Path) -> None:
    network = onchip.load(saved(two_outputs(), tmp_path)).network
    plan = program(
        network,
        [
            Load("x", 0), Alloc("early", 256), Run("ABS.0"), Store("early"), Free("early"),
            Alloc("a", 256), Run("NEG.1"), Free("x"), Alloc("late", 0), Run("ABS.2"), Free("a"),
            Store("late"),
        ],
        512,
    )  # fmt: skip
    with pytest.raises(
        UsageError, match="tensor a: shares bytes with early, and TFLM keeps outputs to the end"
    ):
        export(plan, "tflm")


def test_in_place_is_for_elementwise_operators_exactly_over_their_input(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = model(
        [T((64,), name="x"), T((64,), name="a"), T((64,), name="y")],
        [Op("NEG", [0], [1]), Op("ABS", [1], [2])],
        [0],
        [2],
    )
    network = onchip.load(saved(content, tmp_path)).network
    body = [Load("x", 0), Alloc("a", 256), Run("NEG.0"), Free("x")]
    exact = program(network, [*body, Alloc("y", 256, "a", 0), Run("ABS.1"), Store("y")], 768)
    _, head = same_in_tflm(exact, content, capfd)
    assert head == 512
    shifted = program(network, [*body, Alloc("y", 240, "a", 16), Run("ABS.1"), Store("y")], 768)
    with pytest.raises(UsageError, match=r"tensor y: is written over a by ABS\.1"):
        export(shifted, "tflm")


def test_what_tflm_cannot_follow_is_refused(tmp_path: Path) -> None:
    path = saved(branching(), tmp_path)
    source = onchip.load(path)
    spilled = next(
        plan
        for seed in range(100)
        if (plan := random_plan(source.network, 1600, Random(seed), load_chip("tflm"))).result.traffic_bytes
    )
    with pytest.raises(UsageError, match="bytes to and from DRAM, and TFLM has none"):
        export(spilled, "tflm")
    crooked = [
        Load("image", 8), Alloc("left", 512), Run("CONV_2D.0"), Alloc("right", 1024), Run("CONV_2D.1"),
        Alloc("sum", 1536), Run("ADD.2"), Alloc("logits", 2048), Run("FULLY_CONNECTED.4"), Store("logits"),
    ]  # fmt: skip
    bytewise = certify(
        source.network, Chip("bytes", 1), 4096, crooked, status="feasible", lower_bound_bytes=0, seconds=0.0
    )
    with pytest.raises(UsageError, match="tensor image: lies at 8, and TFLM aligns to 16"):
        export(bytewise, "tflm")
    narrow = onchip.plan(saved(two_outputs(), tmp_path), "tflm", "MP", dtype="int8")
    with pytest.raises(UsageError, match="plan with --dtype file"):
        export(narrow, "tflm")
    other = Network.build(
        "n", [("x", 16, "input"), ("y", 16, "activation")], [OperatorSpec("op", "Relu", ["x"], ["y"])], ["y"]
    )
    with pytest.raises(UsageError, match="names no model"):
        export(random_plan(other, 64, Random(0), load_chip("tflm")), "tflm")
    with pytest.raises(UsageError, match=r"is no \.tflite model"):
        export(onchip.plan("zoo:squeezenet1_0", "tflm", "MP"), "tflm")


HEADS = [
    ("ad01_int8", 768),
    ("kws_ref_model", 16000),
    ("pretrainedResnet_quant", 49152),
    ("vww_96_int8", 55296),
    pytest.param("mcunet_5fps_vww", 161472, marks=pytest.mark.slow),
    pytest.param("mcunet_320kb_imagenet", 397920, marks=pytest.mark.slow),
]
"""Bytes of the arena's head with the plan at MP: the least peak of any order."""


@pytest.mark.parametrize(("name", "head"), HEADS)
def test_real_models_run_in_tflm(
    shared: Path, name: str, head: int, capfd: pytest.CaptureFixture[str]
) -> None:
    path = shared / "models" / f"{name}.tflite"
    plan = onchip.plan(path, "tflm", "MP")
    old, new = same_in_tflm(plan, path.read_bytes(), capfd)
    assert new == plan.result.extent_bytes == head <= old
