"""The outputs of an interpreter for a file, in the bytes of the int8 network.

It is LiteRT's (PyPI `ai-edge-litert`) for a `.tflite` file, onnxruntime for an ONNX file.

The interpreter runs in a process of its own: a damaged file may crash it.
"""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np

from onchip.base.child import environment, interpreter
from onchip.base.files import temporary_folder
from onchip.base.guard import dies_with_us
from onchip.microcontroller.int8.model import Int8, Int8Model

__all__ = ["interpreted", "name_of"]

SECONDS = 60.0
"""The time limit of the process, and for every input one second more."""

_ASK = """
import sys
import numpy as np
from ai_edge_litert.interpreter import Interpreter
folder, scale, zero, out_scale, out_zero, width = sys.argv[1], *map(float, sys.argv[2:])
given = np.load(folder + "/in.npy")
interpreter = Interpreter(model_path=folder + "/model.tflite")
interpreter.allocate_tensors()
(source,), (target,) = interpreter.get_input_details(), interpreter.get_output_details()
made = []
for x in given:
    if source["dtype"] == np.uint8:
        x = x.view(np.uint8) ^ 0x80
    elif source["dtype"] == np.float32:
        x = (x.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    elif source["dtype"] == np.int16:
        x = x.view("<i2")
    interpreter.set_tensor(source["index"], x.reshape(source["shape"]))
    interpreter.invoke()
    y = interpreter.get_tensor(target["index"])
    if y.dtype == np.uint8:
        y = (y ^ 0x80).view(np.int8)
    elif y.dtype == np.int16:
        y = np.ascontiguousarray(y).view(np.int8)
    elif y.dtype != np.int8:
        most = 2 ** (8 * width - 1) - 1
        y = np.clip(np.round(y / np.float32(out_scale)) + out_zero, -most - 1, most)
        y = y.astype(np.int8) if width == 1 else np.ascontiguousarray(y.astype("<i2")).view(np.int8)
    made.append(y.reshape(-1))
np.save(folder + "/out.npy", np.stack(made))
"""

_ASK_ONNX = """
import sys
import numpy as np
import onnxruntime
folder, scale, zero, out_scale, out_zero, width = sys.argv[1], *map(float, sys.argv[2:])
given = np.load(folder + "/in.npy")
session = onnxruntime.InferenceSession(folder + "/model")
(source,), (target,) = session.get_inputs(), session.get_outputs()
shape = [n if isinstance(n, int) else 1 for n in source.shape]
made = []
for x in given:
    if source.type == "tensor(uint8)":
        x = x.view(np.uint8) ^ 0x80
    elif source.type == "tensor(float)":
        x = (x.astype(np.float32) - np.float32(zero)) * np.float32(scale)
    y = session.run([target.name], {source.name: x.reshape(shape)})[0]
    if y.dtype == np.uint8:
        y = (y ^ 0x80).view(np.int8)
    elif y.dtype != np.int8:
        y = np.clip(np.round(y / np.float32(out_scale)) + out_zero, -128, 127).astype(np.int8)
    if y.ndim == 4:
        y = y.transpose(0, 2, 3, 1)
    made.append(y.reshape(-1))
np.save(folder + "/out.npy", np.stack(made))
"""


def name_of(content: bytes) -> str:
    """Return the name of the interpreter that runs a file."""
    return "LiteRT" if content[4:8] == b"TFL3" else "onnxruntime"


def _as_in_the_file(model: Int8Model, given: Int8) -> Int8:
    """Return inputs with their axes in the file's order."""
    t = model.inputs[0]
    if t not in model.originals or not model.originals[t].channels_first:
        return given
    turned = given.reshape(-1, *model.tensors[t].shape[1:]).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(turned).reshape(len(given), -1)


def interpreted(content: bytes, model: Int8Model, given: Int8) -> Int8 | str:
    """Return the outputs of a file, a row for each row of inputs, or a sentence why there are none.

    These are the kernels that the interpreter takes by itself.
    """
    read, made = model.tensors[model.inputs[0]], model.tensors[model.outputs[0]]
    name = name_of(content)
    package, ask, file = {
        "LiteRT": ("ai_edge_litert", _ASK, "model.tflite"),
        "onnxruntime": ("onnxruntime", _ASK_ONNX, "model"),
    }[name]
    through = [label for t in model.outputs if t in model.originals for label in model.originals[t].through]
    if through and name == "onnxruntime":
        return f"what lies behind the network's bytes ({', '.join(through)}) is left to the caller"
    scales = [
        repr(n) for n in (read.scale, float(read.zero_point), made.scale, float(made.zero_point), made.width)
    ]
    with temporary_folder() as folder:
        (folder / file).write_bytes(content)
        np.save(folder / "in.npy", _as_in_the_file(model, given))
        try:
            ran = subprocess.run(
                [*interpreter(), "-c", ask, str(folder), *scales],
                env=environment(),
                capture_output=True,
                timeout=SECONDS + len(given),
                check=False,
                preexec_fn=dies_with_us(),
            )
        except subprocess.TimeoutExpired:
            return f"{name} did not answer in time"
        printed = ran.stderr.decode(errors="replace")
        if f"No module named '{package}" in printed:
            return f"{name} is not installed: pip install {package.replace('_', '-')}"
        if ran.returncode:
            lines = [line for line in printed.splitlines() if line.strip()]
            return f"{name} refuses the file: {lines[-1] if lines else 'no reason given'}"
        found: np.ndarray[Any, np.dtype[np.int8]] = np.load(folder / "out.npy")
    return found
