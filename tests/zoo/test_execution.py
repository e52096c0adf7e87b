"""The built-in networks with weights from a seed, run whole by onnxruntime without graph optimisations."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from large_cases import with_campaign
from onchip import zoo
from onchip.base.errors import ModelError
from onchip.readers import load
from onchip.run import fill_weights

QUICK = ("mobilenet_v2", "resnet18", "shufflenet_v2_x1_0", "squeezenet1_0")
SLOW = (
    "alexnet",
    "amoebanet_d",
    "caffenet",
    "darts",
    "fcn_resnet18",
    "googlenet",
    "lraspp_mobilenet_v3_large",
    "mnasnet1_0",
    "mobilenet_v1",
    "nasnetamobile",
    "transformer",
    "vit_b_16",
)
LARGE = ("alexnet", "amoebanet_d", "vit_b_16")
"""Take seconds: `benchmarks/execute_zoo.py` runs all."""


def outputs(model: onnx.ModelProto, seed: int) -> np.ndarray[Any, Any]:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(seed)
    values = {i.name: rng.standard_normal(i.shape).astype(np.float32) for i in session.get_inputs()}
    (result,) = session.run(None, values)
    return np.asarray(result)


@pytest.mark.parametrize("name", QUICK)
def test_outputs_are_finite_and_depend_on_the_input(name: str) -> None:
    finite_and_dependent(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", with_campaign(SLOW, LARGE))
def test_so_are_those_of_larger_networks(name: str) -> None:
    finite_and_dependent(name)


def finite_and_dependent(name: str) -> None:
    model = fill_weights(onnx.load_model_from_string(zoo.model_bytes(name)), seed=1)
    first, second = outputs(model, seed=1), outputs(model, seed=2)
    assert np.isfinite(first).all()
    assert first.std() > 1e-3 * np.abs(first).max()
    assert np.abs(first - second).max() > 1e-3 * np.abs(first).max()


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in zoo.names() if zoo.describe(name).resizable])
def test_a_resizable_network_follows_its_input(name: str) -> None:
    height, width = (side + 33 for side in zoo.describe(name).input[-2:])
    source, usual = load(f"zoo:{name}@{height}x{width + 10}"), load(f"zoo:{name}")
    assert source.executable is not None
    assert usual.executable is not None
    assert source.executable.shape[0][-2:] == (height, width + 10)
    assert len(source.network.operators) == len(usual.network.operators)
    assert sum(t.bytes for t in source.network.tensors) > sum(t.bytes for t in usual.network.tensors)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("fcn_resnet18", (1, 21, 127, 150)),  # it scales to its input's size
        ("googlenet", (1, 1000)),  # its pools round up
        ("lraspp_mobilenet_v3_large", (1, 21, 127, 150)),  # it scales to its input's size
        ("shufflenet_v2_x1_0", (1, 1000)),  # it reshapes to a feature map's size
    ],
)
def test_a_resized_network_runs(name: str, shape: tuple[int, ...]) -> None:
    executable = load(f"zoo:{name}@127x150").executable
    assert executable is not None
    result = outputs(fill_weights(executable.model, seed=1), seed=1)
    assert result.shape == shape
    assert np.isfinite(result).all()


@pytest.mark.parametrize("name", [name for name in zoo.names() if not zoo.describe(name).resizable])
def test_a_network_of_one_size_says_so(name: str) -> None:
    with pytest.raises(ModelError, match=f"zoo:{name}@256x256: .* cannot be resized"):
        load(f"zoo:{name}@256x256")
