"""Networks, options and schemes of Optimus' evaluation: what a record of `optimus_parts.py` measures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from fusion_graphs import papers_network

from onchip.machines.chip import Chip, PEArray
from onchip.network import Network
from onchip.planners.fusion.cost import GroupCost, bands_cost
from onchip.planners.fusion.energy import group_energy
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.baselines import TILED, Baseline, baseline
from onchip.planners.fusion.reproduced.costs import Published
from onchip.planners.fusion.reproduced.tiles import Tiled
from onchip.planners.fusion.search import Fuser, Partition
from onchip.planners.fusion.strategy import Priced, partition
from onchip.planners.limits import Limits

NETWORKS = {
    "alexnet": "AlexNet",
    "alexnet_features": "AlexNet without FC",
    "vgg16": "VGG16",
    "googlenet": "GoogLeNet",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "resnet152": "ResNet-152",
    "mobilenet_v1": "MobileNet",
    "squeezenet1_0": "SqueezeNet",
    "nasnetalarge": "NASNet",
    "resnet1202": "ResNet-1202",
}
LARGE = ("nasnetalarge", "resnet1202")
BATCH = 4
OURS = FusionOptions()
PAPER = FusionOptions(
    batch_weights="shared",
    isoa="paper",
    halo="paper",
    residency="all",
    weight_tile=False,
    blocks="fallback",
)
"""What the paper's equations say, as far as its text goes; docs/fusion-model.md has the readings."""
READINGS = {"ours": OURS, "paper": PAPER}
HOWS = (
    "none",
    "dnnvm",
    "dnnvm-tile",
    "efficient-s",
    "efficient-s-tile",
    "without-model",
    "without-model-tile",
    "space1",
    "space2",
    "online",
    "exact",
)
OLDER = ("dnnvm", "dnnvm-tile", "efficient-s", "efficient-s-tile")
"""The older fusers in both readings of the tile that they keep on chip."""
LEVELS = ("dram", "buffer", "array", "registers", "macs")
SECONDS = 30.0
"""At most so long for one partition that is not listed to its end (NASNet's)."""
WORD = 2
Row = dict[str, Any]


@dataclass(frozen=True)
class Scheme:
    """Groups, what they move, and how they were found."""

    groups: Sequence[GroupCost]
    dram_bytes: int
    status: str
    bound_bytes: int
    candidates: int
    seconds: float


class Bench:
    """The networks at some batch, and the schemes that were found before."""

    def __init__(self) -> None:
        self.network: Callable[[str, int], Network] = cache(papers_network)
        self._found: dict[tuple[Any, ...], Scheme] = {}

    def problem(
        self, name: str, chip: Chip, options: FusionOptions, *, batch: int = BATCH, budget: int | None = None
    ) -> FusionProblem:
        network = self.network(name, batch)
        return FusionProblem.of(network, chip, options, budget or chip.scratchpad_bytes or 0)

    def scheme(self, problem: FusionProblem, name: str, how: str) -> Scheme:
        """A scheme, found once for whatever else is priced with it."""
        p = problem
        tile = (p.least_rows, p.least_columns, p.channel_tile)
        key = (name, how, p.options, p.batch, p.budget, tile, p.maps_budget, p.weights_budget)
        if key not in self._found:
            self._found[key] = scheme(problem, how)
        return self._found[key]


