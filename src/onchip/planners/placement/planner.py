"""Placement as a planner among others, and the baselines that keep tensors whole as it does."""

from __future__ import annotations

from dataclasses import replace

from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement.options import PlacementOptions
from onchip.planners.protocol import Planner, recorded
from onchip.plans import PinnedTensor, PinnedWeights, Plan

__all__ = ["BASELINE", "PLANNER", "as_read"]


def _solve(network: Network, chip: Chip, budget: int, options: PlacementOptions, limits: Limits) -> Plan:
    from onchip.planners.placement.planning import plan

    return plan(network, chip, budget, options, limits)


def _options_of(plan: Plan) -> PlacementOptions:
    """Return the options with the pins and states, which stand apart in a plan."""
    pins = [
        (p.tensor if isinstance(p, PinnedTensor) else f"weights:{p.operator}")
        + ("" if p.address is None else f"@{p.address}")
        for p in plan.pins
    ]
    state = [f"{s.input}={s.output}@{s.address}" for s in plan.state]
    state += [f"{c.input or ''}={c.output}" for c in plan.caches]
    tensors, ids = plan.network.tensors, plan.network.tensor_id
    grown = [c.rows for c in plan.caches if c.rows != tensors[ids[c.output]].shape[c.axis]]
    made: PlacementOptions = recorded(
        PlacementOptions,
        plan,
        but=("pin", "state", "capacity"),
        pin=tuple(pins),
        state=tuple(state),
        capacity=max(grown, default=None),
    )
    return made


def as_read(plan: Plan) -> Network:
    """Return the network before resident weights went into workspaces, where planning puts them again."""
    network = plan.network
    if plan.options.get("weights") != "resident" or plan.chip.weight_scratchpad_bytes is not None:
        return network
    pinned = {p.operator for p in plan.pins if isinstance(p, PinnedWeights)}
    operators = tuple(
        op if op.name in pinned else replace(op, workspace=max(op.workspace - op.weight_bytes, 0))
        for op in network.operators
    )
    return replace(network, operators=operators)


PLANNER = Planner(
    "placement",
    "onchip plan: tensors whole",
    PlacementOptions,
    _solve,
    section="plan",
    exactly={"strategy": "exact"},
    read_options=_options_of,
    read_network=as_read,
)

BASELINE = Planner(
    "baseline",
    "what others do with whole tensors",
    PlacementOptions,
    _solve,
    anywhere=False,
    read_options=lambda plan: recorded(PlacementOptions, plan, but=("order", "strategy")),  # of all orders
    read_network=as_read,
)
