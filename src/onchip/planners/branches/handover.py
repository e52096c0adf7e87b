"""Addresses for a chain of modules, each of which finds its input where the one before left its output.

Input and output of a module lie at opposite ends of the memory, so the ends alternate from module to module.
If that fails, other bases are tried, depth first. If depth first fails, the chain is searched completely, as
one problem of `regions`: the input of a module is one more part, at distance 0 and later in time, of the
cluster that is the output of the module before. That gives addresses or a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from onchip.planners.branches.regions import ALL_RULES, Piece, Placed, RegionRules, counted

__all__ = ["Problem", "Stuck", "chain"]

MOST_INPUTS = 8
"""The most addresses of one module's input that are tried depth first."""

SHORT_SEARCH = 1_000
"""Nodes for one module in the depth-first search."""

MOST_TOGETHER = 600
"""The most pieces of modules that are searched as one problem."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The pieces that live during one module; `input`: the index of the piece from the module before.

    `output`: the cluster at whose base the next module finds its input. Steps count within the module.
    """

    pieces: tuple[Piece, ...]
    input: int | None = None
    output: str | None = None

    def __post_init__(self) -> None:
        if self.input is not None and not 0 <= self.input < len(self.pieces):
            raise ValueError(f"no piece {self.input} to be the input")
        if self.output is not None and all(p.cluster != self.output for p in self.pieces):
            raise ValueError(f"no cluster {self.output!r} to be the output")


@dataclass(frozen=True, slots=True)
class Stuck:
    """The earliest module without addresses that fit those of all modules before it.

    `proved`: there are none. `placed`: addresses of the modules before it, as far as they go together.
    """

    module: int
    proved: bool
    nodes: int
    placed: tuple[Placed, ...]


def chain(
    modules: Sequence[Problem],
    capacity: int,
    alignment: int,
    *,
    most_nodes: int = 20_000,
    rules: RegionRules = ALL_RULES,
) -> tuple[Placed, ...] | Stuck:
    """Return addresses for every module, or the earliest without any; `place`'s terms hold in each.

    A module takes over its input if it has one and the module before has an output: the input then lies at
    the base of that; otherwise it is a piece like any other. `most_nodes` bounds all nodes of the search.
    Raises `ValueError` as `place` does.
    """
    placed: list[Placed] = []
    nodes = 0
    while len(placed) < len(modules):
        first = len(placed)
        end = first + 1
        while end < len(modules) and _linked(modules, end):
            end += 1
        run = _Run(modules[first:end], capacity, alignment, most_nodes - nodes, rules)
        found = run.solve()
        nodes += run.nodes
        placed += found.placed if isinstance(found, Stuck) else found
        if isinstance(found, Stuck):
            return Stuck(first + found.module, found.proved, nodes, tuple(placed))
    return tuple(placed)


def _linked(modules: Sequence[Problem], m: int) -> bool:
    return modules[m - 1].output is not None and modules[m].input is not None


