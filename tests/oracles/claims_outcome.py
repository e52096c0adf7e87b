"""What became of one claim: the answer, whether it holds, and the pair of plans that says so if not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.plans import Group, Instruction, Plan, PlanChip

__all__ = ["Outcome", "certified"]


@dataclass
class Outcome:
    """One question of a campaign. `status` is optimal, feasible, infeasible or unanswered.

    `refuted` says in words what is wrong; `claimed` and `beaten` are the plans, where there are such.
    `seconds` is the time limit, if there is one, and `late` whether the answer took more than 10 % and a
    second longer, in seconds of the processor.
    `needs_wrong`: an answer of no named other bytes than the least. `undecided`: too large for the oracle.
    """

    kind: str
    seed: int
    status: str = "unanswered"
    refuted: str = ""
    needs_wrong: str = ""
    undecided: bool = False
    limited: bool = False
    seconds: float | None = None
    label: str = ""
    claimed: Plan | None = None
    beaten: Plan | None = None
    network: Network | None = None
    budget: int = 0
    planner_seconds: float = 0.0
    oracle_seconds: float = 0.0
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def late(self) -> bool:
        return self.seconds is not None and self.planner_seconds > 1.1 * self.seconds + 1

    @contextmanager
    def planning(self) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.planner_seconds += time.process_time() - began

    @contextmanager
    def judging(self) -> Iterator[None]:
        began = time.process_time()
        try:
            yield
        finally:
            self.oracle_seconds += time.process_time() - began


def certified(
    network: Network,
    chip: Chip | PlanChip,
    budget: int,
    program: list[Instruction],
    groups: tuple[Group, ...] = (),
    options: dict[str, str | int | float | bool | None] | None = None,
) -> Plan:
    """The plan of an oracle's program. Raises `IllegalPlan` where the checker does not accept it."""
    return certify(
        network,
        chip,
        budget,
        program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
        groups=groups,
        options=options,
    )


def accepts(
    network: Network,
    chip: Chip | PlanChip,
    budget: int,
    program: list[Instruction],
    groups: tuple[Group, ...] = (),
    options: dict[str, str | int | float | bool | None] | None = None,
) -> Plan | None:
    """The plan, or None where the checker refuses it: then it refutes nothing."""
    try:
        return certified(network, chip, budget, program, groups, options)
    except IllegalPlan:
        return None
