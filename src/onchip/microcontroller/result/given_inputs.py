"""A user's inputs and labels: read from `.npy` files, turned into the network's bytes."""

from __future__ import annotations

import io
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from onchip.base.errors import InputError, ModelError
from onchip.base.files import read_bytes
from onchip.microcontroller.int8.model import Int8, Int8Model

__all__ = ["read_inputs", "read_labels"]

Array = np.ndarray[Any, Any]


def read_inputs(path: Path, model: Int8Model) -> Int8:
    """Return the inputs in a `.npy` file, a row of bytes each.

    int8 are the network's bytes, uint8 the same above zero (byte + 128, as images have them), int16 the
    numbers of a network of 16 bits, floats are real numbers, quantised by the input's scale. Raises
    `InputError` naming the file, `ModelError` for a
    network with several inputs or outputs.
    """
    if len(model.inputs) != 1 or len(set(model.outputs)) != 1:
        raise ModelError("must have one input and one output for --inputs", where=model.name)
    tensor = model.tensors[model.inputs[0]]
    values = _array(path)
    count, width = tensor.bytes // tensor.width, tensor.width
    if values.ndim < 2 or len(values) == 0 or prod(values.shape[1:]) != count:
        shape = " x ".join(map(str, (*tensor.shape[1:3], tensor.shape[3] // width)))
        reason = f"has shape {list(values.shape)}: not a number of inputs of {count:,} ({shape})"
        raise InputError(reason, where=str(path))
    original, (_, rows, columns, channels) = model.originals.get(model.inputs[0]), tensor.shape
    first = original is not None and original.channels_first
    if first and values.shape[1:] == (channels, rows, columns):
        values = values.transpose(0, 2, 3, 1)  # as the file has them; the network has channels last
    values = values.reshape(len(values), -1)
    if values.dtype == np.int8 and width == 1:
        return np.ascontiguousarray(values)
    if values.dtype == np.int16 and width == 2:
        return np.ascontiguousarray(values.astype("<i2")).view(np.int8)
    if values.dtype == np.uint8 and width == 1:
        return np.ascontiguousarray((values ^ 0x80).view(np.int8))
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise InputError("has numbers that are not finite", where=str(path))
        real = values.astype(np.float64) / tensor.scale
        away = np.sign(real) * np.floor(np.abs(real) + 0.5)  # as QUANTIZE rounds: halves away from zero
        most = (1 << (8 * width - 1)) - 1
        held = np.clip(away + tensor.zero_point, -most - 1, most)
        made: Int8 = held.astype(np.int8) if width == 1 else held.astype("<i2").view(np.int8)
        return made
    kinds = "int8, uint8 or floats" if width == 1 else "int16 or floats"
    raise InputError(f"is of {values.dtype}: not {kinds}", where=str(path))


def read_labels(path: Path, inputs: int, classes: int) -> Array:
    """Return a label for each input. Raises `InputError` naming the file."""
    values = _array(path)
    if values.dtype.kind not in "iu" or values.size != inputs:
        reason = f"has {values.size:,} of {values.dtype}: not a whole number for each of {inputs:,} inputs"
        raise InputError(reason, where=str(path))
    most = max(classes, 2)
    if values.size and not 0 <= values.min() <= values.max() < most:
        reason = f"has labels from {values.min()} to {values.max()}: not between 0 and {most - 1}"
        raise InputError(reason, where=str(path))
    return values.reshape(-1).astype(np.int64)


def _array(path: Path) -> Array:
    content = read_bytes(path, model=True)
    try:
        found = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError, MemoryError):
        raise InputError("is no array in numpy's .npy form", where=str(path)) from None
    if not isinstance(found, np.ndarray):
        raise InputError("holds several arrays: one .npy is needed", where=str(path))
    return found
