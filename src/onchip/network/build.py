"""Turns names into the parts of a `Network`, or gives the reason, in one line, why they are not one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import index

from onchip.base.errors import ModelError
from onchip.base.limits import VARIABLE, Limits, limits
from onchip.base.units import MAX_BYTES
from onchip.network.operators import (
    MOST_CARRIED,
    MOST_SIDES,
    Geometry,
    Operator,
    OperatorSpec,
    Patches,
    Reach,
    Tensor,
    TensorKind,
    View,
    most_sides,
)

__all__ = ["Parts", "parts_of"]

MAX_MACS = 10**18 - 1
"""The most multiply-accumulates that a file holds, more than any operator has."""

ELEMENT_BYTES = (1, 2, 4, 8, 16)
"""The possible sizes of an element of a tensor in patches, in bytes."""

ELEMENT_BITS = (2, 4, 6, *(8 * n for n in ELEMENT_BYTES))
"""The possible sizes of an element of a tensor, in bits; elements of less than a byte are packed."""

_Refuse = Callable[[str, str], ModelError]
"""Makes the error for (item, reason); it knows the file."""


@dataclass(frozen=True)
class Parts:
    """The parts of a network. They are not yet checked for cycles."""

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[int, ...]
    views: tuple[View, ...]


def parts_of(
    name: str,
    tensors: Iterable[tuple[str, int, TensorKind]],
    operators: Iterable[OperatorSpec],
    outputs: Sequence[str],
    views: Iterable[tuple[str, str, int]],
    patches: Mapping[str, Patches],
    shapes: Mapping[str, Sequence[int]],
    said: Mapping[str, str],
    where: str | None,
) -> Parts:
    """Return the parts of `Network.build`; `said` are the network's other texts (source, element), by key."""

    def refuse(item: str, reason: str) -> ModelError:
        return ModelError(reason, where=where, item=item)

    for key, text in {"name": name, **said}.items():
        _writable(text, key, refuse)
    table = _tensors(tensors, patches, shapes, refuse)
    ids = {t.name: t.id for t in table}

    def known(names: Iterable[str], item: str) -> tuple[int, ...]:
        found = dict.fromkeys(names)  # an operand named twice counts once
        for n in found:
            if n not in ids:
                raise refuse(item, f"names an unknown tensor {n}")
        return tuple(ids[n] for n in found)

    specs = list(operators)
    limit = limits()
    if len(specs) > limit.operators:
        reason = f"at most {limit.operators:,} are accepted ({VARIABLE}OPERATORS sets how many)"
        raise refuse(f"{len(specs):,} operators", reason)
    if not specs:
        raise refuse(f"network {name}", "has no operators")
    rows: list[Operator] = []
    seen: set[str] = set()
    for spec in specs:
        item = f"operator {spec.name}"
        _writable(spec.name, item, refuse)
        _writable(spec.type, item, refuse)
        if spec.name in seen:
            raise refuse(item, "is declared twice")
        seen.add(spec.name)
        weights, workspace = index(spec.weight_bytes), index(spec.workspace)
        for key, value in (("weight_bytes", weights), ("workspace", workspace)):
            if not 0 <= value <= limit.tensor_bytes:
                raise refuse(item, f"{key} {value:,} is not between 0 and {_size(limit)}")
        macs = index(spec.macs)
        if not 0 <= macs <= MAX_MACS:
            raise refuse(item, f"macs {macs:,} is not between 0 and {MAX_MACS:,}")
        if spec.geometry is not None:
            _geometry(spec.geometry, item, refuse)
        if spec.reach is not None:
            _reach(spec.reach, item, refuse)
        reads, writes = known(spec.inputs, item), known(spec.outputs, item)
        if not writes:
            raise refuse(item, "has no outputs")
        if set(reads) & set(writes):
            raise refuse(item, "reads a tensor that it writes (the graph has a cycle)")
        rows.append(
            Operator(
                len(rows),
                spec.name,
                spec.type,
                reads,
                writes,
                weights,
                workspace,
                spec.geometry,
                macs,
                spec.reach,
            )
        )
    _repeats(rows, specs, refuse)

    view_rows = _views(list(views), table, ids, refuse)
    read = known(outputs, "outputs")
    if not read:
        raise refuse(f"network {name}", "has no outputs")
    _producers(table, rows, view_rows, refuse)
    return Parts(tuple(table), tuple(rows), read, view_rows)


def _repeats(rows: list[Operator], specs: Sequence[OperatorSpec], refuse: _Refuse) -> None:
    """Let operators name those that they repeat; the checker decides whether they do."""
    if all(spec.repeats is None for spec in specs):
        return
    ids = {row.name: row.id for row in rows}
    for row, spec in zip(rows, specs, strict=True):
        if spec.repeats is None:
            continue
        item = f"operator {spec.name}"
        if spec.repeats not in ids:
            raise refuse(item, f"repeats an unknown operator {spec.repeats}")
        if specs[ids[spec.repeats]].repeats is not None:
            raise refuse(item, f"repeats {spec.repeats}, which itself repeats an operator")
        rows[row.id] = replace(row, repeats=ids[spec.repeats])


