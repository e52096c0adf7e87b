"""The computation of a point: in a worker, which keeps the last networks that it read."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from math import prod
from typing import Any

import msgspec

from onchip.base.errors import Infeasible, InputError, NeedsTraffic, NegativeAnswer, UsageError
from onchip.machines.chip import Chip
from onchip.network import Network, bits, mask
from onchip.planners import registry
from onchip.planners.limits import Limits
from onchip.planners.protocol import FiguresOnly, Planner
from onchip.sweeps.planners import figures_of
from onchip.sweeps.points import Done, Task

__all__ = ["KEPT", "compute", "failed", "known_of", "read_json"]

KEPT = 4
"""The number of networks that a worker keeps."""


def read_json(content: bytes) -> Network:
    """Return the network in `onchip.network/1` JSON that a sweep wrote."""
    from onchip.network.json import WireNetwork, network_from_wire

    return network_from_wire(msgspec.json.decode(content, type=WireNetwork))


def failed(reason: str) -> dict[str, Any]:
    """Return the figures of a point that has no answer."""
    return {"status": "failed", "reason": reason}


def compute(task: Task, networks: Callable[[str], Network]) -> Done:
    """Return the answer to one point; `networks` returns a network by its key.

    It never raises for a planner's failure: the failure is an answer, with its reason.
    """
    began = time.perf_counter()
    figures: dict[str, Any] = {}
    try:
        network = networks(task.network)
        chip = task.chip
        figures |= known_of(network)
        figures["budget_bytes"] = _bytes(task, network, chip)
        planner, options = _planner(task), _options(task)
        try:
            made = planner.solve(network, chip, figures["budget_bytes"], options, Limits.of(options))
            figures |= figures_of(made)
        except FiguresOnly as only:
            figures |= only.figures | {"reason": str(only)}
        figures |= _bounded(figures, getattr(options, "objective", "traffic")) | _times(figures, chip)
    except (Infeasible, NeedsTraffic) as no:
        figures |= {"status": "infeasible", "needs_bytes": no.needs, "reason": str(no)}
    except NegativeAnswer as no:
        figures |= {"status": "not found", "reason": str(no)}
    except InputError as problem:
        figures |= {"status": "refused", "reason": str(problem)}
    except Exception as problem:
        traceback.print_exc(file=sys.stderr)
        figures |= failed(f"{type(problem).__name__}: {problem}"[:500])
    figures["seconds"] = round(time.perf_counter() - began, 6)
    return Done(task.key, figures)


def _planner(task: Task) -> Planner:
    """Return the planner that a task names; the import of its module registers an external one."""
    found = registry.section(task.planner)
    if found is None and task.home[0]:
        module, folder = task.home
        if folder not in sys.path:
            sys.path.append(folder)
        try:
            import_module(module)
        except ImportError as problem:
            raise UsageError(
                f"its module {module} cannot be imported: {problem}", item=task.planner
            ) from None
        found = registry.section(task.planner)
    if found is None:
        raise UsageError("is no planner that this worker knows", item=task.planner)
    return found


def _options(task: Task) -> Any:
    """Return the planner's options, restored from JSON."""
    kind = _planner(task).options
    given = {
        f.name: tuple(v) if isinstance(v := task.options[f.name], list) else v
        for f in fields(kind)
        if f.name in task.options
    }
    if "time_limit" in {f.name for f in fields(kind)}:
        given["time_limit"] = task.seconds
    return kind(**given)


_named: dict[tuple[str, ...], int] = {}
"""MR, MH and MP in bytes, by network, chip, options and name: one peak search serves all of them."""


def _bytes(task: Task, network: Network, chip: Chip) -> int:
    """Return the budget in bytes. Names mean the same as in `onchip plan` with the point's options."""
    from onchip.planners.budgets import resolve_budget
    from onchip.planners.placement import PlacementOptions

    options = _options(task) if task.planner == "plan" else PlacementOptions(time_limit=task.seconds)

    def named(name: str) -> int:
        how = ("weights", "order", "in_place", "memory_limit", "time_limit")
        figures = (str(chip.alignment_bytes), str(chip.accumulator_bytes))
        asked = (task.network, name, *figures, *(str(getattr(options, key)) for key in how))
        if name == "chip":
            return resolve_budget(network, chip, None, options)
        if asked not in _named:
            if len(_named) > 1_000:
                _named.clear()
            _named[asked] = resolve_budget(network, chip, name, options)
        return _named[asked]

    return task.budget.resolve(named)


def known_of(network: Network) -> dict[str, Any]:
    """Return a network's figures that hold on every chip: its arithmetic, and its compulsory bytes."""
    crossing = network.output_roots & ~network.input_roots
    crossing |= mask(t for t in bits(network.input_roots) if network.readers[t])
    moved = sum(network.tensors[t].bytes for t in bits(crossing))
    return {
        "compulsory_limit_bytes": moved + network.weight_bytes,
        "macs": sum(op.work for op in network.operators),
    }


AIMS = {
    "latency": ("latency_picoseconds",),
    "energy": ("energy_picojoules",),
    "edp": ("latency_picoseconds", "energy_picojoules"),
}
"""The figures, of which the product is made small, by objective; of all others DRAM bytes."""


def _bounded(figures: dict[str, Any], objective: str) -> dict[str, Any]:
    """Return the gap: the excess of what was made small over its bound, as a share of it."""
    names = AIMS.get(objective, ("dram_bytes",))
    found: list[Any] = [figures.get(name) for name in names]
    bounds: list[Any] = [figures.get("_bound_".join(name.rsplit("_", 1))) for name in names]
    if not all(bounds) or None in found:
        return {"gap": None}
    bound = prod(bounds)
    return {"gap": round((prod(found) - bound) / bound, 9)}


def _times(figures: dict[str, Any], chip: Chip) -> dict[str, Any]:
    """Return the least seconds that DRAM and multipliers are busy, where the chip states their rates."""
    bandwidth, rate = chip.rates.dram_bytes_per_second, chip.rates.macs_per_second
    return {
        "dram_seconds": None if bandwidth is None else figures["dram_bytes"] / bandwidth,
        "compute_seconds": None if rate is None else figures["macs"] / rate,
    }
