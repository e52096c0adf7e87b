"""The edges of a network while it is read: what it takes and gives in other types than int8.

An input in uint8 is taken as int8, its highest bit turned over; an input that the file quantises from floats
(or other numbers) is taken as the bytes that this makes. What floats lie between the file's inputs and those
bytes, or between the last bytes and its outputs, is left to the caller, and named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from onchip.microcontroller.int8.model import ByteTensor, Layer, Original, Shape
from onchip.microcontroller.int8.read_elements import quantize_from
from onchip.microcontroller.int8.read_rules import keeps_bytes
from onchip.microcontroller.int8.read_site import MAX_TENSOR_BYTES, Site, Value, four
from onchip.microcontroller.int8.sixteen.values import in_bytes
from onchip.readers.tflite_graph import Node, Quantisation, TensorRow, TfliteGraph

__all__ = ["INT8", "INT16", "NUMBERS", "Edges", "plain_value"]

INT8, UINT8, INT16 = 3, 2, 5  # ONNX's element types
NUMBERS = (INT8, INT16)
"""The elements that a network computes in."""
_LAST = frozenset({"ARG_MAX", "ARG_MIN", "CAST", "TOPK_V2"})
"""Operators that read bytes and may make none."""


@dataclass
class Edges:
    """The parts read so far: tensors and layers of the model, and the places of the file's tensors.

    `values` are the file's tensors of bytes; `ends` the tensors in other types that are made of one of them;
    `outside` those that the inputs lead to before anything is quantised, and `behind` those that `ends` lead
    to, each with the operators between.
    """

    graph: TfliteGraph
    tensors: list[ByteTensor] = field(default_factory=list)
    values: dict[int, Value] = field(default_factory=dict)
    ends: dict[int, Value] = field(default_factory=dict)
    outside: dict[int, tuple[str, ...]] = field(default_factory=dict)
    behind: dict[int, tuple[tuple[str, ...], tuple[int, ...]]] = field(default_factory=dict)
    turned: dict[int, Value] = field(default_factory=dict)
    """Inputs of uint8 as the int8 that they are taken as."""
    inputs: list[int] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    originals: dict[int, Original] = field(default_factory=dict)

    def row(self, t: int, item: str) -> TensorRow:
        if not 0 <= t < len(self.graph.tensors):
            raise self.graph.refuse(f"names tensor {t} of {len(self.graph.tensors)}", item)
        return self.graph.tensors[t]

    def site(self, node: Node) -> Site:
        return Site(self.graph, node, self.values, len(self.tensors))

    def add_tensor(self, row: TensorRow, name: str, refuse: str, made: Shape | None = None) -> int:
        """Add a tensor to the model, on the scale of a file's tensor, in its shape or in `made`."""
        node = Node(0, refuse, (row.index,), (row.index,))
        site = Site(self.graph, node, self.values, 0)
        scale, shape = site.row_scale(row), made or site.shape(row.shape, row.name)
        wide = row.element == INT16
        if wide and made is None:
            shape = in_bytes(shape)
        if any(n < 1 for n in row.shape) or prod(row.shape) > MAX_TENSOR_BYTES:
            raise self.graph.refuse(
                f"has shape {list(row.shape)}: not between 1 byte and {MAX_TENSOR_BYTES:,}",
                f"tensor {row.name}",
            )
        element: Literal["int8", "int16"] = "int16" if wide else "int8"
        self.tensors.append(
            ByteTensor(len(self.tensors), name, shape, element, scale.scale, scale.zero_point)
        )
        return len(self.tensors) - 1

    def add_layer(self, layer: Layer, row: TensorRow, value: Value) -> None:
        """Add a layer and the tensor that it makes; or another name for its input, if it changes nothing."""
        if keeps_bytes(layer):
            self.values[row.index] = replace(value, tensor=layer.inputs[0])
            return
        self.add_tensor(row, row.name, layer.name, layer.output_shape)
        self.layers.append(layer)
        self.values[row.index] = value

    # -- inputs ----------------------------------------------------------------------------------------------

    def feed(self) -> None:
        """Add the inputs of int8, uint8 and int16; others are added where they are quantised."""
        for t in dict.fromkeys(self.graph.inputs):
            row = self.row(t, "inputs")
            if row.data is not None:
                raise self.graph.refuse(f"lists {row.name}, which is a constant", "inputs")
            if row.element == INT8 or (row.element == INT16 and row.quantisation is not None):
                self.values[t] = self._fed(row, row.name)
            else:
                self.outside[t] = ()

    def _fed(self, row: TensorRow, name: str) -> Value:
        fed = self.add_tensor(row, name, "input")
        self.inputs.append(fed)
        return plain_value(fed, row.shape)

    def quantise(self, node: Node) -> None:
        """Read a QUANTIZE from another type to int8 or int16, at the network's beginning."""
        source, made = self.row(node.inputs[0], node.label), self.row(node.outputs[0], node.label)
        through = self.outside[source.index]
        turns = source.element == UINT8 and made.element == INT8
        if turns and not through and source.quantisation is not None:
            self._turn(node, source, made)
            return
        for other, value in self.values.items():
            if value.tensor in self.inputs and self._quantises(other, source.index):
                if self.graph.tensors[other].quantisation != made.quantisation:
                    raise self.graph.refuse(
                        f"quantises {source.name} in another way than others do", node.label
                    )
                self.values[made.index] = replace(value, shape=made.shape)
                return
        self.values[made.index] = self._fed(made, made.name if through else source.name)
        self.originals[self.inputs[-1]] = Original(source.stated, (*through, node.label) if through else ())

    def _quantises(self, made: int, source: int) -> bool:
        """Return whether a QUANTIZE makes one tensor of another."""
        return any(
            node.type == "QUANTIZE" and node.outputs == (made,) and node.inputs[:1] == (source,)
            for node in self.graph.nodes
        )

    def _turn(self, node: Node, unsigned: TensorRow, made: TensorRow) -> None:
        """Take an input of uint8 as int8, and put the change of scale behind it, if there is one."""
        old = unsigned.quantisation
        assert old is not None
        zero = tuple(z - 128 for z in old.zero_points)
        signed = replace(
            unsigned, element=INT8, stated="INT8", quantisation=Quantisation(old.scales, zero, old.axis)
        )
        if unsigned.index not in self.turned:
            self.turned[unsigned.index] = self._fed(signed, unsigned.name)
            self.originals[self.inputs[-1]] = Original("UINT8")
        value = self.turned[unsigned.index]
        site = self.site(node)
        layer = quantize_from(site, value, site.scale_of(signed), site.out_scale())
        self.add_layer(layer, made, plain_value(layer.output, made.shape))

    # -- outputs ---------------------------------------------------------------------------------------------

    def end(self, node: Node) -> None:
        """Read a DEQUANTIZE, or a QUANTIZE from int8 or int16 to another type."""
        made = self.row(node.outputs[0], node.label)
        site = self.site(node)
        value = site.value(0)
        if made.element == UINT8 and site.row(0).element == INT8:
            value = self._as_unsigned(site, node, value, made)
        self.ends[made.index] = value
        self.behind[made.index] = (), (value.tensor,)

    def _as_unsigned(self, site: Site, node: Node, value: Value, made: TensorRow) -> Value:
        """Return the value on the scale of an output of uint8, as int8 with its highest bit turned over."""
        old = made.quantisation
        if old is None:
            raise self.graph.refuse(f"has {made.name} without a scale", node.label)
        zero = tuple(z - 128 for z in old.zero_points)
        signed = replace(
            made, element=INT8, stated="INT8", quantisation=Quantisation(old.scales, zero, old.axis)
        )
        layer = quantize_from(site, value, site.scale(0), site.scale_of(signed))
        self.add_layer(layer, signed, plain_value(layer.output, made.shape))
        return self.values.pop(made.index)

    # -- what is left to the caller --------------------------------------------------------------------------

    def leave(self, node: Node) -> bool:
        """Leave an operator to the caller if it reads no bytes; return whether it did."""
        read = [t for t in node.inputs if t >= 0]
        before = [t for t in read if t in self.outside]
        after = [t for t in read if t in self.behind]
        bytes_read = [self.values[t].tensor for t in read if t in self.values]
        if bytes_read and not self._ends_with(node):
            return False
        if not (before or after or bytes_read):
            return False
        if after and any(self.row(t, node.label).element in NUMBERS for t in node.outputs):
            source = self.row(node.inputs[0], node.label)
            raise self.graph.refuse(
                f"reads {source.name} of {source.stated}, made of bytes: floats can stand at the edge only",
                node.label,
            )
        labels = [label for t in before for label in self.outside[t]]
        labels += [label for t in after for label in self.behind[t][0]]
        through = tuple(dict.fromkeys((*labels, node.label)))
        for t in node.outputs:
            if after or bytes_read:
                found = [*bytes_read, *(end for t in after for end in self.behind[t][1])]
                self.behind[t] = through, tuple(dict.fromkeys(found))
            else:
                self.outside[t] = through
        return True

    def _ends_with(self, node: Node) -> bool:
        """Return whether an operator takes bytes for something else: places of the greatest, boxes."""
        made = [self.row(t, node.label).element for t in node.outputs]
        known = node.type in _LAST or node.type.startswith("CUSTOM:")
        return known and not {*NUMBERS} & {*made} and bool(made)

    def outputs(self) -> list[int]:
        """Return the tensors of the file's outputs: of one behind floats, those that lead to it."""
        found: list[int] = []
        for t in self.graph.outputs:
            row = self.row(t, "outputs")
            if t in self.behind and t not in self.ends:
                through, ends = self.behind[t]
                for end in ends:
                    if end in self.inputs:
                        raise self.graph.refuse("is an input of the network", f"output {row.name}")
                    self.originals.setdefault(end, Original(row.stated, through))
                    found += [] if end in found else [end]
                continue
            found.append(self._output(row))
        return found

    def _output(self, row: TensorRow) -> int:
        """Return the tensor of an output, with the file's name and scale of that output."""
        value = self.values.get(row.index) or self.ends.get(row.index)
        if value is None:
            if row.index in self.outside:
                self._no_bytes(row)
            raise self.graph.refuse("is made by no operator that is read", f"output {row.name}")
        found = self.tensors[value.tensor]
        if value.tensor in self.inputs:
            reason = "is an input of the network: all that is computed is left to the caller"
            raise self.graph.refuse(reason, f"output {row.name}")
        scale, zero = found.scale, found.zero_point
        if row.element in NUMBERS and row.quantisation is not None:
            scale, zero = row.quantisation.scales[0], row.quantisation.zero_points[0]
        elif row.index in self.ends:
            self.originals[value.tensor] = Original(row.stated)
        self.tensors[value.tensor] = replace(found, name=row.name, scale=scale, zero_point=zero)
        return value.tensor

    def _no_bytes(self, row: TensorRow) -> None:
        """Refuse an output to which no bytes lead: the network computes in another type throughout."""
        label = next(iter(self.outside[row.index]), "")
        node = next((n for n in self.graph.nodes if n.label == label), None)
        if node is None:
            raise self.graph.refuse("is an input of the network", f"output {row.name}")
        others = {n.label for n in self.graph.nodes if n.type.startswith("CUSTOM:")}
        for through in self.outside[row.index]:
            if through in others:
                raise self.graph.refuse("is an operator of another program's own, which is not read", through)
        read = self.row(node.inputs[0], label)
        if read.element == UINT8 and read.quantisation is not None:
            raise self.graph.refuse(
                f"reads {read.name} of UINT8: networks that compute in uint8, as TensorFlow 1 quantised them"
                " with zero points of weights, are not read",
                label,
            )
        scale = " without a scale" if read.element == INT16 else ""
        raise self.graph.refuse(
            f"reads {read.name} of {read.stated}{scale}: only networks of int8 or int16 are read, with floats"
            " at their edge",
            label,
        )


def plain_value(tensor: int, shape: tuple[int, ...]) -> Value:
    """Return the value of a tensor whose bytes are in the order of the file's shape."""
    stored = four(shape)
    if len(stored) < len(shape):
        stored = shape  # ones in front, more axes than four
    return Value(tensor, shape, stored, tuple(range(len(stored) - len(shape), len(stored))))
