"""An int8 network from a user's argument: a file, or a network made from a seed."""

from __future__ import annotations

from pathlib import Path

from onchip.base.errors import ModelError
from onchip.base.files import read_bytes
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of, read_model

__all__ = ["MADE", "file_bytes", "int8_model"]

MADE = "made:"


def file_bytes(model: str | Path) -> bytes:
    """Return the `.tflite` file of a path, or of `made:NAME`. Raises `ModelError`."""
    if isinstance(model, str) and model.startswith(MADE):
        from onchip.microcontroller.made import made_model

        return made_model(model)
    if isinstance(model, str) and model.startswith("zoo:"):
        why = "is in floating point: an int8 FILE.tflite is needed, or made:NAME (onchip mcu --help)"
        raise ModelError(why, where=model)
    return read_bytes(Path(model), error=ModelError, model=True)


def int8_model(model: str | Path) -> Int8Model:
    """Return the network in a `.tflite` or quantised `.onnx` file, or `made:NAME`.

    Raises `ModelError` naming the file and the operator.
    """
    if isinstance(model, str) and model.startswith((MADE, "zoo:")):
        return model_of(file_bytes(model), name=model.removeprefix(MADE), where=model)
    path = Path(model)
    if path.suffix == ".onnx":
        from onchip.microcontroller.int8.onnx_qdq.read import onnx_model_of

        return onnx_model_of(file_bytes(path), name=path.stem, where=str(path), folder=path.parent)
    return read_model(path)
