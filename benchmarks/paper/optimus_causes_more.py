"""More of why figures of Optimus are not the paper's: batches, the older fusers' range, both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from optimus_schemes import BATCH, OLDER, PAPER, WORD, Bench, Row, timed

from onchip.machines.chip import load_chip
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.algorithm1 import TooManyStates, bottom_up, top_down
from onchip.planners.fusion.reproduced.baselines import baseline
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.strategy import Priced

__all__ = ["MORE_CAUSES"]

BATCHES = (1, 2, 4, 8, 16, 32)
BUFFERS = (128, 256, 512, 1024)
DIRECTIONS = ("vgg16", "resnet50", "resnet152", "googlenet", "squeezenet1_0")


def batch(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 19: batches whose images have buffers of their own (`held`), by the size of the buffer."""
    if name not in ("vgg16", "squeezenet1_0"):
        return
    chip = load_chip("optimus")
    for kib in BUFFERS:
        for images in BATCHES:
            options = replace(PAPER, batch_weights="held")
            problem = bench.problem(name, chip, options, batch=images, budget=kib << 10)
            words = bench.scheme(problem, name, "exact").dram_bytes // WORD
            yield {"kib": kib, "batch": images, "words": words}


OPTIONS: tuple[tuple[str, Any], ...] = (
    ("isoa", "off"),
    ("isoa", "channelwise"),
    ("halo", "lines"),
    ("residency", "none"),
    ("batch_weights", "held"),
    ("weight_tile", True),
    ("channel_tile", 1),
)


def words(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 14: what is saved over the older fusers on SqueezeNet, their upper end, one thing changed."""
    if name != "squeezenet1_0":
        return
    chip = load_chip("optimus")
    plain = bench.problem(name, chip, PAPER)
    changes: dict[str, FusionProblem] = {"as it is": plain}
    for key, value in OPTIONS:
        changes[f"{key} {value}"] = bench.problem(name, chip, replace(PAPER, **{key: value}))
    for images in (1, 2, 8):
        changes[f"batch {images}"] = bench.problem(name, chip, PAPER, batch=images)
    for kib in (64, 112):
        changes[f"{kib} KB"] = bench.problem(name, chip, PAPER, budget=kib << 10)
    changes["tiles two rows high"] = replace(plain, least_rows=2)
    for change, problem in changes.items():
        exact = bench.scheme(problem, name, "exact").dram_bytes
        saved = {how: 1 - exact / bench.scheme(problem, name, how).dram_bytes for how in OLDER}
        yield {"change": change} | saved


def directions(bench: Bench, name: str) -> Iterator[Row]:
    """Table 5: Algorithm 1 in both directions, CPU seconds, and the most successors of an operator.

    Every group's cost is asked for once before, so that both directions look costs up and only walk.
    """
    if name not in DIRECTIONS:
        return
    problem = bench.problem(name, load_chip("optimus"), PAPER, batch=BATCH)
    dag, price = Dag.of(problem.network), Priced(problem)
    known: dict[int, int | None] = {}

    def cost(group: int) -> int | None:
        if group not in known:
            found = price.group(group)
            known[group] = None if found is None else found.dram_bytes
        return known[group]

    row: Row = {"successors": max(s.bit_count() for s in dag.successors)}
    for way, walk in (("bottom-up", bottom_up), ("top-down", top_down)):
        try:
            walk(dag, cost)
            row[way] = timed(lambda walk=walk: walk(dag, cost))[1]
        except TooManyStates:
            row[way] = None
    yield row


def intervals(bench: Bench, name: str) -> Iterator[Row]:
    """Table 5: the exact search in the space of the bottom-up algorithm, groups' costs included."""
    problem = bench.problem(name, load_chip("optimus"), PAPER)
    price = Priced(problem)
    found, seconds = timed(lambda: baseline(problem, "space2", price))
    yield {"words": found.dram_bytes // WORD, "seconds": seconds, "priced": price.count}


MORE_CAUSES: dict[str, Callable[[Bench, str], Iterator[Row]]] = {
    "cause-batch": batch,
    "cause-words": words,
    "cause-directions": directions,
    "cause-intervals": intervals,
}
