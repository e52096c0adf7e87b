"""Running a chain on a part of its maps: onnxruntime on the original nodes, with pads for missing rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError, Mismatch
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.streamed.chain import Chain, Parameter
from onchip.run.streamed.maps import Region

if TYPE_CHECKING:
    import onnx

__all__ = ["Kernels", "fitting"]

Array = np.ndarray[Any, Any]
Missing = tuple[int, int, int, int]
"""Rows and columns that a window reads beyond the map: top, left, bottom, right."""

Changes = Mapping[str, "int | list[int]"]
"""Attributes of a node to be replaced."""


def fitting(chain: Chain, value: Array, shape: Sequence[int]) -> Array:
    """Return the value, of these channels, rows and columns; raises `Mismatch` where the node made others."""
    if value.shape[1:] != tuple(shape[1:]):
        made, stated = (" x ".join(map(str, s)) for s in (value.shape[1:], shape[1:]))
        raise Mismatch(
            f"operator {chain.op.name} makes {made} (channels, rows, columns) where the plan has {stated}:"
            " its geometry contradicts the model"
        )
    return value


class Kernels:
    """Heads and tails of chains; it caches sessions for parts that recur."""

    def __init__(self, engine: OnnxEngine) -> None:
        self.engine = engine
        self.sessions: dict[tuple[object, ...], Any] = {}

    # -- heads ---------------------------------------------------------------------------------------------

    def head(
        self,
        chain: Chain,
        operands: Sequence[Array],
        missing: Missing,
        shape: tuple[int, int],
        weight: Array | None = None,
        bias: Array | None = None,
        *,
        whole: bool = False,
    ) -> Array:
        """Return the head's result on parts of its operands (maps), [images, channels, rows, columns].

        `shape` is rows and columns of the result. `whole` states that these are whole maps: the node then
        runs unchanged.
        """
        if chain.kind == "concat":
            return np.concatenate(operands, axis=1)
        if chain.kind == "pad":
            return _padded(chain, operands[0], missing, shape)
        assert chain.head is not None
        if chain.kind == "conv":
            assert weight is not None
            return self.convolve(chain, operands[0], weight, missing, bias, whole=whole)
        assert chain.kind == "pool"
        return self._pool(chain, operands[0], missing, shape, whole=whole)

    def convolve(
        self,
        chain: Chain,
        operand: Array,
        weight: Array,
        missing: Missing,
        bias: Array | None = None,
        *,
        whole: bool = False,
    ) -> Array:
        """Return a convolution with these weights; groups follow from the channels of both."""
        assert chain.head is not None
        groups = operand.shape[1] // weight.shape[1]
        feeds = [operand, weight] if bias is None else [operand, weight, bias]
        if whole:
            return self._node(chain, chain.head, ("whole", len(feeds)), feeds)
        if 0 in operand.shape[2:]:
            operand, missing = _with_a_line(operand, missing)
            feeds[0] = operand
        changes = {"pads": list(missing), "group": groups}
        return self._node(chain, chain.head, (*missing, groups, len(feeds)), feeds, changes)

    def _pool(
        self, chain: Chain, operand: Array, missing: Missing, shape: tuple[int, int], *, whole: bool
    ) -> Array:
        assert chain.head is not None
        node, kind = chain.head, chain.head.op_type
        if whole or kind.startswith(("Global", "Reduce")):
            return chain.view.to_map(self._node(chain, node, ("whole",), [operand]))
        attributes = {a.name: a for a in node.attribute}
        kernel = list(attributes["kernel_shape"].ints)
        counted = kind == "AveragePool" and "count_include_pad" in attributes
        counted = counted and bool(attributes["count_include_pad"].i)
        fill = 0.0 if kind != "MaxPool" else -np.inf
        left_over = missing
        if counted:
            # Padding counts; the rows that ceil_mode adds behind it do not.
            inside = _stated(chain, operand, missing)
            left_over = tuple(m - i for m, i in zip(missing, inside, strict=True))  # type: ignore[assignment]
            operand = _filled(operand, inside, 0.0)
        if kind == "LpPool" or (
            kind == "MaxPool" and any(m >= kernel[i % 2] for i, m in enumerate(left_over))
        ):
            operand, left_over = _filled(operand, left_over, fill), (0, 0, 0, 0)
        if any(m >= kernel[i % 2] for i, m in enumerate(left_over)):
            raise InputError(
                "cannot be run in tiles: its padding is wider than its kernel", item=chain.op.name
            )
        changes: dict[str, int | list[int]] = {"pads": list(left_over)}
        if "ceil_mode" in attributes:
            changes["ceil_mode"] = 0  # its windows are all among `missing`
        if counted:
            changes["count_include_pad"] = 0
        result = self._node(chain, node, left_over, [operand], changes)
        return result[:, :, : shape[0], : shape[1]]

    # -- tails ---------------------------------------------------------------------------------------------

    def tail(
        self, chain: Chain, values: Mapping[str, Array], region: Region, channelled: Mapping[str, Array]
    ) -> Array:
        """Run the element-wise nodes on a region of the output.

        `values` are maps by name: the head's result, or the operands. `channelled` are parameters with one
        value a channel of the region; the others are cut here.
        """
        if chain.head is not None:
            fitting(chain, values[chain.result], region.shape)
        if not chain.tail:
            return values[chain.result]
        views = dict(zip(chain.names, chain.views, strict=True)) if chain.head is None else {}
        feeds = {name: views.get(name, chain.view).from_map(value) for name, value in values.items()}
        feeds |= channelled
        for p in chain.parameters:
            if p.name not in feeds and set(p.axes) != {"."} and p.axes:
                feeds[p.name] = np.ascontiguousarray(p.value[_cut(p, region)])
        key = (chain.op.id, "tail")
        wanted = self.engine.executable.value[chain.output]
        if key not in self.sessions:
            types = self.engine.values
            constants = {p.name: p.value for p in chain.parameters if p.name not in feeds}
            inputs = {n: (_element(types, n, a), a.ndim) for n, a in feeds.items()}
            self.sessions[key] = self.engine.parts.session(
                chain.tail, inputs, {wanted: types[wanted][0]}, constants
            )
        [result] = self._run(chain, self.sessions[key], [wanted], feeds)
        view = chain.view
        return view.to_map(result)

    # -- onnxruntime ---------------------------------------------------------------------------------------

    def _node(
        self,
        chain: Chain,
        node: onnx.NodeProto,
        key: tuple[object, ...],
        feeds: Sequence[Array],
        changes: Changes | None = None,
    ) -> Array:
        """Return one node's first output; `feeds` are its inputs in order, `changes` other attributes."""
        names = [name for name in node.input if name][: len(feeds)]
        full = (chain.op.id, "head", *key)
        if full not in self.sessions:
            if changes is not None:
                node = _changed(node, changes, len(feeds))
            types = self.engine.values
            data = [name for name in node.input if name]
            inputs = {n: (_element(types, n, a), a.ndim) for n, a in zip(names, feeds, strict=True)}
            rest = {n: chain.constants[n] for n in data if n not in inputs}
            made = types[node.output[0]][0]
            self.sessions[full] = self.engine.parts.session([node], inputs, {node.output[0]: made}, rest)
        arrays = {n: np.ascontiguousarray(a) for n, a in zip(names, feeds, strict=True)}
        return self._run(chain, self.sessions[full], [node.output[0]], arrays)[0]

    def _run(self, chain: Chain, session: Any, wanted: list[str], feeds: Mapping[str, Array]) -> list[Array]:
        try:
            results: list[Array] = session.run(wanted, feeds)
        except Exception as problem:  # onnxruntime's errors have no common class
            line = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            raise InputError(
                f"cannot be run in tiles: onnxruntime says {line}", item=f"operator {chain.op.name}"
            ) from None
        return results


