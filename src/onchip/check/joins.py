"""The plain concat: the proof that its operands' bytes, one after another, are its output.

Then nothing has to move: operands that lie side by side are the output, on chip (`alloc ... of`) and in DRAM
(`join`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from onchip.check.operator_walk import element_bytes
from onchip.check.rules import broken
from onchip.network import ELEMENT_BYTES, Network, Operator, Side

__all__ = ["JoinsInDram", "concat_offsets", "joined_offsets", "one_begins_the_other", "plain_concat"]


def plain_concat(network: Network, operator: int) -> bool:
    """Return whether the bytes of an operator's operands, concatenated in order, are those of its output."""
    return not isinstance(concat_offsets(network, operator), str)


def one_begins_the_other(network: Network, first: int, second: int) -> bool:
    """Return whether the operands of one of two concats are the first operands of the other, in order: then
    the output of the shorter one is the beginning of the other's, and shared operands have one place."""
    a, b = network.operators[first].inputs, network.operators[second].inputs
    return a[: len(b)] == b[: len(a)]


def concat_offsets(network: Network, operator: int) -> Mapping[int, int] | str:
    """Return the byte offset of each operand of a plain concat in its output; or in words why it is none.

    Channels are outermost in a map in patches, in NCHW, and in a vector of any layout: those of one image are
    then contiguous for each operand. With several images the operands take turns.
    """
    op = network.operators[operator]
    g = op.geometry
    if g is None or g.kind != "concat" or len(op.outputs) != 1 or not op.inputs:
        return f"{op.name} is no concat over channels"
    if "+" in op.type or op.weight_bytes or op.macs:
        return f"{op.name} does more than to join its operands"
    if any(network.root[t] != t for t in op.inputs):
        return f"{op.name} reads a view"
    if any(type(n) is not int or n < 1 for n in (*g.input, *g.output)) or len(g.output) not in (2, 4):
        return f"{op.name} does not join the channels of maps or vectors"
    if g.output[0] != 1:
        return f"{op.name} joins several images, whose channels take turns"
    sizes = {t: network.tensors[t].bytes for t in op.inputs}
    if sum(sizes.values()) != network.tensors[op.outputs[0]].bytes:
        return f"the operands of {op.name} do not have the bytes of its output"
    reason = _in_patches(network, op) or _as_it_lies(network, op)
    if reason:
        return reason
    offsets, at = {}, 0
    for t, size in sizes.items():
        offsets[t] = at
        at += size
    return offsets


def joined_offsets(network: Network, operator: int) -> Mapping[int, int] | str:
    """Return the byte offset in a concat's output of each tensor that it joins in DRAM; or why it joins none.

    A plain concat's operands, and more than those: a `Concat` of which the reach says that its operands lie
    one behind the other along the outermost axis, operands that are views of all of a tensor among them.
    """
    op = network.operators[operator]
    plain = op.geometry is not None and op.geometry.kind == "concat"
    if plain and all(network.root[t] == t for t in op.inputs):
        return concat_offsets(network, operator)
    return _by_reach(network, op) or _roots(network, op)


def _by_reach(network: Network, op: Operator) -> str:
    """Return why its reach does not say that operands lie one behind the other; empty if it does."""
    if op.type != "Concat" or op.weight_bytes or op.macs or len(op.outputs) != 1 or not op.inputs:
        return f"{op.name} is no concat over channels"
    [out], reach = op.outputs, op.reach
    if reach is None or reach.weights or any(network.tensors[t].patches for t in (*op.inputs, out)):
        return f"{op.name} is no concat over channels"
    whole = reach.output
    axis = next((i for i, n in enumerate(whole) if n != 1), 0)  # the outermost along which anything lies
    at = 0
    for t, sides in zip(op.inputs, reach.reads, strict=True):
        for i, side in enumerate(sides):
            along = Side(side.size, i, before=at) if i == axis else Side(whole[i], i)
            if len(sides) != len(whole) or (side != along and side.size * whole[i] != 1):
                return f"{op.name} does not join along its outermost axis"
        if network.tensors[t].bytes * prod(whole) != network.tensors[out].bytes * prod(s.size for s in sides):
            return f"the operands of {op.name} do not have elements of one width"
        at += sides[axis].size
    return "" if at == whole[axis] else f"the operands of {op.name} are not all of its output"


