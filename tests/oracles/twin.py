"""The placement search in plain Python, every rule a switch, and each rule also in ways that look right.

The compiled search cannot be weakened, so this twin is what shows that the comparisons have teeth: with the
true rules it must equal `oracles.states` always, with a weakened rule it must not. The rules' letters are
those of the proofs in docs/.

State (D, M, H): operators that have run, resident tensors that will be read, such tensors with a DRAM copy. A
tensor pays for its next reload when it is evicted. Sizes count rounded for capacity, exactly for traffic.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from onchip.network import Network, bits
from strategies import written_over

__all__ = ["WEAK", "WEAK_IN_PLACE", "Rules", "least_peak", "least_traffic"]


@dataclass(frozen=True)
class Rules:
    """Which rules the search uses. `True`, `"plus"` and `"chains"` are proved, other strings mutations."""

    r1: Literal[True, False, "without copies", "evictions at one size"] = True
    r2: Literal[
        True,
        False,
        "plus",
        "chains",
        "without size",
        "without cost",
        "one size",
        "plus, single tensors",
        "chains, last cut",
        "chains, unlinked",
    ] = True
    r3: Literal[True, False, "one set", "smallest sets"] = True
    r4: Literal[True, False, "without size", "without peak"] = True
    in_place: Literal[True, False, "still read", "each input"] = False


WEAK = (
    Rules(r1="without copies"),
    Rules(r1="evictions at one size"),
    Rules(r2="without size"),
    Rules(r2="without cost"),
    Rules(r2="one size"),
    Rules(r2="plus, single tensors"),
    Rules(r2="chains, last cut"),
    Rules(r2="chains, unlinked"),
    Rules(r3="one set"),
    Rules(r3="smallest sets"),
)
"""Rules weakened one at a time; each gives too large an optimum on some small network."""

WEAK_IN_PLACE = (
    Rules(in_place="still read"),
    Rules(in_place="each input"),
    Rules(in_place=True, r1="evictions at one size"),
    Rules(in_place=True, r2="without size"),
    Rules(in_place=True, r2="without cost"),
    Rules(in_place=True, r2="one size"),
    Rules(in_place=True, r3="one set"),
    Rules(in_place=True, r3="smallest sets"),
)
"""The same where outputs are written over inputs; the first two believe in room that is not there."""


class _Search:
    def __init__(self, network: Network, budget: int, alignment: int, rules: Rules) -> None:
        self.net, self.budget, self.rules = network, budget, rules
        self.count = len(network.operators)
        self.exact = [t.bytes for t in network.tensors]
        self.rounded = [-(-t.bytes // alignment) * alignment for t in network.tensors]
        self.workspace = [-(-op.workspace // alignment) * alignment for op in network.operators]
        self.outputs, self.inputs = network.output_roots, network.input_roots

    def space(self, tensors: int) -> int:
        return sum(self.rounded[t] for t in bits(tensors))

    def traffic(self, tensors: int) -> int:
        return sum(self.exact[t] for t in bits(tensors))

    def evict_cost(self, tensors: int, copies: int) -> int:
        return self.traffic(tensors) + self.traffic(tensors & ~copies)

    def read_after(self, done: int) -> int:
        wanted = 0
        for op in range(self.count):
            if not done >> op & 1:
                wanted |= self.net.reads[op]
        return wanted

    def saved(self, v: int, done: int) -> int:
        """Bytes that `v` shares between its output and an input, after `done`."""
        if not self.rules.in_place or written_over(self.net, v, -1) is None:
            return 0
        if self.rules.in_place == "still read":
            return self.space(self.net.writes[v])
        dying = [x for x in bits(self.net.reads[v]) if not self.net.readers[x] & ~(done | 1 << v)]
        size = self.space(self.net.writes[v])
        if self.rules.in_place == "each input":
            return sum(self.rounded[x] for x in dying if self.rounded[x] == size)
        return size if written_over(self.net, v, done) is not None else 0

    def ready(self, done: int) -> list[int]:
        return [v for v in range(self.count) if not done >> v & 1 and not self.net.predecessors[v] & ~done]

    # -- R1 ------------------------------------------------------------------------------------------------

    def kills(self, a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
        """Whether (cost, resident, copies) `a` makes `b`, with equal operators done, superfluous."""
        (cost, resident, copies), (other, theirs, their_copies) = a, b
        if not self.rules.r1:
            return (resident, copies) == (theirs, their_copies) and cost <= other
        evict = resident & ~theirs
        if self.rules.r1 == "evictions at one size":
            cost += self.traffic(evict)
        else:
            cost += self.evict_cost(evict, copies)
        if self.rules.r1 != "without copies":
            cost += self.traffic(their_copies & ~(copies | evict))
        return cost <= other

    # -- R2 ------------------------------------------------------------------------------------------------

    def is_safe(self, v: int, done: int, resident: int, copies: int) -> bool:
        """Whether running `v` now, evicting nothing, is no worse than anything else."""
        net, rule = self.net, self.rules.r2
        in_use = self.space(resident | net.reads[v] | net.writes[v]) + self.workspace[v] - self.saved(v, done)
        if not rule or in_use > self.budget:
            return False
        later = self.read_after(done | 1 << v)
        dying = net.reads[v] & resident & ~later
        loads = net.reads[v] & ~resident
        if rule in ("plus", "plus, single tensors"):
            added = (net.writes[v] | loads) & later
            once = added & (self.outputs | self.inputs)
            price = self.traffic(added) + self.traffic(added & ~once)
            if self.space(added) > self.space(dying):
                return False
            members = list(bits(dying))
            most = 1 if rule == "plus, single tensors" else len(members)
            for k in range(1, most + 1):
                for chosen in combinations(members, k):
                    gone = sum(1 << t for t in chosen)
                    left = self.space(dying & ~gone)
                    if left < self.space(added) and self.evict_cost(gone, copies) < price:
                        return False
            return True
        if loads:
            return False
        made = net.writes[v] & later
        if rule != "without size" and self.space(made) > self.space(dying):
            return False
        price = self.traffic(made) * (1 if rule == "one size" else 2)
        return rule == "without cost" or all(price <= self.evict_cost(1 << t, copies) for t in bits(dying))

    def chain(self, chain: list[int], done: int, resident: int, copies: int) -> list[int] | None:
        """The first safe chain of operators that begins with `chain` (R2*), none evicting anything."""
        after, held = done, resident
        for v in chain:
            held |= self.net.reads[v] | self.net.writes[v]
            if self.space(held) + self.workspace[v] - self.saved(v, after) > self.budget:
                return None
            after |= 1 << v
            held &= self.read_after(after)
        if self.chain_is_safe(chain, resident, copies, self.read_after(after)):
            return chain
        for v in self.ready(after) if len(chain) < 4 else []:
            linked = self.net.reads[v] & self.net.writes[chain[-1]]
            if linked or self.rules.r2 == "chains, unlinked":
                found = self.chain([*chain, v], done, resident, copies)
                if found:
                    return found
        return None

    def chain_is_safe(self, chain: list[int], resident: int, copies: int, later: int) -> bool:
        reads, writes = self.net.reads, self.net.writes
        arriving = touched = made_by_all = 0
        for v in chain:
            touched, made_by_all = touched | reads[v] | writes[v], made_by_all | writes[v]
        arriving = touched & ~resident & later
        once = arriving & (self.outputs | ~made_by_all)
        made = 0
        for cut in range(len(chain)):
            made |= writes[chain[cut - 1]] if cut else 0
            if self.rules.r2 == "chains, last cut" and cut < len(chain) - 1:
                continue
            coming = arriving & ~made
            held = 0
            for v in chain[cut:]:
                held |= reads[v]
            held &= (resident | made) & ~later
            known = copies & resident | made & self.outputs
            price = self.traffic(coming) + self.traffic(coming & ~once)
            members = list(bits(held))
            for k in range(len(members) + 1):
                for chosen in combinations(members, k):
                    gone = sum(1 << t for t in chosen)
                    short = self.space(held & ~gone) < self.space(coming)
                    if short and self.evict_cost(gone, known) < price:
                        return False
        return True

    # -- R3 ------------------------------------------------------------------------------------------------

    def evictions(self, v: int, done: int, resident: int) -> Iterator[int]:
        """The sets of residents to evict before `v` that are tried."""
        needed = self.net.reads[v] | self.net.writes[v]
        free = self.budget - self.workspace[v] - self.space(resident | needed) + self.saved(v, done)
        others = list(bits(resident & ~needed))
        found: list[int] = []
        for k in range(len(others) + 1):
            if self.rules.r3 == "smallest sets" and found:
                return
            for chosen in combinations(others, k):
                gone = sum(1 << t for t in chosen)
                if free + self.space(gone) < 0:
                    continue
                if self.rules.r3 and any(not smaller & ~gone for smaller in found):
                    continue
                found.append(gone)
                yield gone
                if self.rules.r3 == "one set":
                    return

    # -- the search ----------------------------------------------------------------------------------------

    def step(self, v: int, done: int, resident: int, copies: int, gone: int) -> tuple[int, int, int, int]:
        net = self.net
        after = done | 1 << v
        later = self.read_after(after)
        kept = (resident & ~gone | net.reads[v] | net.writes[v]) & later
        known = (copies | gone | net.writes[v] & self.outputs) & later
        return self.evict_cost(gone, copies), after, kept, known

    def run(self) -> int | None:
        everything = (1 << self.count) - 1
        start = (0, 0, self.inputs & self.read_after(0))
        open_: list[tuple[int, int, int, int, int]] = [(0, 0, 0, start[1], start[2])]
        alive: dict[int, list[tuple[int, int, int]]] = {0: [start]}
        while open_:
            cost, _, done, resident, copies = heapq.heappop(open_)
            if (cost, resident, copies) not in alive[done]:
                continue
            if done == everything:
                return cost
            ready = self.ready(done)
            safe: list[int] | None = None
            for v in ready:
                if str(self.rules.r2).startswith("chains"):
                    safe = self.chain([v], done, resident, copies)
                elif self.is_safe(v, done, resident, copies):
                    safe = [v]
                if safe:
                    break
            if safe:
                after, kept, known = done, resident, copies
                for v in safe:
                    _, after, kept, known = self.step(v, after, kept, known, 0)
                self.add(open_, alive, (cost, kept, known), after)
                continue
            for v in ready:
                for gone in self.evictions(v, done, resident):
                    paid, after, kept, known = self.step(v, done, resident, copies, gone)
                    self.add(open_, alive, (cost + paid, kept, known), after)
        return None

    def add(
        self,
        open_: list[tuple[int, int, int, int, int]],
        alive: dict[int, list[tuple[int, int, int]]],
        child: tuple[int, int, int],
        done: int,
    ) -> None:
        """Put a state (cost, resident, copies) in the open list unless R1 forbids."""
        rivals = alive.setdefault(done, [])
        if any(self.kills(rival, child) for rival in rivals):
            return
        rivals[:] = [rival for rival in rivals if not self.kills(child, rival)]
        rivals.append(child)
        heapq.heappush(open_, (child[0], -done.bit_count(), done, *child[1:]))

    # -- minimum peak ----------------------------------------------------------------------------------------

    def peak(self) -> int:
        everything = (1 << self.count) - 1
        open_ = [(0, 0, 0, 0)]  # peak, fewest left first, done, resident
        seen = {0: 0}
        while open_:
            peak, _, done, resident = heapq.heappop(open_)
            if done == everything:
                return peak
            ready = self.ready(done)
            safe = next((v for v in ready if self.keeps_peak(v, done, resident, peak)), None)
            for v in ready if safe is None else [safe]:
                after = done | 1 << v
                holding = resident | self.net.reads[v] | self.net.writes[v]
                reached = max(peak, self.space(holding) + self.workspace[v] - self.saved(v, done))
                if reached < seen.get(after, reached + 1):
                    seen[after] = reached
                    entry = (reached, -after.bit_count(), after, holding & self.read_after(after))
                    heapq.heappush(open_, entry)
        raise AssertionError("a network always has an order")

    def keeps_peak(self, v: int, done: int, resident: int, peak: int) -> bool:
        rule = self.rules.r4
        if not rule:
            return False
        touched = self.net.reads[v] | self.net.writes[v]
        later = self.read_after(done | 1 << v)
        added, dying = touched & ~resident & later, resident & touched & ~later
        small = rule == "without size" or self.space(added) <= self.space(dying)
        return small and (
            rule == "without peak"
            or self.space(resident | touched) + self.workspace[v] - self.saved(v, done) <= peak
        )


def least_traffic(network: Network, budget: int, alignment: int = 1, rules: Rules = Rules()) -> int | None:
    """The least non-compulsory traffic that a search with `rules` finds, None when it finds no program."""
    return _Search(network, budget, alignment, rules).run()


def least_peak(network: Network, alignment: int = 1, rules: Rules = Rules()) -> int:
    """The least peak over all orders that a search with `rules` finds."""
    return _Search(network, 0, alignment, rules).peak()
