"""The C of one operator: a function that makes a box of its output from what lies in its operands' places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from onchip.export.loops.book import Book
from onchip.export.loops.elements import ELEMENTS
from onchip.export.loops.moving import MOVING
from onchip.export.loops.nodes import Nodes, Value
from onchip.export.loops.places import PlaceText
from onchip.export.loops.products import PRODUCTS
from onchip.export.loops.rows import ROWS
from onchip.export.loops.steps import Compute, RunWhole, Seen, WholeRead
from onchip.export.loops.text import bounds, ctype, regrouped
from onchip.network import Operator
from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import FULL, Atom, Dim, NotCompact, is_cut
from onchip.run.tiled.nests.kernel import Source
from onchip.run.tiled.nests.kernels import atoms_of
from onchip.run.tiled.nests.node_rules import add

__all__ = ["OperatorText"]

RULES = {**ELEMENTS, **MOVING, **PRODUCTS, **ROWS}


class OperatorText:
    """The C of one operator, by the number `prefix`."""

    def __init__(self, book: Book, prefix: str, op: Operator) -> None:
        self.book, self.prefix, self.op, self.engine = book, prefix, op, book.engine
        self.lines: list[str] = [f"/* {prefix}: {_plain(op.name)} ({_plain(op.type)}) */"]
        self.arrays: dict[str, str] = {}
        self.beside = 0
        """The bytes of partial sums that the plan counts nowhere."""

    def constant(self, name: str, value: np.ndarray[Any, Any]) -> str:
        """Return the function that reads a constant where it lies in DRAM."""
        known = self.engine.parts.constants
        alike = name in known and known[name] is value
        array = self.book.constant(name) if alike else self.book.made(self.op.name, name, value)
        return self.in_dram(array, np.dtype(value.dtype))

    def in_dram(self, array: str, kind: np.dtype[Any], offset: int = 0) -> str:
        """Return the function that reads an element of an array, from an offset in bytes on."""
        name, c = f"{self.prefix}_{array}" + (f"_{offset}" if offset else ""), ctype(kind)
        if name in self.arrays:
            return name
        self.arrays[name] = array
        at, pitch = self.book.arrays[array].offset + offset, self.book.arrays[array].element
        self.lines += [
            f"static inline {c} {name}(ix i)",
            "{",
            f"    {c} v;",
            f"    memcpy(&v, dram + {at} + (size_t)i * {pitch}, sizeof v);",
            "    return v;",
            "}",
        ]
        return name

    def nodes_of(
        self, values: Mapping[str, Value], wanted: str, total: str, dim: Dim, *, pairs: bool = False
    ) -> Nodes:
        """Return the operator's nodes as functions."""
        engine = self.engine
        what = f"operator {self.op.name}"
        opset = next((o.version for o in engine.parts.model.opset_import if o.domain in ("", "ai.onnx")), 1)
        nodes = Nodes(
            self.op.name, values, engine.parts.constants, engine.values, opset, self.constant, total, dim
        )
        nodes.prefix, nodes.lines, nodes.pairs = self.prefix, self.lines, pairs
        found, _ = engine.parts.between(values, [wanted], what)
        nodes.rounded = any(node.op_type == "QuantizeLinear" for node in found)
        for node in found:
            names = [name for name in node.input if name]
            if all(name in nodes.constants and name not in values for name in names):
                made = engine.parts.constant_outputs(node, nodes.constants, engine.values, what)
                nodes.constants.update(made)
                continue
            rule = RULES.get(node.op_type)
            if rule is None or node.domain not in ("", "ai.onnx"):
                raise nodes.refuse(f"{node.op_type} has no rule")
            rule(nodes, node)
        return nodes

    # -- in a nest -------------------------------------------------------------------------------------------

    def in_nest(self, step: Compute, places: Mapping[str, PlaceText]) -> list[str]:
        """Write the operator's function; return the statements that call it."""
        source_of: dict[str, Source] = {}
        values: dict[str, Value] = {}
        for seen, _ in step.reads:
            if seen.source.filled and seen.source.name not in values:
                values[seen.source.name] = self.seen(seen, places[seen.place], len(values))
                source_of[seen.source.name] = seen.source
        wanted = self.engine.executable.value[self.op.outputs[0]]
        total, dim, shape = "", Dim(), tuple[int, ...]()
        kind = self.book.kind(self.op.outputs[0])
        place, box = places[step.writes[0]], step.writes[1]
        rank = len(step.sides)
        s = [f"s{n}" for n in range(rank)]
        if step.parts:
            total, dim = self.taken_apart(step, list(source_of.values()), wanted)
            shape = self.engine.values[total][1] if total in self.engine.values else ()
            axes = sorted({atom.axis for atom in dim if atom.axis >= 0})
            self.lines += [
                f"static ix {', '.join(f'{self.prefix}_a{a}_lo, {self.prefix}_a{a}_hi' for a in axes)};"
            ]
            self.lines += [f"static int {self.prefix}_first;"]
            names = [f"i{n}" for n in range(len(shape))]
            index = ", ".join(regrouped(names, shape, step.sides))
            if step.accumulators:
                there = f"{places[step.accumulators].get(np.dtype(np.float32))}({index})"
            else:
                self.beside = 8 * place.most
                there = f"{self.prefix}_sums[2 * {place.index}({index})]"
                said = ", ".join(f"ix {n}" for n in names)
                self.lines += [
                    f"static float {self.prefix}_sums[{2 * place.most}];",
                    f"static inline void {self.prefix}_resume(float *t, float *a, {said})",
                    "{",
                    *(f"    (void){n};" for n in names),
                    f"    if ({self.prefix}_first) return;",
                    f"    *t = {there};",
                    f"    *a = {there.removesuffix(']')} + 1];",
                    "}",
                ]
            self.lines += [
                f"static inline double {self.prefix}_before({', '.join(f'ix {n}' for n in names)})",
                "{",
                *(f"    (void){n};" for n in names),
                f"    return {self.prefix}_first ? 0.0 : (double){there};",
                "}",
            ]
        nodes = self.nodes_of(values, wanted, total, dim, pairs=not step.accumulators)
        last = nodes.value(wanted)
        said = ", ".join(f"ix lo{n}, ix hi{n}" for n in range(rank))
        element = last.at(regrouped(s, step.sides, last.shape))
        loops = [f"for (ix s{n} = lo{n}; s{n} < hi{n}; ++s{n})" for n in range(rank)]
        at = ", ".join(s)
        self.lines += [f"static void {self.prefix}_run({said}{', int last' if step.parts else ''})", "{"]
        self.lines += [f"    {key} = -1;" for key in nodes.keys]
        if step.parts:
            part = nodes.value(f"{total}@sum").at(regrouped(s, step.sides, shape))
            there = f"{self.prefix}_sums[2 * {place.index}({at})"
            two = (f"{self.prefix}_t", f"{self.prefix}_a") if nodes.paired else ("sum", "0.0f")
            used = "(void)sum; " if nodes.paired else ""
            write = f"{{ const float sum = {part}; {used}{there}] = {two[0]}; {there} + 1] = {two[1]}; }}"
            if step.accumulators:
                write = f"{places[step.accumulators].put(np.dtype(np.float32))}({at}, {part});"
            self.lines += ["    if (!last) {"]
            self.lines += [f"        {loop}" for loop in loops]
            self.lines += [f"            {write}", "        return;", "    }"]
        apart = not nodes.simple and (step.shares or bool(step.parts))
        if apart:
            self.lines += [f"    static {ctype(kind)} made[{place.most}];", "    ix n = 0;"]
            self.lines += [f"    {loop}" for loop in loops]
            self.lines += [f"        made[n++] = {element};", "    n = 0;"]
            element = "made[n++]"
        self.lines += [f"    {loop}" for loop in loops]
        self.lines += [f"        {place.put(kind)}({at}, {element});", "}", ""]
        return self.call(step, box, total, dim)

    def call(self, step: Compute, box: Sequence[Any], total: str, dim: Dim) -> list[str]:
        """Return the statements that make a box."""
        arguments = [x for one in box for x in bounds(one)]
        lines = []
        for atom in dim:
            if atom.axis >= 0:
                low, high = bounds(step.axes[atom.axis])
                lines.append(
                    f"{self.prefix}_a{atom.axis}_lo = {low}; {self.prefix}_a{atom.axis}_hi = {high};"
                )
        if step.parts:
            first = " && ".join(f"{bounds(of)[0]} == 0" for of, _ in step.parts)
            arguments.append(" && ".join(f"{bounds(of)[1]} == {size}" for of, size in step.parts))
            lines.append(f"{self.prefix}_first = {first};")
        some = {bounds(one) for one in step.axes if not str(bounds(one)[0]).isdigit()}
        there = " && ".join(f"{low} < {high}" for low, high in sorted(some))
        lines.append(f"{self.prefix}_run({', '.join(arguments)});")
        return lines if not there else [f"if ({there}) {{", *(f"    {line}" for line in lines), "}"]

    def seen(self, seen: Seen, place: PlaceText, number: int) -> Value:
        """Write the function of an operand: an element of its value, where it lies."""
        source = seen.source
        if source.buffer.tensor is not None:
            t = self.engine.executable.value.index(source.name)
            kind = self.book.kind(t)
        else:
            kind = np.dtype(self.engine.parts.constants[source.name].dtype)
        shape = tuple(source.shape)
        names = [f"i{n}" for n in range(len(shape))]
        index = regrouped(names, shape, seen.whole)
        index = [f"{i} + {k}" if k else i for i, k in zip(index, seen.shift, strict=True)]
        name = f"{self.prefix}_x{number}"
        said = ", ".join(f"ix {n}" for n in names) or "void"
        self.lines += [f"static inline {ctype(kind)} {name}({said})", "{"]
        self.lines += [f"    (void){n};" for n in names]
        self.lines += [f"    return {place.get(kind)}({', '.join(index)});", "}"]
        return Value(name, shape, kind)

    def taken_apart(self, step: Compute, sources: Sequence[Source], wanted: str) -> tuple[str, Dim]:
        """Return the product whose sum is cut, and the pieces of its index; refuse others."""
        engine, cut = self.engine, step.cut
        nodes = Nodes(self.op.name, {}, {}, {}, 1, self.constant)
        parts = engine.parts
        given = {s.name: (atoms_of(s, step.split), s.shape) for s in sources}
        shapes = {name: shape for name, (_, shape) in engine.values.items()}
        opset = next((o.version for o in parts.model.opset_import if o.domain in ("", "ai.onnx")), 1)
        target = tuple(
            Atom(axis if axis in step.split else FULL, size)
            for axis, size in zip(cut.writes.axes, step.sides, strict=True)
        )
        boxed = Boxed(given, parts.constants, shapes, opset, target, cut.axes)
        what = f"operator {self.op.name}"
        found, _ = parts.between(given, [wanted], what)
        try:
            for node in found:
                names = [name for name in node.input if name]
                if all(name in boxed.constants and name not in given for name in names):
                    made = parts.constant_outputs(node, boxed.constants, engine.values, what)
                    boxed.fold(made.items())
                else:
                    add(boxed, node)
        except NotCompact as reason:
            raise nodes.refuse(f"a sum is cut, and {reason}") from None
        if {axis for axis in cut.sums if axis in step.split} != boxed.summed or not boxed.total:
            raise nodes.refuse("what is cut is not the sum of one product")
        maker = {name: node for node in found for name in node.output}
        total = boxed.total if boxed.total in maker else boxed.total.split("@")[0]
        node = maker[total]
        turned = any(a.name == "transA" and a.i for a in node.attribute)
        at = {"MatMul": -1, "Gemm": 0 if turned else 1}.get(node.op_type, 1)
        for name, where in ((node.input[0], at), (node.input[1], self._beside(node))):
            dim = boxed.form(name)[where] if name in boxed.forms else ()
            if is_cut(dim):
                return total, dim
        raise nodes.refuse("the sum that is cut is not found")

    def _beside(self, node: Any) -> int:
        turned = any(a.name == "transB" and a.i for a in node.attribute)
        return {"MatMul": -2, "Gemm": 1 if turned else 0}.get(node.op_type, 1)

    # -- whole -----------------------------------------------------------------------------------------------

    def whole(self, step: RunWhole) -> list[str]:
        """Write the function of an operator on whole operands; return the statements that call it."""
        values = {read.name: self.read(read, n) for n, read in enumerate(step.reads)}
        lines = [f"dma_stream({step.weights + step.streamed});"] if step.weights + step.streamed else []
        wanted = [write.name for write in step.writes]
        nodes: Nodes | None = None
        results = []
        for write in step.writes:
            if nodes is None:
                nodes = self.nodes_of(values, write.name, "", ())
                if len(wanted) > 1:
                    for name in wanted[1:]:
                        if name not in nodes.values:
                            raise nodes.refuse("several results of several nodes")
            results.append(nodes.value(write.name))
        assert nodes is not None
        self.lines += [
            f"static void {self.prefix}_run(void)",
            "{",
            *(f"    {key} = -1;" for key in nodes.keys),
        ]
        for write, last in zip(step.writes, results, strict=True):
            count, c = prod(write.shape), ctype(write.kind)
            base = f"pad + {write.address}"
            if write.address is None:
                base = f"dram + {self.book.arrays[write.array or ''].offset + write.offset}"
            element = last.at(regrouped(["n"], [count], last.shape))
            if step.shares and not nodes.simple:
                self.lines += [f"    static {c} made[{count}];"]
                self.lines += [f"    for (ix n = 0; n < {count}; ++n) made[n] = {element};"]
                element = "made[n]"
            self.lines += [
                f"    for (ix n = 0; n < {count}; ++n) {{",
                f"        const {c} v = {element};",
                f"        memcpy({base} + (size_t)n * sizeof v, &v, sizeof v);",
                "    }",
            ]
        self.lines += ["}", ""]
        return [*lines, f"{self.prefix}_run();"]

    def read(self, read: WholeRead, number: int) -> Value:
        """Write the function of a whole operand."""
        names = [f"i{n}" for n in range(len(read.shape))]
        if read.address is None:
            inner = self.in_dram(read.array or "", read.kind, read.offset)
        else:
            inner, c = f"{self.prefix}_at{number}", ctype(read.kind)
            self.lines += [
                f"static inline {c} {inner}(ix i)",
                "{",
                f"    {c} v;",
                f"    memcpy(&v, pad + {read.address} + (size_t)i * sizeof v, sizeof v);",
                "    return v;",
                "}",
            ]
        name = f"{self.prefix}_x{number}"
        place = regrouped(names, read.shape, [prod(read.shape)])
        said = ", ".join(f"ix {n}" for n in names) or "void"
        self.lines += [f"static inline {ctype(read.kind)} {name}({said})", "{"]
        self.lines += [f"    (void){n};" for n in names]
        self.lines += [f"    return {inner}({', '.join(place)});", "}"]
        return Value(name, tuple(read.shape), read.kind)


def _plain(text: str) -> str:
    return "".join(c if (c.isalnum() and c.isascii()) or c in " _.:+-#" else "_" for c in text)[:120]
