"""An operator's nodes, rewritten to run on boxes of their values.

The walk goes from the operands on, node by node, and keeps the form of every value. A node whose result is
the same function of a box as of the whole runs as it is; one that names a shape gets the shape of the box;
one that takes the part of an operand that the box already is does nothing. Every other node ends the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.run.tiled.nests.forms import (
    FULL,
    PART,
    Atom,
    Dim,
    Form,
    NotCompact,
    Span,
    is_cut,
    is_repeated,
    is_whole,
    regrouped,
    size_of,
    tidy,
    whole_form,
)

if TYPE_CHECKING:
    import onnx

__all__ = ["Boxed"]

Array = np.ndarray[Any, Any]


class Boxed:
    """The nodes so far, and the forms of their values.

    `given` are the atoms and shapes of operands and weights by name, `constants` the values of all other
    constants, `shapes` those of every value. `narrower` are further inputs, each an operand or constant with
    some dimensions cut to the box; `sized` are further inputs that are shapes of boxes, `indexed` those that
    are the positions of a box along a dimension. `target` are the atoms of the operator's output, `sizes` all
    of its axes.
    """

    def __init__(
        self,
        given: Mapping[str, tuple[Sequence[Atom], tuple[int, ...]]],
        constants: Mapping[str, Array],
        shapes: Mapping[str, tuple[int, ...]],
        opset: int,
        target: Sequence[Atom],
        sizes: Sequence[int],
    ) -> None:
        self.sizes = sizes
        self.given, self.constants, self.shapes, self.opset = given, dict(constants), shapes, opset
        self.forms: dict[str, Form] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.narrower: dict[str, tuple[str, dict[int, Dim]]] = {}
        self.sized: dict[str, Form] = {}
        self.indexed: dict[str, Dim] = {}
        self.settings: dict[str, Callable[[Sequence[Span]], dict[str, int | list[int]]]] = {}
        """The attributes of a node, by its result, that depend on the box."""
        self.fed: dict[str, Callable[[Sequence[Span]], Array]] = {}
        """Further inputs: lists of whole numbers that depend on the box."""
        self.elements: dict[str, int] = {}
        """The ONNX element types of values that the model does not have."""
        self.loose: set[str] = set()
        """Values in the order of their elements, but in other dimensions than the model's."""
        for name, (atoms, shape) in given.items():
            self.divide(name, atoms, shape)
        self.target = target
        self.made: list[Atom] = []
        self.total = ""
        """The value that is the sum of the boxes' results, if a sum is cut."""
        self.summed: set[int] = set()
        """The cut axes that it is summed over; `made` are the atoms of a box before it is added."""
        self.rounded = False
        """True if integers are made of sums of floats, whose last bit counts."""
        self.reorders = False
        """True if sums of the result may come in another order."""

    # -- values ----------------------------------------------------------------------------------------------

    def form(self, name: str) -> Form:
        """Return a value's form; a constant is there whole. Raises `NotCompact` if it was not made."""
        if name in self.loose:
            raise NotCompact(f"a dimension of {name} ends inside an axis")
        if name not in self.forms:
            if name not in self.constants:
                raise NotCompact(f"{name} is not known")
            self.forms[name] = whole_form(self.constants[name].shape)
        return self.forms[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a value's shape in the model."""
        if name in self.constants:
            return tuple(self.constants[name].shape)
        found = self.shapes.get(name)
        if not found or min(found) < 1:
            raise NotCompact(f"the shape of {name} is not known")
        return found

    def setting(self, node: onnx.NodeProto, position: int, attribute: str) -> tuple[int, ...] | None:
        """Return a setting, an attribute or a constant operand; None if it is not stated."""
        for a in node.attribute:
            if a.name == attribute:
                return tuple(a.ints) if a.ints else (a.i,)
        name = node.input[position] if position and position < len(node.input) else ""
        if not name:
            return None
        if name not in self.constants:
            raise NotCompact(f"{name} is no constant")
        return tuple(int(n) for n in np.asarray(self.constants[name]).reshape(-1))

    def number(self, node: onnx.NodeProto, attribute: str, default: int) -> int:
        """Return an attribute that is a number."""
        return next((int(a.i) for a in node.attribute if a.name == attribute), default)

    def fitted(self, name: str, wanted: Mapping[int, Dim]) -> str:
        """Return a value with these dimensions: itself, or an operand or constant cut to the box.

        Raises `NotCompact` where the value has other ones and is not there whole.
        """
        form = self.form(name)
        changes = {at: dim for at, dim in wanted.items() if form[at] != dim}
        if not changes:
            return name
        source, known = self.narrower.get(name, (name, {}))
        for at, dim in changes.items():
            own = any(atom.axis < FULL for atom in dim)
            if not is_whole(form[at]) or own or size_of(dim) != size_of(form[at]):
                raise NotCompact(f"{name} is not cut as the values beside it")
        if source not in self.given and source not in self.constants:
            for at, dim in changes.items():
                index, form = f"{name}@at{len(self.indexed)}", self.form(name)
                self.indexed[index] = dim
                cut = tuple(dim if i == at else d for i, d in enumerate(form))
                name = self.emit("Gather", [name, index], f"{index}/cut", cut, axis=at)
            return name
        fresh = f"{source}@{len(self.narrower)}"
        self.narrower[fresh] = (source, {**known, **changes})
        self.forms[fresh] = tuple(changes.get(at, dim) for at, dim in enumerate(form))
        return fresh

    def broadcast(self, names: Sequence[str], keep: int = 0) -> tuple[list[str], Form]:
        """Return values cut alike, and the form of their element-wise result without its last `keep` dims."""
        forms = [self.form(name) for name in names]
        rank = max(len(form) for form in forms) - keep
        wanted: list[dict[int, Dim]] = [{} for _ in names]
        result: list[Dim] = []
        for i in range(rank):
            here = [
                (k, at, form[at])
                for k, form in enumerate(forms)
                if (at := i - rank + len(form) - keep) >= 0 and size_of(form[at]) > 1
            ]
            real = [dim for *_, dim in here if not is_repeated(dim)]
            dim = next(filter(is_cut, real), real[0]) if real else here[0][2] if here else ()
            result.append(dim)
            for k, at, found in here:
                if not is_repeated(found):
                    wanted[k][at] = dim
        fitted = [self.fitted(name, want) for name, want in zip(names, wanted, strict=True)]
        return fitted, tuple(result)

    # -- nodes -----------------------------------------------------------------------------------------------

    def emit(self, op: str, inputs: Sequence[str], output: str, form: Form, **settings: Any) -> str:
        """Add a node of its own and return its result."""
        from onnx import helper

        self.nodes.append(helper.make_node(op, list(inputs), [output], **settings))
        self.forms[output] = form
        return output

    def keep(
        self, node: onnx.NodeProto, form: Form, inputs: Mapping[int, str] | None = None, output: int = 0
    ) -> None:
        """Add a node as it is, with some other inputs; `form` is that of one of its results."""
        import onnx

        changed = onnx.NodeProto()
        changed.CopyFrom(node)
        for at, name in (inputs or {}).items():
            changed.input[at] = name
        self.nodes.append(changed)
        self.forms[node.output[output]] = form

    def reshape(self, value: str, output: str, form: Form) -> None:
        """Give a value the shape that another form has in the box."""
        shape = f"{output}@shape"
        self.sized[shape] = form
        # A box may have nothing of an operand that others are joined to; 0 means "as before" by itself.
        nothing = {"allowzero": 1} if self.opset >= 14 else {}
        self.emit("Reshape", [value, shape], output, form, **nothing)

    def flat(self, name: str) -> list[Atom]:
        """Return the atoms of a value in the order of its elements."""
        form = self.forms[name] if name in self.loose else self.form(name)
        return [atom for dim in form for atom in dim]

    def divide(self, name: str, atoms: Sequence[Atom], shape: Sequence[int]) -> None:
        """State the form of a value of this shape; it is loose if a dimension ends inside an axis."""
        try:
            self.forms[name] = regrouped(atoms, shape)
        except NotCompact:
            self.forms[name] = tuple((atom,) for atom in atoms)
            self.loose.add(name)

    def regroup(self, value: str, output: str) -> None:
        """Add a node that changes the shape of a value but not the order of its elements."""
        self.divide(output, self.flat(value), self.shape(output))
        self.reshape(value, output, self.forms[output])

    def take(self, value: str, at: int, first: int, count: int, output: str, step: int = 1) -> None:
        """Add nodes that take `count` positions from `first` on along a dimension, every `step`-th.

        The operand may have just these already, or blocks of positions of which these are some.
        """
        form = self.form(value)
        dim = form[at]
        if self.picks(dim, first, count, step):
            made = (*form[:at], (Atom(dim[0].axis, count),), *form[at + 1 :])
            if step == 1:
                self.reshape(value, output, made)
            else:
                every = {
                    f"{output}@{i}": np.array([n])
                    for i, n in enumerate((0, np.iinfo(np.int64).max, at, step))
                }
                self.fold(every.items())
                self.emit("Slice", [value, *every], output, made)
            return
        if step != 1:
            raise NotCompact(f"{value} is cut where steps go through it")
        if (first, count) == (0, size_of(dim)):
            self.reshape(value, output, form)
            return
        head, rest = (dim[0], dim[1:]) if dim else (Atom(FULL, 1), ())
        inner = size_of(rest)
        begin, last = (head.first, head.first + head.count) if head.axis == PART else (0, head.size)
        low, high = first // inner, (first + count) // inner
        aligned = low * inner == first and high * inner == first + count
        if head.axis not in (FULL, PART) or not aligned or not begin <= low < high <= last:
            raise NotCompact(f"{value} is cut where a part of it is taken")
        made = (*form[:at], tidy([Atom(FULL, high - low), *rest]), *form[at + 1 :])
        if (low, high) == (begin, last):
            self.reshape(value, output, made)
            return
        # In blocks, of which some are taken.
        outer = Atom(FULL, last - begin)
        self.reshape(value, f"{output}@blocks", (*form[:at], (outer,), rest, *form[at + 1 :]))
        ends = {
            f"{output}@{i}": np.array([n], np.int64) for i, n in enumerate((low - begin, high - begin, at))
        }
        self.fold(ends.items())
        some = (*form[:at], (Atom(FULL, high - low),), rest, *form[at + 1 :])
        self.emit("Slice", [f"{output}@blocks", *ends], f"{output}@some", some)
        self.reshape(f"{output}@some", output, made)

    def picks(self, dim: Dim, first: int, count: int, step: int) -> bool:
        """Return whether the windows along a dimension see just these positions of it."""
        if len(dim) != 1 or dim[0].window is None:
            return False
        atom, window = dim[0], dim[0].window
        alike = (window.stride, window.span, window.per) == (step, 1, 1)
        return alike and atom.first - window.before == first and self.sizes[atom.axis] == count

    def fold(self, outputs: Iterable[tuple[str, Array]]) -> None:
        """Add constants that nodes make from constants alone."""
        self.constants.update(outputs)

    def whole(self, name: str, dims: Iterable[int]) -> None:
        """Refuse a value of which the box lacks something along these dimensions."""
        form = self.form(name)
        for at in dims:
            if not is_whole(form[at]):
                raise NotCompact(f"{name} is cut along its dimension {at}")

    def contract(self, left: Dim, right: Dim) -> bool:
        """Return whether a product's inner dimension, alike in both operands, is cut."""
        if left != right or any(atom.axis < FULL for atom in left):
            raise NotCompact("its operands are not cut alike along the sum")
        self.summed.update(atom.axis for atom in left if atom.axis >= 0)
        return is_cut(left)

    def partial(self, product: str, output: str) -> None:
        """Mark a product whose boxes are added up, in the box of the operator's output.

        `output` is a value of the product's shape.
        """
        if self.total:
            raise NotCompact("two of its products are cut along their sums")
        self.total, self.made = product, self.flat(product)
        self.forms[product] = regrouped(self.target, self.shape(output))

    def tidy(self, dims: Iterable[Iterable[Atom]]) -> Form:
        """Return dimensions with neighbouring atoms of a kind as one."""
        return tuple(tidy(dim) for dim in dims)