def _tensors(
    tensors: Iterable[tuple[str, int, TensorKind]],
    patches: Mapping[str, Patches],
    shapes: Mapping[str, Sequence[int]],
    refuse: _Refuse,
) -> list[Tensor]:
    table: list[Tensor] = []
    seen: set[str] = set()
    limit = limits()
    for name, given, kind in tensors:
        size = index(given)  # whole numbers of other types, such as numpy's, become plain ones
        item = f"tensor {name}"
        _writable(name, item, refuse)
        if name in seen:
            raise refuse(item, "is declared twice")
        seen.add(name)
        if len(seen) > limit.tensors:
            reason = f"is one of more than {limit.tensors:,} tensors ({VARIABLE}TENSORS sets how many)"
            raise refuse(item, reason)
        if size == 0:
            raise refuse(item, "has zero bytes")
        if not 0 < size <= limit.tensor_bytes:
            raise refuse(item, f"has {size:,} bytes, not between 1 and {_size(limit)}")
        stored = patches.get(name)
        if stored is not None:
            _patches(stored, size, item, refuse)
        shape = tuple(map(index, shapes.get(name, ())))
        _shape(shape, size if stored is None else None, item, refuse)
        table.append(Tensor(len(table), name, size, kind, stored, shape))
    for what, by_name in (("patches", patches), ("the shape", shapes)):
        for name in by_name:
            if name not in seen:
                raise refuse(f"{what} of {name}", "names an unknown tensor")
    return table


def _size(limit: Limits) -> str:
    """Return the most bytes of a tensor, in words."""
    return "1 TiB" if limit.tensor_bytes == MAX_BYTES else f"{limit.tensor_bytes:,} ({VARIABLE}TENSOR_BYTES)"


def _patches(stored: Patches, size: int, item: str, refuse: _Refuse) -> None:
    """Refuse patches that do not have the tensor's size, in elements of a possible size."""
    sides = (stored.channels, stored.rows, stored.columns, stored.height, stored.width)
    if any(type(n) is not int or not 1 <= n <= MAX_BYTES for n in sides):
        raise refuse(item, "has patches with a size that is not between 1 and 1 TiB")
    width, rest = divmod(size, stored.elements)
    if rest or width not in ELEMENT_BYTES:
        raise refuse(item, f"has {size:,} bytes, and patches of {stored.elements:,} elements")