def scheme(problem: FusionProblem, how: str) -> Scheme:
    """`exact` and `online` by our own cost; the others as `baselines` defines them, each with its own."""
    price = Priced(problem)
    if how == "exact":
        found, seconds = timed(lambda: best(problem))
        seen = found.figures.candidates
        if found.complete:
            return Scheme(found.groups, found.dram_bytes, "optimal", found.lower_bound_bytes, seen, seconds)
        limited = replace(problem, options=replace(problem.options, time_limit=SECONDS))
        large, more = timed(lambda: partition(limited, price, Limits(SECONDS)))
        total = sum(g.dram_bytes for g in large.groups)
        groups, total = min(((large.groups, total), (found.groups, found.dram_bytes)), key=lambda x: x[1])
        bound = max(large.lower_bound_bytes, found.lower_bound_bytes)
        status = "optimal" if bound >= total else "feasible"
        return Scheme(groups, total, status, bound, seen, seconds + more)
    if how == "online":
        fuser = OnlineFuser.of(problem)
        plan, seconds = timed(lambda: fuser.plan(problem.budget))
        return Scheme(plan.groups, plan.dram_bytes, "feasible", 0, 0, seconds)
    given, seconds = timed(lambda: baseline(problem, how, price))
    groups = as_it_runs(problem, given, price)
    return Scheme(groups, given.dram_bytes, "optimal" if given.complete else "feasible", 0, 0, seconds)


def best(problem: FusionProblem) -> Partition:
    return Fuser(problem).best(limits=Limits(SECONDS), most_groups=200_000)


def as_it_runs(problem: FusionProblem, given: Baseline, price: Priced) -> list[GroupCost]:
    """How a baseline runs its groups: all weights on chip, no streaming by channels; or as we do.

    What is priced in tiles runs, for its energy and time, in bands of the least height in as much buffer as
    they need, and moves what its tiles do.
    """
    theirs: Callable[[int], int | None] = lambda _: None  # noqa: E731
    plain = replace(problem, options=replace(problem.options, isoa="off", residency="all"))
    bands = Published(plain)
    if given.name in TILED:
        theirs = Tiled(problem)
    elif given.name in ("dnnvm", "efficient-s", "without-model"):
        theirs = Published(problem)
    groups = []
    for members in given.groups:
        moved, cost = theirs(members), None
        if moved is not None:
            room = max(plain.budget, bands.need(members) or 0) if given.name in TILED else plain.budget
            cost = bands_cost(replace(plain, budget=room), members)
        if moved is not None and cost is not None:
            groups.append(replace(cost, dram_bytes=moved))
            continue
        alone = price.group(members)
        assert alone is not None, "a baseline's group that nobody can run"
        groups.append(alone)
    return groups


def energies(
    problem: FusionProblem,
    groups: Sequence[GroupCost],
    chip: Chip,
    least: Literal["words", "energy"] = "words",
) -> Row:
    """Energy by level in multiply-accumulates, and seconds."""
    found = [group_energy(problem, g, chip, least=least) for g in groups]
    levels = {level: sum(getattr(f, level) for f in found) for level in LEVELS}
    return levels | {"latency": sum(f.seconds or 0.0 for f in found)}


def sized(chip: Chip) -> Chip:
    """`chip` with prices that grow with its memories: an inference, as the paper has only one size's.

    Eyeriss' two prices, 1 for 512 bytes of registers and 6 for 100 KB of buffer, fix the exponent.
    """
    growth = math.log(6) / math.log(100 * 1024 / 512)
    assert chip.access_costs is not None
    costs = replace(
        chip.access_costs,
        register=((registers(chip) or 64) / 512) ** growth,
        buffer=6 * ((chip.scratchpad_bytes or 0) / (100 * 1024)) ** growth,
    )
    return replace(chip, access_costs=costs)


def one_sum(chip: Chip) -> Chip:
    """`chip` with registers for one sum and a word of each operand: nothing is used twice in an element."""
    assert chip.array is not None
    return replace(chip, array=PEArray(chip.array.rows, chip.array.columns, 3 * WORD))


def registers(chip: Chip) -> int | None:
    """Bytes of the register file of each processing element."""
    return None if chip.array is None else chip.array.register_file_bytes


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` gives, and its CPU seconds; of what is quick the best of five, as others disturb it."""
    fastest = float("inf")
    for _ in range(5):
        began = time.process_time()
        result = work()
        fastest = min(fastest, time.process_time() - began)
        if fastest > 0.1:
            break
    return result, fastest
