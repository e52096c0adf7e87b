"""Small ONNX files from their textual form, and reading them back."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser

from onchip.readers import ReadOptions, Source, load


def graph(text: str, *, opset: int = 18, ir: int = 8) -> onnx.ModelProto:
    """A model from the body of an ONNX text: `(float[1,4] x) => (float[1,4] y) { y = Relu(x) }`."""
    header = f'<ir_version: {ir}, opset_import: ["" : {opset}]>\n'
    return onnx.parser.parse_model(f"{header}g {text}")


def save(model: onnx.ModelProto, folder: Path, name: str = "net.onnx") -> Path:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def read(model: onnx.ModelProto | str, folder: Path, *, opset: int = 18, **options: object) -> Source:
    """Write a model to `folder` and load it."""
    made = graph(model, opset=opset) if isinstance(model, str) else model
    return load(save(made, folder), ReadOptions(**options))  # type: ignore[arg-type]


def rows(source: Source) -> list[tuple[str, list[str], list[str]]]:
    """(type, inputs, outputs) of every operator."""
    net = source.network
    names = [t.name for t in net.tensors]
    return [(op.type, [names[t] for t in op.inputs], [names[t] for t in op.outputs]) for op in net.operators]


def weighted(model: onnx.ModelProto, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """The model with float initializers of these shapes, 0.01, 0.02, ... going round."""
    import numpy as np

    for name, shape in shapes.items():
        size = int(np.prod(shape))
        value = (np.arange(size, dtype=np.float32) % 17 + 1).reshape(shape) / 100
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model
