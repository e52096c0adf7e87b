"""Streamed tensors: which of them come slice by slice together, and in which order the slices come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise

from onchip.run.tiled.chain import Chain
from onchip.run.tiled.shape import GroupShape

__all__ = ["IllegalTiling", "Pass", "passes_of"]


Span = tuple[int, int]


class IllegalTiling(Exception):
    """A tiling that cannot be executed, by the rule it breaks; never leaves the package."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule, self.reason = rule, reason
        super().__init__(rule, reason)


@dataclass(frozen=True, slots=True)
class Pass:
    """`tensors` in the group's order; `steps` are slices (tensor, channels) of those that no other one makes.

    A step may also be what a concat takes from a held operand.
    """

    tensors: tuple[int, ...]
    steps: tuple[tuple[int, tuple[int, int]], ...]


def passes_of(
    shape: GroupShape, streamed: Collection[int], channels: int, names: dict[int, str]
) -> list[Pass]:
    """The passes, each streamed tensor in one. Raises `IllegalTiling` where slices cannot be run."""
    together: dict[int, set[int]] = {t: {t} for t in shape.tensors if t in streamed}

    def join(tensors: Collection[int]) -> None:
        whole = set().union(*(together[t] for t in tensors))
        for t in whole:
            together[t] = whole

    for chain in shape.chains:
        inputs = [t for t in dict.fromkeys(chain.reads) if t in streamed]
        _refuse_unfit(chain, inputs, streamed, names)
        if chain.output in streamed and not chain.reduces:
            join([*inputs, chain.output])
        elif chain.kind == "elementwise" and len(set(chain.reads)) > 2 and inputs:
            join(inputs)
    found: list[Pass] = []
    for t in shape.tensors:
        if t in together and not any(t in p.tensors for p in found):
            members = tuple(x for x in shape.tensors if x in together[t])
            found.append(Pass(members, _steps(shape, members, channels)))
    return found


def _refuse_unfit(chain: Chain, inputs: list[int], streamed: Collection[int], names: dict[int, str]) -> None:
    if not inputs:
        return
    what = f"{names[inputs[0]]} is streamed"
    if chain.reduces and chain.output in streamed:
        raise IllegalTiling(
            "tiling-passes", f"{what}, and so is {names[chain.output]}, which sums over its channels"
        )
    if chain.kind == "rowwise":
        raise IllegalTiling("tiling-passes", f"{what}, and {chain.op.name} needs all its channels at once")
    for i, t in enumerate(chain.reads):
        if t in streamed and chain.is_broadcast(i):
            raise IllegalTiling("tiling-passes", f"{names[t]} is streamed, and {chain.op.name} broadcasts it")


def _steps(
    shape: GroupShape, members: tuple[int, ...], channels: int
) -> tuple[tuple[int, tuple[int, int]], ...]:
    """Slices cut wherever one of any member ends, so that those that meet in an operator come together."""
    at: dict[int, int] = {}
    links: dict[int, list[tuple[int, int]]] = {t: [] for t in members}
    roots = set(members)
    for chain in shape.chains:
        inside = [t for t in dict.fromkeys(chain.reads) if t in members]
        if chain.output in members and inside:
            roots.discard(chain.output)
            for t, first in chain.pieces if chain.kind == "concat" else [(t, 0) for t in inside]:
                if t in members:
                    links[t].append((chain.output, first))
                    links[chain.output].append((t, -first))
        elif chain.kind == "elementwise" and chain.output not in members:
            for t in inside[1:]:
                links[inside[0]].append((t, 0))
                links[t].append((inside[0], 0))
    for start in members:
        stack = [] if start in at else [start]
        at.setdefault(start, 0)
        while stack:
            t = stack.pop()
            for other, first in links[t]:
                if other not in at:
                    at[other] = at[t] + first
                    stack.append(other)
    extent = {t: shape.maps[t].channels for t in members}
    held: dict[int, list[Span]] = {t: [(0, extent[t])] for t in members if t in roots}
    for chain in shape.chains:
        if chain.kind == "concat" and chain.output in members and chain.output not in roots:
            pieces = [
                (first, first + shape.maps[t].channels) for t, first in chain.pieces if t not in members
            ]
            held[chain.output] = pieces
    cuts = {at[t] + c for t in members for c in (*range(0, extent[t], channels), extent[t])}
    cuts |= {at[t] + c for t, pieces in held.items() for piece in pieces for c in piece}
    edges = sorted(cuts)
    return tuple(
        (t, (a - at[t], b - at[t]))
        for a, b in pairwise(edges)
        for t in members
        for first, last in held.get(t, ())
        if at[t] + first <= a and b <= at[t] + last
    )
