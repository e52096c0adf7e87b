"""The state of the abstract machine: where every tensor lies, what exists, and who still reads what.

Its questions refuse what is illegal; the instructions are the interpreter's.
"""

from __future__ import annotations

from onchip.base.units import MAX_BYTES
from onchip.check.caches import caches_of
from onchip.check.joins import JoinsInDram
from onchip.check.ledger import Ledger
from onchip.check.memories import Accesses, Space, spaces_of
from onchip.check.patches import prove_patches
from onchip.check.pinned import inputs_from_dram, pinned_of, prove_weights_fit
from onchip.check.ranges import Range, without
from onchip.check.rules import broken
from onchip.check.units import Unit, streams_of, units_of
from onchip.machines.chip import MAX_ACCUMULATOR, MAX_ALIGNMENT, RATES
from onchip.network import bits
from onchip.network.repeats import why_no_repeat
from onchip.plans import Plan

__all__ = ["State"]

MAX_RATE = 10**18


class State:
    """All that changes while a program runs: ranges of tensors, what is in DRAM, what has run."""

    def __init__(self, plan: Plan) -> None:
        self.network, self.budget, self.alignment = plan.network, plan.budget, plan.chip.alignment_bytes
        if not 0 <= self.budget <= MAX_BYTES:
            broken("bad-budget", f"{self.budget} is not from 0 to {MAX_BYTES}")
        if not 1 <= self.alignment <= MAX_ALIGNMENT:
            broken("bad-alignment", f"{self.alignment} is not from 1 to {MAX_ALIGNMENT}")
        wide = plan.chip.accumulator_bytes
        if wide is not None and not 1 <= wide <= MAX_ACCUMULATOR:
            broken("bad-accumulators", f"{wide} is not from 1 to {MAX_ACCUMULATOR}")
        for key in RATES:
            rate = getattr(plan.chip, key)
            if rate is not None and not 0 < rate < MAX_RATE:
                broken("bad-rate", f"{key} is {rate}, no positive number below 10^18")
        self.spaces = spaces_of(plan)
        self.accesses = Accesses.of(plan.chip)
        prove_patches(self.network)
        if problem := why_no_repeat(self.network):
            broken("repeat", " ".join(problem))
        self.pinned = pinned_of(plan)
        separate = self.weights_apart = plan.chip.weight_scratchpad_bytes is not None
        self.units = units_of(
            self.network,
            plan.groups,
            alignment=self.alignment,
            weights_resident=plan.options.get("weights") == "resident" and not separate,
            pinned=self.pinned.weights,
            streamed=streams_of(plan.program),
            accumulator=plan.chip.accumulator_bytes,
        )
        prove_weights_fit(plan, self.pinned, self.units)
        self.inner = {t: unit.name for unit in self.units.values() for t in unit.inner}
        self.member = {op: unit for unit in self.units.values() if unit.group for op in unit.operators}
        self.producer = {t: unit for unit in self.units.values() for t in unit.writes}
        self.to_read = [0] * len(self.network.tensors)  # units that read the tensor and have not run
        for unit in self.units.values():
            for t in unit.reads:
                self.to_read[t] += 1
        self.caches = caches_of(plan)
        self.settled: set[int] = set()  # tensors of caches in their buffers
        inputs = inputs_from_dram(self.network, self.pinned) - self.caches.inputs
        handed_over = {last for _, last, _ in self.pinned.state}
        for t in handed_over:
            self.to_read[t] += 1  # by the next inference
        self.outputs = set(self.caches.outputs) - handed_over
        self.ledger = Ledger(inputs, self.outputs, copies=set(inputs))
        self.produced = set(bits(self.network.input_roots))
        self.address: dict[int, int] = {}  # of every tensor that is resident or reserved
        self.home: dict[int, Space] = {}  # of every such tensor
        self.owned: dict[int, list[Range]] = {}  # the bytes that such a tensor alone owns
        self.scratch: dict[str, tuple[Space, Range]] = {}
        self.over: dict[int, int] = {}  # overlapped tensor -> tensor reserved over it, until its operator ran
        self.in_place: dict[int, set[int]] = {}  # a concat's output -> operands that lie in place
        self.joins = JoinsInDram(self.network)
        self.run_already: set[str] = set()
        self.peak = 0  # of all memories together
        for op, address in () if separate else self.pinned.weights.items():
            operator = self.network.operators[op]
            at = self.spaces[None]
            self.take(at, at.range(address, operator.weight_bytes), f"weights of {operator.name}")
        for first, last, address in self.pinned.state:
            self.outside_groups(first)
            self.outside_groups(last)
            at = self.spaces[None]
            self.reserve(first, at, at.range(address, self.size(first)))
        for t in self.pinned.tensors:
            self.outside_groups(t)
        self.hold_caches()

    def hold_caches(self) -> None:
        """Take the buffers of caches for good; their inputs lie there."""
        for cache in self.caches.all:
            at = self.spaces[None]
            self.take(at, at.range(cache.address, cache.bytes), f"cache {self.name(cache.last)}")
            for t in (cache.last, cache.first):
                if t is not None and t in self.pinned.tensors:
                    broken("cache-moved", f"{self.name(t)} is pinned")
                if t is not None and cache.first is not None and self.grouped(t):
                    broken("cache-moved", f"{self.name(t)} is read or made in a group")
            if cache.first is not None:
                self.settle(cache.first, cache.address)

    def grouped(self, t: int) -> bool:
        """Return whether a group touches a tensor."""
        return any(
            unit.group and t in (*unit.reads, *unit.writes, *unit.inner) for unit in self.units.values()
        )

    def settle(self, t: int, address: int) -> None:
        """Let a tensor of a cache lie in its buffer, which is taken already."""
        self.address[t], self.owned[t], self.home[t] = address, [], self.spaces[None]
        self.settled.add(t)

    def settles(self, t: int, address: int) -> bool:
        """Return whether a tensor that a range is asked for begins a cache, and the range is its buffer."""
        cache = self.caches.by_tensor.get(t)
        return cache is not None and cache.first is None and cache.address == address

    # -- names -----------------------------------------------------------------------------------------

    def name(self, t: int) -> str:
        return self.network.tensors[t].name

    def size(self, t: int) -> int:
        return self.network.tensors[t].bytes

    def tensor(self, name: str) -> int:
        t = self.network.tensor_id.get(name)
        if t is None:
            broken("unknown-tensor", f"the network has no tensor {name}")
        if self.network.root[t] != t:
            broken("names-view", f"{name} is a view of {self.name(self.network.root[t])}")
        self.outside_groups(t)
        return t

    def outside_groups(self, t: int) -> None:
        if t in self.inner:
            broken("inner-tensor", f"{self.name(t)} lives inside group {self.inner[t]}")

    def unit(self, name: str) -> Unit:
        unit = self.units.get(name)
        if unit is None:
            op = self.network.operator_id.get(name)
            if op is None:
                broken("unknown-operator", f"the network has no operator {name}, and no group has that name")
            broken("operator-in-group", f"{name} belongs to group {self.member[op].name}")
        return unit

    # -- states ----------------------------------------------------------------------------------------

    def not_resident(self, t: int) -> None:
        if t in self.address:
            broken("already-resident", f"{self.name(t)} has a range at {self.address[t]} already")

    def not_cached(self, t: int) -> None:
        if t in self.settled or self.caches.grows(t):
            broken("cache-moved", f"{self.name(t)} is a cache, and stays in its buffer")

    def not_produced(self, t: int) -> None:
        if t in self.produced:
            broken("already-produced", f"{self.name(t)} exists already; it can only be loaded")

    def holds_value(self, t: int) -> None:
        if t not in self.address:
            broken("not-resident", f"{self.name(t)} is not resident")
        if t not in self.produced:
            broken("not-produced", f"{self.name(t)} is reserved, but nothing has written it")

    def ends_with(self, x: int, unit: Unit, t: int) -> None:
        """Refuse unless `x` holds a value and may give its bytes to `t`, which `unit` writes."""
        self.holds_value(x)
        if x not in unit.reads:
            broken(
                "overlap-not-input", f"{unit.name}, which writes {self.name(t)}, does not read {self.name(x)}"
            )
        if x in self.pinned.tensors and x in self.outputs:
            broken("pin-moved", f"{self.name(x)} is pinned, an output, and written over")

    def not_ended(self, x: int) -> None:
        if x in self.over:
            other = self.name(self.over[x])
            broken(
                "overlap-still-needed", f"{self.name(x)} ends with the operator that writes {other} over it"
            )

    def ready(self, t: int, unit: Unit, *, streamed: bool) -> None:
        if streamed:
            if t not in self.ledger.copies:
                broken("streaming-no-dram-copy", f"{self.name(t)} has no DRAM copy")
        elif t not in self.address:
            broken("input-not-resident", f"{self.name(t)}, read by {unit.name}, is not resident")
        elif t not in self.produced:
            broken("input-not-produced", f"{self.name(t)}, read by {unit.name}, was never written")
        if self.over.get(t) in unit.writes:
            if self.to_read[t] > 1:
                broken("overlap-still-needed", f"{self.name(t)} is overwritten and still to be read")
            self.keeps_output(t, "overlap-still-needed")

    def keeps_data(self, t: int, rule: str) -> None:
        if self.to_read[t] and t not in self.ledger.copies:
            broken(rule, f"{self.name(t)} is still to be read and has no DRAM copy")
        self.keeps_output(t, rule)

    def keeps_output(self, t: int, rule: str) -> None:
        if t in self.outputs and t not in self.ledger.copies:
            broken(rule, f"{self.name(t)} is, or holds, an output and has no DRAM copy")

    # -- bytes -----------------------------------------------------------------------------------------

    def space(self, memory: str | None) -> Space:
        """Return the memory that an instruction names."""
        if memory not in self.spaces:
            known = "none by its name" if None in self.spaces else ", ".join(map(str, self.spaces))
            broken("memory", f"{'no memory' if memory is None else memory} is named; there are {known}")
        return self.spaces[memory]

    def together(self, t: int, x: int, at: Space) -> None:
        if self.home[x] is not at:
            broken("memory", f"{self.name(x)} is in {self.home[x].name}, {self.name(t)} in {at.name}")

    def beside(self, at: Space, address: int, t: int, under: list[int]) -> Range:
        """Release the ranges of the tensors `under`; return the range of `t`, which may then overlap them."""
        for x in under:
            for part in self.owned[x]:
                at.ranges.release(*part)
        return at.range(address, self.size(t))

    def reserve_over(self, t: int, at: Space, wanted: Range, under: list[int]) -> None:
        """Reserve the range of `t`; the tensors `under` it keep the rest of theirs."""
        for x in under:
            self.owned[x] = [rest for part in self.owned[x] for rest in without(part, wanted)]
            for part in self.owned[x]:
                at.ranges.take(*part, self.name(x))
            self.over[x] = t
        self.reserve(t, at, wanted)

    def reserve(self, t: int, at: Space, wanted: Range) -> None:
        stated = self.pinned.tensors.get(t)
        if stated is not None and stated != wanted[0]:
            broken("pin-moved", f"{self.name(t)} is pinned at {stated}, not {wanted[0]}")
        self.address[t], self.owned[t], self.home[t] = wanted[0], [wanted], at
        self.take(at, wanted, self.name(t))

    def take(self, at: Space, wanted: Range, owner: str) -> None:
        at.take(wanted, owner)
        self.peak = max(self.peak, sum(space.ranges.total for space in self.spaces.values()))

    def give_back(self, t: int) -> None:
        self.settled.discard(t)
        del self.address[t]
        at = self.home.pop(t)
        for part in self.owned.pop(t):
            at.ranges.release(*part)

    def end_of_overlapped(self, x: int) -> None:
        del self.over[x]
        self.give_back(x)
