"""`--dims` for several networks at once: each takes the dimensions that it has."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import onchip
from onchip.base.errors import ModelError, UsageError


def _saved(path: Path, *dims: str | int) -> Path:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(dims)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], path.stem, ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def test_a_dimension_may_be_that_of_one_network(tmp_path: Path) -> None:
    open_, fixed = (
        _saved(tmp_path / "open.onnx", "batch", 3, 8, 8),
        _saved(tmp_path / "fixed.onnx", 1, 3, 8, 8),
    )
    for models in ([open_, fixed], [fixed, open_]):
        made = onchip.corun(models, "orin-agx", dims="batch=1")
        assert {job.name for job in made.workload.jobs} == {"open", "fixed"}
    with pytest.raises(ModelError, match="dimension 0 is batch and has no value"):
        onchip.corun([fixed, open_], "orin-agx")


def test_a_dimension_of_none_is_refused(tmp_path: Path) -> None:
    fixed, open_ = (
        _saved(tmp_path / "fixed.onnx", 1, 3, 8, 8),
        _saved(tmp_path / "open.onnx", "batch", 3, 8, 8),
    )
    with pytest.raises(UsageError, match=r"fixed\.onnx has a dimension hieght without a value"):
        onchip.corun([fixed, open_], "orin-agx", dims="batch=1,hieght=8")