def _element(types: Mapping[str, tuple[int, tuple[int, ...]]], name: str, value: Array) -> int:
    """Return the ONNX element type of a value."""
    if name in types:
        return types[name][0]
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(value.dtype))


def _changed(node: onnx.NodeProto, values: Changes, inputs: int) -> onnx.NodeProto:
    """Return the node with other attributes, explicit pads among them, and its first inputs only."""
    import onnx
    from onnx import helper

    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    del changed.attribute[:]
    changed.attribute.extend(a for a in node.attribute if a.name not in values and a.name != "auto_pad")
    changed.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())
    del changed.input[inputs:]
    return changed


def _with_a_line(operand: Array, missing: Missing) -> tuple[Array, Missing]:
    """Return a part wholly in the padding with one real line of it: no kernel takes empty maps."""
    before, after = [0, 0], [0, 0]
    for axis in (0, 1):
        if operand.shape[2 + axis] == 0:
            before[axis] = 1 if missing[axis] else 0
            after[axis] = 1 - before[axis]
    real = np.pad(operand, ((0, 0), (0, 0), (before[0], after[0]), (before[1], after[1])))
    left = (
        missing[0] - before[0],
        missing[1] - before[1],
        missing[2] - after[0],
        missing[3] - after[1],
    )
    return real, left


def _padded(chain: Chain, operand: Array, missing: Missing, shape: tuple[int, int]) -> Array:
    """Return a pad's own constant around a part of its map; `operand` still has the columns it cuts off."""
    assert chain.head is not None
    fill = next((a.f for a in chain.head.attribute if a.name == "value"), 0.0)
    if len(chain.head.input) > 2 and chain.head.input[2]:
        fill = float(chain.constants[chain.head.input[2]].reshape(-1)[0])
    wide = shape[1] - missing[1] - missing[3]
    first = max(0, -chain.columns[0].before) if operand.shape[3] > wide else 0
    return _filled(operand[:, :, :, first : first + wide], missing, fill)


def _filled(operand: Array, missing: Missing, fill: float) -> Array:
    if not any(missing):
        return operand
    top, left, bottom, right = missing
    return np.pad(operand, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)


def _stated(chain: Chain, operand: Array, missing: Missing) -> Missing:
    """Return the part of the missing lines that is the operator's own padding."""
    geometry = chain.op.geometry
    padding = geometry.padding if geometry is not None and geometry.padding else (0, 0, 0, 0)
    top, left, bottom, right = (min(m, p) for m, p in zip(missing, padding, strict=True))
    return top, left, bottom, right


def _cut(p: Parameter, region: Region) -> tuple[slice, ...]:
    return tuple(slice(None) if axis == "." else region.along(axis) for axis in p.axes)