class _Run:
    """Modules that each take over the output of the one before."""

    def __init__(
        self, modules: Sequence[Problem], capacity: int, alignment: int, most_nodes: int, rules: RegionRules
    ) -> None:
        self.modules, self.capacity, self.alignment = modules, capacity, alignment
        self.most_nodes, self.rules = most_nodes, rules
        self.nodes = 0
        self.known: dict[tuple[int, int | None], Placed] = {}

    def solve(self) -> tuple[Placed, ...] | Stuck:
        """Search depth first; where that ends, search completely up to there, and go on from the result."""
        while True:
            path = self._descend()
            stuck = len(path)
            if stuck == len(self.modules):
                return path
            found, proved = self._whole(stuck)
            if found is None:
                return Stuck(stuck, proved, self.nodes, path)
            at = None
            for m, placed in enumerate(found):
                self.known[m, at] = placed
                at = self._handed(m, placed)

    def _descend(self) -> tuple[Placed, ...]:
        """Return the longest prefix of the modules for which depth first finds addresses."""
        path: list[Placed] = []
        best: tuple[Placed, ...] = ()
        tried: list[set[int | None]] = [set() for _ in self.modules]
        stack = [self._ways(0, None)]
        while stack:
            way = next(stack[-1], None)
            if way is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            path.append(way)
            m = len(path)
            if m > len(best):
                best = tuple(path)
            if m == len(self.modules):
                break
            at = self._handed(m - 1, way)
            # The same address again leads no further than the first time.
            if at in tried[m] or (len(tried[m]) >= MOST_INPUTS and (m, at) not in self.known):
                path.pop()
                continue
            tried[m].add(at)
            stack.append(self._ways(m, at))
        return best

    def _handed(self, m: int, placed: Placed) -> int | None:
        output = self.modules[m].output
        return None if output is None else placed.bases[output]

    def _ways(self, m: int, at: int | None) -> Iterator[Placed]:
        """Yield addresses of module m with its input at `at`, each with another base of the output."""
        if (m, at) in self.known:
            yield self.known[m, at]
        module = self.modules[m]
        pieces = list(module.pieces)
        if at is not None and module.input is not None:
            given = pieces[module.input]
            if given.at not in (None, at):
                return
            pieces[module.input] = replace(given, at=at)
        if module.output is None:
            found, _ = self._place(pieces, {})
            if found is not None:
                yield found
            return
        bases = self._bases(m, at)
        seen: set[int] = set()
        found, proved = self._place(pieces, {module.output: bases})
        if found is None and proved:
            return
        if found is not None:
            seen.add(found.bases[module.output])
            yield found
        if m + 1 == len(self.modules):
            return
        member = next(i for i, p in enumerate(pieces) if p.cluster == module.output)
        for base in bases:
            address = base + pieces[member].offset
            if base not in seen and pieces[member].at in (None, address):
                seen.add(base)
                pinned = [*pieces[:member], replace(pieces[member], at=address), *pieces[member + 1 :]]
                found, _ = self._place(pinned, {})
                if found is not None:
                    yield found

    def _bases(self, m: int, at: int | None) -> list[int]:
        """Return bases for the output of module m, the likeliest first: ends, then beside the input."""
        module = self.modules[m]
        size = max(p.offset + self._rounded(p) for p in module.pieces if p.cluster == module.output)
        if m + 1 < len(self.modules):
            after = self.modules[m + 1]
            assert after.input is not None
            size = max(size, self._rounded(after.pieces[after.input]))
        room = self.capacity // self.alignment * self.alignment
        bases = [room - size, 0]
        if at is not None and module.input is not None:
            if 2 * at + self._rounded(module.pieces[module.input]) > room:
                bases.reverse()
            bases += [at + self._rounded(module.pieces[module.input]), at - size]
        return [b for b in dict.fromkeys(bases) if 0 <= b <= room - size]

    def _rounded(self, piece: Piece) -> int:
        return -(-piece.bytes // self.alignment) * self.alignment

    def _place(
        self, pieces: Sequence[Piece], prefer: Mapping[str, Sequence[int]]
    ) -> tuple[Placed | None, bool]:
        limit = max(0, min(SHORT_SEARCH, self.most_nodes - self.nodes))
        found, proved, nodes = counted(pieces, self.capacity, self.alignment, prefer, limit, self.rules)
        self.nodes += nodes
        return found, proved

    def _whole(self, last: int) -> tuple[tuple[Placed, ...] | None, bool]:
        """Return addresses for the modules up to `last`, or None, and whether that is proved.

        The last few alone, their first input free, are a smaller problem; a proof for it is one for all.
        """
        length = 1
        while True:
            first = max(0, last + 1 - length)
            if sum(len(module.pieces) for module in self.modules[first : last + 1]) > MOST_TOGETHER:
                return None, False
            limit = max(0, self.most_nodes - self.nodes)
            limit = limit if first == 0 else limit // 4
            found, proved, nodes = _together(
                self.modules[first : last + 1], self.capacity, self.alignment, limit, self.rules
            )
            self.nodes += nodes
            if first == 0 or (found is None and proved):
                return found, proved
            length *= 2


def _together(
    modules: Sequence[Problem], capacity: int, alignment: int, most_nodes: int, rules: RegionRules
) -> tuple[tuple[Placed, ...] | None, bool, int]:
    """Solve linked modules as one problem: their steps one after another, a handed-over tensor as a cluster.

    Every cluster gets a piece of no bytes at its base, which keeps the base at 0 or above wherever its
    cluster lies within a larger one, and tells its position.
    """
    pieces: list[Piece] = []
    owners: list[tuple[int, int | str]] = []  # the module, and its piece or cluster
    shifts: list[int] = []
    handed: tuple[str, int] | None = None  # a cluster and the distance of the last output from its base
    now = 0
    for m, module in enumerate(modules):
        home = {c: (f"{m}/{c}", 0) for c in dict.fromkeys(p.cluster for p in module.pieces) if c is not None}
        given = None if module.input is None or handed is None else module.pieces[module.input]
        if given is not None and given.cluster is not None and handed is not None:
            home[given.cluster] = handed[0], handed[1] - given.offset
        began, end = (
            min((p.start for p in module.pieces), default=0),
            max((p.end for p in module.pieces), default=0),
        )
        for i, p in enumerate(module.pieces):
            cluster, shift = (None, 0) if p.cluster is None else home[p.cluster]
            if p is given and p.cluster is None and handed is not None:
                cluster, shift = handed
            pieces.append(
                replace(
                    p, start=now + p.start - began, end=now + p.end - began, cluster=cluster, offset=p.offset
                )
            )
            owners.append((m, i))
            shifts.append(shift)
        for c, (cluster, shift) in home.items():
            pieces.append(Piece(f"{m}/{c}", 0, now, now + 1, None, cluster))
            owners.append((m, c))
            shifts.append(shift)
        handed = None if module.output is None else home[module.output]
        now += end - began
    least: dict[str | None, int] = {}
    for p, shift in zip(pieces, shifts, strict=True):
        least[p.cluster] = min(least.get(p.cluster, 0), shift)
    joined = [
        p if p.cluster is None else replace(p, offset=p.offset + shift - least[p.cluster])
        for p, shift in zip(pieces, shifts, strict=True)
    ]
    found, proved, nodes = counted(joined, capacity, alignment, {}, most_nodes, rules)
    if found is None:
        return None, proved, nodes
    addresses: list[list[int]] = [[0] * len(module.pieces) for module in modules]
    bases: list[dict[str, int]] = [{} for _ in modules]
    for (m, what), at in zip(owners, found.addresses, strict=True):
        if isinstance(what, int):
            addresses[m][what] = at
        else:
            bases[m][what] = at
    return tuple(Placed(tuple(a), b) for a, b in zip(addresses, bases, strict=True)), True, nodes