def _shape(shape: tuple[int, ...], size: int | None, item: str, refuse: _Refuse) -> None:
    """Refuse a shape of no elements, or of elements that do not have the tensor's size in any width.

    The size is None for a tensor in patches, whose bytes include their padding.
    """
    if any(not 1 <= n <= MAX_BYTES for n in shape) or len(shape) > MOST_SIDES:
        raise refuse(
            item, f"has a shape with more than {MOST_SIDES} sizes, or with one below 1 or beyond 1 TiB"
        )
    elements = prod(shape)
    if shape and size is not None and all((elements * bits + 7) // 8 != size for bits in ELEMENT_BITS):
        raise refuse(item, f"has {size:,} bytes, and a shape of {elements:,} elements")


def _views(
    views: list[tuple[str, str, int]], table: list[Tensor], ids: dict[str, int], refuse: _Refuse
) -> tuple[View, ...]:
    parent: dict[int, tuple[int, int]] = {}
    for name, of, given in views:
        offset = index(given)
        item = f"view {name}"
        for n in (name, of):
            if n not in ids:
                raise refuse(item, f"names an unknown tensor {n}")
        t, p = ids[name], ids[of]
        if t in parent:
            raise refuse(item, "is declared twice")
        if table[t].kind == "input":
            raise refuse(item, "is a graph input; an input cannot be a view")
        if offset < 0 or offset + table[t].bytes > table[p].bytes:
            raise refuse(
                item, f"bytes [{offset}, {offset + table[t].bytes}) leave {of} ({table[p].bytes} bytes)"
            )
        _view_in_patches(table[t], table[p], offset, item, refuse)
        parent[t] = (p, offset)
    found: dict[int, tuple[int, int]] = {}  # view -> its root and the offset there
    for t in parent:
        chain, at = [], t
        while at in parent and at not in found:
            chain.append(at)
            at = parent[at][0]
            if len(chain) > len(parent):
                raise refuse(f"view {table[t].name}", "is a view of itself")
        for link in reversed(chain):
            up, offset = parent[link]
            root, above = found.get(up, (up, 0))
            found[link] = (root, above + offset)
    return tuple(View(t, *found[t]) for t in parent)


def _view_in_patches(view: Tensor, of: Tensor, offset: int, item: str, refuse: _Refuse) -> None:
    """Refuse a part of a map in patches unless it is some of its channels, in the same patches."""
    if of.patches is None:
        if view.patches is not None:
            raise refuse(item, f"lies in patches, and {of.name} does not")
        return
    channel = of.bytes // of.patches.channels
    count, rest = divmod(view.bytes, channel)
    if offset % channel or rest:
        raise refuse(
            item, f"is no whole channels of {of.name}, which lies in patches, {channel:,} bytes a channel"
        )
    if view.patches != replace(of.patches, channels=count):
        raise refuse(item, f"does not lie in the patches of {of.name}")


def _writable(text: str, item: str, refuse: _Refuse) -> None:
    """Refuse a lone surrogate: no file can hold it, so neither can a network."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refuse(item, "holds a lone surrogate, which is no text") from None


def _geometry(geometry: Geometry, item: str, refuse: _Refuse) -> None:
    _writable(geometry.kind, item, refuse)
    sizes = (*geometry.input, *geometry.output, *geometry.kernel, *geometry.stride, *geometry.dilation)
    if any(not 0 <= n <= MAX_BYTES for n in (*sizes, geometry.groups)):
        raise refuse(item, "has a geometry with a size that is negative or beyond 1 TiB")
    if any(abs(n) > MAX_BYTES for n in geometry.padding):
        raise refuse(item, "has a geometry with a padding beyond 1 TiB")


def _reach(reach: Reach, item: str, refuse: _Refuse) -> None:
    """Refuse a reach whose sizes and numbers no operator has; the checker decides whether it is right."""
    for constant in reach.weights:
        _writable(constant.name, item, refuse)
    sides = [side for part in (*reach.reads, *(c.sides for c in reach.weights)) for side in part]
    sizes = (*reach.extents, *(s.size for s in sides), *(c.bytes for c in reach.weights))
    if most_sides(reach) > MOST_SIDES:
        raise refuse(item, f"has a reach with more than {MOST_SIDES} axes, or sides of an operand")
    if not reach.output or any(not 1 <= n <= MAX_BYTES for n in sizes):
        raise refuse(item, "has a reach with a size that is not positive or beyond 1 TiB")
    if any(not -1 <= s.axis < len(reach.extents) for s in sides):
        raise refuse(item, "has a reach along an axis that its output does not have")
    across = set(reach.across)
    if len(across) < len(reach.across) or not across <= set(range(len(reach.output))):
        raise refuse(item, "has a reach whose sums share a state along what is no axis of its output")
    if (
        not 0 <= reach.carries <= MOST_CARRIED
        or (reach.carries and not reach.sums)
        or (across and not reach.carries)
    ):
        raise refuse(item, f"has a reach whose sums carry no state of 1 to {MOST_CARRIED} values")
    steps = (n for s in sides for n in (s.stride, s.span - 1, s.per - 1))
    if any(not 0 <= n <= MAX_BYTES for n in steps) or any(abs(s.before) > MAX_BYTES for s in sides):
        raise refuse(item, "has a reach with a step that is negative or beyond 1 TiB")
    if any(c.late and any(s.axis >= len(reach.output) for s in c.sides) for c in reach.weights):
        raise refuse(item, "has a reach with a constant along a sum that is late for it")
    for part in (*reach.reads, *(c.sides for c in reach.weights)):
        along = [s.axis for s in part if s.axis >= 0]
        if len(set(along)) < len(along):
            raise refuse(item, "has a reach with two sides of an operand along one axis")


def _producers(
    tensors: Sequence[Tensor], operators: Sequence[Operator], views: Sequence[View], refuse: _Refuse
) -> None:
    """Refuse a tensor with no producer, or with two; a view is made with its parent."""
    root = {view.tensor: view.of for view in views}
    written: dict[int, str] = {}
    for op in operators:
        if not {root.get(t, t) for t in op.inputs}.isdisjoint(root.get(t, t) for t in op.outputs):
            raise refuse(
                f"operator {op.name}", "reads a view of a tensor that it writes (the graph has a cycle)"
            )
        for t in op.outputs:
            item = f"tensor {tensors[t].name}"
            if t in written:
                raise refuse(item, f"is written by {written[t]} and by {op.name}")
            if tensors[t].kind == "input":
                raise refuse(item, f"is a graph input, and {op.name} writes it")
            if t in root:
                raise refuse(item, f"is a view, and {op.name} writes it")
            written[t] = op.name
    for tensor in tensors:
        if tensor.kind == "activation" and tensor.id not in root and tensor.id not in written:
            raise refuse(f"tensor {tensor.name}", "has no producer and is no graph input")
