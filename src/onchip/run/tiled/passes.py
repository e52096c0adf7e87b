"""Streamed tensors: those whose slices come together, and the order of the slices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

from onchip.base.errors import InputError
from onchip.run.tiled.chain import Chain
from onchip.run.tiled.shape import GroupShape

__all__ = ["IllegalTiling", "Pass", "passes_of", "takes_two"]


Span = tuple[int, int]


class IllegalTiling(Exception):
    """A tiling that cannot be executed, by the rule it breaks; never leaves the package."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule, self.reason = rule, reason
        super().__init__(rule, reason)


@dataclass(frozen=True, slots=True)
class Pass:
    """`tensors` in the group's order; `steps` are slices (tensor, channels) of those that no other one makes.

    A step may also be a held operand's part of a concat. Channel c of tensor t comes at place `places[t]` +
    c.
    """

    tensors: tuple[int, ...]
    places: Mapping[int, int]
    steps: tuple[tuple[int, tuple[int, int]], ...]


def passes_of(
    shape: GroupShape, streamed: Collection[int], channels: int, names: dict[int, str]
) -> list[Pass]:
    """Return the passes, each streamed tensor in one. Raises `IllegalTiling` where slices cannot be run."""
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
        elif takes_two(chain, streamed):
            join(inputs)
    found: list[Pass] = []
    for t in shape.tensors:
        if t in together and not any(t in p.tensors for p in found):
            members = tuple(x for x in shape.tensors if x in together[t])
            places = _places(shape, members, names)
            found.append(Pass(members, places, _steps(shape, members, places, channels)))
    return found


def takes_two(chain: Chain, slices: Collection[int]) -> bool:
    """Return whether an operator takes two streamed operands and another: no slice can wait in its output."""
    reads = set(chain.reads)
    return chain.kind == "elementwise" and len(reads) > 2 and sum(t in slices for t in reads) > 1


def _refuse_unfit(chain: Chain, inputs: list[int], streamed: Collection[int], names: dict[int, str]) -> None:
    if not inputs:
        return
    what = f"{names[inputs[0]]} is streamed"
    if chain.reduces and chain.output in streamed:
        raise IllegalTiling(
            "tiling-passes", f"{what}, and so is {names[chain.output]}, which sums over its channels"
        )
    if chain.kind == "reached" and not (chain.reduces or chain.by_channel):
        raise InputError("cannot be run in slices: its nodes are no chain", item=f"operator {chain.op.name}")
    if chain.kind == "rowwise":
        raise IllegalTiling("tiling-passes", f"{what}, and {chain.op.name} needs all its channels at once")
    for i, t in enumerate(chain.reads):
        if t in streamed and chain.is_broadcast(i):
            raise IllegalTiling("tiling-passes", f"{names[t]} is streamed, and {chain.op.name} broadcasts it")


def _places(shape: GroupShape, members: Collection[int], names: Mapping[int, str]) -> dict[int, int]:
    """Return the place of each tensor's first channel in its pass: channels at one place come together.

    Channel c of a concat's operand is channel c + first of its output. Raises `IllegalTiling` where two ways
    between the same tensors would have a channel come at two places.
    """
    links: dict[int, list[tuple[int, int]]] = {t: [] for t in members}

    def link(t: int, other: int, first: int) -> None:
        links[t].append((other, -first))
        links[other].append((t, first))

    for chain in shape.chains:
        inside = [t for t in dict.fromkeys(chain.reads) if t in members]
        if chain.output in members and inside:
            for t, first in chain.pieces if chain.kind == "concat" else [(t, 0) for t in inside]:
                if t in members:
                    link(t, chain.output, first)
        elif takes_two(chain, members):
            for t in inside[1:]:
                link(inside[0], t, 0)
    start = min(members)
    at, waiting = {start: 0}, [start]
    while waiting:
        t = waiting.pop()
        for other, apart in links[t]:
            if other not in at:
                at[other] = at[t] + apart
                waiting.append(other)
            elif at[other] != at[t] + apart:
                raise IllegalTiling(
                    "tiling-passes",
                    f"{names[other]} is streamed, and needed with two of its channels at a time",
                )
    return at


def _steps(
    shape: GroupShape, members: tuple[int, ...], at: Mapping[int, int], channels: int
) -> tuple[tuple[int, tuple[int, int]], ...]:
    """Return slices cut wherever one of any member ends, so that those that meet in an operator align."""
    extent = {t: shape.maps[t].channels for t in members}
    cuts = {at[t] + c for t in members for c in (*range(0, extent[t], channels), extent[t])}
    begun: dict[int, list[Span]] = {}  # of each tensor, the channels that no other slice brings
    for t in members:
        chain = shape.maker.get(t)
        if chain is None or not any(x in at for x in chain.reads):
            begun[t] = [(0, extent[t])]
        elif chain.kind == "concat":
            begun[t] = [(first, first + shape.maps[x].channels) for x, first in chain.pieces if x not in at]
    cuts |= {at[t] + c for t, spans in begun.items() for span in spans for c in span}
    first, last = min(cuts), max(cuts)
    for chain in shape.chains:
        if chain.kind == "elementwise" and chain.output not in at:
            # Two operands out of step: a slice no longer than their distance never meets itself.
            places = {at[t] for t in chain.reads if t in at}
            if len(places) > 1:
                cuts.update(range(first, last, max(places) - min(places)))
    return tuple(
        (t, (a - at[t], b - at[t]))
        for a, b in pairwise(sorted(cuts))
        for t in members
        for low, high in begun.get(t, ())
        if at[t] + low <= a and b <= at[t] + high
    )
