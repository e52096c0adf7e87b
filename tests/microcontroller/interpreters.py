"""The public interpreters, as oracles: LiteRT's reference kernels and TensorFlow Lite Micro."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onchip.microcontroller.int8.model import ByteTensor, Int8, Int8Model

Array = np.ndarray[Any, Any]


def real(tensor: ByteTensor, values: Int8) -> Array:
    """Bytes as the floats that a QUANTIZE in front turns back into them."""
    return (values.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)


def as_bytes(tensor: ByteTensor, values: Array) -> Int8:
    """What an interpreter gave out, in the bytes before a DEQUANTIZE or a step to uint8."""
    if values.dtype == np.int8:
        return values
    if values.dtype == np.int16:
        return values.astype("<i2").view(np.int8)
    if values.dtype == np.uint8:
        return (values ^ 0x80).view(np.int8)
    return (np.round(values / np.float32(tensor.scale)) + tensor.zero_point).astype(np.int8)


def given(model: Int8Model, inputs: Sequence[Int8], wanted: Sequence[dict[str, Any]]) -> list[Array]:
    """The inputs in the shapes and types that an interpreter takes."""
    found = []
    for t, x, detail in zip(model.inputs, inputs, wanted, strict=True):
        wide = model.tensors[t].width == 2
        shaped = (x.reshape(-1).view("<i2") if wide else x).reshape(detail["shape"])
        if detail["dtype"] == np.uint8:
            shaped = shaped.view(np.uint8) ^ 0x80
        elif detail["dtype"] == np.float32:
            shaped = real(model.tensors[t], shaped)
        found.append(shaped)
    return found


def litert(content: bytes, model: Int8Model, inputs: Sequence[Int8]) -> tuple[list[Int8], dict[str, Array]]:
    """(outputs, all tensors of int8 by name) by LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=content,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=True,
    )
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    for detail, x in zip(details, given(model, inputs, details), strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    outputs = [
        as_bytes(model.tensors[t], interpreter.get_tensor(d["index"]))
        for t, d in zip(model.outputs, interpreter.get_output_details(), strict=True)
    ]
    inner = {
        d["name"]: interpreter.get_tensor(d["index"])
        for d in interpreter.get_tensor_details()
        if d["dtype"] == np.int8 and d["name"] in {t.name for t in model.tensors}
    }
    return outputs, inner


class Tflm:
    """TensorFlow Lite Micro with a network, which keeps its states from one inference to the next."""

    def __init__(self, content: bytes, model: Int8Model, arena: int = 1 << 21) -> None:
        from tflite_micro.python.tflite_micro import runtime

        self.model = model
        self.interpreter = runtime.Interpreter.from_bytes(content, arena_size=arena)
        self.details = [self.interpreter.get_input_details(i) for i in range(len(model.inputs))]

    def run(self, inputs: Sequence[Int8]) -> list[Int8]:
        for i, x in enumerate(given(self.model, inputs, self.details)):
            self.interpreter.set_input(x, i)
        self.interpreter.invoke()
        return [
            as_bytes(self.model.tensors[t], self.interpreter.get_output(i))
            for i, t in enumerate(self.model.outputs)
        ]


def tflm(content: bytes, model: Int8Model, inputs: Sequence[Int8], arena: int = 1 << 21) -> list[Int8]:
    """Outputs by TensorFlow Lite Micro."""
    return Tflm(content, model, arena).run(inputs)


def random_inputs(model: Int8Model, seed: int) -> list[Int8]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-128, 128, model.tensors[t].shape, np.int8) for t in model.inputs]
