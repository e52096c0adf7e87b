"""A `.tflite` file as an `Int8Model`: layers of integers; the reader drops or refuses the rest.

Operators that move no byte are no layers: reshapes, transposes of axes with one index, padding by nothing,
means over one place. Operators on floats at the network's edge are cut off: the model takes and gives bytes,
and keeps the scales that give them meaning.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

from onchip.base.errors import ModelError
from onchip.base.files import read_bytes
from onchip.microcontroller.int8.model import ByteTensor, Int8Model, Layer, Mean, Shape, made_shape
from onchip.microcontroller.int8.read_layers import LAYERS
from onchip.microcontroller.int8.read_rules import keeps_bytes, living, merged_pads
from onchip.microcontroller.int8.read_site import MAX_TENSOR_BYTES, Site, Value, four
from onchip.readers.tflite_graph import Node, TensorRow, TfliteGraph, parse
from onchip.readers.tflite_traits import SAME_BYTES

__all__ = ["model_of", "read_model"]

INT8, UINT8, FLOAT32 = 3, 2, 1  # ONNX's element types


def read_model(path: Path) -> Int8Model:
    """Return the int8 network in a `.tflite` file.

    Raises `ModelError` in one line naming file and operator for a file that cannot be read: damage, floats,
    several images, operators beyond those of `read_layers.LAYERS`, scales that are not valid.
    """
    return model_of(read_bytes(path, error=ModelError, model=True), name=path.stem, where=str(path))


def model_of(content: bytes, *, name: str, where: str) -> Int8Model:
    """Return the int8 network in the bytes of a `.tflite` file; messages call the file `where`."""
    reading = _Reading(parse(content, where=where))
    return replace(reading.model(name, hashlib.sha256(content).hexdigest()), source=where)


@dataclass
class _Reading:
    graph: TfliteGraph
    tensors: list[ByteTensor] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    ends: dict[int, Value] = field(default_factory=dict)  # the outputs in float or uint8, made from int8
    inputs: list[int] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    def model(self, name: str, digest: str) -> Int8Model:
        self._feed()
        for node in self.graph.nodes:
            self._take(node)
        outputs = [self._output(t) for t in self.graph.outputs]
        if not outputs:
            raise self.graph.refuse("has no outputs", "outputs")
        layers = living(merged_pads(self.layers, set(outputs)), set(outputs))
        for layer in layers:
            if made_shape(layer) != layer.output_shape:
                raise self.graph.refuse(
                    f"makes {list(layer.output_shape)} in the file, and {list(made_shape(layer))} by its"
                    " kernel, stride and padding",
                    layer.name,
                )
        self._inputs_as_read(layers)
        return _dense(name, digest, self.tensors, layers, self.inputs, outputs)

    def _inputs_as_read(self, layers: list[Layer]) -> None:
        """Give inputs that are reshaped before any layer reads them the shape that all layers see."""
        for t in self.inputs:
            seen = {
                shape
                for layer in layers
                for read, shape in zip(layer.inputs, layer.input_shapes, strict=True)
                if read == t
            }
            if len(seen) == 1:
                self.tensors[t] = replace(self.tensors[t], shape=seen.pop())

    # -- tensors ---------------------------------------------------------------------------------------------

    def _tensor(self, row: TensorRow, name: str, refuse: str, made: Shape | None = None) -> int:
        """Add a tensor to the model, on the scale of a file's tensor, in its shape or in `made`."""
        site = Site(self.graph, Node(0, refuse, (row.index,), (row.index,)), self.values, 0)
        scale, shape = site.out_scale(), made or site.made()
        if any(n < 1 for n in row.shape) or prod(row.shape) > MAX_TENSOR_BYTES:
            raise self.graph.refuse(
                f"has shape {list(row.shape)}: not between 1 byte and {MAX_TENSOR_BYTES:,}",
                f"tensor {row.name}",
            )
        self.tensors.append(ByteTensor(len(self.tensors), name, shape, "int8", scale.scale, scale.zero_point))
        return len(self.tensors) - 1

    def _feed(self) -> None:
        """Add the inputs of bytes; an input of floats is added at the operator that quantises it."""
        for t in dict.fromkeys(self.graph.inputs):
            row = self._row(t, "inputs")
            if row.data is not None:
                raise self.graph.refuse(f"lists {row.name}, which is a constant", "inputs")
            if row.element == INT8:
                self.inputs.append(self._fed(row, row.name))
            elif row.element in (FLOAT32, UINT8):
                self.inputs.append(self._quantised(row))
            else:
                raise self.graph.refuse(f"is {row.stated}: an int8 network takes bytes", f"input {row.name}")

    def _fed(self, row: TensorRow, name: str) -> int:
        fed = self._tensor(row, name, "input")
        self.values[row.index] = _value(fed, row.shape)
        return fed

    def _quantised(self, row: TensorRow) -> int:
        """Return the tensor of bytes that a float (or uint8) input becomes for all its readers."""
        makers = [node for node in self.graph.nodes if row.index in node.inputs]
        for node in makers:
            if node.type != "QUANTIZE" or len(node.outputs) != 1:
                raise self.graph.refuse(
                    f"reads {row.name} of {row.stated}: only int8 networks are read, with floats at their"
                    " edge",
                    node.label,
                )
        if not makers:
            raise self.graph.refuse(f"is {row.stated} and read by nothing", f"input {row.name}")
        made = [self._row(node.outputs[0], node.label) for node in makers]
        fed = self._fed(made[0], row.name)
        for node, other in zip(makers, made, strict=True):
            if other.element != INT8 or other.quantisation != made[0].quantisation:
                raise self.graph.refuse(f"quantises {row.name} in another way than others do", node.label)
            if row.element == UINT8:
                self._same_bytes(node, row, other)
            self.values[other.index] = _value(fed, other.shape)
        return fed

    def _same_bytes(self, node: Node, unsigned: TensorRow, signed: TensorRow) -> None:
        """Refuse a step between uint8 and int8 that does more than flip the highest bit."""
        u, s = unsigned.quantisation, signed.quantisation
        if u is None or s is None or u.scales != s.scales or len(s.scales) != 1:
            raise self.graph.refuse("changes scale between uint8 and int8", node.label)
        if [z - 128 for z in u.zero_points] != list(s.zero_points):
            raise self.graph.refuse("moves the zero point between uint8 and int8", node.label)

    def _row(self, t: int, item: str) -> TensorRow:
        if not 0 <= t < len(self.graph.tensors):
            raise self.graph.refuse(f"names tensor {t} of {len(self.graph.tensors)}", item)
        return self.graph.tensors[t]

    def _output(self, t: int) -> int:
        """Return the tensor of an output, with the file's name and scale of that output."""
        row = self._row(t, "outputs")
        value = self.values.get(t) or self.ends.get(t)
        if value is None:
            raise self.graph.refuse("is made by no operator that is read", f"output {row.name}")
        if not value.plain:
            raise self.graph.refuse("is transposed, which no kernel does", f"output {row.name}")
        found = self.tensors[value.tensor]
        if value.tensor in self.inputs:
            raise self.graph.refuse("is an input of the network", f"output {row.name}")
        scale, zero = found.scale, found.zero_point
        if row.element == INT8 and row.quantisation is not None:
            scale, zero = row.quantisation.scales[0], row.quantisation.zero_points[0]
        self.tensors[value.tensor] = replace(found, name=row.name, scale=scale, zero_point=zero)
        return value.tensor

    # -- operators -------------------------------------------------------------------------------------------

    def _take(self, node: Node) -> None:
        """Read one operator: as a layer, as another name for a value, or as an edge."""
        for t in (*(t for t in node.inputs if t >= 0), *node.outputs):
            self._row(t, node.label)
        if len(node.outputs) != 1:
            raise self.graph.refuse(f"has {len(node.outputs)} outputs, not one", node.label)
        [made] = node.outputs
        row = self.graph.tensors[made]
        if made in self.values and node.type == "QUANTIZE" and node.inputs[0] in self.graph.inputs:
            return  # an edge that `_quantised` has taken
        if made in self.values or made in self.ends or row.data is not None:
            raise self.graph.refuse(f"writes {row.name}, which is there already", node.label)
        site = Site(self.graph, node, self.values, len(self.tensors))
        if node.type in SAME_BYTES:
            self.values[made] = self._reshaped(site)
        elif node.type == "TRANSPOSE":
            self.values[made] = self._transposed(site)
        elif node.type == "DEQUANTIZE":
            self.ends[made] = site.value(0)
        elif node.type == "QUANTIZE" and row.element == UINT8:
            self._same_bytes(node, row, site.row(0))
            self.ends[made] = site.value(0)
        elif node.type in LAYERS:
            layer = LAYERS[node.type](site)
            value = self._made(site, layer)
            if keeps_bytes(layer):
                self.values[made] = replace(value, tensor=layer.inputs[0])
                return
            self._tensor(row, row.name, node.label, layer.output_shape)
            self.layers.append(layer)
            self.values[made] = value
        else:
            known = ", ".join(sorted((*LAYERS, *SAME_BYTES, "TRANSPOSE", "DEQUANTIZE")))
            raise self.graph.refuse(f"is not supported; supported are {known}", node.label)

    def _made(self, site: Site, layer: Layer) -> Value:
        """Return the value of a layer's output, with its layout in the file's shape."""
        shape, stored = site.out.shape, layer.output_shape
        if prod(shape) != prod(stored):
            raise site.refuse(f"makes {list(shape)} in the file, and {list(stored)} by its parameters")
        if not isinstance(layer, Mean):
            return _value(layer.output, shape)
        old = site.value(0)
        lies = old.lies
        if len(shape) < len(old.shape):
            dropped = {axis % len(old.shape) for axis in site.numbers(1, 0, "axes")}
            lies = tuple(axis for i, axis in enumerate(old.lies) if i not in dropped)
        if tuple(stored[axis] for axis in lies) != shape:
            raise site.refuse(f"makes {list(shape)}, which no mean of {list(old.shape)} is")
        return Value(layer.output, shape, stored, lies)

    def _reshaped(self, site: Site) -> Value:
        value = site.value(0)
        if not value.plain:
            raise site.refuse(f"reads {site.row(0).name} transposed, which no kernel does")
        if site.out.element != INT8 or prod(value.shape) != prod(site.out.shape):
            raise site.refuse(f"makes {list(site.out.shape)} of {list(value.shape)}")
        return _value(value.tensor, site.out.shape)

    def _transposed(self, site: Site) -> Value:
        value = site.value(0)
        order = site.numbers(1, len(value.shape), "axes")
        if sorted(order) != list(range(len(value.shape))):
            raise site.refuse(f"puts axes in order {order}")
        shape = tuple(value.shape[axis] for axis in order)
        if shape != site.out.shape:
            raise site.refuse(f"makes {list(site.out.shape)} of {list(value.shape)}")
        return replace(value, shape=shape, lies=tuple(value.lies[axis] for axis in order))


def _value(tensor: int, shape: tuple[int, ...]) -> Value:
    """Return the value of a tensor whose bytes are in the order of the file's shape."""
    stored = four(shape)
    if len(stored) < len(shape):
        stored = shape  # ones in front, more axes than four
    return Value(tensor, shape, stored, tuple(range(len(stored) - len(shape), len(stored))))


def _dense(
    name: str,
    digest: str,
    tensors: list[ByteTensor],
    layers: list[Layer],
    inputs: list[int],
    outputs: list[int],
) -> Int8Model:
    """Return the model with tensors renumbered: inputs first, then in the order in which layers make them."""
    order = dict.fromkeys((*inputs, *(layer.output for layer in layers)))
    place = {old: new for new, old in enumerate(order)}
    return Int8Model(
        name,
        digest,
        tuple(replace(tensors[old], id=new) for old, new in place.items()),
        tuple(
            replace(layer, inputs=tuple(place[t] for t in layer.inputs), output=place[layer.output])
            for layer in layers
        ),
        tuple(place[t] for t in inputs),
        tuple(place[t] for t in outputs),
    )
