"""ONNX to `Network`: parse, infer shapes, place values, put operators together."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Literal

from onchip.base.allowance import spend
from onchip.network import Network, OperatorSpec, Reach, TensorKind
from onchip.network.build import MAX_MACS
from onchip.readers.attention_parts import with_attention_parts
from onchip.readers.batch import infer_at_batch
from onchip.readers.boundary import with_integers_outside
from onchip.readers.caches import with_caches
from onchip.readers.constants import Constants
from onchip.readers.early import functions_first
from onchip.readers.elements import BITS, NAMES, value_bytes
from onchip.readers.macs import macs_of
from onchip.readers.onnx_graph import Graph, Node, parse
from onchip.readers.operators import Draft, Drafts
from onchip.readers.padded import pads_in_windows
from onchip.readers.places import find_places
from onchip.readers.quantised import CONVERSIONS, mismatch
from onchip.readers.ranges import with_ranges_apart
from onchip.readers.reach import in_maps, reach_of
from onchip.readers.shapes import contradiction, infer, node_types, parse_dims
from onchip.readers.source import Executable, ReadOptions, Source

__all__ = ["read_onnx"]

MOST_RUN = 5_000_000
"""The most nodes that operators run; those that compute constants count for each operator that reads them."""


def read_onnx(
    content: bytes,
    options: ReadOptions,
    *,
    name: str,
    where: str,
    folder: Path | None,
    dtype: Literal["file", "int8", "int16"],
    resize: tuple[int, int] | None = None,
    published: bool = False,
) -> Source:
    """Return the network in the bytes of an ONNX file, and its original nodes.

    `where` names the file in messages and `Network.source`, `folder` holds its external data, `resize` is the
    (height, width) that every image input gets instead of its own. A `published` network keeps every `Pad`
    as an operator, as the figures that are published of it count them. Raises `ModelError` in one line naming
    the node or tensor, `UsageError` for `dims` that do not fit.
    """
    digest = hashlib.sha256(content).hexdigest()
    notes: tuple[str, ...] = ()
    if options.granularity == "fused" and not options.float_boundary:
        content, notes = with_integers_outside(content)
    if options.granularity == "fused":
        content = with_ranges_apart(content)
    if options.cache:
        content = with_caches(content, options.cache)
    if options.attention == "parts":
        content = with_attention_parts(content, options, where=where, folder=folder, resize=resize)
    graph = parse(content, where=where, folder=folder)
    del content
    dims = parse_dims(options.dims)
    if options.batch is None:
        constants = infer(graph, dims, resize)
    else:
        constants = infer_at_batch(graph, dims, resize, options.batch)
    _settle_shapes(graph, constants)
    graph.keep(graph.live())
    for node in graph.nodes:
        if node.op in CONVERSIONS and (reason := mismatch(graph, node)):  # those of weights, too
            raise graph.refuse(reason, node.label)
    if options.granularity == "fused":
        if not published:
            pads_in_windows(graph, constants)
        functions_first(graph, constants)
    computing = [n for n in graph.nodes if any(o and o not in constants for o in n.outputs)]
    for node in computing:
        spend(node.label)
        _check_types(graph, node, constants)
    for value in graph.outputs:
        # The outputs of nodes were checked with them; an input that is also an output has no node.
        if value in graph.inputs and graph.element.get(value, 0) not in BITS:
            raise graph.refuse("the element type cannot be inferred", f"tensor {value}")
    fused = options.granularity == "fused"
    places = find_places(graph, computing, constants, absorb=fused)
    drafts = Drafts(graph, constants, places, dtype)
    if fused:
        drafts.fuse()
    drafts.settle()
    return replace(_assemble(graph, constants, drafts, options, dtype, name, digest), notes=notes)


def _settle_shapes(graph: Graph, constants: Constants) -> None:
    """Turn `Shape` and `Size` into `Constant`: no operator needs a tensor only for its shape."""
    from onnx import numpy_helper

    for node in graph.nodes:
        if node.op not in ("Shape", "Size") or node.domain or node.outputs[0] not in constants:
            continue
        value = constants.value(node.outputs[0])
        if node.inputs[0] in constants or value is None:
            continue
        node.proto.op_type = node.op = "Constant"
        del node.proto.input[:]
        del node.proto.attribute[:]
        attribute = node.proto.attribute.add(name="value", type=4)
        attribute.t.CopyFrom(numpy_helper.from_array(value))
        node.inputs = ()
        graph.weights[node.outputs[0]] = attribute.t
        graph.weight_shape[node.outputs[0]] = value.shape


def _check_types(graph: Graph, node: Node, constants: Constants) -> None:
    """Refuse values that are read unless they are tensors of known shape and type with some elements."""
    mismatch = contradiction(graph, node)
    if mismatch:
        raise graph.refuse(mismatch, node.label)
    for value in dict.fromkeys((*node.inputs, *node.outputs)):
        if not value or value not in graph.read or value in constants:
            continue
        element = graph.element.get(value, 0)
        if element == -1 or element == 8:
            kind = "strings" if element == 8 else "no tensor but a sequence, map or optional"
            raise graph.refuse(f"{value} is {kind}, which cannot be planned", node.label)
        if value not in graph.shape:
            reason = node_types(graph, node, {})[1]
            made = "its output" if value in node.outputs else "its input"
            raise graph.refuse(
                f"the shape of {made} {value} cannot be inferred" + (f": {reason}" if reason else ""),
                node.label,
            )
        if element not in BITS:
            raise graph.refuse(f"the element type of {value} cannot be inferred", node.label)
        if math.prod(graph.shape[value]) == 0:
            raise graph.refuse(f"{value} has zero bytes: its shape is {list(graph.shape[value])}", node.label)


def _assemble(
    graph: Graph,
    constants: Constants,
    drafts: Drafts,
    options: ReadOptions,
    dtype: Literal["file", "int8", "int16"],
    name: str,
    digest: str,
) -> Source:
    of = drafts.places.of
    makers = {value: draft for draft in drafts.all for value in draft.outputs}
    outputs: list[str] = []
    for value in graph.outputs:
        if value not in of:
            continue  # a constant: nothing computes it
        outputs.append(drafts.boundary(value)[0])
        # Nodes that only reshape the output run with the operator that makes it.
        maker = makers.get(of[value].root)
        end = value
        while maker is not None and end != of[value].root:
            producer = graph.producer[end]
            maker.nodes.add(producer.index)
            end = producer.inputs[0]
    if not outputs:
        raise graph.refuse("no output depends on an input: there is nothing to plan", "outputs")

    used: dict[str, None] = {}
    for draft in drafts.all:
        used.update(draft.inputs)
        used.update(dict.fromkeys(draft.outputs))
    used.update(dict.fromkeys(outputs))
    for value in list(used):
        used.setdefault(of[value].root)
    order = [i for i in graph.inputs if i in used] + [v for v in used if v not in graph.inputs]

    def size(value: str) -> int:
        return value_bytes(graph.element[value], graph.shape[value], dtype)

    tensors: list[tuple[str, int, TensorKind]] = [
        (value, size(value), "input" if value in graph.inputs else "activation") for value in order
    ]
    views = []
    for value in order:
        place = of[value]
        if place.root != value:
            offset = drafts.byte_offset(place)
            assert offset is not None
            views.append((value, place.root, offset))
    names = _unique([draft.name for draft in drafts.all])
    network = Network.build(
        name,
        tensors,
        [
            OperatorSpec(
                label,
                "+".join(draft.types),
                tuple(draft.inputs),
                tuple(draft.outputs),
                sum(draft.weights.values()),
                geometry=draft.geometry,
                macs=min(MAX_MACS, sum(macs_of(graph, graph.nodes[i]) for i in draft.nodes)),
                reach=reach,
            )
            for label, draft, reach in zip(names, drafts.all, _reaches(graph, constants, drafts), strict=True)
        ],
        outputs,
        views=views,
        source=graph.where,
        sha256=digest,
        granularity=options.granularity,
        element=_element(graph, tensors) if dtype == "file" else dtype,
        shapes={value: graph.shape[value] for value in order},
        where=graph.where,
    )
    executable = Executable(
        model=graph.model,
        folder=graph.folder,
        nodes=_with_constants(graph, constants, drafts.all),
        dtype=tuple(graph.element[value] for value in order),
        shape=tuple(graph.shape[value] for value in order),
        value=tuple(order),
    )
    _write_shapes(graph)
    return Source(network, executable)


def _reaches(graph: Graph, constants: Constants, drafts: Drafts) -> list[Reach | None]:
    """Return the reach of every operator whose geometry does not tell already how all it reads is read."""
    images = Counter(
        shape[0]
        for draft in drafts.all
        if draft.geometry is not None and draft.geometry.promises
        for shape in (draft.geometry.input, draft.geometry.output)
        if len(shape) == 4
    )
    batch = max(images, key=lambda n: (images[n], n), default=None)
    return [
        None
        if len(draft.outputs) > 1
        or (
            in_maps(draft.geometry, batch)
            and not _along_rows(graph, draft)
            and not _by_one_number(graph, draft)
            and not _in_other_shapes(drafts, draft)
        )
        else reach_of(
            graph, constants, sorted(draft.nodes), tuple(draft.inputs), draft.outputs[0], draft.weights
        )
        for draft in drafts.all
    ]


def _along_rows(graph: Graph, draft: Draft) -> bool:
    """Return whether an element-wise operator over maps reads a constant that does not go by channels alone.

    A mask or a table of positions, say: its geometry tells nothing of the part that some rows need.
    """
    geometry = draft.geometry
    if geometry is None or geometry.kind != "elementwise" or len(geometry.output) != 4:
        return False
    counts = [math.prod(graph.shape.get(name, ())) for name in draft.weights]
    return any(count > geometry.output[1] for count in counts)


def _by_one_number(graph: Graph, draft: Draft) -> bool:
    """Return whether an element-wise operator over maps also reads a single number that was computed.

    A scale, say: its geometry tells nothing of how an operand is read that is no map.
    """
    geometry = draft.geometry
    if geometry is None or geometry.kind != "elementwise" or math.prod(geometry.output) == 1:
        return False
    rank = len(geometry.output)
    return any(math.prod(graph.shape[name]) == 1 and len(graph.shape[name]) < rank for name in draft.inputs)


def _in_other_shapes(drafts: Drafts, draft: Draft) -> bool:
    """Return whether an operator reads or makes a tensor in another shape than the tensor has.

    Windows of attention put side by side, say: no band of rows is one for whoever makes the tensor. Of an
    element-wise operator every operand counts: a row of numbers may stand for channels, rows or columns.
    """
    graph, geometry = drafts.graph, draft.geometry
    if geometry is None:
        return False
    if geometry.kind == "elementwise":
        own = ((_stripped(shape), _stripped(seen)) for shape, seen in drafts.operands_seen(draft))
        made = _stripped(graph.shape[draft.outputs[0]]), _stripped(geometry.output)
        if any(shape != seen for shape, seen in (*own, made)):
            return True
    if len(geometry.input) != 4 or len(geometry.output) != 4:
        return False
    seen = {draft.outputs[0]: geometry.output, next(iter(draft.inputs), ""): geometry.input}
    return any(_sides(graph.shape[name]) != _sides(shape) for name, shape in seen.items() if name)


def _stripped(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without the dimensions of size 1 in front."""
    return shape[next((i for i, n in enumerate(shape) if n > 1), len(shape)) :]


