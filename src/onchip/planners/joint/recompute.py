"""Operators that run again where that moves fewer bytes than to store and fetch what they make.

A pass over a finished plan. What a tensor costs between its maker and a later run that reads it is known: the
bytes that cross. Its maker, with some operators before it, may run again for that reader instead; what these
read crosses then, and their weights. Where that promises a gain, the network with these repeats is planned as
any network, and the plan that moves less stands. Equal blocks are changed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from onchip.check import events_of
from onchip.check.replay import Crossed, Ran
from onchip.network import Network, bits
from onchip.network.repeats import repeated
from onchip.planners.limits import Limits
from onchip.planners.refusals import found_nothing
from onchip.plans import Plan

__all__ = ["Again", "moves_of", "with_repeats"]

LONGEST = 5
"""The most operators that run again together for one reader."""

TRIES = 8
"""The most networks with repeats that are planned after one another without a gain."""

WORTH = 1000
"""A network with repeats is planned if it promises to save one byte in so many."""

FEW = 12
"""In networks of at most so many operators every reader of a tensor is served, whatever that promises."""


@dataclass(frozen=True, slots=True)
class Again:
    """Operators that run once more for some readers alone, by name: a step for every equal block.

    `gain` is the promise: bytes that cross no more, less those that cross then.
    """

    steps: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    gain: int

    def of(self, network: Network) -> Network:
        """Return the network with these repeats."""
        for operators, readers in self.steps:
            network = repeated(network, operators, readers)
        return network


def with_repeats(made: Plan, again: Callable[[Network], Plan], limits: Limits) -> Plan:
    """Return the plan of fewest bytes of `made` and of those in which operators run again.

    `again` plans a network with repeats. Ends after `TRIES` of these without a gain, or when a limit is
    reached.
    """
    tried: set[object] = set()
    misses, moves = 0, moves_of(made)
    while moves and misses < TRIES and not limits.over():
        move = moves.pop(0)
        if move.steps in tried:
            continue
        tried.add(move.steps)
        misses += 1
        with found_nothing():
            other = again(move.of(made.network))
            if other.result.dram_bytes < made.result.dram_bytes:
                made, misses, moves = other, 0, moves_of(other)
    return made


def moves_of(plan: Plan) -> list[Again]:
    """Return what may run again in a plan, the most promising first."""
    seen = _Seen(plan)
    classes: dict[object, list[Again]] = {}
    for move in seen.moves():
        operators, readers = (tuple(map(seen.kind, some)) for some in zip(*move.steps, strict=True))
        classes.setdefault((operators, readers), []).append(move)
    found = [
        Again(tuple(dict.fromkeys(step for move in alike for step in move.steps)), sum(m.gain for m in alike))
        for alike in classes.values()
    ]
    return sorted(found, key=lambda move: (-move.gain, len(move.steps)))


@dataclass(frozen=True, slots=True)
class _Reading:
    """A run that reads a tensor which it does not make: its place among the runs, and the bytes for it."""

    at: int
    readers: tuple[str, ...]
    fetched: int


class _Seen:
    """The runs of a plan, and what crosses for each."""

    def __init__(self, plan: Plan) -> None:
        self.network = plan.network
        self.small = len(self.network.operators) <= FEW
        self.least = plan.result.dram_bytes // WORTH
        self.runs: list[Ran] = []
        self.at: dict[int, int] = {}  # by operator
        self.stored: dict[int, int] = {}
        self.fetched: dict[tuple[int, int], int] = {}  # by run and tensor
        waiting: dict[int, int] = {}
        for event in events_of(plan):
            if isinstance(event, Crossed):
                gone = self.stored if not event.inward else waiting
                gone[event.tensor] = gone.get(event.tensor, 0) + event.bytes
            elif isinstance(event, Ran):
                at = len(self.runs)
                self.runs.append(event)
                self.at |= dict.fromkeys(event.unit.operators, at)
                for t in event.unit.reads:
                    self.fetched[at, t] = waiting.pop(t, 0)

    def kind(self, names: Sequence[str]) -> object:
        """Return what equal blocks share of their operators."""
        operators = (self.network.operators[self.network.operator_id[name]] for name in names)
        return tuple(
            (
                op.type,
                op.weight_bytes,
                op.work,
                *(self.network.tensors[t].bytes for t in (*op.inputs, *op.outputs)),
            )
            for op in operators
        )

    def moves(self) -> Iterator[Again]:
        """Yield what may run again, tensor by tensor."""
        network = self.network
        views = {v.tensor for v in network.views} | {v.of for v in network.views}
        for op in network.operators:
            if views.intersection(op.outputs) or len(op.outputs) != 1:
                continue
            [t] = op.outputs
            readings = self.readings(t)
            for operators in self.chains(op.id, views):
                yield from self.for_readings(t, operators, readings)

    def readings(self, t: int) -> list[_Reading]:
        """Return the runs that read a tensor; the first one keeps the original."""
        by_run: dict[int, list[str]] = {}
        for reader in bits(self.network.readers[t]):
            by_run.setdefault(self.at[reader], []).append(self.network.operators[reader].name)
        found = [
            _Reading(at, tuple(names), self.fetched.get((at, t), 0)) for at, names in sorted(by_run.items())
        ]
        if self.small and len(found) == 1 and len(found[0].readers) > 1:
            return [replace(found[0], readers=(name,)) for name in found[0].readers]
        return found

    def chains(self, v: int, views: set[int]) -> Iterator[tuple[int, ...]]:
        """Yield operators that may run again together: a maker, then one more at a time, that of the largest
        tensor that they read."""
        network, chain = self.network, [v]
        while True:
            yield tuple(sorted(chain))
            if len(chain) == LONGEST:
                return
            reads = {t for one in chain for t in network.read_ids[one]}
            makers = {
                t: maker
                for t in reads
                if (maker := network.producer[t]) is not None
                and maker not in chain
                and not views.intersection(network.operators[maker].outputs)
            }
            if not makers:
                return
            chain.append(makers[max(makers, key=lambda t: (network.tensors[t].bytes, t))])

    def for_readings(
        self, t: int, operators: tuple[int, ...], readings: Sequence[_Reading]
    ) -> Iterator[Again]:
        """Yield operators that run again for one reading but the first, or for all of these."""
        network = self.network
        leaves = bool(network.output_roots >> t & 1)
        stored = 0 if leaves else self.stored.get(t, 0)
        names = tuple(network.operators[v].name for v in operators)
        apart = readings[1:]
        for reading in apart:
            gain = reading.fetched + (stored if len(readings) == 2 else 0) - self.cost(operators, reading)
            if self.worth(t, gain):
                yield Again(((names, reading.readers),), gain)
        if len(apart) > 1:
            gain = stored + sum(r.fetched - self.cost(operators, r) for r in apart)
            if self.worth(t, gain):
                yield Again(tuple((names, r.readers) for r in apart), gain)

    def worth(self, t: int, gain: int) -> bool:
        """Return whether a promise is worth a plan; in small networks also where a tensor only takes room."""
        return gain > self.least or (self.small and gain + self.network.tensors[t].bytes > 0)

    def cost(self, operators: Sequence[int], reading: _Reading) -> int:
        """Return the bytes that cross more if operators run again in the run that reads what they make."""
        network, run = self.network, self.runs[reading.at].unit
        made = {t for v in operators for t in network.write_ids[v]}
        there = {*run.reads, *run.writes, *run.inner}
        read = {t for v in operators for t in network.read_ids[v]} - made - there
        return sum(network.tensors[t].bytes for t in read) + sum(
            network.operators[v].weight_bytes for v in operators
        )
