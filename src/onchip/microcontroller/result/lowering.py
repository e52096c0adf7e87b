"""The peak of RAM and how to lower it: the steps in the way, and other plans of the same network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onchip.base.errors import OnchipError
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.result.ram_steps import Part, RamStep
from onchip.microcontroller.segments import SegmentOptions

if TYPE_CHECKING:
    from onchip.microcontroller.result.microcontroller import Microcontroller
    from onchip.microcontroller.segments.options import InputMode, Objective

__all__ = ["Lever", "levers", "peak_sentences"]

SECONDS = 10.0
"""The time limit of the search for the fewest bytes of all."""

MODES: tuple[tuple[InputMode, str], ...] = (
    ("held", "the image held in RAM"),
    ("once", "the image handed over row by row"),
    ("again", "the image read piece by piece, some of it more than once"),
)
OBJECTIVES: tuple[tuple[Objective, str], ...] = (
    ("free", "at no cost in instructions"),
    ("once", "nothing made twice"),
    ("least", "the fewest bytes, whatever they cost"),
)


@dataclass(frozen=True, slots=True)
class Lever:
    """Another plan: what differs, the options that ask for it, its bytes, its work over making all once."""

    says: str
    options: str
    arena_bytes: int
    work: float


def peak_sentences(steps: tuple[RamStep, ...]) -> list[str]:
    """Return sentences on what the fullest step holds, and which step is in the way after it."""
    ranked = sorted(steps, key=lambda step: -step.bytes)
    most = ranked[0]
    lines = [f"Most RAM: {most.name}, {most.bytes:,} bytes at once: {_holds(most)}."]
    behind = [step for step in ranked[1:] if step.bytes < most.bytes]
    equal = len(ranked) - 1 - len(behind)
    if equal:
        lines.append(f"{equal} more {'step needs' if equal == 1 else 'steps need'} as many.")
    if behind:
        saved = most.bytes - behind[0].bytes
        lines.append(
            f"Next is {behind[0].name} with {behind[0].bytes:,}: a change of"
            f" {'the first' if not equal else 'those before it'} alone saves {saved:,} bytes at most."
        )
    return lines


def _holds(step: RamStep) -> str:
    """Return what a step holds, by role."""

    def total(*roles: str) -> tuple[int, list[Part]]:
        parts = [part for part in step.parts if part.role in roles]
        return sum(part.bytes for part in parts), parts

    said = []
    for role, verb in (("read", "reads"), ("made", "makes"), ("kept", "keeps for later")):
        _, parts = total(role)
        if parts:
            sizes: dict[str, int] = {}  # rows of a map may lie apart
            for part in parts:
                sizes[part.name] = sizes.get(part.name, 0) + part.bytes
            said.append(f"{verb} {', '.join(f'{name} ({size:,})' for name, size in sizes.items())}")
    rings, parts = total("ring")
    if parts:
        said.append(f"{len(parts)} {'ring' if len(parts) == 1 else 'rings'} of rows ({rings:,})")
    rest, _ = total("sums", "workspace")
    if rest:
        said.append(f"workspace ({rest:,})")
    if step.shared:
        said.append(f"less {step.shared:,} that lie over one another")
    return ", ".join(said)


def levers(made: Microcontroller, say: Callable[[str], None]) -> tuple[Lever, ...]:
    """Return the plans of other options that need fewer bytes, the one with the most bytes first.

    A plan is left out where another has no more bytes and no more work. `least` is searched for `SECONDS` at
    most, and only with the image given as it is now. There are none for a plan in whole tensors.
    """
    now = made.plan.options.get("input"), made.plan.options.get("segments")
    if now[0] is None or made.whole is not None:
        return ()
    network = network_of(made.model, made.shared)
    own = max(sum(op.work for op in network.operators), 1)
    found = []
    for mode, where in MODES:
        for objective, how in OBJECTIVES:
            if (mode, objective) == now or (objective == "least" and mode != now[0]):
                continue
            say(f"what --input {mode} --objective {objective} would take")
            options = SegmentOptions(mode, objective, SECONDS if objective == "least" else None)
            try:
                plan = planned_for(network, MOST_BYTES, options, states_of(made.model)).plan
            except OnchipError:
                continue
            if plan.result.extent_bytes < made.arena_bytes:
                macs = own if plan.result.macs is None else plan.result.macs
                said = f"{where}, {how}"
                asked = f"--input {mode} --objective {objective}"
                found.append(Lever(said, asked, plan.result.extent_bytes, macs / own))
    return tuple(_none_dominated(found))


def _none_dominated(found: list[Lever]) -> list[Lever]:
    kept: list[Lever] = []
    for new in sorted(found, key=lambda lever: (lever.work, lever.arena_bytes)):
        if not kept or new.arena_bytes < kept[-1].arena_bytes:
            kept.append(new)
    return sorted(kept, key=lambda lever: -lever.arena_bytes)
