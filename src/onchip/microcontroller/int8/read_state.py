"""State that a network keeps between inferences, while it is read: variables, and states of operators.

A state is a tensor that holds its bytes before an inference, and another that holds them after it. The new
bytes are written where the old ones lie, so the layer that makes them reads no old ones, and they are no
output; where the file has it otherwise, a layer that only copies stands in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np

from onchip.microcontroller.int8.model import ByteTensor, Shape, State, frozen_array
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.int8.read_edges import INT8, Edges, plain_value
from onchip.microcontroller.int8.read_site import Value
from onchip.readers.tflite_graph import Node, TensorRow

__all__ = ["STATEFUL", "States"]


@dataclass
class States(Edges):
    """The states that have been read so far, by name: tensors of old and of new bytes, the first bytes."""

    handles: dict[int, str] = field(default_factory=dict)
    old: dict[str, int] = field(default_factory=dict)
    new: dict[str, Value] = field(default_factory=dict)
    first: dict[str, bytes] = field(default_factory=dict)

    def begin(self, name: str, size: int, scale: float, zero_point: int) -> int:
        """Add a state of so many bytes; return the tensor of the old ones."""
        made = self.old[name] = self.add_made(f"{name} (old)", (1, 1, 1, size), scale, zero_point)
        self.first.setdefault(name, np.full(size, zero_point, np.int8).tobytes())
        return made

    def states(self) -> list[State]:
        """Return the states."""
        found: list[State] = []
        for name, old in self.old.items():
            if name not in self.new:
                raise self.graph.refuse("is kept between inferences and never written", name)
            value = self.new[name]
            size = self.tensors[old].bytes
            if prod(value.stored) != size or len(self.first[name]) != size:
                raise self.graph.refuse(f"has {size} bytes, and others are kept", name)
            taken = {state.new for state in found}
            new = value.tensor if self._alone(value.tensor, old, taken) else self._copy(name, value.tensor)
            found.append(State(name, old, new, self.first[name]))
        return found

    def _alone(self, tensor: int, old: int, taken: set[int]) -> bool:
        """Return whether a tensor can be the new bytes: of a layer that reads no old ones, and no output."""
        makers = [layer for layer in self.layers if layer.output == tensor]
        if not makers or old in makers[0].inputs or tensor in taken:
            return False
        given = (self.values.get(t) or self.ends.get(t) for t in self.graph.outputs)
        ends = {value.tensor for value in given if value is not None}
        ends.update(t for _, through in self.behind.values() for t in through)
        return tensor not in ends

    def _copy(self, name: str, tensor: int) -> int:
        """Add a layer that copies a tensor; return what it makes."""
        size = self.tensors[tensor].bytes
        return self.part(f"KEEP.{len(self.tensors)}", f"{name} (kept)", tensor, 0, size).tensor

    def add_made(self, name: str, shape: Shape, scale: float, zero_point: int) -> int:
        """Add a tensor that is none of the file."""
        self.tensors.append(ByteTensor(len(self.tensors), name, shape, "int8", scale, zero_point))
        return len(self.tensors) - 1

    def part(self, label: str, name: str, tensor: int, begin: int, size: int) -> Value:
        """Add a layer that copies some bytes of a tensor; return the value that it makes."""
        source, shape = self.tensors[tensor], (1, 1, 1, size)
        made = self.add_made(name, shape, source.scale, source.zero_point)
        self.layers.append(
            Move(
                name=label,
                inputs=(tensor,),
                output=made,
                input_shapes=(source.shape,),
                output_shape=shape,
                rows=frozen_array([begin], np.int32),
                columns=frozen_array([0], np.int32),
                channels=frozen_array(np.arange(size), np.int32),
            )
        )
        return plain_value(made, shape)

    # -- variables of the file -------------------------------------------------------------------------------

    def set_up(self, node: Node) -> None:
        """Read the subgraph of a CALL_ONCE: constants that variables begin with."""
        number = node.options.get("InitSubgraphIndex", 0)
        if not 0 < number <= len(self.graph.others):
            raise self.graph.refuse(f"names subgraph {number}", node.label)
        graph, handles = self.graph.others[number - 1], {}
        for step in graph.nodes:
            if step.type == "VAR_HANDLE" and len(step.outputs) == 1:
                handles[step.outputs[0]] = step.resource
            elif step.type == "ASSIGN_VARIABLE" and len(step.inputs) == 2 and step.inputs[0] in handles:
                name = handles[step.inputs[0]]
                values = graph.constant(step.inputs[1]) if 0 <= step.inputs[1] < len(graph.tensors) else None
                if values is None or graph.tensors[step.inputs[1]].element != INT8:
                    raise self.graph.refuse(f"sets up {name} with no constant of INT8", node.label)
                self.first[name] = values.tobytes()
            else:
                raise self.graph.refuse(f"sets up its states with a {step.type}", node.label)

    def handle(self, node: Node) -> None:
        for t in node.outputs:
            self.handles[t] = node.resource

    def read_variable(self, node: Node) -> None:
        name, row = self._variable(node), self._only(node.outputs, node)
        if name in self.new:
            self.values[row.index] = plain_value(self.new[name].tensor, row.shape)
            return
        if name not in self.old:
            scale = self.site(node).out_scale()
            self.begin(name, row.elements, scale.scale, scale.zero_point)
        self.values[row.index] = plain_value(self.old[name], row.shape)

    def assign_variable(self, node: Node) -> None:
        name, site = self._variable(node), self.site(node)
        value = site.value(1)
        if not value.plain:
            raise site.refuse("keeps what is transposed")
        self.new[name] = value

    def _variable(self, node: Node) -> str:
        if not node.inputs or node.inputs[0] not in self.handles:
            raise self.graph.refuse("has no handle of a variable", node.label)
        return self.handles[node.inputs[0]]

    def _only(self, tensors: tuple[int, ...], node: Node) -> TensorRow:
        if len(tensors) != 1:
            raise self.graph.refuse(f"has {len(tensors)} outputs, not one", node.label)
        return self.row(tensors[0], node.label)


STATEFUL: Mapping[str, Callable[[States, Node], None]] = {
    "ASSIGN_VARIABLE": States.assign_variable,
    "CALL_ONCE": States.set_up,
    "READ_VARIABLE": States.read_variable,
    "VAR_HANDLE": States.handle,
}
"""The readers of operators on variables."""
