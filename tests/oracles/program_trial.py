"""One random plan of nests over maps, run by every executor that there is, beside onnxruntime.

A model of `windowed_models` in random groups of random nests, with copies, late stores and rings, or as it is
planned: the machine of `onchip run`, the C of one thread, and the program of two threads with a late and with
an early channel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import onchip
from onchip.base.errors import OnchipError, UsageError
from onchip.check.nests import nested
from onchip.check.rules import Broken
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.network import Network, mask
from onchip.network.axes import GroupAxes, axes_of
from onchip.plans import Group, Leaf, Loop, Nest, Plan, PlanChip
from onchip.readers.source import Source
from onchip.run import run
from oracles.band_cases import banded_nest
from oracles.nest_cases import random_nest
from oracles.nest_clock_trial import random_ways, randomly_late, without_copies, without_late
from oracles.windowed_models import windowed_model
from programs_in_turn import loops_ran, turns_ran
from timed_plans import timed_plan

__all__ = ["nests_of_maps", "program_trial"]

TILES = TileRates(
    10**9, (Channel(10**9, 50_000, 4_000, 64),), 30, (ArraySide("out", 8), ArraySide("out", 16)), 10**10
)


def nests_of_maps(random: Random, source: Source) -> Plan | None:
    """Return a plan of groups in random nests; None where none of some was legal."""
    network = source.network
    alignment = random.choice((1, 4, 64))
    nests, members = [], []
    order = list(network.order)
    while order:
        some = order[: random.choice((1, 2, 2, 3, len(order)))]
        wanted = random.choice((0, 1, 2))  # a ring, one in copies
        found = [one for _ in range(10 + 30 * wanted) if (one := _nest(random, network, some, alignment))]
        if not found:
            return None
        nests.append(next((one for one in found if sum(_rings(one)) >= wanted), found[-1]))
        members.append([network.operators[v].name for v in some])
        order = order[len(some) :]
    beside = [replace(nest, beside=n > 0 and random.random() < 0.5) for n, nest in enumerate(nests)]
    for tried in (beside, nests):
        try:
            plan = timed_plan(network, tried, members, PlanChip("maps", alignment, tiles=TILES))
        except OnchipError:  # what one group makes the one beside it cannot read
            continue
        if plan.result.latency_picoseconds is not None:
            return plan
    return None


def _nest(random: Random, network: Network, ids: list[int], alignment: int) -> Nest | None:
    axes = axes_of(network, ids)
    if isinstance(axes, str):
        return None
    outer = ~mask(ids)
    leaving = {
        b.tensor
        for b in axes.buffers
        if b.maker is not None and b.tensor is not None
        if network.readers[b.tensor] & outer
        or network.output_roots >> b.tensor & 1
        or not network.readers[b.tensor]
    }
    outside = {b.name: b.maker is not None for b in axes.buffers if b.maker is None or b.tensor in leaving}
    nest = (_in_bands if random.random() < 0.6 else random_nest)(random, axes, outside)
    nest = random_ways(random, nest, TILES)
    nest = randomly_late(nest, axes, leaving)  # type: ignore[arg-type]
    names = tuple(network.operators[v].name for v in ids)
    for tried in (nest, without_late(nest), without_copies(nest)):
        try:
            nested(network, Group("g", names, 0, tiling=tried), ids, None, alignment, None)
        except Broken:
            continue
        return tried
    return None


def _had(plan: Plan) -> Counter[str]:
    """Count groups by what is in them."""
    found = Counter[str]()
    for group in plan.groups:
        if not isinstance(group.tiling, Nest):
            found["groups in other tiles"] += 1
            continue
        bodies = [group.tiling, *_loops(group.tiling.body)]
        ring, in_copies = _rings(group.tiling)
        found["groups with rings"] += ring
        found["groups with rings in copies"] += in_copies
        found["groups beside the one before"] += group.tiling.beside
        found["groups with copies"] += any(one.ways.copies for one in bodies)
        found["groups with late stores"] += any(one.ways.late for one in bodies)
    return +found


def _rings(nest: Nest) -> tuple[bool, bool]:
    """Return whether there is a ring, and one in copies."""
    rings = {name for one in _loops(nest.body) for name in one.ring}
    copies = {name for one in _loops(nest.body) for name, _ in one.ways.copies}
    return bool(rings), bool(rings & copies)


def _loops(body: Sequence[Loop | Leaf]) -> Iterator[Loop]:
    for item in body:
        if isinstance(item, Loop):
            yield item
            yield from _loops(item.body)


def _in_bands(random: Random, axes: GroupAxes, outside: dict[str, bool]) -> Nest:
    """A loop over rows or columns, now and then in a loop over another axis, in which rings begin again."""
    ranks = min(len(cut.axes) for cut in axes.operators)
    first, second = random.sample(range(min(ranks, 4)), 2) if ranks > 1 else (0, 0)
    nest = banded_nest(random, axes, outside, first)
    if ranks < 2 or random.random() < 0.4:
        return nest
    over = tuple((cut.name, second) for cut in axes.operators)
    tile = random.randint(1, max(1, axes.operators[0].axes[second] - 1))
    return Nest((Loop(over, tile, nest.body, nest.keep),))


def planned(random: Random, source: Source, seconds: float) -> Plan | None:
    """Return a plan that is searched for so long, for the least time or the fewest bytes; None without one.

    The chip's rates, and the room, between a tenth and most of the network, are drawn.
    """
    channel = Channel(
        random.choice((3 * 10**8, 10**9, 10**10)), random.choice((0, 9_000, 50_000, 500_000)),
        random.choice((0, 5_000)), random.choice((1, 64)),
    )  # fmt: skip
    sides = random.choice(
        (TILES.sides, TILES.sides, TILES.sides[1:], (ArraySide("sum", 4), *TILES.sides[:1]))
    )
    vector = random.choice((None, 10**8, 10**10))
    tiles = TileRates(random.choice((10**8, 10**9)), (channel,), random.choice((0, 24, 100)), sides, vector)
    chip = Chip("maps", random.choice((1, 4, 64)), "float32", tiles=tiles)
    network = source.network
    whole = sum(t.bytes for t in network.tensors) + sum(op.weight_bytes for op in network.operators)
    room = int(whole * random.choice((0.1, 0.2, 0.3, 0.5, 0.8)))
    more: dict[str, Any] = random.choice(({}, {"objective": "latency"}, {"objective": "latency"}))
    for budget in (room, 3 * room, 9 * room):
        try:
            return onchip.plan(
                source, chip=chip, budget=budget, fuse=True, time_limit=seconds, dram_tiles=False, **more
            )
        except OnchipError:  # too little room, or none in which it has a time
            continue
    return None


def program_trial(seed: int, folder: Path, seconds: float | None = None) -> Counter[str]:
    """Run one plan by all executors; return what it had. Raises where outputs or bytes are others.

    With `seconds` the plan is searched for so long, instead of drawn.
    """
    random = Random(seed)
    path = folder / "model.onnx"
    path.write_bytes(windowed_model(random).SerializeToString())
    source = onchip.load(path, dtype="file")
    if seconds is None:
        plan = next((one for _ in range(8) if (one := nests_of_maps(random, source))), None)
    else:
        plan = planned(random, source, seconds)
    if plan is None:
        return Counter({"models without a plan": 1})
    report = run(plan, source)
    assert report.relative_difference <= 1e-4, f"the machine: {report.relative_difference:.1e}"
    found = Counter({"plans": 1, "groups": len(plan.groups)}) + _had(plan)
    for name, program in (("loops", loops_ran), ("threads", turns_ran)):
        try:
            program(folder, plan, source, f"-DLANES={random.choice((4, 8, 16))}")
        except UsageError:  # names what has no C
            found[f"without {name}"] += 1
    return found
