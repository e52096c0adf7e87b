"""The energy of a joint plan of fewest bytes, certified with its bound."""

from __future__ import annotations

import time
from collections.abc import Sequence

from onchip.check import certify, energy
from onchip.machines.chip import Chip
from onchip.network.repeats import folded
from onchip.plans import Join, Plan, Status

__all__ = ["with_energy"]


def with_energy(plan: Plan, chip: Chip, joins: Sequence[int], began: float) -> Plan:
    """Return a plan of fewest bytes as one of the objective `energy`; `joins` are the concats that may join.

    Energy grows with the bytes alone, but that what a concat joins in DRAM is neither read nor written. So
    the bound is that of the fewest bytes with all concats joined that may be.
    """
    network, r = plan.network, plan.result
    joined = [Join(network.operators[v].name) for v in joins if network.operators[v].repeats is None]
    bound = energy(folded(network).network, plan.chip, r.dram_lower_bound_bytes or 0, joined)
    status: Status = "optimal" if r.energy_picojoules == bound else "feasible"
    return certify(
        network,
        chip,
        plan.budget,
        plan.program,
        status=status,
        lower_bound_bytes=r.lower_bound_bytes,
        dram_lower_bound_bytes=r.dram_lower_bound_bytes,
        energy_lower_bound_picojoules=bound,
        space=r.space,
        seconds=time.perf_counter() - began,
        groups=plan.groups,
        layouts=plan.layouts,
        options={**plan.options, "objective": "energy"},
    )
