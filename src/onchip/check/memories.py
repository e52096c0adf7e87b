"""The memories that a program's ranges lie in, and the bytes read and written in each.

A chip with a single scratchpad has one memory, without a name. On a chip with several, every access counts:
the reads and writes of a run, and both sides of a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from onchip.base.units import MAX_BYTES
from onchip.check.ranges import Range, Ranges
from onchip.check.rules import broken
from onchip.check.units import Unit
from onchip.network import Network
from onchip.plans import MemoryUse, Moved, Plan, PlanChip

__all__ = ["Accesses", "Space", "accesses_of", "picoseconds_per_byte", "spaces_of"]

MAX_MEMORIES = 64

PICOSECONDS = 10**12


@dataclass
class Space:
    """The bytes [0, size) of one memory: the taken ranges, the peak of their bytes, and their extent."""

    name: str | None
    size: int
    alignment: int
    operands: bool = True
    ranges: Ranges = field(default_factory=Ranges)
    peak: int = 0
    extent: int = 0

    def range(self, address: int, size: int) -> Range:
        """Return the range at an address, rounded up to the alignment. Raises `Broken` if it is not free."""
        end = address + -(-size // self.alignment) * self.alignment
        if address < 0 or end > self.size:
            room = f"the budget of {self.size}" if self.name is None else f"the {self.size} of {self.name}"
            broken("outside-budget", f"bytes [{address}, {end}) leave {room}")
        if address % self.alignment:
            broken("misaligned", f"{address} is no multiple of {self.alignment}")
        taken = self.ranges.neighbour(address, end)
        if taken is not None:
            owner, (first, last) = taken
            broken("range-not-free", f"bytes [{address}, {end}) meet {owner} at [{first}, {last})")
        return address, end

    def take(self, wanted: Range, owner: str) -> None:
        """Take a range that may be taken."""
        self.ranges.take(*wanted, owner)
        self.peak = max(self.peak, self.ranges.total)
        if wanted[0] < wanted[1]:
            self.extent = max(self.extent, wanted[1])


def spaces_of(plan: Plan) -> dict[str | None, Space]:
    """Return the memories of a plan's chip by name; a single scratchpad has the name None."""
    memories, alignment = plan.chip.memories, plan.chip.alignment_bytes
    if not memories:
        return {None: Space(None, plan.budget, alignment)}
    names = [m.name for m in memories]
    if len(set(names)) < len(names) or len(names) > MAX_MEMORIES:
        broken("memory", f"there are {len(names)} memories, with {len(set(names))} names")
    for m in memories:
        if not 1 <= m.bytes <= MAX_BYTES:
            broken("memory", f"{m.name} has {m.bytes} bytes, not from 1 to {MAX_BYTES}")
        for rate in (m.bytes_per_second, m.picojoules_per_byte):
            if rate is not None and not 0 < rate < 10**18:
                broken("bad-rate", f"a rate of {m.name} is {rate}, no positive number below 10^18")
    total = sum(m.bytes for m in memories)
    if total != plan.budget:
        broken("memory", f"the memories have {total} bytes, and the budget is {plan.budget}")
    if plan.pins or plan.state:
        broken("memory", "what is pinned, or handed to the next inference, lies in a single scratchpad")
    return {m.name: Space(m.name, m.bytes, alignment, m.operands) for m in memories}


def picoseconds_per_byte(chip: PlanChip) -> dict[str, Fraction] | None:
    """Return the picoseconds of a byte read or written in each memory; None if some memory has no rate."""
    found = {}
    for memory in chip.memories:
        rate = memory.bytes_per_second or chip.scratchpad_bytes_per_second
        if rate is None:
            return None
        found[memory.name] = PICOSECONDS / Fraction(rate)
    return found


def accesses_of(
    network: Network, unit: Unit, parts: Collection[int], streaming: Mapping[int, int]
) -> Iterator[tuple[int | None, int]]:
    """Yield the reads and writes of a run as (root tensor, or None for its scratch; bytes).

    Every operator of the unit reads its operands and writes its outputs; inner and streamed tensors lie in
    the scratch. Streamed bytes also enter or leave the scratch, and a workspace counts once. A concat's
    operands in `parts` are in place: only the others are read, and written.
    """
    inner = set(unit.inner)
    for op in map(network.operators.__getitem__, unit.operators):
        if parts:
            (made,) = op.outputs
            moved = [t for t in op.inputs if network.root[t] not in parts]
            for t in moved:
                yield None if network.root[t] in streaming else network.root[t], network.tensors[t].bytes
                yield network.root[made], network.tensors[t].bytes
            continue
        for t in (*op.inputs, *op.outputs):
            root = network.root[t]
            yield None if root in inner or root in streaming else root, network.tensors[t].bytes
    yield from ((None, crossing) for crossing in streaming.values())
    if not unit.group and unit.workspace:
        yield None, unit.workspace


@dataclass
class Accesses:
    """Counts the bytes read and written in each of several memories, and those moved between them."""

    per_byte: Mapping[str, Fraction] | None
    bytes: dict[str, int]
    picoseconds: int = 0
    moved: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, chip: PlanChip) -> Accesses:
        """Return empty counts for a chip."""
        return cls(picoseconds_per_byte(chip), {m.name: 0 for m in chip.memories})

    def touch(self, memory: str | None, size: int) -> None:
        """Count `size` bytes read or written in a memory; a memory without a name has no count."""
        if memory is None:
            return
        self.bytes[memory] += size
        if self.per_byte is not None:
            self.picoseconds += _up(size * self.per_byte[memory])

    def move(self, source: str, target: str, size: int) -> None:
        """Count `size` bytes read in one memory and written in another, or the same."""
        self.touch(source, size)
        self.touch(target, size)
        self.moved[source, target] = self.moved.get((source, target), 0) + size

    def uses(self, spaces: Mapping[str | None, Space]) -> tuple[MemoryUse, ...]:
        """Return the figures of each memory."""
        rows = ((name, spaces[name]) for name in self.bytes)
        return tuple(MemoryUse(name, at.peak, at.extent, self.bytes[name]) for name, at in rows)

    def moves(self) -> tuple[Moved, ...]:
        """Return the bytes moved between each two memories, sorted by name."""
        return tuple(Moved(*pair, size) for pair, size in sorted(self.moved.items()))


def _up(exact: Fraction) -> int:
    return -(-exact.numerator // exact.denominator)
