"""Networks of 16-bit numbers, from a `.tflite` file to C: every byte is TensorFlow Lite Micro's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from native import SANITIZED, made_of, needs_compiler

from microcontroller.interpreters import Tflm
from microcontroller.sixteen_networks import SIXTEEN, Net, everything
from onchip.base.errors import ModelError
from onchip.check import check
from onchip.machines.board import Board
from onchip.microcontroller.emulator.verify import inputs_of, verify
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.int8.sixteen.layers import LAYERS16
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan

RUNS = 3


def read(make: Callable[[Net], list[int]]) -> tuple[bytes, Int8Model]:
    net = Net(1)
    content = net.file(*make(net))
    return content, model_of(content, name=make.__name__, where="test")


def planned(model: Int8Model) -> Plan:
    plan = planned_for(network_of(model), 1 << 22, SegmentOptions()).plan
    assert check(plan) == plan.result
    return plan


def interpreted(content: bytes, model: Int8Model, inputs: Sequence[Int8]) -> list[list[bytes]]:
    """What TensorFlow Lite Micro makes of each input: the bytes of every output."""
    interpreter = Tflm(content, model)
    ends = np.cumsum([model.tensors[t].bytes for t in model.inputs])[:-1]
    return [[y.tobytes() for y in interpreter.run(np.split(x.reshape(-1), ends))] for x in inputs]


@pytest.mark.parametrize("name", SIXTEEN)
def test_the_reference_makes_what_tensorflow_lite_micro_makes(name: str) -> None:
    content, model = read(SIXTEEN[name])
    inputs = inputs_of(model, RUNS)
    theirs, session = interpreted(content, model, inputs), Session(model)
    assert [session.bytes_of(model, x) for x in inputs] == [b"".join(outputs) for outputs in theirs]
    assert all(len(set(outputs)) == RUNS for outputs in zip(*theirs, strict=True))


@needs_compiler
def test_so_does_the_c(tmp_path: Path) -> None:
    content, model = read(everything)
    inputs = inputs_of(model, RUNS)
    made = made_of(planned(model), model, tmp_path / "net", inputs, flags=SANITIZED)
    assert made == b"".join(y for outputs in interpreted(content, model, inputs) for y in outputs)


@pytest.mark.thorough
@pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)
def test_so_does_an_emulated_core_that_loads_no_half_at_an_odd_address(tmp_path: Path) -> None:
    _, model = read(everything)
    board = Board("any", "cortex-m0plus", 1 << 20, 1 << 20)
    sources = sources_of(planned(model), model, forms=board.core_type.forms)
    made = verify(sources, model, board, tmp_path, runs=2)
    assert made.match, f"{made.different} bytes differ"


def test_every_operator_that_is_read_is_in_a_network() -> None:
    seen = set()
    for make in SIXTEEN.values():
        net = Net(1)
        make(net)
        seen |= {op.type for op in net.operators}
    assert seen | {"PACK"} >= LAYERS16.keys()


def zero_point(net: Net) -> str:
    net.input((1, 2, 2, 4), zero=3)
    net.conv(0, 4)
    return "CONV_2D.0: has t0 of INT16 with zero point 3: only 0 is read"


def another_operator(net: Net) -> str:
    net.single("ELU", net.input((1, 2, 2, 4)), 1e-4)
    return "ELU.0: is not supported in INT16; supported are ADD, "


def too_large_a_factor(net: Net) -> str:
    out = net.conv(net.input((1, 2, 2, 4)), 4)
    net.tensors[out] = net.tensors[out].__class__("y", (1, 2, 2, 4), "INT16", None, (1e-12,), (0,))
    return "CONV_2D.0: scales its sums by "


def biases_of_32_bits_where_none_are_read(net: Net) -> str:
    x = net.input((1, 4, 4, 2))
    net.depthwise(x)
    net.tensors[2] = net.tensors[2].__class__(
        "bias", (2,), "INT32", np.zeros(2, np.int32), (1.0,) * 2, (0,) * 2
    )
    return "DEPTHWISE_CONV_2D.0: has biases bias that are no plain constant"


@pytest.mark.parametrize(
    "spoil", [zero_point, another_operator, too_large_a_factor, biases_of_32_bits_where_none_are_read]
)
def test_what_no_kernel_makes_is_refused_in_one_line(spoil: object) -> None:
    net = Net(0)
    assert callable(spoil)
    message = spoil(net)
    with pytest.raises(ModelError) as caught:
        model_of(net.file(net.operators[-1].outputs[0]), name="net", where="net.tflite")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
