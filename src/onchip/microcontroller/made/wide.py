"""A builder with the operators that move bytes, look them up, or keep some for the next inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.made.builder import Builder, Map, Reals, covering, int8_tensor, whole_tensor
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write

__all__ = ["WideBuilder"]


class WideBuilder(Builder):
    """A network under construction, as `Builder`."""

    def __init__(self, seed: int = 0, samples: int = 2) -> None:
        super().__init__(seed, samples)
        self.variables: list[tuple[str, FileTensor]] = []

    def file(self, *outputs: Map, floats: bool = False) -> bytes:
        if not self.variables:
            return super().file(*outputs, floats=floats)
        handles = [FileTensor(f"handle{i}", (), "RESOURCE") for i in range(len(self.variables))]
        steps = []
        for i, (name, _) in enumerate(self.variables):
            steps.append(FileOperator("VAR_HANDLE", (), (i,), "VarHandleOptions", {"SharedName": name}))
            steps.append(FileOperator("ASSIGN_VARIABLE", (i, len(handles) + i), (), "AssignVariableOptions"))
        begun = [FileOperator("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1})]
        others = [([*handles, *(first for _, first in self.variables)], steps)]
        ends = [output.index for output in outputs]
        return write(self.tensors, [*begun, *self.operators], self.inputs, ends, others)

    # -- tables and pairs ------------------------------------------------------------------------------------

    def table(
        self, kind: str, x: Map, function: Callable[[Reals], Any], on: Scale | None = None, **options: Any
    ) -> Map:
        """Add an operator on single bytes that computes a function, on a scale that covers its values."""
        reals = [np.asarray(function(v)) for v in x.reals()]
        name = options.pop("table", "")
        operator = FileOperator(kind, (), (), name, options)
        return self._made(operator, [x], x.shape, on or covering(reals))

    def leaky_relu(self, x: Map, alpha: float = 0.1) -> Map:
        return self.table(
            "LEAKY_RELU", x, lambda v: np.where(v > 0, v, v * alpha), table="LeakyReluOptions", Alpha=alpha
        )

    def tanh(self, x: Map) -> Map:
        return self.table("TANH", x, np.tanh, Scale(1 / 128, 0))

    def log_softmax(self, x: Map) -> Map:
        operator = FileOperator("LOG_SOFTMAX", (), (), "LogSoftmaxOptions")
        return self._made(operator, [x], x.shape, Scale(1 / 16, 127))

    def sub(self, x: Map, y: Map) -> Map:
        reals = [a - b for a, b in zip(x.reals(), y.reals(), strict=True)]
        return self._pair("SUB", "SubOptions", x, y, reals, "NONE")

    def squared_difference(self, x: Map, y: Map) -> Map:
        reals = [(a - b) ** 2 for a, b in zip(x.reals(), y.reals(), strict=True)]
        operator = FileOperator("SQUARED_DIFFERENCE", (), (), "SquaredDifferenceOptions")
        return self._made(operator, [x, y], reals[0].shape, covering(reals))

    def extremum(self, x: Map, y: Map, *, greatest: bool) -> Map:
        """Add the greater or smaller of two maps, both on the coarser of their scales."""
        on = max(x.scale, y.scale)
        pair = [m if m.scale == on else self.quantize(m, on) for m in (x, y)]
        operator = FileOperator("MAXIMUM" if greatest else "MINIMUM", (), (), "MaximumMinimumOptions")
        return self._made(operator, pair, x.shape, on)

    def matmul(self, x: Map, y: Map, *, turned: tuple[bool, bool] = (False, False)) -> Map:
        reals = []
        for a, b in zip(x.reals(), y.reals(), strict=True):
            sides = [m.swapaxes(-1, -2) if t else m for m, t in zip((a, b), turned, strict=True)]
            reals.append(sides[0] @ sides[1])
        options = {"AdjX": int(turned[0]), "AdjY": int(turned[1])}
        operator = FileOperator("BATCH_MATMUL", (), (), "BatchMatMulOptions", {**options})
        return self._made(operator, [x, y], reals[0].shape, covering(reals))

    def transpose_conv(self, x: Map, channels: int, kernel: int, stride: int, *, same: bool = True) -> Map:
        """Add a transposed convolution; its output is `stride` times as large, or larger without padding."""
        weights = self._bytes((channels, kernel, kernel, x.shape[3]), low=-127)
        scale = 1 / (70 * kernel * np.sqrt(x.shape[3]))
        more = 0 if same else max(0, kernel - stride)
        shape = (1, x.shape[1] * stride + more, x.shape[2] * stride + more, channels)
        bias = self.random.randint(-2000, 2000, channels).astype(np.int32)
        on, inner = Scale(float(np.float32(x.scale.scale)), 5), x.scale.scale
        scales = tuple(float(np.float32(scale * (1 + i / 8))) for i in range(channels))
        held = [
            FileTensor("weights", weights.shape, "INT8", weights, scales, (0,) * channels, 0),
            FileTensor("bias", bias.shape, "INT32", bias, tuple(s * inner for s in scales), (0,) * channels),
        ]
        size = self._add(whole_tensor("size", shape))
        filters, biases = (self._add(replace(row, name=f"{row.name}{len(self.tensors)}")) for row in held)
        made = self._add(int8_tensor(f"map{len(self.tensors)}", shape, on))
        options = {"Padding": 0 if same else 1, "StrideH": stride, "StrideW": stride}
        inputs = (size, filters, x.index, biases)
        self.operators.append(
            FileOperator("TRANSPOSE_CONV", inputs, (made,), "TransposeConvOptions", {**options})
        )
        return Map(made, shape, on, self._run(self.operators[-1:], [x], made))

    # -- bytes that move -------------------------------------------------------------------------------------

    def moved(
        self,
        kind: str,
        x: Map,
        shape: tuple[int, ...],
        *settings: Sequence[Any],
        table: str = "",
        **options: Any,
    ) -> Map:
        """Add an operator that only moves bytes to a shape, with constant operands behind its input."""
        constants = [whole_tensor("setting", values) for values in settings]
        return self._made(FileOperator(kind, (), (), table, options), [x], shape, x.scale, constants)

    def transpose(self, x: Map, order: tuple[int, ...]) -> Map:
        return self.moved(
            "TRANSPOSE", x, tuple(x.shape[axis] for axis in order), order, table="TransposeOptions"
        )

    def split(self, x: Map, sizes: tuple[int, ...], axis: int) -> list[Map]:
        """Add a SPLIT_V; return its parts."""
        parts = [np.split(sample, np.cumsum(sizes)[:-1], axis) for sample in x.samples]
        settings = [
            self._add(replace(whole_tensor("setting", values), name=f"setting{len(self.tensors)}"))
            for values in (sizes, axis)
        ]
        made = []
        for i in range(len(sizes)):
            shape = parts[0][i].shape
            index = self._add(int8_tensor(f"map{len(self.tensors)}", shape, x.scale))
            made.append(Map(index, shape, x.scale, tuple(sample[i] for sample in parts)))
        options = {"NumSplits": len(sizes)}
        self.operators.append(
            FileOperator(
                "SPLIT_V", (x.index, *settings), tuple(m.index for m in made), "SplitVOptions", {**options}
            )
        )
        return made

    def pack(self, *maps: Map, axis: int) -> Map:
        samples = [np.stack(parts, axis) for parts in zip(*(m.samples for m in maps), strict=True)]
        options = {"Axis": axis, "ValuesCount": len(maps)}
        operator = FileOperator("PACK", (), (), "PackOptions", {**options})
        made = self._append(operator, maps, samples[0].shape, maps[0].scale)
        return Map(made, samples[0].shape, maps[0].scale, tuple(samples))

    def reduced(self, kind: str, x: Map, axes: tuple[int, ...], *, keep: bool = True) -> Map:
        """Add a SUM, REDUCE_MAX or REDUCE_MIN over some axes."""
        named: dict[str, Callable[..., Any]] = {"SUM": np.sum, "REDUCE_MAX": np.max, "REDUCE_MIN": np.min}
        how = named[kind]
        reals = [how(v, axis=axes, keepdims=keep) for v in x.reals()]
        operator = FileOperator(kind, (), (), "ReducerOptions", {"KeepDims": int(keep)})
        on = covering(reals) if kind == "SUM" else x.scale
        return self._made(operator, [x], reals[0].shape, on, [whole_tensor("axes", axes)])

    # -- what is kept ----------------------------------------------------------------------------------------

    def variable(self, shape: tuple[int, ...], on: Scale) -> tuple[str, Map]:
        """Add a variable that begins with random bytes; return its name, and what it holds."""
        name, first = f"variable{len(self.variables)}", self._bytes(shape)
        self.variables.append((name, replace(int8_tensor(name, shape, on), data=first)))
        handle = self._handle(name)
        made = self._add(int8_tensor(f"{name} read", shape, on))
        self.operators.append(FileOperator("READ_VARIABLE", (handle,), (made,), "ReadVariableOptions"))
        return name, Map(made, shape, on, (first,) * self.samples)

    def keep(self, name: str, x: Map) -> None:
        """Give a variable the bytes that the next inference reads."""
        inputs = (self._handle(name), x.index)
        self.operators.append(FileOperator("ASSIGN_VARIABLE", inputs, (), "AssignVariableOptions"))

    def _handle(self, name: str) -> int:
        handle = self._add(FileTensor(f"handle{len(self.tensors)}", (), "RESOURCE"))
        self.operators.append(
            FileOperator("VAR_HANDLE", (), (handle,), "VarHandleOptions", {"SharedName": name})
        )
        return handle

    def delayed(self, x: Map, rows: int) -> Map:
        """Add the last rows that were seen, those of before in front of `x`: a streaming layer's input."""
        shape = (1, rows, *x.shape[2:])
        name, old = self.variable(shape, x.scale)
        whole = self._made(
            FileOperator("CONCATENATION", (), (), "ConcatenationOptions", {"Axis": 1}),
            [old, x],
            (1, rows + x.shape[1], *x.shape[2:]),
            x.scale,
        )
        begin, end = (0, x.shape[1], 0, 0), whole.shape
        self.keep(name, self.moved("SLICE", whole, shape, begin, shape, table="SliceOptions"))
        assert end[1] == begin[1] + rows
        return whole

    def svdf(self, x: Map, units: int, rank: int, memory: int, *, wide: bool = False) -> Map:
        """Add an SVDF that keeps `memory` results of each filter, in 16 bits if `wide`."""
        filters, inputs = units * rank, x.shape[-1]
        features, element = self._bytes((filters, inputs), low=-127), "INT16" if wide else "INT8"
        times = self._bytes((filters, memory), low=-127).astype(np.int16 if wide else np.int8)
        kept = Scale(float(np.float32(x.scale.scale / (16 if wide else 2))), 0 if wide else -7)
        scales = [float(np.float32(v)) for v in (1 / (100 * np.sqrt(inputs)), 1 / 90)]
        bias = self.random.randint(-500, 500, units).astype(np.int32)
        of_sums = float(np.float32(kept.scale) * np.float32(scales[1]))
        state = FileTensor(
            "state", (1, filters * memory), element, None, (kept.scale,), (kept.zero_point,), variable=True
        )
        constants = [
            FileTensor("features", features.shape, "INT8", features, (scales[0],), (0,)),
            FileTensor("times", times.shape, element, times, (scales[1],), (0,)),
            FileTensor("bias", bias.shape, "INT32", bias, (of_sums,), (0,)),
            state,
        ]
        operator = FileOperator("SVDF", (), (), "SVDFOptions", {"Rank": rank})
        on = Scale(float(np.float32(x.scale.scale * 2)), 3)
        return self._made(operator, [x], (1, units), on, constants)

    def lstm(self, x: Map, units: int, *, cell: float = 2.0**-11) -> Map:
        """Add an LSTM over a sequence of shape [1, steps, inputs], with its cell on the scale `cell`."""
        steps, inputs = x.shape[1:]
        hidden = Scale(1 / 128, -3)
        rows: list[FileTensor | None] = []
        for size in (inputs, units):
            scale = float(
                np.float32(1 / (90 * np.sqrt(size) * (x.scale.scale * 100 if size == inputs else 1)))
            )
            for gate in range(4):
                data = self._bytes((units, size), low=-127)
                rows.append(FileTensor(f"gate{gate} of {size}", data.shape, "INT8", data, (scale,), (0,)))
        rows += [None] * 3
        for gate in range(4):
            bias = self.random.randint(-300, 300, units).astype(np.int32)
            rows.append(FileTensor(f"bias{gate}", bias.shape, "INT32", bias, (1e-4,), (0,)))
        rows += [None] * 2
        rows.append(
            FileTensor(
                "hidden", (1, units), "INT8", None, (hidden.scale,), (hidden.zero_point,), variable=True
            )
        )
        rows.append(FileTensor("cell", (1, units), "INT16", None, (cell,), (0,), variable=True))
        rows += [None] * 4
        held = [
            -1 if row is None else self._add(replace(row, name=f"{row.name} {len(self.tensors)}"))
            for row in rows
        ]
        shape = (1, steps, units)
        made = self._add(int8_tensor(f"map{len(self.tensors)}", shape, hidden))
        kind, table = "UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions"
        options = {"FusedActivationFunction": 4, "TimeMajor": 0}
        self.operators.append(FileOperator(kind, (x.index, *held), (made,), table, {**options}))
        return Map(made, shape, hidden, self._run(self.operators[-1:], [x], made))
