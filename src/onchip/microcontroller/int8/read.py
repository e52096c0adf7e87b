"""A `.tflite` file as an `Int8Model`: layers of integers; the reader drops or refuses the rest.

Operators that move no byte are no layers: reshapes, transposes of axes with one index, padding by nothing,
means over one place. Operators on floats at the network's edge are left to the caller: the model takes and
gives bytes, and keeps the scales that give them meaning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from onchip.base.errors import ModelError
from onchip.base.files import read_bytes
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.int8.lstm import lstm
from onchip.microcontroller.int8.model import Int8Model, Layer, Mean, State
from onchip.microcontroller.int8.move import MOVES, Places, move_of, places_of
from onchip.microcontroller.int8.read_edges import INT16, NUMBERS, Edges, plain_value
from onchip.microcontroller.int8.read_fold import folded
from onchip.microcontroller.int8.read_islands import without_islands
from onchip.microcontroller.int8.read_layers import LAYERS
from onchip.microcontroller.int8.read_rules import living, merged_pads
from onchip.microcontroller.int8.read_site import Site, Value
from onchip.microcontroller.int8.read_spread import with_operands_spread
from onchip.microcontroller.int8.read_state import STATEFUL, States
from onchip.microcontroller.int8.shapes import made_shape
from onchip.microcontroller.int8.sixteen.layers import LAYERS16
from onchip.microcontroller.int8.svdf import svdf
from onchip.readers.tflite_graph import Node, TensorRow, TfliteGraph, parse
from onchip.readers.tflite_traits import SAME_BYTES

__all__ = ["model_in", "model_of", "read_model"]


def read_model(path: Path) -> Int8Model:
    """Return the int8 network in a `.tflite` file.

    Raises `ModelError` in one line naming file and operator for a file that cannot be read: damage, floats,
    several images, operators beyond those of `read_layers.LAYERS`, scales that are not valid.
    """
    return model_of(read_bytes(path, error=ModelError, model=True), name=path.stem, where=str(path))


def model_of(content: bytes, *, name: str, where: str) -> Int8Model:
    """Return the int8 network in the bytes of a `.tflite` file; messages call the file `where`."""
    graph = parse(content, where=where, states=True)
    return replace(model_in(graph, name, hashlib.sha256(content).hexdigest()), source=where)


def model_in(graph: TfliteGraph, name: str, digest: str) -> Int8Model:
    """Return the int8 network in the tables of a file with this SHA-256."""
    return _Reading(with_operands_spread(without_islands(folded(graph)))).model(name, digest)


RECURRENT: Mapping[str, Callable[[States, Node], None]] = {
    "SVDF": svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm,
}
"""Operators with a state of their own."""


class _Reading(States):
    def model(self, name: str, digest: str) -> Int8Model:
        self.feed()
        for node in self.graph.nodes:
            self._take(node)
        for t in self.graph.outputs:
            if t in self.values:
                self.values[t] = self._straight(self.row(t, "outputs"), self.values[t])
        states = self.states()
        outputs = self.outputs()
        if not outputs:
            raise self.graph.refuse("has no outputs", "outputs")
        kept = {*outputs, *(state.new for state in states)}
        layers = living(merged_pads(self.layers, kept), kept)
        for layer in layers:
            if made_shape(layer) != layer.output_shape:
                raise self.graph.refuse(
                    f"makes {list(layer.output_shape)} in the file, and {list(made_shape(layer))} by its"
                    " kernel, stride and padding",
                    layer.name,
                )
        self._inputs_as_read(layers)
        return _dense(name, digest, self, layers, outputs, states)

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

    def _take(self, node: Node) -> None:
        """Read one operator: as a layer, as another name for a value, or as an edge."""
        for t in (*(t for t in node.inputs if t >= 0), *node.outputs):
            row = self.row(t, node.label)
            known = t in self.values or t in self.ends or t in self.behind or t in self.outside
            if t in node.outputs and (known or row.data is not None):
                raise self.graph.refuse(f"writes {row.name}, which is there already", node.label)
        if node.type in STATEFUL:
            for t in node.inputs[1:]:
                self._straighten(replace(node, inputs=(t,)))
            STATEFUL[node.type](self, node)
            return
        if node.type in RECURRENT and any(t in self.values for t in node.inputs):
            if len(node.outputs) != 1:
                raise self.graph.refuse(f"has {len(node.outputs)} outputs, not one", node.label)
            self._straighten(node)
            RECURRENT[node.type](self, node)
            return
        if node.type in MOVES:
            self._moved(node)
            return
        if len(node.outputs) == 1:
            made, first = self.graph.tensors[node.outputs[0]], node.inputs[0] if node.inputs else -1
            if node.type == "QUANTIZE" and made.element in NUMBERS and first in self.outside:
                self.quantise(node)
                return
            ending = node.type == "DEQUANTIZE" or (node.type == "QUANTIZE" and made.element not in NUMBERS)
            if ending and first in self.values:
                self._straighten(replace(node, inputs=(first,)))  # the caller sees the file's order
                self.end(node)
                return
        if self.leave(node):
            return
        if len(node.outputs) != 1:
            raise self.graph.refuse(f"has {len(node.outputs)} outputs, not one", node.label)
        self._computed(node, made)

    def _computed(self, node: Node, row: TensorRow) -> None:
        site = self.site(node)
        if node.type in SAME_BYTES:
            self.values[row.index] = self._reshaped(site)
        elif node.type == "TRANSPOSE":
            self.values[row.index] = self._transposed(site)
        elif node.type in LAYERS and self._wide(site):
            self._straighten(node)
            site = self.site(node)
            if node.type not in LAYERS16:
                read = ", ".join(sorted(LAYERS16))
                raise site.refuse(f"is not supported in INT16; supported are {read}")
            layer = LAYERS16[node.type](site)
            self.add_layer(layer, row, self._made(site, layer))
        elif node.type in LAYERS:
            if node.type not in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):  # over the axes as they lie
                self._straighten(node)
            site = self.site(node)
            layer = LAYERS[node.type](site)
            self.add_layer(layer, row, self._made(site, layer))
        else:
            kinds = (*LAYERS, *MOVES, *RECURRENT, *SAME_BYTES, *STATEFUL, "TRANSPOSE", "DEQUANTIZE")
            read = ", ".join(sorted(kinds))
            raise self.graph.refuse(f"is not supported; supported are {read}", node.label)

    def _wide(self, site: Site) -> bool:
        """Return whether an operator reads or makes numbers of 16 bits."""
        read = [self.graph.tensors[t] for t in site.node.inputs if t in self.values]
        return any(row.element == INT16 for row in (*read, site.out))

    def _made(self, site: Site, layer: Layer) -> Value:
        """Return the value of a layer's output, with its layout in the file's shape."""
        shape, stored = site.out.shape, layer.output_shape
        if site.out.element == INT16:
            stored = (*stored[:3], stored[3] // 2)
        if prod(shape) != prod(stored):
            raise site.refuse(f"makes {list(shape)} in the file, and {list(stored)} by its parameters")
        if not isinstance(layer, Mean):
            return plain_value(layer.output, shape)
        old = site.value(0)
        lies = old.lies
        if len(shape) < len(old.shape):
            dropped = {axis % len(old.shape) for axis in site.numbers(1, 0, "axes")}
            lies = tuple(axis for i, axis in enumerate(old.lies) if i not in dropped)
        if tuple(stored[axis] for axis in lies) != shape:
            raise site.refuse(f"makes {list(shape)}, which no mean of {list(old.shape)} is")
        return Value(layer.output, shape, stored, lies)

    def _reshaped(self, site: Site) -> Value:
        self._straighten(site.node)
        value = site.value(0)
        if site.out.element != site.row(0).element or prod(value.shape) != prod(site.out.shape):
            raise site.refuse(f"makes {list(site.out.shape)} of {list(value.shape)}")
        return plain_value(value.tensor, site.out.shape)

    def _transposed(self, site: Site) -> Value:
        value = site.value(0)
        order = site.numbers(1, len(value.shape), "axes")
        if sorted(order) != list(range(len(value.shape))):
            raise site.refuse(f"puts axes in order {order}")
        shape = tuple(value.shape[axis] for axis in order)
        if shape != site.out.shape:
            raise site.refuse(f"makes {list(site.out.shape)} of {list(value.shape)}")
        return replace(value, shape=shape, lies=tuple(value.lies[axis] for axis in order))

    # -- bytes that move -------------------------------------------------------------------------------------

    def _straighten(self, node: Node) -> None:
        """Put the bytes of transposed operands in the order of the file's shape, as layers read them."""
        for t in dict.fromkeys(node.inputs):
            if t in self.values:
                self.values[t] = self._straight(self.row(t, node.label), self.values[t])

    def _straight(self, row: TensorRow, value: Value) -> Value:
        """Return the value with its bytes in the order of the file's shape, moved by a layer if need be."""
        if value.plain:
            return value
        maker = next((n for n in self.graph.nodes if row.index in n.outputs), Node(0, "TRANSPOSE", (), ()))
        site = self.site(replace(maker, inputs=(row.index,), outputs=(row.index,)))
        self._move(site, maker.label, value, places_of(value), row)
        return self.values[row.index]

    def _moved(self, node: Node) -> None:
        """Read an operator that only moves bytes, a layer for each of its outputs."""
        position, places = MOVES[node.type]
        site = self.site(node)
        t = site.operand(position)
        if t not in self.values:
            if not self.leave(node):
                site.value(position)
            return
        value = self.values[t]
        made = places(site, places_of(value))
        for i, (part, out) in enumerate(zip(made, node.outputs, strict=True)):
            row = self.graph.tensors[out]
            if part.shape != row.shape and prod(part.shape) != prod(row.shape):
                raise site.refuse(
                    f"makes {list(row.shape)} in the file, and {list(part.shape)} by its operands"
                )
            label = node.label if len(made) == 1 else f"{node.label}/{i}"
            self._move(self.site(node), label, value, part.reshape(row.shape), row)

    def _move(self, site: Site, name: str, value: Value, places: Places, row: TensorRow) -> None:
        """Add the layer that moves bytes to these places; another name, if it leaves them all."""
        if row.element not in NUMBERS:
            raise site.refuse(f"makes {row.name} of {row.stated}: only INT8 and INT16 are read")
        if places.size > MOST_BYTES:
            raise site.refuse(f"makes {row.name} of shape {list(row.shape)}: no board has so many bytes")
        flat = places.reshape(-1)
        if flat.size == prod(value.stored) and (flat == np.arange(flat.size)).all():
            self.values[row.index] = plain_value(value.tensor, row.shape)
            return
        layer = move_of(site, name, value, places, site.output, 2 if row.element == INT16 else 1)
        self.add_tensor(row, row.name, name, layer.output_shape)
        self.layers.append(layer)
        self.values[row.index] = plain_value(layer.output, row.shape)


def _dense(
    name: str,
    digest: str,
    reading: Edges,
    layers: list[Layer],
    outputs: list[int],
    states: list[State],
) -> Int8Model:
    """Return the model with tensors renumbered: inputs first, then in the order in which layers make them."""
    old = (state.old for state in states)
    order = dict.fromkeys((*reading.inputs, *old, *(layer.output for layer in layers)))
    place = {old: new for new, old in enumerate(order)}
    return Int8Model(
        name,
        digest,
        tuple(replace(reading.tensors[old], id=new) for old, new in place.items()),
        tuple(
            replace(layer, inputs=tuple(place[t] for t in layer.inputs), output=place[layer.output])
            for layer in layers
        ),
        tuple(place[t] for t in reading.inputs),
        tuple(place[t] for t in outputs),
        originals={place[t]: original for t, original in reading.originals.items() if t in place},
        states=tuple(replace(state, old=place[state.old], new=place[state.new]) for state in states),
    )
