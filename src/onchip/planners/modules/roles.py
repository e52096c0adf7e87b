"""The roles of tensors in a module: its input, its output, those of the modules inside.

A plan names the modules that its sections are. Those inside them are found here, on the operators of one
section: a merge layer whose operands all come from one tensor by ways of their own is a module again. MIFM
and MOFM are a module's input and output feature map in the words of the simple method (Kim et al., Figures 6
to 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onchip.check.joins import plain_concat
from onchip.network import Network, Operator, bits

__all__ = ["Nested", "TensorRole", "made_of", "nested_modules", "output_of", "tensor_roles"]

TensorRole = Literal["MIFM", "nested MIFM", "MOFM", "nested MOFM"]
"""A module's input; that of a module inside it; its output, whole or the part of a branch; the same of a
module inside it."""


@dataclass(frozen=True, slots=True)
class Nested:
    """A module inside another one: operators as bitsets, its merge among all of them; depth 2 and deeper.

    A branch that hands on `start` is not among `branches`.
    """

    start: int
    merge: int
    output: int
    operators: int
    depth: int
    branches: tuple[int, ...]


def nested_modules(net: Network, inside: int, start: int) -> tuple[Nested, ...]:
    """Return modules among the operators of a module (without its merge), outer ones first.

    They are found by the dominators of their tensors.
    """
    above = _dominators(net, inside, start)
    found = []
    for op in (net.operators[v] for v in net.order if inside >> v & 1):
        operands = list(bits(net.reads[op.id]))
        if not _merges(op) or len(operands) < 2 or not all(t in above for t in operands):
            continue
        own = above[operands[0]]
        for t in operands[1:]:
            own &= above[t]
        begin = max(bits(own), key=lambda t: above[t].bit_count())
        members = _between(net, inside, begin, op.id)
        branches = _branches(net, members, begin, op.id)
        if len(branches) + (net.reads[op.id] >> begin & 1) > 1:
            found.append((begin, op.id, members, branches))
    return tuple(
        Nested(
            begin,
            merge,
            output_of(net, merge),
            members,
            2 + sum(members != other and not members & ~other for _, _, other, _ in found),
            branches,
        )
        for begin, merge, members, branches in sorted(found, key=lambda row: -row[2].bit_count())
    )


def _dominators(net: Network, inside: int, start: int) -> dict[int, int]:
    """Return for each tensor that comes from `start` alone the tensors on all ways to it, itself included."""
    above = {start: 1 << start}
    for v in net.order:
        if not inside >> v & 1:
            continue
        known = [above[t] for t in bits(net.reads[v]) if t in above]
        if not known:
            continue
        common = known[0]
        for one in known[1:]:
            common &= one
        for t in bits(net.writes[v]):
            above[t] = common | 1 << t
    return above


def _between(net: Network, inside: int, begin: int, merge: int) -> int:
    """Return the operators on the ways from a tensor to a merge, the merge included."""
    found, waiting = 1 << merge, [merge]
    while waiting:
        for t in bits(net.reads[waiting.pop()]):
            made = net.producer[t]
            if t != begin and made is not None and inside >> made & 1 and not found >> made & 1:
                found |= 1 << made
                waiting.append(made)
    return found


def _branches(net: Network, members: int, begin: int, merge: int) -> tuple[int, ...]:
    """Return disjoint sets of operators between start and merge; none if a tensor leaves another way."""
    within = members & ~(1 << merge)
    label = {v: v for v in bits(within)}

    def top(v: int) -> int:
        while label[v] != v:
            v = label[v]
        return v

    for v in bits(within):
        for t in bits(net.writes[v]):
            if net.readers[t] & ~members or net.output_roots >> t & 1:
                return ()
        for t in bits(net.reads[v]):
            made = net.producer[t]
            if t != begin and made is not None and within >> made & 1:
                label[top(v)] = top(made)
    found: dict[int, int] = {}
    for v in label:
        found[top(v)] = found.get(top(v), 0) | 1 << v
    return tuple(found.values())


def _merges(op: Operator) -> bool:
    """Return whether it is a concat or a sum."""
    kind = "" if op.geometry is None else op.geometry.kind
    word = op.type.split("+")[0].casefold()
    return kind == "concat" or word in ("concat", "concatenation", "add", "sum")


def output_of(net: Network, op: int) -> int:
    """Return the tensor that a merge layer writes."""
    return net.root[net.operators[op].outputs[0]]


def made_of(net: Network, inside: int, merge: int, start: int | None) -> frozenset[int]:
    """Return a merge's output, its operands other than `start`, and those of plain concats among them."""
    found, waiting = {output_of(net, merge)}, [merge]
    while waiting:
        for t in bits(net.reads[waiting.pop()]):
            made = net.producer[t]
            if t in found or t == start or made is None or not inside >> made & 1:
                continue
            found.add(t)
            if plain_concat(net, made):
                waiting.append(made)
    return frozenset(found)


def tensor_roles(net: Network, operators: int, merge: int, start: int | None) -> dict[int, TensorRole]:
    """Return the roles of a module's tensors, by root id; other tensors are plain feature maps.

    `operators` are those of the module as a bitset, the merge among them.
    """
    found: dict[int, TensorRole] = {}
    if start is not None:
        nested = nested_modules(net, operators & ~(1 << merge), start)
        for n in nested:
            found |= dict.fromkeys(made_of(net, n.operators, n.merge, n.start), "nested MOFM")
        for n in nested:
            found[n.start] = "nested MIFM"
    found |= dict.fromkeys(made_of(net, operators, merge, start), "MOFM")
    return found if start is None else found | {start: "MIFM"}
