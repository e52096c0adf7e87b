"""The kernel of one operator of a nest: makes a box of its output from boxes of its operands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.network.axes import ALL, Buffer, Cut
from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import (
    FULL,
    PART,
    Atom,
    Form,
    NotCompact,
    Span,
    extents,
    is_repeated,
    is_whole,
    narrowed,
    regrouped,
    size_of,
    tidy,
)
from onchip.run.tiled.nests.kernel import Array, Kernel, Read, Source
from onchip.run.tiled.nests.node_rules import add

if TYPE_CHECKING:
    import onnx

    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["BoxKernel", "Kernel", "Read", "Source", "atoms_of", "element_of", "run_session"]


@dataclass(frozen=True)
class _Session:
    """Nodes to run for an output, and what to feed them. `runs` has the sessions by attributes of nodes."""

    nodes: tuple[onnx.NodeProto, ...]
    types: Mapping[str, tuple[int, int]]
    constants: Mapping[str, Array]
    runs: dict[str, Any]
    output: str
    operands: tuple[str, ...]
    narrower: tuple[str, ...]
    sized: tuple[str, ...]
    indexed: tuple[str, ...]
    fed: tuple[str, ...]


class BoxKernel:
    """Runs an operator's nodes on boxes of its operands. Raises `NotCompact` if a node cannot.

    `cut` are the axes of which a box may have less than all.
    """

    def __init__(
        self,
        engine: OnnxEngine,
        op: Operator,
        axes: Cut,
        output: Buffer,
        cut: Collection[int],
        sources: Sequence[Source],
    ) -> None:
        self.op, self.engine, self.sizes = op, engine, axes.axes
        self.at = {source.name: i for i, source in enumerate(sources) if source.filled}
        given = {s.name: (atoms_of(s, cut), s.shape) for s in sources if s.filled}
        wanted = engine.executable.value[op.outputs[0]]
        shapes = {name: shape for name, (_, shape) in engine.values.items()}
        opset = next((o.version for o in engine.parts.model.opset_import if o.domain in ("", "ai.onnx")), 1)
        self.target = tuple(
            Atom(axis if axis in cut else FULL, size)
            for axis, size in zip(axes.writes.axes, output.sides, strict=True)
        )
        boxed = Boxed(given, engine.parts.constants, shapes, opset, self.target, axes.axes)
        self._walk(boxed, wanted)
        self.boxed, self.sums = boxed, bool(boxed.total)
        if {axis for axis in axes.sums if axis in cut} != boxed.summed:
            raise NotCompact("its sum is not that of one product")
        self.approximate = boxed.reorders
        self.found = regrouped(boxed.flat(wanted), output.sides)
        self._expect(self.found)
        self.rest: _Session | None = None
        if self.sums:
            self.total = regrouped(boxed.made, output.sides)
            self._expect(self.total)
            self.first = self._session(boxed.total, ())
            if boxed.total != wanted:
                self.rest = self._session(wanted, (boxed.total,))
        else:
            self.first = self._session(wanted, ())

    def _walk(self, boxed: Boxed, wanted: str) -> None:
        engine = self.engine
        what = f"operator {self.op.name}"
        nodes, _ = engine.parts.between(boxed.given, [wanted], what)
        boxed.rounded = any(node.op_type == "QuantizeLinear" for node in nodes)
        for node in nodes:
            names = [name for name in node.input if name]
            if all(name in boxed.constants and name not in boxed.given for name in names):
                made = engine.parts.constant_outputs(node, boxed.constants, engine.values, what)
                boxed.fold(made.items())
            else:
                add(boxed, node)

    def _expect(self, found: Form) -> None:
        """Refuse a result that cannot be cut, or repeated, to the box of the output."""
        for dim, atom in zip(found, self.target, strict=True):
            if dim != tidy([atom]) and not (is_whole(dim) or is_repeated(dim)):
                raise NotCompact("its result is cut otherwise than its output")

    # -- sessions --------------------------------------------------------------------------------------------

    def _session(self, wanted: str, made: Collection[str]) -> _Session:
        """Return the session that makes a value from operands and those already made."""
        boxed = self.boxed
        nodes: list[onnx.NodeProto] = []
        needed, inputs = {wanted}, set[str]()
        producer = {name: node for node in boxed.nodes for name in node.output}
        for node in reversed(boxed.nodes):
            if needed.intersection(node.output) - set(made):
                nodes.append(node)
                for name in filter(None, node.input):
                    needed.add(name)
                    if name not in producer or name in made:
                        inputs.add(name)
        types = {name: (self._element(name), len(boxed.forms[name])) for name in inputs & boxed.given.keys()}
        types |= {
            n: (self._element(boxed.narrower[n][0]), len(boxed.form(n))) for n in _in(inputs, boxed.narrower)
        }
        several = (*_in(inputs, boxed.sized), *_in(inputs, boxed.indexed), *_in(inputs, boxed.fed))
        types |= dict.fromkeys(several, (7, 1))
        types |= {n: (self._element(n), len(boxed.form(n))) for n in made if n in inputs}
        constants = {name: boxed.constants[name] for name in inputs if name not in types}
        operands = [name for name in self.at if name in inputs or name in self._narrowed(inputs)]
        fed = (tuple(_in(inputs, x)) for x in (boxed.narrower, boxed.sized, boxed.indexed, boxed.fed))
        made_by = tuple(nodes[::-1])
        session = _Session(made_by, types, constants, {}, wanted, tuple(operands), *fed)
        self._of(session, [(0, size) for size in self.sizes])
        return session

    def _of(self, session: _Session, spans: Sequence[Span]) -> Any:
        """Return the session for a box, with the attributes that its nodes have there."""
        boxed = self.boxed
        found = {
            node.output[0]: boxed.settings[node.output[0]](spans)
            for node in session.nodes
            if node.output[0] in boxed.settings
        }
        key = str(found)
        if key not in session.runs:
            nodes = [_with(node, found.get(node.output[0], {})) for node in session.nodes]
            wanted = {session.output: self._element(session.output)}
            try:
                run = self.engine.parts.session(nodes, session.types, wanted, session.constants)
            except Exception as problem:  # onnxruntime's errors have no common class
                raise NotCompact((str(problem).splitlines() or ["?"])[0]) from None
            session.runs[key] = run
        return session.runs[key]

    def _narrowed(self, inputs: Collection[str]) -> set[str]:
        return {self.boxed.narrower[name][0] for name in inputs if name in self.boxed.narrower}

    def _element(self, name: str) -> int:
        """Return the ONNX element type of a value."""
        if name in self.boxed.elements:
            return self.boxed.elements[name]
        values = self.engine.values
        if name not in values and name in self.boxed.constants:
            return element_of(self.boxed.constants[name].dtype)
        known = name if name in values else name.split("@")[0]
        if known in values and values[known][0]:
            return values[known][0]
        if name in self.boxed.constants:
            return element_of(self.boxed.constants[name].dtype)
        raise NotCompact(f"the element type of {name} is not known")

    def _run(self, session: _Session, read: Read, spans: Sequence[Span], made: Mapping[str, Array]) -> Array:
        boxed = self.boxed
        here = dict(made)
        for name in session.operands:
            here[name] = read(self.at[name]).reshape(extents(boxed.forms[name], spans))
        for name in session.narrower:
            source, changes = boxed.narrower[name]
            value = here[source] if source in here else boxed.constants[source]
            here[name] = narrowed(value, changes, spans)
        for name in session.sized:
            here[name] = np.array(extents(boxed.sized[name], spans), np.int64)
        for name in session.indexed:
            dim = boxed.indexed[name]
            here[name] = narrowed(np.arange(size_of(dim)), {0: dim}, spans)
        for name in session.fed:
            here[name] = boxed.fed[name](spans)
        try:
            run = self._of(session, spans)
        except NotCompact as reason:
            raise InputError(f"cannot be run in tiles: {reason}", item=f"operator {self.op.name}") from None
        return run_session(self.op, run, session.output, here)

    def part(self, read: Read, spans: Sequence[Span], *, first: bool) -> Array:
        """Return the box of the result, or of a part of its sum."""
        made = self._run(self.first, read, spans, {})
        return self._fitted(made, self.total if self.sums else self.found, spans)

    def finish(self, total: Array, read: Read, spans: Sequence[Span]) -> Array:
        """Return the box of the result, from its complete sum."""
        if self.rest is None:
            return total
        form = self.boxed.form(self.boxed.total)
        made = self._run(self.rest, read, spans, {self.boxed.total: total.reshape(extents(form, spans))})
        return self._fitted(made, self.found, spans)

    def _box(self, spans: Sequence[Span]) -> tuple[int, ...]:
        return tuple(_extent(atom, spans) for atom in self.target)

    def _fitted(self, made: Array, found: Form, spans: Sequence[Span]) -> Array:
        """Return a result of a form cut, or repeated, to the box of the output."""
        made = made.reshape(extents(found, spans))
        taken = tuple(
            slice(*spans[atom.axis]) if atom.axis >= 0 and is_whole(dim) and dim else slice(None)
            for dim, atom in zip(found, self.target, strict=True)
        )
        return np.broadcast_to(made[taken], self._box(spans))


def _with(node: onnx.NodeProto, values: Mapping[str, int | list[int]]) -> onnx.NodeProto:
    """Return a node with some other attributes; with explicit pads it has no rule for them."""
    if not values:
        return node
    import onnx
    from onnx import helper

    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    del changed.attribute[:]
    changed.attribute.extend(a for a in node.attribute if a.name not in values and a.name != "auto_pad")
    changed.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())
    return changed


def _in(names: Collection[str], known: Mapping[str, object]) -> list[str]:
    return [name for name in known if name in names]


def _extent(atom: Atom, spans: Sequence[Span]) -> int:
    if atom.axis < 0:
        return atom.size
    low, high = spans[atom.axis]
    return high - low


def atoms_of(source: Source, cut: Collection[int]) -> list[Atom]:
    """Return the atoms of an operand in the order of its elements."""
    found: list[Atom] = []
    buffer = source.buffer
    slides = source.use.slides or (None,) * len(buffer.sides)
    for axis, window, size, first, whole in zip(
        source.use.axes, slides, buffer.sides, buffer.first, buffer.whole, strict=True
    ):
        if window is not None and window.axis in cut:
            found.append(Atom(window.axis, whole, first, size, window))
        elif axis != ALL and axis in cut:
            found.append(Atom(axis, size))
        elif size < whole:
            found.append(Atom(PART, whole, first, size))
        else:
            found.append(Atom(FULL, size))
    return found


def element_of(dtype: np.dtype[Any]) -> int:
    """Return the ONNX element type of a type of numpy."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))


def run_session(op: Operator, session: Any, wanted: str, feeds: Mapping[str, Array]) -> Array:
    """Return one result of a session; raises `InputError` naming the operator."""
    names = {entry.name for entry in session.get_inputs()}
    arrays = {name: np.ascontiguousarray(value) for name, value in feeds.items() if name in names}
    try:
        [result] = session.run([wanted], arrays)
    except Exception as problem:  # onnxruntime's errors have no common class
        line = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise InputError(
            f"cannot be run in tiles: onnxruntime says {line}", item=f"operator {op.name}"
        ) from None
    found: Array = result
    return found
