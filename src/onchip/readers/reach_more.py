"""Further rules of reach: normalisations of maps, rotations, sums of products by letters, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onchip.readers.digits import Need, everything, flat, moved, widened
from onchip.readers.lookup import looked_up
from onchip.readers.onnx_graph import Node
from onchip.readers.reach_rules import Needs, NoRule, Rule, Walk, add, broadcast

__all__ = ["MORE_RULES", "rotated"]


def _all(sizes: Sequence[int]) -> list[Need]:
    return [(everything(n),) if n > 1 else () for n in sizes]


def _by_image(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Normalise every channel of every image by itself: scale and shift have a number for each channel."""
    found = {node.inputs[0]: flat([*dims[:2], *_all(walk.shape(node.inputs[0])[2:])])}
    for name in filter(None, node.inputs[1:]):
        add(found, name, flat([dims[1]]))
    return found


def _by_group(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Normalise groups of channels by themselves: scale and shift have a number for each channel."""
    x, groups = walk.shape(node.inputs[0]), node.integer("num_groups", 0)
    if groups < 1 or x[1] % groups:
        raise NoRule
    each = x[1] // groups
    parts = walk.regrouped(dims, (x[0], groups, each, *x[2:]))
    found = {node.inputs[0]: flat([*parts[:2], *_all((each, *x[2:]))])}
    for name in filter(None, node.inputs[1:]):
        add(found, name, flat(parts[1:3]))
    return found


def rotated(walk: Walk, node: Node, dims: tuple[Need, ...], heads: int) -> tuple[Need, list[Need]]:
    """Return the need of what a rotary embedding turns, and the dimensions of its positions.

    A row of one head is needed with all of its features. Without a number of `heads`, all features of a row
    may be those of one.
    """
    made = walk.shape(node.outputs[0])
    if len(made) == 4:
        return flat([*dims[:3], widened(dims[3])]), [dims[0], dims[2]]
    heads = max(heads, 1)
    parts = walk.regrouped(dims, (*made[:2], heads, made[2] // heads))
    return flat([*parts[:3], widened(parts[3])]), [dims[0], dims[1]]


def _rotary(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    names = [*node.inputs, ""][:4]
    need, rows = rotated(walk, node, dims, node.integer("num_heads", 0))
    found = {names[0]: need}
    if names[3]:
        add(found, names[3], flat(rows))
    for name in names[1:3]:
        shape = walk.shape(name)
        by_row = not names[3] and len(shape) == 3
        add(found, name, flat([*rows, *_all(shape[2:])]) if by_row else walk.all_of(name))
    return found


def _expand(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    name = node.inputs[0]
    return {name: flat(broadcast(walk.shape(name), walk.shape(node.outputs[0]), dims))}


def _tile(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    x, made = walk.shape(node.inputs[0]), walk.shape(node.outputs[0])
    if len(x) != len(made) or any(n % size for n, size in zip(made, x, strict=True)):
        raise NoRule
    times = [(n // size, size) for n, size in zip(made, x, strict=True)]
    return {node.inputs[0]: flat(walk.regrouped(dims, [n for pair in times for n in pair])[1::2])}


def _einsum(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a product of operands, by the letters of their dimensions.

    A letter that is not in the result is summed over: as an axis of its own where two operands share one.
    """
    terms, result = _letters(node, len(node.inputs))
    shapes = [walk.shape(name) for name in node.inputs]
    if len(result) != len(dims) or any(len(t) != len(s) for t, s in zip(terms, shapes, strict=True)):
        raise NoRule
    size: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, n in zip(term, shape, strict=True):
            if size.setdefault(letter, n) != n:
                raise NoRule  # one that is repeated along the other's dimension
    needs = dict(zip(result, dims, strict=True))
    gone = [letter for letter in size if letter not in needs]
    for letter in gone:
        both = len(gone) == 1 and len(terms) == 2 and all(letter in term for term in terms)
        needs[letter] = walk.summed(node, dims, size[letter])[0] if both else flat(_all([size[letter]]))
    found: Needs = {}
    for name, term in zip(node.inputs, terms, strict=True):
        add(found, name, flat([needs[letter] for letter in term]))
    return found


def _letters(node: Node, operands: int) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result; raises `NoRule` for a diagonal or an ellipsis."""
    equation = node.attribute("equation")
    text = "" if equation is None else equation.s.decode("ascii", "replace").replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if not arrow:
        result = "".join(sorted(letter for letter in set(left) if letter != "," and left.count(letter) == 1))
    if len(terms) != operands or any(
        len(set(t)) < len(t) or not t.isalpha() for t in (*terms, result or "a")
    ):
        raise NoRule
    return terms, result


def _gather_nd(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a look-up by computed indices, or by known ones that are a range."""
    table, indices = node.inputs[:2]
    shape, picked = walk.shape(table), walk.shape(indices)
    if node.integer("batch_dims", 0) or not picked:
        raise NoRule
    ranks = len(picked) - 1
    within = [side for sides in dims[:ranks] for side in sides]
    if looked_up(walk.graph, walk.constants, node) is not None:
        depth = picked[-1]
        walk.looked_up(table, flat(dims), flat([*_all(shape[:depth]), *dims[ranks:]]))
        return {indices: flat([*dims[:ranks], *_all(picked[-1:])])}
    known = walk.constants.value(indices) if indices in walk.constants else None
    depth = picked[-1]
    if not 0 < depth <= len(shape):
        raise NoRule
    if indices not in walk.constants:  # all of the dimensions that computed indices go along
        found = {table: flat([*_all(shape[:depth]), *dims[ranks:]])}
        add(found, indices, flat([*dims[:ranks], *_all(picked[-1:])]))
        return found
    if known is None or not known.size:
        raise NoRule
    rows = known.reshape(-1, depth) % np.asarray(shape[:depth])
    places = np.ravel_multi_index(tuple(rows.T), shape[:depth])
    first, count = int(places[0]), len(places)
    if (places != np.arange(first, first + count)).any():
        raise NoRule
    if len(within) > 1 and count != prod(shape[:depth]):
        within = [everything(count)]
    return {table: flat([moved(tuple(within), prod(shape[:depth]), before=-first), *dims[ranks:]])}


def _gather_elements(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of elements that are picked along one dimension, each by an index of its own."""
    x, indices = node.inputs[:2]
    if looked_up(walk.graph, walk.constants, node) is not None:
        raise NoRule
    shape, made = walk.shape(x), walk.shape(indices)
    axis = node.integer("axis", 0) % len(shape)
    if any(n != m for i, (n, m) in enumerate(zip(shape, made, strict=True)) if i != axis):
        raise NoRule
    found = {x: flat([*dims[:axis], *_all(shape[axis : axis + 1]), *dims[axis + 1 :]])}
    add(found, indices, flat(dims))
    return found


def _scatter_elements(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a value with some elements replaced or added to along one dimension.

    Any update along it may fall into the box; beside it, an update lies where its element does.
    """
    x, indices, updates = node.inputs[:3]
    shape, given = walk.shape(x), walk.shape(indices)
    axis = node.integer("axis", 0) % len(shape)
    beside = [
        () if n == 1 else dim if n == size else (everything(n),)
        for n, size, dim in zip(given, shape, dims, strict=True)
    ]
    need = flat([*beside[:axis], *_all(given[axis : axis + 1]), *beside[axis + 1 :]])
    found = {x: flat(dims)}
    add(found, indices, need)
    add(found, updates, need)
    return found


def _scatter_nd(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of a value with some parts replaced: any part may be the one of the box."""
    x, indices, updates = node.inputs[:3]
    picked = walk.shape(indices)
    if not picked or not 0 < picked[-1] <= len(dims):
        raise NoRule
    found = {x: flat(dims)}
    add(found, indices, walk.all_of(indices))
    add(found, updates, flat([*_all(picked[:-1]), *dims[picked[-1] :]]))
    return found


def _sampled(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of samples of a map at computed places: all of the map's rows and columns."""
    x, places = node.inputs[:2]
    found = {x: flat([*dims[:2], *_all(walk.shape(x)[2:])])}
    add(found, places, flat([dims[0], *dims[2:], *_all(walk.shape(places)[-1:])]))
    return found


def _largest(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of the position of the largest or smallest element along one dimension."""
    shape = walk.shape(node.inputs[0])
    axis = node.integer("axis", 0) % len(shape)
    after = dims[axis + 1 :] if node.integer("keepdims", 1) else dims[axis:]
    return {node.inputs[0]: flat([*dims[:axis], *_all(shape[axis : axis + 1]), *after])}


def _running(walk: Walk, node: Node, _: int, dims: tuple[Need, ...]) -> Needs:
    """Return the needs of sums of all elements up to each one along a dimension."""
    axes = walk.numbers(node, 1)
    if axes is None or len(axes) != 1:
        raise NoRule
    axis = axes[0] % len(dims)
    return {node.inputs[0]: flat([*dims[:axis], widened(dims[axis]), *dims[axis + 1 :]])}


MORE_RULES: dict[str, Rule] = {
    "ArgMax": _largest,
    "ArgMin": _largest,
    "CumSum": _running,
    "Einsum": _einsum,
    "Expand": _expand,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "GridSample": _sampled,
    "GroupNormalization": _by_group,
    "InstanceNormalization": _by_image,
    "RotaryEmbedding": _rotary,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Tile": _tile,
}
"""The rules by operator of ONNX itself, besides those of `onchip.readers.reach_rules`."""
