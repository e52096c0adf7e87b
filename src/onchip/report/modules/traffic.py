"""What a section moves to and from DRAM step by step, and which concats move nothing: from the program."""

from __future__ import annotations

from onchip.plans import Alloc, Join, Load, Plan, Run, Store
from onchip.report.modules.anatomy import Part

__all__ = ["free_concats", "moves"]


def moves(part: Part, plan: Plan) -> dict[int, tuple[int, int]]:
    """Feature map bytes (from DRAM, to DRAM) of a section by step; its last step has what follows it, too."""
    net, step, last = plan.network, part.first, max(part.first, part.end - 1)
    found = dict.fromkeys(range(part.first, part.end), (0, 0))

    def add(into: int, out: int) -> None:
        at = min(step, last)
        before = found.get(at, (0, 0))
        found[at] = before[0] + into, before[1] + out

    for instruction in plan.program[part.section.first : part.section.end]:
        match instruction:
            case Load(name, _):
                add(net.tensors[net.tensor_id[name]].bytes, 0)
            case Store(name):
                add(0, net.tensors[net.tensor_id[name]].bytes)
            case Run(name, streaming):
                made = net.writes[net.operator_id[name]] if name in net.operator_id else 0
                for tensor, n in streaming:
                    out = made >> net.root[net.tensor_id[tensor]] & 1
                    add(0 if out else n, n if out else 0)
                step += 1
            case Join():
                step += 1
    return found


def free_concats(plan: Plan) -> frozenset[int]:
    """Concats that the program gets for nothing: joined in DRAM, or laid over all of their operands."""
    net, found = plan.network, set[int]()
    for instruction in plan.program:
        match instruction:
            case Join(name):
                found.add(net.operator_id[name])
            case Alloc(name, _, _, _, parts) if parts:
                made = net.producer[net.tensor_id[name]]
                if made is not None and {net.tensors[t].name for t in net.operators[made].inputs} == set(
                    parts
                ):
                    found.add(made)
    return frozenset(found)
