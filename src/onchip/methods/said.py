"""An answer: the plan, the figures to compare it with, and what is said beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.plans import Plan

__all__ = ["Answer", "elements_note", "unknown_note"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan, budgets to record with it, and sentences that stand beside it and not in its file."""

    plan: Plan
    context: Mapping[str, int | str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def elements_note(network: Network, on: Chip) -> tuple[str, ...]:
    """Return a sentence where the network's elements are not as wide as the chip's; `generic` is no chip."""
    if network.element == on.element or on.name == "generic":
        return ()
    ours = on.element if on.element in ("int8", "int16") else ""
    mend = f"; --dtype {ours} plans with the chip's" if ours else ""
    return (f"elements are {network.element}, and those of {on.name} {on.element}{mend}",)


NEEDED = {
    "latency": ("dram_bytes_per_second", "macs_per_second"),
    "energy": ("dram_picojoules_per_byte",),
}
"""The figures of a chip without which a plan has no latency, and no energy."""


def unknown_note(on: Chip) -> tuple[str, ...]:
    """Return a sentence on what no plan has on a chip, because its file calls a figure unknown."""
    lacking = {of: [key for key in keys if key in on.unknown] for of, keys in NEEDED.items()}
    parts = [f"no {of}, for want of {' and '.join(keys)}" for of, keys in lacking.items() if keys]
    return (f"unknown figures of {on.name}: {'; '.join(parts)}",) if parts else ()
