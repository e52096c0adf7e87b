"""Published int8 networks: the reference computes what the interpreters compute, byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from microcontroller.interpreters import litert, random_inputs, tflm
from onchip.machines.board import Board
from onchip.microcontroller.emulator.verify import verify
from onchip.microcontroller.int8.model import FullyConnected, Int8, Int8Model, Mean, kind
from onchip.microcontroller.int8.read import model_of, read_model
from onchip.microcontroller.int8.reference import activations, layer_output, run
from onchip.microcontroller.int8.shapes import made_shape
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.segments import plan
from onchip.readers.tflite_graph import parse
from onchip.readers.tflite_rewrite import rewritten

MODELS = (
    "ad01_int8",
    "kws_ref_model",
    "mcunet_320kb_imagenet",
    "mcunet_5fps_vww",
    "pretrainedResnet_quant",
    "vww_96_int8",
)


@pytest.fixture(params=MODELS)
def file(request: pytest.FixtureRequest, shared: Path) -> Path:
    path = shared / "models" / f"{request.param}.tflite"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    return path


def test_outputs_are_those_of_tensorflow_lite_micro(file: Path) -> None:
    model = read_model(file)
    made = set()
    for seed in range(2):
        inputs = random_inputs(model, seed)
        ours = run(model, inputs)
        theirs = tflm(file.read_bytes(), model, inputs)
        for mine, other in zip(ours, theirs, strict=True):
            assert np.array_equal(mine.reshape(-1), other.reshape(-1))
            made.add(mine.tobytes())
    assert len(made) == 2


def test_every_layer_is_that_of_litert(file: Path) -> None:
    """Layer by layer on LiteRT's own operands: all bytes equal, but for products by a matrix."""
    model = read_model(file)
    inputs = random_inputs(model, 3)
    _, theirs = litert(file.read_bytes(), model, inputs)
    values = activations(model, inputs)
    for t in model.tensors:
        if t.name in theirs and theirs[t.name].size > 1 and not transposed(model, t.id):
            values = {**values, t.id: theirs[t.name].reshape(t.shape)}
    compared = 0
    for layer in model.layers:
        if model.tensors[layer.output].name not in theirs or transposed(model, layer.output):
            continue
        mine = layer_output(layer, [values[t] for t in layer.inputs])
        other = values[layer.output]
        if isinstance(layer, FullyConnected):  # LiteRT scales these sums as floats
            assert np.abs(mine.astype(int) - other).max() <= 1
        else:
            assert np.array_equal(mine, other), layer.name
            compared += 1
    assert compared >= sum(not isinstance(layer, FullyConnected | Mean) for layer in model.layers)


def transposed(model: Int8Model, tensor: int) -> bool:
    """Whether the file lays a tensor out in another order: the result of a mean behind a transpose."""
    layer = model.producer.get(tensor)
    return isinstance(layer, Mean) and len(layer.axes) == 1


def test_what_is_read_is_sound(file: Path) -> None:
    model = read_model(file)
    assert not [layer.name for layer in model.layers if made_shape(layer) != layer.output_shape]
    assert [t.id for t in model.tensors] == list(range(len(model.tensors)))
    assert all(model.tensors[layer.output].shape == layer.output_shape for layer in model.layers)
    kinds = {kind(layer) for layer in model.layers}
    assert not kinds & {"Pad", "Quantize", "Dequantize"}
    network = network_of(model)
    assert [op.name for op in network.operators] == [layer.name for layer in model.layers]
    assert (
        sum(op.work for op in network.operators)
        == {
            "ad01_int8": 264_192,
            "kws_ref_model": 2_656_768,
            "mcunet_320kb_imagenet": 81_785_520,
            "mcunet_5fps_vww": 11_578_816,
            "pretrainedResnet_quant": 12_501_632,
            "vww_96_int8": 7_489_664,
        }[file.stem]
    )


def test_every_product_with_a_matrix_is_that_of_tensorflow_lite_micro(file: Path) -> None:
    """Each as a network of its own: the file with one operator, on bytes drawn at random."""
    graph = parse(file.read_bytes(), where=file.name)
    nodes = [node for node in graph.nodes if node.type == "FULLY_CONNECTED"]
    if not nodes:
        pytest.skip("it has none")
    for node in nodes:
        ends = {"inputs": node.inputs[:1], "outputs": node.outputs}
        part = rewritten(graph, operators=[node.index], bare=True, **ends)
        model = model_of(part, name=node.label, where=file.name)
        inputs = random_inputs(model, node.index)
        [mine], [other] = run(model, inputs), tflm(part, model, inputs)
        assert np.array_equal(mine.reshape(-1), other.reshape(-1)), node.label


@pytest.mark.slow
@pytest.mark.skipif(
    not all(shutil.which(tool) for tool in ("arm-none-eabi-gcc", "qemu-system-arm", "cc")),
    reason="needs gcc-arm-none-eabi and qemu-system-arm",
)
def test_the_emulated_core_makes_what_the_interpreters_make(file: Path, tmp_path: Path) -> None:
    """From the file to C to the core, and no code of ours to judge it."""
    if file.stem == "mcunet_320kb_imagenet":
        pytest.skip("minutes on the emulated core: benchmarks/mcu_networks.py")
    content, model = file.read_bytes(), read_model(file)
    products = any(isinstance(layer, FullyConnected) for layer in model.layers)

    def by_tflm(model: Int8Model, x: Int8) -> bytes:
        return np.asarray(tflm(content, model, [x])[0]).tobytes()

    def by_litert(model: Int8Model, x: Int8) -> bytes:
        return np.asarray(litert(content, model, [x])[0][0]).tobytes()

    sources = sources_of(plan(network_of(model), 1 << 22), model)
    board = Board("any", "cortex-m4", 4 << 20, 4 << 20)
    # LiteRT scales products with a matrix as floats: its bytes may be one apart.
    for judge in (by_tflm,) if products else (by_tflm, by_litert):
        made = verify(sources, model, board, tmp_path / judge.__name__, runs=2, seed=7, reference=judge)
        assert made.match, f"{made.different} bytes differ"