def _roots(network: Network, op: Operator) -> Mapping[int, int] | str:
    """Return where the tensors begin whose views, or which themselves, lie one behind the other."""
    offsets: dict[int, int] = {}
    there: dict[int, int] = {}
    at = 0
    for t in op.inputs:
        root, begin = network.root[t], at - network.offset[t]
        if offsets.setdefault(root, begin) != begin:
            return f"{op.name} joins views of {network.tensors[root].name} in another order than they lie in"
        there[root] = there.get(root, 0) + network.tensors[t].bytes
        at += network.tensors[t].bytes
    for root, size in there.items():
        if size != network.tensors[root].bytes:
            return f"{op.name} joins a part of {network.tensors[root].name}"
    if at != network.tensors[op.outputs[0]].bytes:
        return f"the operands of {op.name} do not have the bytes of its output"
    return offsets


def _in_patches(network: Network, op: Operator) -> str:
    """Return why some operands lie in other patches than the output; empty if none does."""
    out = network.tensors[op.outputs[0]]
    for operand in map(network.tensors.__getitem__, op.inputs):
        mine, whole = operand.patches, out.patches
        if mine is None or whole is None:
            alike = mine is whole
        else:
            # With elements of one width, bytes that add up are those of channels that add up.
            same_width = operand.bytes * whole.elements == out.bytes * mine.elements
            alike = same_width and mine == replace(whole, channels=mine.channels)
        if not alike:
            return f"{operand.name} and {out.name} do not lie in the same patches"
    return ""


def _as_it_lies(network: Network, op: Operator) -> str:
    """Return why, without patches, channels are not outermost or an operand is not whole channels."""
    g, out = op.geometry, network.tensors[op.outputs[0]]
    assert g is not None
    channels_first = g.layout == "NCHW" or len(g.output) == 2
    pixels = g.output[2:] if channels_first else g.output[1:3]
    if out.patches is not None:
        return ""
    if not channels_first and prod(pixels) > 1:
        return f"{op.name} joins the channels of each pixel"
    width = element_bytes(out.bytes, prod(g.output))
    if width not in ELEMENT_BYTES or any(
        network.tensors[t].bytes % (width * prod(pixels)) for t in op.inputs
    ):
        return f"the geometry of {op.name} does not have the size of its tensors"
    return ""


class JoinsInDram:
    """The concats that a program joins in DRAM, and what lies in which output.

    A tensor lies in one output, or in several of which the shorter is the beginning of the longer, and lies
    there.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.around: dict[int, int] = {}  # tensor -> the longest concat that it is a part of

    def add(self, concat: int) -> None:
        """Let the operands of a concat lie in its output. Raises `Broken` if some lie elsewhere."""
        operators, tensors = self.network.operators, self.network.tensors
        for x in dict.fromkeys(self.network.root[t] for t in operators[concat].inputs):
            other = self.around.get(x, concat)
            shorter, longer = sorted((concat, other), key=lambda v: len(operators[v].inputs))
            (begin,) = operators[shorter].outputs
            around = longer if shorter == longer else self.around.get(begin, longer)
            if not one_begins_the_other(self.network, shorter, longer):
                broken("join-twice", f"{tensors[x].name} is a part of what {operators[other].name} joined")
            if not one_begins_the_other(self.network, around, longer):
                broken(
                    "join-twice", f"{tensors[begin].name} is a part of what {operators[around].name} joined"
                )
            if shorter != longer:
                self.around[begin] = max(around, longer, key=lambda v: len(operators[v].inputs))
            self.around[x] = longer
