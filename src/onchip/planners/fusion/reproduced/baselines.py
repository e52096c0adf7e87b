"""The baselines of fusion: no fusion, two earlier fusers, their spaces, their cost model, and the ideal.

A baseline is a partition with the bytes that its own model gives it. Our model can price each of its groups
again (`repriced`), which never makes it dearer as long as the options allow resident weights: the figures of
another fuser are not taken on trust.

- `none`: every operator alone, as our own model runs it.
- `dnnvm`, `efficient-s`: their spaces (`spaces`) and their cost (`published`); operators in no group of
  theirs are priced as in `none`.
- `space1`, `space2`: the same two spaces with our cost (the paper's "w/o Full Space 1 and 2", figure 15).
- `without-model`: every convex group, with their cost ("w/o Model"); of very many the best found.
- `dnnvm-tile`, `efficient-s-tile`, `without-model-tile`: the same with their cost in tiles (`tiles`), as the
  text prints it, which no machine can run: figures only.
- `oracle`: network inputs and outputs once for every image, weights once in all. No partition has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from onchip.network import bits
from onchip.planners.fusion.cost import misfit
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.reproduced.algorithm1 import GroupCostFunction
from onchip.planners.fusion.reproduced.costs import Published
from onchip.planners.fusion.reproduced.dag import Dag
from onchip.planners.fusion.reproduced.downsets import WIDTH, best_scheme
from onchip.planners.fusion.reproduced.groups import connected_groups
from onchip.planners.fusion.reproduced.spaces import best_intervals, dnnvm_lines, efficient_s_lines
from onchip.planners.fusion.reproduced.tiles import Tiled

__all__ = [
    "NAMES",
    "TILE",
    "TILED",
    "Baseline",
    "Baselines",
    "baseline",
    "baselines",
    "oracle_bytes",
    "repriced",
]

NAMES = ("none", "dnnvm", "efficient-s", "space1", "space2", "without-model")
"""The baselines that are partitions."""

TILE = "-tile"
TILED = tuple(name + TILE for name in ("dnnvm", "efficient-s", "without-model"))
"""Those with the older fusers' cost, in tiles of T_h x T_w as the text prints it."""


MOST_GROUPS = 10_000
"""The most groups that `without-model` tries before it settles for the best found."""

NARROW = 4
"""The most sets of finished operators that are then followed at a time."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A partition in an order that can run, and the bytes of all images that its own model gives it.

    `complete`: the search behind it was (only `without-model` on a very wide network may not be).
    """

    name: str
    groups: tuple[int, ...]
    dram_bytes: int
    complete: bool = True


def baseline(
    problem: FusionProblem, name: str, cost: GroupCostFunction, stop: Callable[[], bool] | None = None
) -> Baseline:
    """Return one baseline by its name; `cost` is our model's bytes of a group.

    Once `stop` returns true, the best so far: only `without-model` takes long, and is then not complete.
    Raises `Infeasible` naming the first operator that does not fit alone, `KeyError` for another name.
    """
    dag = Dag.of(problem.network)
    cost = cache(cost)
    theirs = cache(Tiled(problem) if name in TILED else Published(problem))
    for v in dag.order:
        if cost(1 << v) is None:
            raise misfit(problem, v)
    match name.removesuffix(TILE) if name in TILED else name:
        case "none":
            groups = tuple(1 << v for v in dag.order)
            return Baseline(name, groups, sum(cost(g) or 0 for g in groups))
        case "dnnvm" | "space1":
            lines = dnnvm_lines(dag)
        case "efficient-s" | "space2":
            lines = efficient_s_lines(dag)
        case "without-model":
            return _without_model(name, dag, theirs, cost, stop)
        case _:
            raise KeyError(name)
    groups, total = best_intervals(lines, cost if name.startswith("space") else theirs, cost)
    return Baseline(name, dag.in_order(groups), total)


def _without_model(
    name: str,
    dag: Dag,
    theirs: GroupCostFunction,
    cost: GroupCostFunction,
    stop: Callable[[], bool] | None,
) -> Baseline:
    """Return the best of all groups at their price; of too many the best found."""
    alone = {1 << v: cost(1 << v) or 0 for v in dag.order}
    fitting = connected_groups(dag, theirs, limit=MOST_GROUPS, stop=stop)
    # their price of an operator alone counts where it is the lower one
    costs = fitting | {g: min(c, fitting.get(g, c)) for g, c in alone.items()}
    few = len(fitting) < MOST_GROUPS
    scheme, complete = best_scheme(dag, costs, width=WIDTH if few else NARROW, stop=stop)
    if few and complete and not (stop is not None and stop()):
        return Baseline(name, scheme.groups, scheme.cost)
    groups, total = best_intervals(efficient_s_lines(dag), theirs, cost)
    if total <= scheme.cost:
        return Baseline(name, dag.in_order(groups), total, False)
    return Baseline(name, scheme.groups, scheme.cost, False)


@dataclass(frozen=True, slots=True)
class Baselines:
    """Bytes of all images by name: `none`, `dnnvm`, `efficient_s`, `without_model` and `oracle`.

    Those named in `incomplete` are only the best that was found.
    """

    dram_bytes: Mapping[str, int]
    incomplete: tuple[str, ...]


def baselines(
    problem: FusionProblem, cost: GroupCostFunction, stop: Callable[[], bool] | None = None
) -> Baselines:
    """Return the baselines of a result. Once `stop` returns true, the best found so far."""
    cost = cache(cost)
    named = {
        name.replace("-", "_"): baseline(problem, name, cost, stop)
        for name in ("none", "dnnvm", "efficient-s", "without-model")
    }
    moved = {name: found.dram_bytes for name, found in named.items()}
    return Baselines(
        moved | {"oracle": oracle_bytes(problem)},
        tuple(name for name, found in named.items() if not found.complete),
    )


def oracle_bytes(problem: FusionProblem) -> int:
    """Return inputs and outputs of all images and all weights, each once: no schedule moves less."""
    network = problem.network
    crossing = network.input_roots | network.output_roots
    for t in bits(network.roots):
        if not network.readers[t] and network.producer[t] is not None:
            crossing |= 1 << t
    return sum(network.tensors[t].bytes for t in bits(crossing)) + network.weight_bytes


def repriced(given: Baseline, cost: GroupCostFunction) -> int | None:
    """Return the bytes of a baseline's partition by our model; None if it refuses one of the groups."""
    prices = [cost(group) for group in given.groups]
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None
