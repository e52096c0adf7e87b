"""The nine networks inside the `onnx` package: read, sized right, operator by operator bit for bit."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from stepwise import differing, loose_nodes

from onchip.readers import ReadOptions, load

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = sorted(p.name for p in FOLDER.glob("light_*.onnx"))


def test_all_nine_are_there() -> None:
    assert len(NAMES) == 9


@pytest.mark.parametrize("granularity", ["fused", "op"])
@pytest.mark.parametrize("name", NAMES)
def test_reads(name: str, granularity: str) -> None:
    source = load(FOLDER / name, ReadOptions(granularity=granularity))
    assert source.executable is not None
    assert loose_nodes(source) == []
    assert source.network.element == "float32"
    small = load(FOLDER / name, ReadOptions(granularity=granularity, dtype="int8"))
    assert [4 * t.bytes for t in small.network.tensors] == [t.bytes for t in source.network.tensors]
    assert 4 * small.network.weight_bytes == source.network.weight_bytes


def test_resnet50_has_the_sizes_everyone_knows() -> None:
    network = load(FOLDER / "light_resnet50.onnx", ReadOptions(dtype="int8")).network
    sizes = {t.name: t.bytes for t in network.tensors}
    assert sizes["gpu_0/data_0"] == 3 * 224 * 224
    assert network.weight_bytes == 25_610_152  # 25,557,032 parameters and 53,120 batch-norm statistics
    assert max(sizes.values()) == 64 * 112 * 112
    assert {op.type for op in network.operators} == {
        "Conv+BatchNormalization+Relu", "Conv+BatchNormalization", "Sum+Relu", "MaxPool",
        "AveragePool", "Gemm", "Softmax",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["light_squeezenet.onnx", "light_shufflenet.onnx", "light_densenet121.onnx"])
@pytest.mark.parametrize("granularity", ["fused", "op"])
def test_runs_bit_for_bit(name: str, granularity: str) -> None:
    assert differing(load(FOLDER / name, ReadOptions(granularity=granularity))) == []
