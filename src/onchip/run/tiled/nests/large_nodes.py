"""The rules of nodes that are a layer by themselves: attention, rotations, norms by channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onchip.run.tiled.nests.boxed import Boxed
from onchip.run.tiled.nests.forms import (
    FULL,
    REPEATED,
    Atom,
    Dim,
    Form,
    NotCompact,
    is_cut,
    is_repeated,
    size_of,
    tidy,
)

if TYPE_CHECKING:
    import onnx

__all__ = ["LARGE", "Rule"]

Rule = Callable[[Boxed, "onnx.NodeProto"], None]
"""Adds a node to those so far; raises `NotCompact` if it cannot run on boxes of its operands."""


def _own(node: onnx.NodeProto) -> None:
    if node.domain not in ("", "ai.onnx"):
        raise NotCompact(f"{node.op_type} of {node.domain} has no rule for boxes")


def _attention(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Rows of queries, and heads with the keys and values that they share."""
    _own(node)
    if any(node.output[1:]) or any(node.input[4:]):
        raise NotCompact("an attention with a cache has no rule for boxes")
    boxed.reorders = True
    query, key, value = node.input[:3]
    form = boxed.form(query)
    batch = next((d for d in (boxed.form(x)[0] for x in node.input[:3]) if is_cut(d)), form[0])
    query, key, value = (boxed.fitted(x, {0: batch}) for x in (query, key, value))
    form, keys, values = (boxed.form(x) for x in (query, key, value))
    made: Form
    causal = boxed.number(node, "is_causal", 0)
    mask = node.input[3] if len(node.input) > 3 else ""
    changed = {0: query, 1: key, 2: value}
    if len(form) == 3:
        boxed.whole(query, [1, 2] if causal else [2])
        boxed.whole(key, [1, 2])
        boxed.whole(value, [1, 2])
        made, last = form[:2], values[2]
        sides: Form = (form[0], (), form[1], ())
        if boxed.number(node, "q_num_heads", 0) != boxed.number(node, "kv_num_heads", 0):
            raise NotCompact("heads that share keys have no rule for boxes of three sides")
    else:
        boxed.whole(query, [2, 3] if causal else [3])
        boxed.whole(key, [2, 3])
        boxed.whole(value, [2])
        shared = size_of(form[1]) // size_of(keys[1])
        alike = form[1] in (keys[1], tidy([*keys[1], Atom(FULL, shared)]))
        if keys[1] != values[1] or not alike:
            raise NotCompact("heads are cut otherwise than their keys")
        made, sides, last = form[:3], (form[0], form[1], form[2], ()), values[3]
    if mask:
        own = boxed.form(mask)
        sides = sides[len(sides) - len(own) :]
        several = [i for i, dim in enumerate(own[:-1]) if size_of(dim) > 1]
        wanted = {i: sides[i] for i in several if is_cut(sides[i]) and not is_repeated(own[i])}
        changed[3] = boxed.fitted(mask, wanted)
        boxed.whole(changed[3], [len(own) - 1])
        if len(own) - 2 in several and is_repeated(own[-2]):
            changed[3] = _rows(boxed, changed[3], sides[-2])
    boxed.keep(node, (*made, last), changed)


def _rows(boxed: Boxed, mask: str, rows: Dim) -> str:
    """Return a mask of one row for all queries with the rows of the box: onnxruntime repeats none."""
    *outer, _, keys = boxed.form(mask)
    made, shape = f"{mask}@rows", f"{mask}@rows/shape"
    boxed.sized[shape] = (*outer, rows, keys)
    return boxed.emit("Expand", [mask, shape], made, boxed.sized[shape])


def _rotary(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Pairs of the last side turn by angles of their position."""
    _own(node)
    value, form = node.input[0], boxed.form(node.input[0])
    boxed.whole(value, [len(form) - 1])
    rows = {0: form[0], 1: form[-2]}
    changed = {}
    several = len(node.input) > 3 and node.input[3]
    for at in (3,) if several else (1, 2):
        name = node.input[at]
        own = boxed.form(name)
        changed[at] = boxed.fitted(name, {i: dim for i, dim in rows.items() if size_of(own[i]) > 1})
        if any(size_of(own[i]) != size_of(dim) for i, dim in rows.items()):
            raise NotCompact("positions that are shared have no rule for boxes")
    for at in (1, 2):
        own = boxed.form(changed.get(at, node.input[at]))
        boxed.whole(changed.get(at, node.input[at]), range(len(own)) if several else [len(own) - 1])
    boxed.keep(node, form, changed)


def _by_channel(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Each channel of each image is brought to one mean and spread."""
    boxed.reorders = True
    value, form = node.input[0], boxed.form(node.input[0])
    groups = node.op_type == "GroupNormalization"
    boxed.whole(value, range(1 if groups else 2, len(form)))
    changed = {at: boxed.fitted(node.input[at], {0: form[1]}) for at in (1, 2)}
    boxed.keep(node, form, changed)


def _einsum(boxed: Boxed, node: onnx.NodeProto) -> None:
    """Every letter is cut alike in all operands; those that the result lacks are summed over."""
    boxed.reorders = True
    text = next(a.s.decode() for a in node.attribute if a.name == "equation").replace(" ", "")
    given, arrow, result = text.partition("->")
    terms = given.split(",")
    if not arrow or "." in text or any(len(set(term)) < len(term) for term in terms):
        raise NotCompact("an equation with dots or a letter twice has no rule for boxes")
    letters: dict[str, Dim] = {}
    for term, name in zip(terms, node.input, strict=True):
        for letter, dim in zip(term, boxed.form(name), strict=True):
            known = letters.setdefault(letter, dim)
            if is_cut(dim) and not is_cut(known):
                letters[letter] = dim
    changed = {
        at: boxed.fitted(name, {i: letters[letter] for i, letter in enumerate(term)})
        for at, (term, name) in enumerate(zip(terms, node.input, strict=True))
    }
    cut = [boxed.contract(dim, dim) for letter, dim in letters.items() if letter not in result]
    boxed.keep(node, tuple(letters[letter] for letter in result), changed)
    if any(cut):
        boxed.partial(node.output[0], node.output[0])


def _tile(boxed: Boxed, node: onnx.NodeProto) -> None:
    value, form = node.input[0], boxed.form(node.input[0])
    counts = boxed.setting(node, 1, "")
    if counts is None:
        raise NotCompact("a tile without a number of times")
    several = [i for i, n in enumerate(counts) if n != 1]
    if any(size_of(form[i]) > 1 for i in several):
        raise NotCompact("a side that is repeated has no rule for boxes")
    made = [(Atom(REPEATED, counts[i]),) if i in several else dim for i, dim in enumerate(form)]
    boxed.reshape(value, node.output[0], tuple(made))


LARGE: dict[str, Rule] = {
    "Attention": _attention,
    "Einsum": _einsum,
    "GroupNormalization": _by_channel,
    "InstanceNormalization": _by_channel,
    "RotaryEmbedding": _rotary,
    "Tile": _tile,
}
