"""The proof: every answer is written as a plan, and the checker replays it before ExecuTorch gets it.

Each buffer is the result of an operator at the node where its life begins, and is given back after the last
one. A result in place is allocated over its operand, which the checker allows only where an element-wise
operator reads it for the last time.
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.check import certify
from onchip.executorch.banks import Bank
from onchip.executorch.one_memory import Placed
from onchip.executorch.specs import Graph, Item
from onchip.machines.chip import Memory
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Free, Instruction, Plan, PlanChip, Run, Store

__all__ = ["proved_plan"]


def proved_plan(graph: Graph, placed: Placed, banks: Sequence[Bank], seconds: float) -> Plan | None:
    """Return the checked plan of a placement; None if there is nothing to place.

    Raises `IllegalPlan` if the placement is wrong: two buffers that share a byte while both are live, one
    beyond its memory, one in place where that is not proved.
    """
    items = graph.items
    if not items:
        return None
    names = _unique([item.name for item in items])
    size = {i: _rounded(item, placed.at[i][0], banks, graph.alignment) for i, item in enumerate(items)}
    born = {i: item.written if i in placed.over else item.first for i, item in enumerate(items)}
    last = max(item.last for item in items)
    events = sorted(range(len(items)), key=lambda i: (born[i], i in placed.over))
    operators, program = [], list[Instruction]()
    waiting = sorted(range(len(items)), key=lambda i: items[i].last)
    given_back = set(placed.over.values())  # what is written over ends with the run that does it
    at = 0
    memory = _memories(items, placed, size, banks)
    home = {m: chip_memory.name for m, chip_memory in memory.items()} if len(memory) > 1 else {}
    for i in events:
        while at < len(waiting) and items[waiting[at]].last < born[i]:
            program += _end(waiting[at], names, items[waiting[at]].last == last, given_back)
            at += 1
        x = placed.over.get(i)
        geometry = None if x is None else Geometry("elementwise", input=(size[x],), output=(size[i],))
        reads = [] if x is None else [names[x]]
        operators.append(OperatorSpec(f"write {names[i]}", "Write", reads, [names[i]], geometry=geometry))
        mem_id, offset = placed.at[i]
        program.append(Alloc(names[i], offset, None if x is None else names[x], memory=home.get(mem_id)))
        program.append(Run(f"write {names[i]}"))
    for i in waiting[at:]:
        program += _end(i, names, items[i].last == last, given_back)
    outputs = [names[i] for i, item in enumerate(items) if item.last == last and i not in given_back]
    network = Network.build(
        "executorch", [(names[i], size[i], "activation") for i in range(len(items))], operators, outputs
    )
    one = next(iter(memory.values()))
    budget = sum(m.bytes for m in memory.values())
    chip = PlanChip("executorch", graph.alignment, memories=tuple(memory.values()) if home else ())
    bound = next(iter(placed.bounds.values()), 0)
    tight = not home and bound == one.bytes
    return certify(
        network,
        chip,
        budget,
        program,
        status="optimal" if tight else "feasible",
        lower_bound_bytes=0,
        seconds=seconds,
        options={} if home else {"objective": "peak"},
        peak_lower_bound_bytes=None if home else bound,
    )


def _end(i: int, names: Sequence[str], output: bool, given_back: set[int]) -> list[Instruction]:
    """Return the instructions that give a buffer back; what is the caller's at the end is stored first."""
    if i in given_back:
        return []
    return [*([Store(names[i])] if output else []), Free(names[i])]


def _unique(names: Sequence[str]) -> list[str]:
    """Return the names, numbered where two are the same."""
    found: dict[str, None] = {}
    for name in names:
        new, number = name, 1
        while new in found:
            number += 1
            new = f"{name}#{number}"
        found[new] = None
    return list(found)


def _rounded(item: Item, mem_id: int, banks: Sequence[Bank], alignment: int) -> int:
    """Return the bytes that a buffer takes in its memory."""
    own = next((bank.alignment for bank in banks if bank.mem_id == mem_id), None) or alignment
    return -(-item.bytes // own) * own


def _memories(
    items: Sequence[Item], placed: Placed, size: dict[int, int], banks: Sequence[Bank]
) -> dict[int, Memory]:
    """Return a memory for each `mem_id` in use: as large as its bank, or as what lies in it."""
    stated = {bank.mem_id: bank for bank in banks}
    found: dict[int, Memory] = {}
    for mem_id in sorted({m for m, _ in placed.at.values()}):
        end = max(placed.at[i][1] + size[i] for i in range(len(items)) if placed.at[i][0] == mem_id)
        room = stated[mem_id].size if mem_id in stated else end
        found[mem_id] = Memory(f"mem{mem_id}", room)
    return found
