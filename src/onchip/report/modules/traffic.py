"""The bytes that a section moves to and from DRAM by step, and concats that move none: from the replay."""

from __future__ import annotations

from onchip.check.replay import Crossed, Ran, Reserved, events_of
from onchip.plans import Plan
from onchip.report.modules.anatomy import Part

__all__ = ["free_concats", "moves"]


def moves(part: Part, plan: Plan) -> dict[int, tuple[int, int]]:
    """Return feature map bytes (from DRAM, to DRAM) of a section by step; its last includes what follows."""
    last = max(part.first, part.end - 1)
    found = dict.fromkeys(range(part.first, part.end), (0, 0))
    for event in events_of(plan):
        if isinstance(event, Crossed) and event.section == part.index:
            into, out = found.get(min(event.step, last), (0, 0))
            n = event.bytes
            found[min(event.step, last)] = (into + n, out) if event.inward else (into, out + n)
    return found


def free_concats(plan: Plan) -> frozenset[int]:
    """Return the concats without cost: joined in DRAM, or placed over all of their operands."""
    net, found = plan.network, set[int]()
    for event in events_of(plan):
        match event:
            case Ran(joined=True):
                found |= set(event.unit.operators)
            case Reserved(tensor=int(t), parts=(_, *_)):
                made = net.producer[t]
                if made is not None and set(net.operators[made].inputs) == set(event.parts):
                    found.add(made)
    return frozenset(found)
