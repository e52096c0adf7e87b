"""Optimus' evaluation again (figures 2, 7, 13 to 19, tables 4, 5): the tables and plots of docs/optimus.md.

    python benchmarks/paper/optimus.py measure DATA.json [--graphs FOLDER] [--only PATTERN] [--parts PARTS]
    python benchmarks/paper/optimus.py render DATA.json [--into docs/optimus.md]

`measure` fuses the paper's networks at batch 4 on chip `optimus` and its relatives. Networks come from the
zoo, or from a FOLDER of operator graphs (see `fusion_graphs.py`); what DATA.json holds of other parts stays.
`render` (needs `pip install 'onchip[docs]'`) prints the tables, or puts them and the plots into the page.
Seconds are CPU seconds of one process, the best of five where they are under a tenth of a second. Figure 12
(words counted against words modelled) is `benchmarks/fusion_executed.py`.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fusion_graphs import fusion_graph

import onchip
from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip, PEArray, load_chip
from onchip.network import Network
from onchip.planners.fusion.cost import GroupCost, bands_cost
from onchip.planners.fusion.energy import group_energy
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.options import FusionOptions
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.baselines import baseline, oracle_bytes
from onchip.planners.fusion.reproduced.costs import Published
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.groups import connected_groups
from onchip.planners.fusion.search import Fuser, Partition, count_convex
from onchip.planners.fusion.strategy import Priced, partition
from onchip.planners.limits import Limits

NETWORKS = {
    "alexnet": "AlexNet",
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
SMALL = tuple(name for name in NETWORKS if name not in ("nasnetalarge", "resnet1202"))
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
HOWS = ("none", "dnnvm", "efficient-s", "without-model", "space1", "space2", "online", "exact")
LEVELS = ("dram", "buffer", "array", "registers", "macs")
SECONDS = 60.0
"""At most so long for one partition."""
FIG7_LARGEST = 4
WORD = 2
Row = dict[str, Any]


# -- networks and schemes ------------------------------------------------------------------------------------


class Bench:
    """The networks at some batch: a folder's graphs where it has them, else the zoo's."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.network: Callable[[str, int], Network] = cache(self._network)

    def _network(self, name: str, batch: int) -> Network:
        if self.folder is not None and (path := self.folder / f"{name}.json").is_file():
            return fusion_graph(path, batch)
        model = f"zoo:{name}@331x331" if name == "nasnetalarge" else f"zoo:{name}"
        return onchip.load(model, dtype="int16", batch=batch).network

    def problem(
        self, name: str, chip: Chip, options: FusionOptions, *, batch: int = BATCH, budget: int | None = None
    ) -> FusionProblem:
        network = self.network(name, batch)
        return FusionProblem.of(network, chip, options, budget or chip.scratchpad_bytes or 0)


@dataclass(frozen=True)
class Scheme:
    """Groups, what they move, and how they were found; `energy` by level, in multiply-accumulates."""

    groups: Sequence[GroupCost]
    dram_bytes: int
    status: str
    bound_bytes: int
    candidates: int
    seconds: float


def scheme(problem: FusionProblem, how: str) -> Scheme:
    """`exact` and `online` by our own cost; the others as `baselines` defines them, each with its own."""
    price = Priced(problem)
    if how == "exact":
        found, seconds = timed(lambda: best(problem))
        seen = found.figures.candidates
        if found.complete:
            return Scheme(found.groups, found.dram_bytes, "optimal", found.lower_bound_bytes, seen, seconds)
        limited = replace(problem, options=replace(problem.options, time_limit=SECONDS))
        large, seconds = timed(lambda: partition(limited, price))
        total = sum(g.dram_bytes for g in large.groups)
        return Scheme(large.groups, total, "feasible", large.lower_bound_bytes, seen, seconds)
    if how == "online":
        fuser = OnlineFuser.of(problem)
        plan, seconds = timed(lambda: fuser.plan(problem.budget))
        return Scheme(plan.groups, plan.dram_bytes, "feasible", 0, 0, seconds)
    given, seconds = timed(lambda: baseline(problem, how, price))
    groups = [as_it_runs(problem, g, given.name, price) for g in given.groups]
    return Scheme(groups, given.dram_bytes, "optimal" if given.complete else "feasible", 0, 0, seconds)


def best(problem: FusionProblem) -> Partition:
    return Fuser(problem).best(limits=Limits(SECONDS), most_groups=200_000)


