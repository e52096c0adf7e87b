"""The subgraphs that a search chooses from: connected operators with one output, ordered by number.

A Pointwise never stands before a MatMul whose K is above every native side: its subgraph would show a part of
a sum (L13). So graphs fall apart into components, and no subgraph reaches over such a *barrier*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onchip.contest.law import Law
from onchip.contest.problem import Problem

__all__ = ["Sinks", "barrier", "connected", "sinks"]


@dataclass(frozen=True, slots=True)
class Sinks:
    """For every operator, the subgraphs that end in it. `complete`: all there are, not only the smallest."""

    groups: tuple[tuple[tuple[int, ...], ...], ...]
    complete: bool


def barrier(problem: Problem, law: Law, tensor: int, reader: int) -> bool:
    """Return whether no subgraph may hold a tensor's maker and this reader of it."""
    maker = problem.maker.get(tensor)
    if maker is None or problem.is_matmul[maker] or not problem.is_matmul[reader] or not law.k_capped:
        return False
    return problem.reduction(reader) > max(problem.native)


def sinks(problem: Problem, law: Law, most: int) -> Sinks:
    """Return the subgraphs of every operator, at most `most` of each."""
    rank = {op: at for at, op in enumerate(problem.order)}
    near = [_absorbable(problem, law, op) for op in range(len(problem.outputs))]
    found, complete = [], True
    for op in range(len(problem.outputs)):
        groups = list(_grown(op, near, most + 1))
        complete &= len(groups) <= most
        if law.read_elsewhere == "written":
            groups = [group for group in groups if _used_up(problem, group, op)]
        found.append(tuple(tuple(sorted(_members(group), key=rank.__getitem__)) for group in groups[:most]))
    return Sinks(tuple(found), complete)


def connected(problem: Problem, law: Law, most: int) -> list[tuple[int, ...]] | None:
    """Return all connected subgraphs, with any outputs; None if there are more than `most`."""
    count = len(problem.outputs)
    near, apart = [0] * count, [0] * count
    for op in range(count):
        for maker in problem.before(op):
            bits = apart if barrier(problem, law, problem.outputs[maker], op) else near
            bits[op] |= 1 << maker
            bits[maker] |= 1 << op
    rank = {op: at for at, op in enumerate(problem.order)}
    level = {1 << op: near[op] for op in range(count)}
    found: list[tuple[int, ...]] = []
    while level:
        following: dict[int, int] = {}
        for group, frontier in level.items():
            if len(found) == most:
                return None
            found.append(tuple(sorted(_members(group), key=rank.__getitem__)))
            for other in _members(frontier):
                grown = group | 1 << other
                if grown not in following and len(following) < most and not apart[other] & group:
                    following[grown] = (frontier | near[other]) & ~grown
        level = following
    return found


def _used_up(problem: Problem, group: int, sink: int) -> bool:
    """Return whether nobody outside reads what the operators before the sink make."""
    return all(
        group >> reader & 1
        for op in _members(group ^ 1 << sink)
        for reader in problem.readers[problem.outputs[op]]
    )


def _absorbable(problem: Problem, law: Law, op: int) -> int:
    """Return the operators, as bits, that an operator reads from and may stand with."""
    bits = 0
    for tensor in problem.inputs[op]:
        if tensor in problem.maker and not barrier(problem, law, tensor, op):
            bits |= 1 << problem.maker[tensor]
    return bits


def _grown(op: int, near: Sequence[int], most: int) -> Iterator[int]:
    """Yield the connected sets that end in an operator, as bits, the small ones first."""
    level = {1 << op: near[op]}
    left = most
    while level:
        following: dict[int, int] = {}
        for group, frontier in level.items():
            yield group
            left -= 1
            if left == 0:
                return
            for other in _members(frontier):
                grown = group | 1 << other
                if grown not in following and len(following) < left:
                    following[grown] = (frontier | near[other]) & ~grown
        level = following


def _members(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
