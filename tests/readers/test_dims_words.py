"""What `--dims` says of names that no input has."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onchip
from onchip.base.errors import UsageError


def test_a_misspelt_dimension_is_named_before_the_one_that_is_missed(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 18]> g (float[batch,4] x) => (float[batch,4] y) { y = Relu (x) }'
    )
    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    with pytest.raises(UsageError, match="dimension bacth without a value; did you mean batch"):
        onchip.load(path, dims="bacth=1")
    assert onchip.load(path, dims="batch=1").network.tensors