def as_it_runs(problem: FusionProblem, members: int, name: str, price: Priced) -> GroupCost:
    """How a baseline runs one of its groups: all weights on chip, no streaming by channels; or as we do."""
    if name in ("dnnvm", "efficient-s", "without-model"):
        theirs = Published(problem)(members)
        plain = replace(problem, options=replace(problem.options, isoa="off", residency="all"))
        cost = bands_cost(plain, members)
        if theirs is not None and cost is not None:
            return replace(cost, dram_bytes=theirs)
    cost = price.group(members)
    assert cost is not None, "a baseline's group that nobody can run"
    return cost


def energies(problem: FusionProblem, groups: Sequence[GroupCost], chip: Chip) -> Row:
    """Energy by level in multiply-accumulates, and seconds."""
    found = [group_energy(problem, g, chip) for g in groups]
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


# -- the parts -----------------------------------------------------------------------------------------------


def row(
    bench: Bench,
    part: str,
    name: str,
    how: str,
    reading: str,
    chip: Chip,
    *,
    batch: int = BATCH,
    budget: int | None = None,
    energy: bool = False,
) -> Row:
    """One scheme on one network: words, groups, seconds, and its energy where asked."""
    problem = bench.problem(name, chip, READINGS[reading], batch=batch, budget=budget)
    found = scheme(problem, how)
    result: Row = {
        "part": part,
        "network": name,
        "how": how,
        "reading": reading,
        "chip": chip.name,
        "dataflow": chip.dataflow,
        "register_file": registers(chip),
        "batch": batch,
        "buffer": problem.budget,
        "operators": len(problem.network.operators),
        "words": found.dram_bytes // WORD,
        "bound": found.bound_bytes // WORD,
        "oracle": oracle_bytes(problem) // WORD,
        "groups": len(found.groups),
        "candidates": found.candidates,
        "status": found.status,
        "seconds": found.seconds,
    }
    return result | (energies(problem, found.groups, chip) if energy else {})


