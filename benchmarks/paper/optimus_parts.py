"""What is measured for each part of Optimus' evaluation: records, one a network and way of doing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from statistics import median

from optimus_executed import accuracies
from optimus_schemes import (
    BATCH,
    HOWS,
    OLDER,
    PAPER,
    READINGS,
    WORD,
    Bench,
    Row,
    energies,
    registers,
    sized,
)

from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip, PEArray, load_chip
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.baselines import oracle_bytes
from onchip.planners.fusion.reproduced.costs import Published
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.groups import connected_groups
from onchip.planners.fusion.search import count_convex
from onchip.planners.fusion.strategy import Priced

FIG7_LARGEST = 4
FIG7_MOST = 20_000
"""Groups of one network that figure 7 looks at: all but of NASNet."""
EXECUTED = ("vgg16", "googlenet", "resnet18", "resnet50", "mobilenet_v1", "squeezenet1_0")
BUFFERS = (32, 64, 128, 256, 512, 1024)
BATCHES = (1, 2, 4, 8, 16, 32)
ACCELERATORS = ("eyeriss", "shidiannao", "lower-bound")
Part = Callable[[Bench, str], Iterator[Row]]


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
    found = bench.scheme(problem, name, how)
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


def fig2(bench: Bench, name: str) -> Iterator[Row]:
    """Feature maps against parameters, one image, as each operator writes them."""
    network = bench.network(name, 1)
    maps = sum(network.tensors[t].bytes for op in network.operators for t in op.outputs)
    yield {"maps": maps // WORD, "weights": network.weight_bytes // WORD}


def fig7(bench: Bench, name: str) -> Iterator[Row]:
    """What groups need on chip if all their weights and a band of every map lie there, by group size."""
    problem = bench.problem(name, load_chip("optimus"), PAPER, batch=1, budget=1 << 40)
    dag = Dag.of(problem.network)
    sizes: dict[int, list[int]] = {}
    needs = connected_groups(dag, Published(problem).need, most=FIG7_LARGEST, limit=FIG7_MOST)
    for group, need in needs.items():
        sizes.setdefault(group.bit_count(), []).append(need)
    for size, found in sorted(sizes.items()):
        fit = sum(need <= 128 << 10 for need in found)
        yield {"size": size, "groups": len(found), "fit": fit, "median": int(median(found))}


def fig12(bench: Bench, name: str) -> Iterator[Row]:
    """Groups executed in tiles: words counted, words of our model, words of the paper's equation 3."""
    if name not in EXECUTED:
        return
    for group in accuracies(name):
        yield dict(group)


def fig13(bench: Bench, name: str) -> Iterator[Row]:
    """Figures 13, 14, 15: every scheme, with its energy and time."""
    chip = sized(load_chip("optimus"))
    for reading in READINGS:
        for how in HOWS:
            yield row(bench, "fig13", name, how, reading, chip, energy=True)


def fig16(bench: Bench, name: str) -> Iterator[Row]:
    """Buffers from 32 KB to 1 MB; nothing where a reading fits some operator into no band."""
    chip = load_chip("optimus")
    ways = (*((how, "paper") for how in ("none", *OLDER, "exact")), ("exact", "ours"))
    for kib in BUFFERS:
        for how, reading in ways:
            with suppress(Infeasible):
                yield row(bench, "fig16", name, how, reading, chip, budget=kib << 10)


def fig17(bench: Bench, name: str) -> Iterator[Row]:
    """Three dataflows and three register files, SqueezeNet."""
    if name != "squeezenet1_0":
        return
    for dataflow in ("ow-cout", "oh-ow", "cin-cout"):
        for size in (32, 64, 512):
            array = PEArray(16, 16, size)
            chip = sized(replace(load_chip("optimus"), dataflow=dataflow, array=array))
            for how in ("none", "exact"):
                yield row(bench, "fig17", name, how, "ours", chip, energy=True)


def fig18(bench: Bench, name: str) -> Iterator[Row]:
    """The eight configurations of table 3; with blocks of sums chosen for the least energy, too."""
    for i in range(1, 9):
        chip = sized(load_chip(f"optimus-{i}"))
        for reading in READINGS:
            found = row(bench, "fig18", name, "exact", reading, chip, energy=True)
            problem = bench.problem(name, chip, READINGS[reading])
            groups = bench.scheme(problem, name, "exact").groups
            yield found | {"least": energies(problem, groups, chip, "energy")}


def fig19(bench: Bench, name: str) -> Iterator[Row]:
    """Batches of 1 to 32 images; with buffers for all images of the batch, too (`held`)."""
    if name not in ("vgg16", "squeezenet1_0"):
        return
    chip = load_chip("optimus")
    for batch in BATCHES:
        for how in ("none", *OLDER, "exact"):
            yield row(bench, "fig19", name, how, "paper", chip, batch=batch)
        yield row(bench, "fig19", name, "exact", "ours", chip, batch=batch)
        held = bench.problem(name, chip, replace(PAPER, batch_weights="held"), batch=batch)
        words = bench.scheme(held, name, "exact").dram_bytes // WORD
        yield {"how": "held", "reading": "paper", "batch": batch, "words": words}


def tab4(bench: Bench, name: str) -> Iterator[Row]:
    """Other accelerators as they were built, layer by layer, against the same with fusion.

    Nothing where a reading fits no operator of a network into a chip's buffers.
    """
    for chip_name, change in TABLE_4_CHANGES:
        for reading in READINGS if change == "" else ("paper",):
            found = less_than_built(bench, name, chip_name, change, reading)
            if found is not None:
                yield {"chip": chip_name, "change": change, "reading": reading, "less": found}


TABLE_4_CHANGES = (
    *((chip, "") for chip in ACCELERATORS),
    ("eyeriss", "uncompressed"),
    ("shidiannao", "one row"),
    ("lower-bound", "half as much memory again"),
)
"""Chips, and for each the one thing in which the paper's machine may have been another."""


def less_than_built(bench: Bench, name: str, chip_name: str, change: str, reading: str) -> float | None:
    """The share that fusion saves; None where an operator fits nowhere."""
    chip = load_chip(chip_name)
    if change == "uncompressed":
        chip = replace(chip, feature_map_compression=None)
    memory = chip.scratchpad_bytes or 0
    more = memory // 2 if change == "half as much memory again" else 0
    problem = bench.problem(name, chip, READINGS[reading], budget=memory + more)
    if change == "one row":
        problem = replace(problem, least_rows=1)
    try:
        exact = bench.scheme(problem, name, "exact").dram_bytes
    except Infeasible:
        return None
    return 1 - exact / as_built(problem, chip)


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


def tab5(bench: Bench, name: str) -> Iterator[Row]:
    """Convex groups, groups looked at, and seconds; both readings."""
    chip = load_chip("optimus")
    for reading in READINGS:
        for how in ("exact", "online"):
            found = row(bench, "tab5", name, how, reading, chip)
            if how == "exact":
                found["convex"] = count_convex(bench.problem(name, chip, READINGS[reading]))
            yield found


PARTS: dict[str, Part] = {
    "fig2": fig2,
    "fig7": fig7,
    "fig12": fig12,
    "fig13": fig13,
    "fig16": fig16,
    "fig17": fig17,
    "fig18": fig18,
    "fig19": fig19,
    "tab4": tab4,
    "tab5": tab5,
}
