"""The role of each memory range in the section at work, in the words of the simple method.

MIFM and MOFM are a module's input and output feature map; the written part of the latter is occupied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onchip.network import Network
from onchip.planners.modules.roles import TensorRole
from onchip.report.modules.anatomy import Part
from onchip.report.steps import Residency, Timeline

__all__ = [
    "ROLES",
    "Layer",
    "Present",
    "Role",
    "drawable",
    "layers",
    "present",
    "role",
]

Role = Literal["mifm", "mifm-in", "mofm", "mofm-in", "map", "scratch", "other"]

ROLES: dict[Role, str] = {
    "mifm": "input of the module (MIFM)",
    "mifm-in": "input of a module inside (nested MIFM)",
    "mofm": "output of the module, as far as it is there (occupied MOFM)",
    "mofm-in": "output of a module inside (nested MOFM)",
    "map": "feature map between two layers (OFM, then IFM)",
    "scratch": "working memory and weights (WM + W)",
    "other": "kept for later",
}


_ROLES: dict[TensorRole, Role] = {
    "MIFM": "mifm", "nested MIFM": "mifm-in", "MOFM": "mofm", "nested MOFM": "mofm-in"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Present:
    """A stay over steps [first, end) of one section, as (index in the timeline, stay)."""

    index: int
    stay: Residency
    role: Role
    first: int
    end: int


def present(part: Part, line: Timeline, around: int = 0) -> tuple[Present, ...]:
    """Return the stays in the scratchpad during a section, and `around` steps before and after it."""
    low, high = max(0, part.first - around), min(len(line.steps), part.end + around)
    found = []
    for i, stay in enumerate(line.residencies):
        first, end = max(stay.start, low), min(stay.end, high)
        if first < end:
            found.append(Present(i, stay, role(part, stay), first, end))
    return tuple(found)


def drawable(part: Part, line: Timeline, around: int = 0) -> tuple[Present, ...]:
    """Return the same for a picture: a range overwritten during its last step ends before that step."""
    found = present(part, line, around)
    begins: dict[int, list[Residency]] = {}
    for p in found:
        if p.stay.tensor is not None and p.first == p.stay.start:
            begins.setdefault(p.first, []).append(p.stay)

    def over(p: Present) -> bool:
        mine = p.stay
        return mine.start < p.end - 1 and any(
            mine is not s and s.address <= mine.address and mine.address + mine.size <= s.address + s.size
            for s in begins.get(p.end - 1, ())
        )

    cut = (replace(p, end=p.end - 1) if over(p) else p for p in found)
    return tuple(p for p in cut if p.first < p.end)


def role(part: Part, stay: Residency) -> Role:
    """Return the role of a stay in a section."""
    t, net = stay.tensor, part.network
    if t is None:
        return "scratch"
    if t in part.roles:
        return _ROLES[part.roles[t]]
    made = net.producer[t]
    mine = net.readers[t] & part.operators or (made is not None and part.operators >> made & 1)
    return "map" if mine else "other"


# -- required and available -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of a module as it runs, in bytes (Algorithm 6).

    Its own need is `read` (its input unless that is a module's, which is held anyway), `written` and
    `scratch`. `held` are the inputs of the modules around it, outermost first, `occupied` the present part of
    their outputs, `other` all else in the memory. `out` are bytes of its output that go to DRAM.
    """

    step: int
    operator: int
    branch: int | None
    read: int
    written: int
    scratch: int
    held: tuple[int, ...]
    occupied: int
    other: int
    out: int

    @property
    def required(self) -> int:
        """The bytes that the layer needs beside the modules' inputs."""
        return self.read + self.written + self.scratch

    def available(self, budget: int) -> int:
        """Return the bytes of memory left by the modules' inputs and outputs."""
        return budget - sum(self.held) - self.occupied - self.other


def layers(part: Part, line: Timeline, free: Iterable[int]) -> tuple[Layer, ...]:
    """Return the layers of a module in the order in which they run; `free` operators cost nothing."""
    stays = present(part, line)
    skipped = set(free)
    found = []
    for s in range(part.first, part.end):
        step = line.steps[s]
        if step.joined or len(step.operators) != 1 or step.operators[0] in skipped:
            continue
        here = [p for p in stays if p.first <= s < p.end]
        found.append(_layer(part, step.operators[0], s, here, dict(step.streamed)))
    return tuple(found)


def _layer(part: Part, op: int, step: int, here: Sequence[Present], streamed: dict[int, int]) -> Layer:
    net = part.network
    starts = dict.fromkeys(t for t in (part.start, *(n.start for n in part.around(op))) if t is not None)
    held = [p for t in starts for p in here if p.stay.tensor == t]
    own = [p for p in here if p not in held and _own(net, op, p.stay)]
    rest = [p for p in here if p not in held and p not in own]
    covered: list[tuple[int, int]] = []

    def more(some: Iterable[Present]) -> int:
        return sum(_cover(covered, p.stay.address, p.stay.address + p.stay.size) for p in some)

    of_modules = more(p for p in rest if p.role in ("mofm", "mofm-in"))
    other = more(p for p in rest if p.role not in ("mofm", "mofm-in"))
    sizes = tuple(more([p]) for p in held)
    reads = net.reads[op]
    # Bytes written over an input count as written.
    written = more(p for p in own if p.stay.tensor is not None and not reads >> p.stay.tensor & 1)
    return Layer(
        step,
        op,
        part.branch.get(op),
        more(p for p in own if p.stay.tensor is not None and reads >> p.stay.tensor & 1),
        written,
        more(p for p in own if p.stay.tensor is None),
        sizes,
        of_modules,
        other,
        sum(n for t, n in streamed.items() if net.writes[op] >> t & 1),
    )


def _own(net: Network, op: int, stay: Residency) -> bool:
    if stay.tensor is None:
        return stay.role == "scratch"
    return bool((net.reads[op] | net.writes[op]) >> stay.tensor & 1)


def _cover(covered: list[tuple[int, int]], low: int, high: int) -> int:
    """Return the bytes of [low, high) that were not covered before, and mark them as covered."""
    new, at = 0, low
    for a, b in sorted(covered):
        if b <= at:
            continue
        if a >= high:
            break
        new += max(0, a - at)
        at = max(at, b)
    covered.append((low, high))
    return new + max(0, high - at)
