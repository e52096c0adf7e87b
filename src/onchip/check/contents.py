"""What lies in the scratch of every tiled group while it runs: what its proof adds up, for who shows it."""

from __future__ import annotations

from collections.abc import Mapping

from onchip.check.parts import Part
from onchip.check.rules import Broken
from onchip.check.units import streams_of, units_of
from onchip.plans import PinnedWeights, Plan

__all__ = ["contents"]


def contents(plan: Plan) -> Mapping[str, tuple[Part, ...]]:
    """The parts of each tiled group's scratch, by the group's name: tensors as operators come, then weights.

    Of a plan whose groups are not legal nothing is known: raises `IllegalPlan`.
    """
    ids = plan.network.operator_id
    try:
        units = units_of(
            plan.network,
            plan.groups,
            alignment=plan.chip.alignment_bytes,
            weights_resident=plan.options.get("weights") == "resident",
            pinned={ids[pin.operator] for pin in plan.pins if isinstance(pin, PinnedWeights)},
            streamed=streams_of(plan.program),
        )
    except Broken as refusal:
        raise refusal.illegal() from None
    return {name: unit.parts for name, unit in units.items() if unit.parts}
