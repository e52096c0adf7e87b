"""Random legal plans for any network: a tiny planner for tests of the executor, right rather than good."""

from __future__ import annotations

from random import Random

from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Network, bits
from onchip.plans import Alloc, Free, Instruction, Load, Plan, Run, Scratch, Store


class _Room:
    """Which ranges are taken; first fit, or the last fit, at random."""

    def __init__(self, random: Random, chip: Chip, budget: int) -> None:
        self.random, self.chip, self.budget = random, chip, budget
        self.taken: dict[object, tuple[int, int]] = {}

    def find(self, size: int) -> int | None:
        size = self.chip.round_up(size)
        ranges = sorted(self.taken.values())
        edges = [0, *(high for _, high in ranges)]
        fits = [
            edge
            for edge in edges
            if edge + size <= self.budget and all(edge + size <= low or high <= edge for low, high in ranges)
        ]
        return self.random.choice(fits) if fits else None

    def take(self, key: object, address: int, size: int) -> None:
        self.taken[key] = (address, address + self.chip.round_up(size))


def random_plan(network: Network, budget: int, random: Random, chip: Chip | None = None) -> Plan:
    """A legal plan in a random order, spilling when it must and sometimes when it need not.

    Everything that an operator does not touch is spilled when its operands do not find room; `budget` must
    hold the largest operator's operands one after another.
    """
    chip = chip or Chip("test", 1)
    room = _Room(random, chip, budget)
    program: list[Instruction] = []
    names = [t.name for t in network.tensors]
    sizes = [t.bytes for t in network.tensors]
    copied, ran = set(bits(network.input_roots)), 0

    def written(t: int) -> bool:
        writers = [op.id for op in network.operators if network.writes[op.id] >> t & 1]
        return all(ran >> v & 1 for v in writers)

    def spill(t: int) -> None:
        needed = network.readers[t] & ~ran or network.output_roots >> t & 1
        if t not in copied and (needed or random.random() < 0.1):
            program.append(Store(names[t]))
            copied.add(t)
        program.append(Free(names[t]))
        del room.taken[t]

    def touched(v: int) -> list[int]:
        return list(bits(network.reads[v] | network.writes[v]))

    def reserve(v: int) -> bool:
        """Everything operator `v` needs, in a random order; False when something does not fit."""
        needs: list[int | str] = [t for t in touched(v) if t not in room.taken]
        if network.operators[v].workspace:
            needs.append(network.operators[v].name)
        random.shuffle(needs)
        for need in needs:
            size = network.operators[v].workspace if isinstance(need, str) else sizes[need]
            address = room.find(size)
            if address is None:
                return False
            room.take(need, address, size)
            if isinstance(need, str):
                program.append(Scratch(need, address))
            elif need in copied:
                program.append(Load(names[need], address))
            else:
                program.append(Alloc(names[need], address))
        return True

    while ran != (1 << len(network.operators)) - 1:
        ready = [
            op.id
            for op in network.operators
            if not ran >> op.id & 1 and not network.predecessors[op.id] & ~ran
        ]
        v = random.choice(ready)
        for t in [t for t in room.taken if isinstance(t, int) and t not in touched(v)]:
            if written(t) and random.random() < 0.2:
                spill(t)
        mark, before, had = len(program), dict(room.taken), set(copied)
        if not reserve(v):
            # Start again with nothing but what cannot leave: reserved outputs that wait for another part.
            del program[mark:]
            room.taken, copied = before, had
            for t in [t for t in room.taken if isinstance(t, int) and written(t)]:
                spill(t)
            assert reserve(v), "the budget is too small for this planner"
        program.append(Run(network.operators[v].name))
        room.taken.pop(network.operators[v].name, None)
        ran |= 1 << v
        for t in [t for t in room.taken if isinstance(t, int)]:
            if written(t) and not network.readers[t] & ~ran and random.random() < 0.8:
                spill(t)
    for t in [t for t in room.taken if isinstance(t, int)]:
        if network.output_roots >> t & 1 and t not in copied:
            program.append(Store(names[t]))
            copied.add(t)
    return certify(network, chip, budget, program, status="feasible", lower_bound_bytes=0, seconds=0.0)


def roomy(network: Network, chip: Chip | None = None) -> int:
    """The least budget that `random_plan` manages with: the most that one operator touches."""
    chip = chip or Chip("test", 1)
    return max(
        sum(
            chip.round_up(network.tensors[t].bytes)
            for t in bits(network.reads[op.id] | network.writes[op.id])
        )
        + chip.round_up(op.workspace)
        for op in network.operators
    )
