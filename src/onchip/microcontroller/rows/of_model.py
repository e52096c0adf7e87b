"""An int8 network as a graph of rows.

Padding goes into the windows of its readers, concatenated channels into the operands of the convolutions that
read them, element-wise layers into the row that they change; a mean is as many steps as its map has rows and
one that ends it. A layer without windows reads every row and makes its map in one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    FullyConnected,
    Int8Model,
    Layer,
    Mean,
    Pad,
    PReLU,
    Table,
)
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.rows.graph import Operand, RowGraph, RowOperator
from onchip.microcontroller.rows.layer_windows import Reads, has_columns, reads_of
from onchip.microcontroller.rows.makers import Made, Maker, RowModel, Source
from onchip.microcontroller.rows.windows import all_rows, beside, same_rows

__all__ = ["row_model"]

SUM_BYTES = 4


def row_model(model: Int8Model, *, kernels: bool = False, held: bool = False) -> RowModel:
    """Return the network's graph of rows, its inputs by rows; raise `ModelError` where it keeps a state.

    For `kernels`, each of which makes a row from the rows of one map an operand: concatenated channels are
    rows of their own, and what is read whole is gathered into one piece before, unless it is an input that is
    `held`.
    """
    if model.states:
        raise ModelError("keeps a state between inferences, which has no rows yet", where=model.name)
    if any(not layer.inputs for layer in model.layers):
        raise ModelError("has a layer that reads no map", where=model.name)
    outputs = _output_parts(model)
    making = _Making(model, frozenset(t for parts in outputs for t in parts), kernels, held)
    for layer in model.layers:
        making.add(layer)
    kept = {op for parts in outputs for t in parts for op in making.maps[t].parts}
    graph = RowGraph(tuple(replace(op, kept=i in kept) for i, op in enumerate(making.operators)))
    ends = tuple(tuple(op for t in parts for op in making.maps[t].parts) for parts in outputs)
    return RowModel(model, graph, tuple(making.makers), ends, making.maps)


def _output_parts(model: Int8Model) -> tuple[tuple[int, ...], ...]:
    """Return the tensors whose bytes, one after the other, are each output.

    An output that only puts maps of nobody else's use behind one another has no operator: they lie there.
    """
    found = []
    for t in model.outputs:
        layer = model.producer.get(t)
        parts: tuple[int, ...] = (t,)
        if isinstance(layer, Concat) and not model.readers[t]:
            before = prod(layer.output_shape[1 : layer.axis])
            alone = all(len(model.readers[x]) == 1 and x in model.producer for x in layer.inputs)
            plain = not set(layer.inputs) & set(model.outputs) and len(set(layer.inputs)) == len(layer.inputs)
            if before == 1 and alone and plain and model.outputs.count(t) == 1:
                parts = layer.inputs
        found.append(parts)
    return tuple(found)


@dataclass
class _Making:
    model: Int8Model
    ends: frozenset[int]
    kernels: bool = False
    held: bool = False
    operators: list[RowOperator] = field(default_factory=list)
    makers: list[Maker] = field(default_factory=list)
    maps: dict[int, Made] = field(default_factory=dict)
    padded: dict[int, Pad] = field(default_factory=dict)
    gathered: dict[int, Made] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for t in self.model.inputs:
            tensor = self.model.tensors[t]
            _, rows, columns, channels = tensor.shape
            op = self.append(
                RowOperator(tensor.name, rows, columns * channels, columns=columns), Maker("input", t)
            )
            self.maps[t] = Made((op,), tensor.shape)

    def append(self, operator: RowOperator, maker: Maker) -> int:
        self.operators.append(operator)
        self.makers.append(maker)
        return len(self.operators) - 1

    def add(self, layer: Layer) -> None:
        """Add the operators of a layer, or what stands in their place."""
        if layer.output not in self.ends and self.model.producer.get(layer.output) is layer:
            if isinstance(layer, Pad) and self.only_windows(layer):
                self.padded[layer.output] = layer
                return
            if isinstance(layer, Concat) and self.only_parts(layer):
                parts = tuple(op for t in layer.inputs for op in self.maps[t].parts)
                self.maps[layer.output] = Made(parts, layer.output_shape)
                return
        elif layer.output in self.model.outputs and layer.output not in self.ends:
            return  # its inputs lie one after the other
        if self.in_place(layer):
            return
        pad = self.padded.get(layer.inputs[0]) if isinstance(layer, Conv | Depthwise) else None
        layer = self.unpadded(layer)
        if isinstance(layer, Mean | AveragePool) and self.as_steps(layer):
            return
        reads = reads_of(layer, by_side=self.kernels)
        seen = [self.maps[t] for t in layer.inputs]
        shapes = zip(seen, layer.input_shapes, strict=True)
        if reads is None or any(not m.whole and m.shape != shape for m, shape in shapes):
            reads = None
        self.operator(layer, reads, pad)

    def only_windows(self, layer: Pad) -> bool:
        """Return whether a pad's readers may all take it into their windows."""
        readers = self.model.readers[layer.output]
        if any(layer.channels) or layer.inputs[0] in self.padded or not readers:
            return False
        return all(
            isinstance(reader, Conv | Depthwise)
            and layer.value == -reader.input_offset
            and reader.input_shapes[0] == layer.output_shape
            and self.maps[layer.inputs[0]].shape == layer.input_shapes[0]
            for reader in readers
        )

    def only_parts(self, layer: Concat) -> bool:
        """Return whether convolutions alone read the concatenated channels: they sum over parts."""
        if self.kernels or layer.axis != 3 or len(set(layer.inputs)) < len(layer.inputs):
            return False
        readers = self.model.readers[layer.output]
        fits = all(
            isinstance(reader, Conv) and reader.groups == 1 and reader.input_shapes == (layer.output_shape,)
            for reader in readers
        )
        there = all(
            t not in self.padded and not self.maps[t].whole and self.maps[t].shape == shape
            for t, shape in zip(layer.inputs, layer.input_shapes, strict=True)
        )
        return bool(readers) and fits and there

    def in_place(self, layer: Layer) -> bool:
        """Put an element-wise layer into the row of the operator that makes its input; False if it cannot."""
        if not isinstance(layer, Table | PReLU):
            return False
        t = layer.inputs[0]
        made = self.maps.get(t)
        if made is None or len(made.parts) != 1 or t in self.ends or len(self.model.readers[t]) != 1:
            return False
        maker = self.makers[made.parts[0]]
        if maker.phase == "input" or maker.tensor != t or made.shape != layer.input_shapes[0]:
            return False
        layers = (*maker.layers, layer)
        self.makers[made.parts[0]] = replace(maker, layers=layers, tensor=layer.output)
        self.maps[layer.output] = replace(made, shape=layer.output_shape)
        return True

    def unpadded(self, layer: Layer) -> Layer:
        """Return a convolution with the padding in front of it as its own."""
        pad = self.padded.get(layer.inputs[0]) if layer.inputs else None
        if pad is None or not isinstance(layer, Conv | Depthwise):
            return layer
        top, left, bottom, right = (a + b for a, b in zip(layer.padding, pad.padding, strict=True))
        return replace(
            layer, inputs=pad.inputs, input_shapes=pad.input_shapes, padding=(top, left, bottom, right)
        )

    def as_steps(self, layer: Mean | AveragePool) -> bool:
        """Add a mean over rows as a step for each row and an end; False if it is not one."""
        made, shape = self.maps[layer.inputs[0]], layer.input_shapes[0]
        if made.whole or len(made.parts) != 1 or made.shape != shape or shape[1] == 1:
            return False
        if isinstance(layer, Mean):
            if 1 not in layer.axes or layer.output_shape[1] != 1:
                return False
        elif layer.kernel != shape[1:3] or any(layer.padding) or layer.output_shape[1:3] != (1, 1):
            return False
        rows, size = shape[1], prod(layer.output_shape)
        here = len(self.operators)
        read = Operand(made.parts[0], same_rows(rows), beside(SUM_BYTES * size))
        over = Operand(here, ((0, 0), *same_rows(rows - 1)), 0)
        source = Source(made, shape, same_rows(rows))
        self.append(
            RowOperator(f"{layer.name} sums", rows, SUM_BYTES * size, (read, over)),
            Maker("sum", -1, (layer,), (source,)),
        )
        last = Operand(here, ((rows - 1, rows),), 0)
        end = self.append(RowOperator(layer.name, 1, size, (last,)), Maker("end", layer.output, (layer,)))
        self.maps[layer.output] = Made((end,), layer.output_shape)
        return True

    def in_one_piece(self, made: Made) -> Made:
        """Return a map whose rows lie behind one another: made in one step, or gathered in one."""
        [op] = made.parts
        steps = self.operators[op].steps
        if made.whole or steps == 1 or (self.held and self.makers[op].phase == "input"):
            return made
        if op not in self.gathered:
            size = made.bytes
            read = Operand(op, all_rows(steps, 1), beside(size))
            source = Source(made, made.shape, all_rows(made.shape[1], 1))
            new = self.append(
                RowOperator(f"{self.operators[op].name} gathered", 1, size, (read,)),
                Maker("gather", self.makers[op].tensor, (), (source,)),
            )
            self.gathered[op] = Made((new,), made.shape, True)
        return self.gathered[op]

    def operator(self, layer: Layer, reads: tuple[Reads, ...] | None, pad: Layer | None = None) -> None:
        """Add a layer as one operator; without windows it reads all and makes its map in one step."""
        size = prod(layer.output_shape)
        whole = reads is None
        cut = reads is not None and has_columns(layer)
        steps = 1 if reads is None else layer.output_shape[1]
        operands: list[Operand] = []
        sources: list[Source] = []
        for n, (t, shape) in enumerate(zip(layer.inputs, layer.input_shapes, strict=True)):
            made = self.maps[t]
            if self.kernels and whole:
                made = self.in_one_piece(made)
            if reads is None:
                distance = size - 1 if isinstance(layer, FullyConnected) else beside(size)
                windows = all_rows(shape[1], steps)
            else:
                windows = reads[n].windows
                parts = len(made.parts)
                distance = reads[n].distance(made.shape[3] if parts == 1 else None)
            sources.append(Source(made, shape, windows))
            for part in made.parts:
                there = self.operators[part].steps
                if whole:
                    mine = all_rows(there, steps)
                elif made.whole:
                    mine = tuple((0, 1) if a < b else (0, 0) for a, b in windows)
                else:
                    mine = windows
                    if len(made.parts) > 1 and reads is not None:
                        channels = self.operators[part].bytes // made.shape[2]
                        distance = reads[n].distance(channels)
                beside_whole = made.whole and not whole
                columns = reads[n].columns if cut and reads is not None and not made.whole else ()
                operands.append(Operand(part, mine, size // steps if beside_whole else distance, columns))
        op = self.append(
            RowOperator(
                layer.name,
                steps,
                size // steps,
                tuple(operands),
                work=macs(layer),
                columns=layer.output_shape[2] if cut else 0,
            ),
            Maker("whole" if whole else "row", layer.output, (layer,), tuple(sources), pad),
        )
        self.maps[layer.output] = Made((op,), layer.output_shape, whole)
