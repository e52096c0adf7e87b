"""Write a Llama of some layers, 512 tokens, as an ONNX file without its weights.

    python benchmarks/today/llama_layers.py LAYERS FILE.onnx

Needs torch, onnx and onnxscript. Sixteen heads of 64, eight of keys and values, 2,816 hidden features.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import language
import onnx
import torch

SMALL = 256
"""The most elements of a constant that keeps its values, as shapes and indices are."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("layers", type=int)
    parser.add_argument("file", type=Path)
    asked = parser.parse_args()
    module = language.Llama(layers=asked.layers, heads=16, shared=8, hidden=2816).eval()
    words = torch.zeros((1, 512), dtype=torch.int64)
    exported = torch.onnx.export(module, (words,), dynamo=True, opset_version=20, verbose=False)
    assert exported is not None
    model = exported.model_proto
    for constant in model.graph.initializer:
        if math.prod(constant.dims) > SMALL:
            plain = onnx.TensorProto(
                name=constant.name, dims=list(constant.dims), data_type=constant.data_type
            )
            constant.CopyFrom(plain)
    onnx.save(model, asked.file)


if __name__ == "__main__":
    main()
