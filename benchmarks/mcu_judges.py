"""Interpreters of a microcontroller's file, to which the C that `onchip mcu` writes is held: TensorFlow Lite
Micro, LiteRT's reference kernels where that does not run it, and the reference of the docs for ONNX files.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import quantised_multiplier, scaled
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.reference import Session
from onchip.readers.tflite_graph import TfliteGraph, parse
from onchip.readers.tflite_rewrite import rewritten

__all__ = ["ARENA", "Array", "Judge", "OnnxJudge"]

ARENA = 1 << 26
"""More bytes than any file's tensors take."""
Array = np.ndarray[Any, Any]


class Judge:
    """An interpreter of the file between the model's inputs and outputs, one inference after the other."""

    def __init__(self, content: bytes, model: Int8Model) -> None:
        self.model = model
        graph = parse(content, where=model.name, states=True)
        if any(original.through for original in model.originals.values()):
            content = between(graph, model)
            graph = parse(content, where=model.name, states=True)
        self.content, self.graph = content, graph
        self.name, self.invoke = self.started()

    def given(self, inputs: list[Array], wanted: list[dict[str, Any]]) -> list[Array]:
        """What the interpreter takes: the model's inputs, and of others, which say a shape, that shape."""
        tensors = iter(zip(self.model.inputs, inputs, strict=True))
        found = []
        for t, detail in zip(self.graph.inputs, wanted, strict=True):
            row = self.graph.tensors[t]
            if row.element in (6, 7) and row.quantisation is None:
                maker = next(node for node in self.graph.nodes if t in node.inputs)
                shape = self.graph.tensors[maker.outputs[0]].shape
                found.append(np.array(shape, detail["dtype"]))
                continue
            tensor, x = next(tensors)
            found.append(self.as_given(tensor, x, detail))
        return found

    def started(self) -> tuple[str, Any]:
        try:
            return "TFLM", self.by_tflm()
        except Exception as problem:  # whatever an interpreter raises for an operator that it has not
            print(f"{self.model.name}: no TFLM: {problem}", file=sys.stderr)
            return "LiteRT", self.by_litert()

    def by_tflm(self) -> Any:
        from tflite_micro.python.tflite_micro import runtime

        interpreter = runtime.Interpreter.from_bytes(self.content, arena_size=ARENA)
        wanted = [interpreter.get_input_details(i) for i in range(len(self.graph.inputs))]

        def invoke(given: list[Array]) -> list[Array]:
            for i, x in enumerate(self.given(given, wanted)):
                interpreter.set_input(x, i)
            interpreter.invoke()
            return [interpreter.get_output(i) for i in range(len(self.model.outputs))]

        return invoke

    def by_litert(self) -> Any:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        interpreter = Interpreter(
            model_content=self.content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
        )
        interpreter.allocate_tensors()
        wanted, made = interpreter.get_input_details(), interpreter.get_output_details()

        def invoke(given: list[Array]) -> list[Array]:
            for x, detail in zip(self.given(given, wanted), wanted, strict=True):
                interpreter.set_tensor(detail["index"], x)
            interpreter.invoke()
            return [interpreter.get_tensor(detail["index"]) for detail in made]

        return invoke

    def as_given(self, t: int, x: Array, detail: dict[str, Any]) -> Array:
        """An input's bytes in the type of the file."""
        tensor = self.model.tensors[t]
        shaped = (x.reshape(-1).view("<i2") if tensor.width == 2 else x).reshape(detail["shape"])
        match np.dtype(detail["dtype"]).name:
            case "int8" | "int16":
                return shaped
            case "uint8":
                return shaped.view(np.uint8) ^ 0x80
            case "float32":
                return (shaped.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
        scale, zero = detail.get("quantization", (0, 0))
        if not scale:
            scale, zero = detail["quantization_parameters"]["scales"][0], 0
        real = (shaped.astype(np.float64) - tensor.zero_point) * tensor.scale
        found: Array = np.round(real / scale + zero).astype(detail["dtype"])
        return found

    def expected(self, t: int, ours: Array, theirs: Array) -> int:
        """How many elements of an output are not what the interpreter gives."""
        tensor = self.model.tensors[t]
        if theirs.dtype == np.uint8:
            theirs = (theirs ^ 0x80).view(np.int8)
        if tensor.width == 2:
            ours = ours.view("<i2")
        if theirs.dtype in (np.int8, np.int16):
            return int(np.count_nonzero(ours.reshape(-1) != theirs.reshape(-1)))
        if theirs.dtype == np.float32:
            real = (ours.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
            return int(np.count_nonzero(real.reshape(-1) != theirs.reshape(-1)))
        if theirs.dtype == np.int32:  # a QUANTIZE from our numbers, left to the caller
            [row] = [row for row in self.graph.tensors if row.name == tensor.name]
            maker = next(node for node in self.graph.nodes if row.index in node.outputs)
            inner = self.graph.tensors[maker.inputs[0]].quantisation
            outer = row.quantisation
            factor = quantised_multiplier(inner.scales[0] / outer.scales[0])
            moved = scaled(ours.astype(np.int64) - inner.zero_points[0], *factor) + outer.zero_points[0]
            return int(np.count_nonzero(moved.reshape(-1) != theirs.reshape(-1)))
        raise SystemExit(f"{self.model.name}: an output of {theirs.dtype}")


class OnnxJudge:
    """The reference of the docs for an ONNX file, and how far onnxruntime's numbers are from it."""

    name = "reference"

    def __init__(self, content: bytes, model: Int8Model) -> None:
        import onnx
        import onnxruntime

        self.model, self.reference = model, Session(model)
        file = onnx.load_from_string(content)
        known = {output.name for output in file.graph.output}
        for t in model.outputs:
            if model.tensors[t].name not in known:
                file.graph.output.append(onnx.ValueInfoProto(name=model.tensors[t].name))
        onnxruntime.set_default_logger_severity(3)
        self.session = onnxruntime.InferenceSession(file.SerializeToString())
        self.apart = self.most = self.same_class = self.count = 0

    def invoke(self, given: list[Array]) -> list[Array]:
        made = self.reference.run(given)
        feeds = {
            wanted.name: self.as_given(t, x, wanted)
            for t, x, wanted in zip(self.model.inputs, given, self.session.get_inputs(), strict=True)
        }
        found = dict(
            zip([o.name for o in self.session.get_outputs()], self.session.run(None, feeds), strict=True)
        )
        same = True
        for t, y in zip(self.model.outputs, made, strict=True):
            tensor = self.model.tensors[t]
            ours = y.reshape(tensor.shape).astype(np.int64)
            if self.first(t):
                ours = ours.transpose(0, 3, 1, 2)
            theirs = self.as_bytes(t, found[tensor.name]).reshape(-1)
            off = np.abs(ours.reshape(-1) - theirs)
            self.apart += int((off > 0).sum())
            self.most = max(self.most, int(off.max()))
            same = same and int(ours.reshape(-1).argmax()) == int(theirs.argmax())
        self.same_class += same
        self.count += 1
        return [y.reshape(-1) for y in made]

    def first(self, t: int) -> bool:
        return t in self.model.originals and self.model.originals[t].channels_first

    def as_given(self, t: int, x: Array, wanted: Any) -> Array:
        tensor = self.model.tensors[t]
        shaped = x.reshape(tensor.shape)
        if self.first(t):
            shaped = shaped.transpose(0, 3, 1, 2)
        shaped = shaped.reshape([n if isinstance(n, int) else 1 for n in wanted.shape])
        if wanted.type == "tensor(uint8)":
            return shaped.view(np.uint8) ^ 0x80
        if wanted.type == "tensor(int8)":
            return shaped
        found: Array = (shaped.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
        return found

    def as_bytes(self, t: int, values: Array) -> Array:
        tensor = self.model.tensors[t]
        if values.dtype == np.uint8:
            return values.astype(np.int64) - 128
        if values.dtype == np.int8:
            return values.astype(np.int64)
        found: Array = np.clip(np.round(values / tensor.scale) + tensor.zero_point, -128, 127).astype(
            np.int64
        )
        return found

    def expected(self, t: int, ours: Array, theirs: Array) -> int:
        return int(np.count_nonzero(ours.reshape(-1) != theirs.reshape(-1)))


def between(graph: TfliteGraph, model: Int8Model) -> bytes:
    """The file from the tensors that the model takes to those that it gives, where floats lie beyond."""
    index = {row.name: row.index for row in graph.tensors}
    makers = {t: node for node in graph.nodes for t in node.outputs}
    inputs = [index[model.tensors[t].name] for t in model.inputs]
    outputs = [index[model.tensors[t].name] for t in model.outputs]
    needed: set[int] = set()
    todo = list(outputs)
    while todo:
        t = todo.pop()
        if t in inputs or t not in makers or makers[t].index in needed:
            continue
        needed.add(makers[t].index)
        todo += [i for i in makers[t].inputs if i >= 0]
    order = [node.index for node in graph.nodes if node.index in needed]
    return rewritten(graph, operators=order, inputs=inputs, outputs=outputs, bare=True)
