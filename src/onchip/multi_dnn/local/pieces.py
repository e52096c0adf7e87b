"""A network cut into its layer groups: one self-contained ONNX model for each.

Whole tensors cross from group to group, by the ONNX value that holds them. Every value of a model
that is handed out is renamed: names come from files, and engines write them into C strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import ModelError, UsageError
from onchip.network import Network
from onchip.readers.source import Executable, Source
from onchip.run.sessions import NEWEST_IR, Signature, Subgraphs
from onchip.run.slots import make_slots
from onchip.run.weights import Weights, seeded_inputs, seeded_weights

if TYPE_CHECKING:
    import onnx

__all__ = ["Cut", "Piece", "cut"]

Array = np.ndarray[Any, Any]

MAX_MODEL_BYTES = (2 << 30) - (1 << 20)
"""The limit of one serialised ONNX model."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One group as a model: its input values and its output values, by their ONNX names."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """A network in pieces that run in sequence.

    `inputs` are the values that the first pieces read, `outputs` the network's requested values;
    `signature` gives (ONNX element type, shape) and `dtype` numpy's type of every value that is handed over.
    """

    network: Network
    groups: tuple[tuple[int, ...], ...]
    pieces: tuple[Piece, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    signature: Signature
    dtype: dict[str, np.dtype[Any]]
    executable: Executable
    weights: Weights

    @cached_property
    def whole(self) -> Piece:
        """All of it as one piece."""
        return Piece(self.inputs, self.outputs)

    def model(self, piece: Piece, what: str) -> bytes:
        """Return the piece as an ONNX model with its weights inside; inputs and outputs in the piece's order.

        `what` names it in errors. Raises `ModelError` for more than 2 GiB of weights, or when it needs
        a value that it is not given.
        """
        import onnx
        from onnx import helper, numpy_helper

        nodes, constants = self._parts.between(piece.inputs, piece.outputs, what)
        size = sum(self.weights.values[name].nbytes for name in constants)
        if size > MAX_MODEL_BYTES:
            raise ModelError(f"has {size:,} bytes of weights, more than one model may hold", item=what)
        original = self.executable.model
        model = onnx.ModelProto(
            ir_version=min(max(original.ir_version, 4), NEWEST_IR), functions=original.functions
        )
        model.opset_import.extend(original.opset_import)
        graph, names = model.graph, _Names()
        graph.name = "piece"
        for node in nodes:
            names.renamed(graph.node.add(), node)
        for target, values in ((graph.input, piece.inputs), (graph.output, piece.outputs)):
            target.extend(helper.make_tensor_value_info(names[v], *self.signature[v]) for v in values)
        for name in constants:
            graph.initializer.append(numpy_helper.from_array(self.weights.values[name], names[name]))
        data: bytes = model.SerializeToString()
        return data

    def draw_inputs(self, seed: int) -> dict[str, Array]:
        """Return a value for each of `inputs`."""
        shapes = {name: self.signature[name] for name in self.inputs}
        return seeded_inputs(self.executable.model, shapes, seed)

    @cached_property
    def _parts(self) -> Subgraphs:
        return Subgraphs(self.executable.model, self.weights.values)


def cut(source: Source, groups: Sequence[Sequence[int]], seed: int = 0) -> Cut:
    """Cut a network after each of `groups`: operator ids, in the order in which the groups run.

    Weights that the model lacks are drawn from `seed`. Raises `UsageError` naming the network for groups that
    leave an operator out, have one twice or read what comes after them, and for a network with nothing
    to execute or none in ONNX; `ModelError` for weights that cannot be read.
    """
    network, executable = source.network, source.executable
    where = network.name
    if not isinstance(executable, Executable):
        kind = "sizes only" if executable is None else "a TensorFlow Lite model"
        raise UsageError(f"is {kind}: pieces are made of ONNX models", where=where)
    group_of = _groups_of(network, groups)
    root = {view.tensor: view.of for view in network.views}
    for tensor in root:
        while root[tensor] in root:
            root[tensor] = root[root[tensor]]
    made_in = {t: group_of[op.id] for op in network.operators for t in op.outputs}
    last = len(groups) - 1

    def home(tensor: int) -> int | None:
        """Return the group that makes a tensor; None for an input or a part of one."""
        return made_in.get(root.get(tensor, tensor))

    inputs: list[dict[str, None]] = [{} for _ in groups]
    outputs: list[dict[str, None]] = [{} for _ in groups]

    def hand_over(tensor: int, group: int) -> None:
        source_group = home(tensor)
        if source_group is None:
            inputs[group][executable.value[root.get(tensor, tensor)]] = None
        elif source_group > group:
            name = network.tensors[tensor].name
            raise UsageError(f"group {group} reads {name}, which a later group makes", where=where)
        elif source_group < group:
            inputs[group][executable.value[tensor]] = None
            outputs[source_group][executable.value[tensor]] = None

    for op in network.operators:
        for tensor in op.inputs:
            hand_over(tensor, group_of[op.id])
    wanted: dict[str, None] = {}
    for tensor in network.outputs:
        if network.tensors[tensor].kind == "input":
            continue
        wanted[executable.value[tensor]] = None
        source_group = home(tensor)
        if source_group is None:
            hand_over(tensor, last)
        outputs[last if source_group is None else source_group][executable.value[tensor]] = None

    slots = make_slots(network, executable)
    used = {name for rows in (*inputs, *outputs) for name in rows}
    known = dict(
        zip(executable.value, zip(executable.dtype, slots.shape, slots.dtype, strict=True), strict=True)
    )
    graph_inputs = {executable.value[t.id] for t in network.tensors if t.kind == "input"}
    return Cut(
        network=network,
        groups=tuple(tuple(group) for group in groups),
        pieces=tuple(Piece(tuple(i), tuple(o)) for i, o in zip(inputs, outputs, strict=True)),
        inputs=tuple(dict.fromkeys(name for row in inputs for name in row if name in graph_inputs)),
        outputs=tuple(wanted),
        signature={name: known[name][:2] for name in used},
        dtype={name: known[name][2] for name in used},
        executable=executable,
        weights=seeded_weights(
            executable.model,
            seed,
            executable.folder,
            executable.weights,
            where=network.source or network.name,
        ),
    )


def _groups_of(network: Network, groups: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the group of each operator."""
    where, found = network.name, dict[int, int]()
    for number, group in enumerate(groups):
        if not group:
            raise UsageError(f"group {number} is empty", where=where)
        for op in group:
            if not 0 <= op < len(network.operators):
                raise UsageError(f"group {number} has an operator {op}, which there is not", where=where)
            if op in found:
                raise UsageError(f"{network.operators[op].name} is in two groups", where=where)
            found[op] = number
    for operator in network.operators:
        if operator.id not in found:
            raise UsageError(f"{operator.name} is in no group", where=where)
    return found


class _Names:
    """A new name for every value, distinct for distinct values, so nothing else changes."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {"": ""}

    def __getitem__(self, name: str) -> str:
        return self._names.setdefault(name, f"v{len(self._names)}")

    def renamed(self, target: onnx.NodeProto, node: onnx.NodeProto) -> None:
        """Make `target` the node with new names. Readers refuse nodes that contain graphs."""
        target.CopyFrom(node)
        target.name = target.doc_string = ""
        for names in (target.input, target.output):
            for i, name in enumerate(names):
                names[i] = self[name]