def fig2(bench: Bench, only: str) -> Iterator[Row]:
    """Feature maps against parameters, one image, as each operator writes them."""
    for name in fnmatch.filter(NETWORKS, only):
        network = bench.network(name, 1)
        maps = sum(network.tensors[t].bytes for op in network.operators for t in op.outputs)
        yield {"part": "fig2", "network": name, "maps": maps // WORD, "weights": network.weight_bytes // WORD}


def fig7(bench: Bench, only: str) -> Iterator[Row]:
    """What groups need on chip if all their weights and a band of every map lie there, by group size."""
    for name in fnmatch.filter(SMALL, only):
        problem = bench.problem(name, load_chip("optimus"), PAPER, batch=1, budget=1 << 40)
        dag = Dag.of(problem.network)
        sizes: dict[int, list[int]] = {}
        needs = connected_groups(dag, Published(problem).need, most=FIG7_LARGEST)
        for group, need in needs.items():
            sizes.setdefault(group.bit_count(), []).append(need)
        for size, found in sorted(sizes.items()):
            yield {
                "part": "fig7",
                "network": name,
                "size": size,
                "groups": len(found),
                "fit": sum(need <= 128 << 10 for need in found),
                "median": int(median(found)),
            }


def fig13(bench: Bench, only: str) -> Iterator[Row]:
    """Figures 13, 14, 15: every scheme on every network, with its energy and time."""
    chip = sized(load_chip("optimus"))
    for name in fnmatch.filter(NETWORKS, only):
        for reading in READINGS:
            hows = HOWS if name in SMALL else ("none", "dnnvm", "efficient-s", "online", "exact")
            for how in hows:
                yield row(bench, "fig13", name, how, reading, chip, energy=True)


def fig16(bench: Bench, only: str) -> Iterator[Row]:
    """Buffers from 32 KB to 1 MB."""
    chip = load_chip("optimus")
    for name in fnmatch.filter(SMALL, only):
        for kib in (32, 64, 128, 256, 512, 1024):
            for how in ("none", "dnnvm", "efficient-s", "exact"):
                yield row(bench, "fig16", name, how, "paper", chip, budget=kib << 10)
            yield row(bench, "fig16", name, "exact", "ours", chip, budget=kib << 10)


def fig17(bench: Bench, only: str) -> Iterator[Row]:
    """Three dataflows and two register files, SqueezeNet."""
    if not fnmatch.filter(["squeezenet1_0"], only):
        return
    for dataflow in ("ow-cout", "oh-ow", "cin-cout"):
        for size in (32, 64, 512):
            array = PEArray(16, 16, size)
            chip = sized(replace(load_chip("optimus"), dataflow=dataflow, array=array))
            for how in ("none", "exact"):
                yield row(bench, "fig17", "squeezenet1_0", how, "ours", chip, energy=True)


def fig18(bench: Bench, only: str) -> Iterator[Row]:
    """The eight configurations of table 3."""
    for name in fnmatch.filter(SMALL, only):
        for i in range(1, 9):
            chip = sized(load_chip(f"optimus-{i}"))
            for reading in READINGS:
                yield row(bench, "fig18", name, "exact", reading, chip, energy=True)


def fig19(bench: Bench, only: str) -> Iterator[Row]:
    """Batches of 1 to 32 images."""
    chip = load_chip("optimus")
    for name in fnmatch.filter(("vgg16", "squeezenet1_0"), only):
        for batch in (1, 2, 4, 8, 16, 32):
            for how in ("none", "dnnvm", "efficient-s", "exact"):
                yield row(bench, "fig19", name, how, "paper", chip, batch=batch)
            yield row(bench, "fig19", name, "exact", "ours", chip, batch=batch)


def tab4(bench: Bench, only: str) -> Iterator[Row]:
    """Other accelerators as they were built, layer by layer, against the same with fusion.

    Nothing where a reading fits no operator of a network into a chip's buffers.
    """
    for name in fnmatch.filter(SMALL, only):
        for chip_name in ("eyeriss", "shidiannao", "lower-bound"):
            chip = load_chip(chip_name)
            for reading in READINGS:
                try:
                    built = row(bench, "tab4", name, "none", reading, chip)
                except Infeasible:
                    continue
                problem = bench.problem(name, chip, READINGS[reading])
                built["words"] = as_built(problem, chip) // WORD
                yield built | {"how": "as-built"}
                yield row(bench, "tab4", name, "exact", reading, chip)


def as_built(problem: FusionProblem, chip: Chip) -> int:
    """Bytes of a chip that runs operators one by one; its feature maps compressed where it does that."""
    ratio = chip.feature_map_compression or 1.0
    total = 0.0
    price = Priced(problem)
    for op in problem.operators:
        cost = price.group(1 << op.id)
        assert cost is not None
        total += cost.weight_bytes + (cost.io_bytes + cost.halo_bytes) / ratio
    return round(total)


def tab5(bench: Bench, only: str) -> Iterator[Row]:
    """Convex groups, groups looked at, and seconds; both readings."""
    chip = load_chip("optimus")
    for name in fnmatch.filter(NETWORKS, only):
        for reading in READINGS:
            for how in ("exact", "online"):
                found = row(bench, "tab5", name, how, reading, chip)
                if how == "exact":
                    convex = count_convex(bench.problem(name, chip, READINGS[reading]))
                    found["convex"] = convex
                yield found


PARTS: dict[str, Callable[[Bench, str], Iterator[Row]]] = {
    "fig2": fig2,
    "fig7": fig7,
    "fig13": fig13,
    "fig16": fig16,
    "fig17": fig17,
    "fig18": fig18,
    "fig19": fig19,
    "tab4": tab4,
    "tab5": tab5,
}


# -- the command line ----------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("action", choices=("measure", "render"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--graphs", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="networks")
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    if args.action == "render":
        import optimus_page

        measured = json.loads(args.data.read_text())
        if args.into is None:
            print(optimus_page.figures(measured))
        else:
            optimus_page.put_into(args.into, measured)
        return
    machine = f"{platform.machine()}, {os.cpu_count()} cores, one used; Python {platform.python_version()}"
    records = json.loads(args.data.read_text())["records"] if args.data.exists() else []
    bench = Bench(args.graphs)
    for part in args.parts.split(","):
        for name in fnmatch.filter(NETWORKS, args.only):
            fresh = []
            for record in PARTS[part](bench, name):
                fresh.append(record)
                shown = {
                    k: record[k] for k in ("how", "reading", "words", "groups", "seconds") if k in record
                }
                print(part, name, shown, file=sys.stderr, flush=True)
            if fresh:
                records = [r for r in records if (r["part"], r["network"]) != (part, name)] + fresh
                args.data.write_text(json.dumps({"machine": machine, "records": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