def _sides(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n > 1]


def _unique(names: list[str]) -> list[str]:
    taken: set[str] = set(names)
    seen: set[str] = set()
    result = []
    next_number: dict[str, int] = {}
    for name in names:
        candidate, number = name, next_number.get(name, 2)
        while candidate in seen or (candidate != name and candidate in taken):
            candidate, number = f"{name}_{number}", number + 1
        next_number[name] = number
        seen.add(candidate)
        result.append(candidate)
    return result


def _element(graph: Graph, tensors: list[tuple[str, int, TensorKind]]) -> str:
    """Return the element type of most of the bytes."""
    totals: dict[int, int] = {}
    for value, size, _ in tensors:
        totals[graph.element[value]] = totals.get(graph.element[value], 0) + size
    return NAMES[max(totals, key=lambda element: (totals[element], -element))]


def _with_constants(graph: Graph, constants: Constants, drafts: list[Draft]) -> tuple[tuple[int, ...], ...]:
    """Return each operator's nodes and, before them, those that compute the constants they read."""
    result = []
    total = 0
    for draft in drafts:
        nodes = set(draft.nodes)
        pending = list(nodes)
        while pending:
            spend(f"operator {draft.name}")
            total += 1
            if total > MOST_RUN:
                reason = f"the constants of its operators are computed in more than {MOST_RUN:,} steps"
                raise graph.refuse(reason, f"operator {draft.name}")
            for value in graph.nodes[pending.pop()].inputs:
                maker = graph.producer.get(value)
                if maker is not None and value in constants and maker.index not in nodes:
                    nodes.add(maker.index)
                    pending.append(maker.index)
        result.append(tuple(sorted(nodes)))
    return tuple(result)


def _write_shapes(graph: Graph) -> None:
    """Write the inferred shapes into the model."""
    import onnx

    target = graph.model.graph
    del target.value_info[:]
    outputs = {output.name: output for output in target.output}
    for node in graph.nodes:
        for value in node.outputs:
            shape, element = graph.shape.get(value), graph.element.get(value, 0)
            if not value or shape is None or element not in BITS:
                continue
            if value in outputs:
                outputs[value].type.CopyFrom(onnx.helper.make_tensor_type_proto(element, shape))
            else:
                target.value_info.append(onnx.helper.make_tensor_value_info(value, element, shape))
