"""Every kind of operator from a `.tflite` file to C: what the C makes is what the interpreter makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native import made_of, needs_compiler

from microcontroller.interpreters import tflm
from microcontroller.wide_networks import WIDE
from onchip.check import check
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.read_layers import LAYERS
from onchip.microcontroller.int8.read_tables import TABLES
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made import Builder, Map, WideBuilder
from onchip.microcontroller.network import network_of
from onchip.microcontroller.result.microcontroller_plan import MicrocontrollerPlan, planned_for
from onchip.microcontroller.segments import SegmentOptions

ROOM = 1 << 22

Make = Callable[[Builder], Map]


def image(b: Builder) -> Map:
    """A map that no kernel of one pixel makes: it needs workspace, and a window over its input."""
    return b.conv(b.input((1, 7, 8, 4)), 6, 3)


def squeeze_and_excite(b: Builder) -> Map:
    x = image(b)
    return b.conv(b.mul(x, b.logistic(b.conv(b.mean(x), 6))), 3)


def inverted_residual(b: Builder) -> Map:
    x = image(b)
    return b.add(x, b.conv(b.depthwise(b.conv(x, 12, activation="RELU6"), 3, activation="RELU6"), 6))


def reshaped_between_layers(b: Builder) -> Map:
    x = b.reshape(image(b), (1, 14, 4, 6))
    return b.depthwise(b.conv(x, 5, 3), 3)


def a_vector_becomes_a_map(b: Builder) -> Map:
    x = b.fully_connected(b.input((1, 20)), 48)
    return b.softmax(b.fully_connected(b.conv(b.reshape(x, (1, 4, 4, 3)), 4, 3), 5))


def the_input_is_reshaped(b: Builder) -> Map:
    return b.conv(b.conv(b.reshape(b.input((1, 84)), (1, 7, 6, 2)), 8, 3), 4)


def two_maps_reshaped_and_added(b: Builder) -> Map:
    x = image(b)
    y = b.conv(x, 6, 3)
    return b.conv(b.add(b.reshape(x, (1, 14, 4, 6)), b.reshape(y, (1, 14, 4, 6))), 3)


def joined_along_rows(b: Builder) -> Map:
    x = image(b)
    return b.conv(b.concat(x, b.depthwise(x), axis=1), 3)


def u_net(b: Builder) -> Map:
    x = b.conv(b.input((1, 8, 8, 4)), 6, 3)
    y = b.resize(b.conv(b.conv(x, 8, 3, 2), 6, 3), (8, 8))
    return b.conv(b.concat(x, y), 3)


def one_map_twice(b: Builder) -> Map:
    x = image(b)
    return b.conv(b.add(x, x), 3)


def joined_with_itself(b: Builder) -> Map:
    x = image(b)
    return b.conv(b.concat(x, x), 3, 3)


def joined_channels(b: Builder) -> Map:
    x = image(b)
    return b.conv(b.concat(b.conv(x, 4), b.conv(x, 8, 3)), 3)


NETWORKS: dict[str, tuple[Make, bool]] = {
    "conv": (lambda b: b.conv(image(b), 5, (3, 2), 2, activation="RELU"), True),
    "dilated and grouped": (lambda b: b.conv(b.conv(image(b), 6, 3, dilation=2), 4, 3, groups=2), True),
    "depthwise": (lambda b: b.depthwise(b.depthwise(image(b), 5), 3, 2, multiplier=2), True),
    "fully connected": (lambda b: b.fully_connected(b.fully_connected(image(b), 9), 4), True),
    "fully connected rows": (lambda b: b.fully_connected(b.fully_connected(b.input((5, 20)), 8), 3), True),
    "inverted residual": (inverted_residual, True),
    "squeeze and excite": (squeeze_and_excite, True),
    "average pool": (lambda b: b.average_pool(image(b), 2), True),
    "global pool": (lambda b: b.fully_connected(b.average_pool(image(b), (7, 8)), 4), True),
    "max pool": (lambda b: b.max_pool(b.max_pool(image(b), 3, 2, padding="SAME"), (4, 4)), True),
    "mean": (lambda b: b.fully_connected(b.mean(image(b)), 4), True),
    "mean, channels first": (lambda b: b.fully_connected(b.mean_channels_first(image(b)), 4), True),
    "pad before a pool": (lambda b: b.max_pool(b.pad(image(b), (1, 1, 1, 1)), 3, 2), True),
    "pad by more than a window": (lambda b: b.conv(b.pad(image(b), (3, 0, 2, 3)), 4, 2), True),
    "pad channels": (lambda b: b.conv(b.pad(image(b), (1, 0, 0, 2), (1, 1)), 3), True),
    "reshape": (reshaped_between_layers, True),
    "reshape a vector": (a_vector_becomes_a_map, True),
    "reshape the input": (the_input_is_reshaped, True),
    "reshape two": (two_maps_reshaped_and_added, False),
    "softmax": (lambda b: b.softmax(b.fully_connected(image(b), 7)), True),
    "softmax of pixels": (lambda b: b.softmax(image(b)), True),
    "logistic": (lambda b: b.logistic(image(b)), True),
    "hard-swish": (lambda b: b.conv(b.hard_swish(image(b)), 3), True),
    "PReLU": (lambda b: b.depthwise(b.prelu(image(b)), 3), True),
    "resize, nearest": (lambda b: b.conv(b.resize(image(b), (14, 11)), 3, 3), True),
    "resize, bilinear": (lambda b: b.conv(b.resize(image(b), (5, 20), "bilinear"), 3, 3), True),
    "concat": (joined_channels, True),
    "concat rows": (joined_along_rows, False),
    "U-net": (u_net, False),
    "add to itself": (one_map_twice, True),
    "concat with itself": (joined_with_itself, True),
    "multiply by constants": (lambda b: b.mul(image(b), b.constant((1, 1, 1, 6))), True),
    "add a constant map": (lambda b: b.conv(b.add(image(b), b.constant((1, 7, 8, 6))), 3), True),
    "quantize": (lambda b: b.conv(b.quantize(image(b), Scale(0.05, 3)), 3), True),
    "floats at the edge": (lambda b: b.conv(b.input((1, 7, 8, 4), floats=True), 6, 3), True),
}
"""A network for each kind, and whether segments plans it; the others lie tensor by tensor."""


def interpreted(content: bytes, model: Int8Model, inputs: list[Int8]) -> bytes:
    """What TensorFlow Lite Micro makes of the inputs."""
    return b"".join(np.asarray(tflm(content, model, [x])[0]).tobytes() for x in inputs)


def planned(name: str, options: SegmentOptions) -> tuple[bytes, Int8Model, MicrocontrollerPlan]:
    b = Builder(3)
    make, by_segments = NETWORKS[name]
    content = b.file(make(b), floats=name == "floats at the edge")
    model = model_of(content, name=name, where="test")
    found = planned_for(network_of(model), ROOM, options)
    assert (found.whole is None) == by_segments, found.whole
    assert check(found.plan) == found.plan.result
    return content, model, found


@needs_compiler
@pytest.mark.parametrize("name", NETWORKS)
def test_c_makes_what_the_interpreter_makes(name: str, tmp_path: Path) -> None:
    content, model, found = planned(name, SegmentOptions(objective="once"))
    inputs = inputs_of(model, 2)
    made = made_of(found.plan, model, tmp_path / "net", inputs, flags="")
    assert made == b"".join(run(model, [x])[0].tobytes() for x in inputs)
    if name != "floats at the edge":  # its interpreter takes and gives floats
        assert made == interpreted(content, model, inputs)


def every_kind_every_way() -> list[object]:
    """Each kind with its input in one way and for one objective: all ways, objectives and pairs occur, even
    among every other kind; the rest are a campaign."""
    kinds = [name for name, (_, by_segments) in NETWORKS.items() if by_segments]
    modes, objectives = ("held", "once", "again"), ("free", "once", "least")
    return [
        pytest.param(kind, modes[i % 3], objectives[i // 3 % 3], marks=pytest.mark.campaign if i % 2 else ())
        for i, kind in enumerate(kinds)
    ]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("name", "mode", "objective"), every_kind_every_way())
def test_so_it_does_however_it_is_planned(name: str, mode: Any, objective: Any, tmp_path: Path) -> None:
    _, model, found = planned(name, SegmentOptions(input=mode, objective=objective))
    inputs = inputs_of(model, 1)
    made = made_of(found.plan, model, tmp_path / "net", inputs)
    assert made == b"".join(run(model, [x])[0].tobytes() for x in inputs)


@pytest.mark.thorough
def test_every_kind_that_is_read_is_here() -> None:
    """Whatever becomes a layer stands in one of the networks, so that nothing is left to be believed."""
    seen = set()
    for name in NETWORKS:
        _, model, _ = planned(name, SegmentOptions())
        seen |= {layer.name.rpartition(".")[0] for layer in model.layers}
    for make in WIDE.values():
        b = WideBuilder(3)
        model = model_of(b.file(*make(b)), name="wide", where="test")
        seen |= {layer.name.partition(".")[0] for layer in model.layers}
    # Floats between bytes become a LOOKUP, of one tensor or of two: test_read_islands.py.
    assert seen | {"PADV2", "LOOKUP", "LOOKUP_TWO"} | TABLES.keys() >= set(LAYERS)
