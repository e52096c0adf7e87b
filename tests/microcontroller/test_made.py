"""Networks from a seed: equal bytes for equal seeds, alive, and what the published ones are in shape."""

from __future__ import annotations

from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microcontroller.interpreters import litert, random_inputs, tflm
from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import FullyConnected, Int8Model, Layer, Softmax, kind
from onchip.microcontroller.int8.read import model_of, read_model
from onchip.microcontroller.int8.reference import activations
from onchip.microcontroller.made import NAMES, made_model

PUBLISHED = {
    "made:mcunet_vww": "mcunet_5fps_vww",
    "made:mcunet_320kb": "mcunet_320kb_imagenet",
    "made:vww_96": "vww_96_int8",
    "made:resnet8": "pretrainedResnet_quant",
    "made:kws": "kws_ref_model",
    "made:ad01": "ad01_int8",
}

DIGESTS = {
    "made:mcunet_vww": "8b4680c789bb",
    "made:mcunet_320kb": "105c2f57efa1",
    "made:vww_96": "b46f25bccfee",
    "made:resnet8": "8abc40ea0df6",
    "made:kws": "7d5040a40a74",
    "made:ad01": "526e53b66a5f",
    "made:mobilenet_v2": "51e56dc0a088",
    "made:mobilenet_v2_msfcnn": "f7dd45c3df93",
}


BETWEEN = (11, 5, 8, 22, 33, 56, 112)
"""Channels between msf-CNN's blocks of MobileNet v2."""


@cache
def made(name: str) -> tuple[bytes, Int8Model]:
    content = made_model(name)
    return content, model_of(content, name=name, where=name)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.thorough
def test_both_interpreters_load_it_and_compute_what_the_reference_computes(name: str) -> None:
    content, model = made(name)
    inputs = random_inputs(model, 1)
    values = activations(model, inputs)
    ours = [values[t] for t in model.outputs]
    for mine, other in zip(ours, tflm(content, model, inputs), strict=True):
        assert np.array_equal(mine.reshape(-1), other.reshape(-1))
    products = sum(isinstance(layer, FullyConnected) for layer in model.layers)
    for mine, other in zip(ours, litert(content, model, inputs)[0], strict=True):
        # LiteRT scales products with a matrix as floats: one apart, and more behind several of them.
        apart = np.abs(mine.reshape(-1).astype(int) - other.reshape(-1)).max()
        assert apart <= products


@pytest.mark.thorough
def test_every_layer_is_alive(name: str) -> None:
    """On inputs that no scale was fitted to: many values, few at the ends, others for another input."""
    _, model = made(name)
    one, two = (activations(model, random_inputs(model, seed)) for seed in (2, 3))
    for layer in model.layers:
        a, b = one[layer.output], two[layer.output]
        assert not np.array_equal(a, b), layer.name
        if isinstance(layer, Softmax) or a.size < 64:
            continue
        assert len(np.unique(a)) >= min(24, a.size // 16), layer.name
        assert np.mean(a == 127) < 0.1, layer.name
        assert np.mean(a == -128) < 0.8, layer.name


@pytest.mark.thorough
def test_equal_seeds_give_equal_bytes() -> None:
    for name in ("made:kws", "made:ad01"):
        assert made_model(name) == made_model(name.removeprefix("made:")) == made_model(name, 0)
        assert made_model(name, 1) != made_model(name, 0)


def test_the_files_bytes_are_the_same_on_every_machine() -> None:
    """A seed stands for a file: reports that name one can be checked elsewhere."""
    assert {name: made(name)[1].sha256[:12] for name in NAMES} == DIGESTS


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ModelError, match="is no network of ours; there are made:mcunet_vww, "):
        made_model("made:lenet")


def test_some_weights_have_negative_scales() -> None:
    _, model = made("made:mcunet_320kb")
    assert any(int(layer.multiplier.min()) < 0 for layer in model.layers if kind(layer) == "Conv")


def test_msf_cnn_s_mobilenet_has_the_channels_that_it_states() -> None:
    """Unrounded, without sums or matrix; its largest layer holds what msf-CNN publishes for it."""
    _, model = made("made:mobilenet_v2_msfcnn")
    assert {kind(layer) for layer in model.layers} == {"Conv", "Depthwise", "Mean"}
    shapes = [layer.output_shape for layer in model.layers]
    assert (shapes[0][3], shapes[-1][3]) == (11, 448)
    handed_on = [layer.output_shape[3] for layer in model.layers if layer.output_shape[3] in BETWEEN]
    assert list(dict.fromkeys(handed_on)) == [11, 5, 8, 22, 33, 56, 112]
    first = model.layers[4]
    assert prod(first.input_shapes[0]) + prod(first.output_shape) == 181_440


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_layers_are_those_of_the_published_network(name: str, shared: Path) -> None:
    path = shared / "models" / f"{PUBLISHED[name]}.tflite"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    _, ours = made(name)
    assert [form(layer) for layer in ours.layers] == [form(layer) for layer in read_model(path).layers]


def form(layer: Layer) -> tuple[Any, ...]:
    """What of a layer is no number that training gave."""
    window = tuple(
        getattr(layer, key, None) for key in ("kernel", "stride", "padding", "dilation", "groups", "axes")
    )
    return (
        kind(layer), layer.inputs, layer.output, layer.input_shapes, layer.output_shape, *window,
    )  # fmt: skip
