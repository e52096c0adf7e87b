"""How the readings of Optimus' cost model change its figures, and what each of our improvements brings.

    python benchmarks/fusion_readings.py [--into docs/fusion-model.md]

Networks are those of `fusion_graphs.py`, from the zoo.
Tables are in million words (16 bits) at 128 KiB, batch 4, T_c 16; some seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fusion_graphs import papers_network
from page_marks import Section, write

from onchip.machines.chip import load_chip
from onchip.network import bits
from onchip.planners.fusion import FusionOptions, FusionProblem, group_cost
from onchip.planners.fusion.cost import bands_cost
from onchip.planners.fusion.residency import Weights, choose
from onchip.planners.fusion.rows import bands_of, buffer_rows, halo_rows, overlaps, rows_of
from onchip.planners.fusion.search import best_partition
from onchip.planners.fusion.streams import buffer_bytes, candidates, smallest

NETWORKS = ("vgg16", "mobilenet_v1", "squeezenet1_0", "googlenet", "resnet50", "resnet152")
PAPER = FusionOptions("shared", "paper", "paper", "all", "fallback", weight_tile=False)
PER_IMAGE = replace(PAPER, batch_weights="per-image")
STEPS = (
    ("the paper's, per image", PER_IMAGE),
    ("streams where nothing is summed", replace(PER_IMAGE, isoa="channelwise")),
    ("rows really held, halos and the weight tile charged",
     replace(PER_IMAGE, isoa="channelwise", halo="lines", weight_tile=True)),
    ("some weights resident",
     replace(PER_IMAGE, isoa="channelwise", halo="lines", weight_tile=True, residency="partial")),
    ("blocks for operators alone (the default)", FusionOptions()),
    ("bands of several images (`held`)", FusionOptions(batch_weights="held")),
)  # fmt: skip


def no_fusion() -> Iterator[str]:
    """No fusion, by the reading of phi and of streamed inputs."""
    yield from head(
        "phi chosen for each t",
        "phi fixed at t = 1",
        "rows that cross again charged, all else kept",
        "rows that cross again charged, rows really held, every height",
    )
    for name in NETWORKS:
        problem = problem_of(name, PAPER)
        lines = replace(problem, options=replace(PAPER, halo="lines"))
        yield row(name, alone(problem), fixed(problem), charged(problem), alone(lines))


def best() -> Iterator[str]:
    """The best partition under the paper's options, with shared weights."""
    yield from head("none", "exact", "groups", "oracle")
    for name in NETWORKS:
        problem = problem_of(name, PAPER)
        found = best_partition(problem)
        none, exact, ideal = words(alone(problem)), words(found.dram_bytes), words(oracle(problem))
        yield f"| {name} | {none} | {exact} | {len(found.groups)} | {ideal} |"


def steps() -> Iterator[str]:
    """What each step changes in the best partition, per image unless said."""
    yield from head(*NETWORKS, corner="options")
    for label, options in STEPS:
        yield row(label, *(best_partition(problem_of(name, options)).dram_bytes for name in NETWORKS))


SECTIONS: dict[str, Section] = {"no-fusion": no_fusion, "best": best, "steps": steps}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    write(SECTIONS, parser.parse_args().into)


def problem_of(name: str, options: FusionOptions) -> FusionProblem:
    return FusionProblem.of(papers_network(name, 4), load_chip("optimus"), options, 128 << 10)


def alone(problem: FusionProblem) -> int:
    """Every operator by itself."""
    costs = [group_cost(problem, 1 << v) for v in range(len(problem.operators))]
    return sum(c.dram_bytes for c in costs if c is not None)


def charged(problem: FusionProblem) -> int:
    """The same, band by band as eq. 3 as printed chooses, and the rows that cross again on top."""
    total = alone(problem)
    for v in range(len(problem.operators)):
        cost, bands = group_cost(problem, 1 << v), bands_of(problem, 1 << v)
        if cost is None or bands is None:
            continue
        for x, again in halo_rows(problem, bands, cost.streamed, cost.rows).items():
            shape = problem.maps[x]
            assert shape is not None
            total += problem.batch * shape.channels * shape.row_bytes * again
    return total


def fixed(problem: FusionProblem) -> int:
    """The same with phi as Algorithm 2 has it: what saves most in a band of one row, whatever the band."""
    total = 0
    for v in range(len(problem.operators)):
        cost = bands_cost(problem, 1 << v)
        assert cost is not None
        weights = problem.operators[v].weight_bytes
        total += (
            cost.io_bytes + min(_fetched(problem, v), default=cost.weight_bytes) if weights else cost.io_bytes
        )
    return total


def _fetched(problem: FusionProblem, v: int) -> Iterator[int]:
    """Bytes of weights for every band that fits with phi of t = 1."""
    bands = bands_of(problem, 1 << v)
    assert bands is not None
    size = problem.operators[v].weight_bytes
    at_one = smallest(problem, bands, candidates(problem, bands), 1, 1, 1 << 50)
    assert at_one is not None
    rows = rows_of(problem, bands.tensors)
    for t in range(1, bands.longest + 1):
        held = buffer_rows(problem, bands, overlaps(problem, bands, at_one[1]), t)
        used = sum(buffer_bytes(problem, x, held[x], 1, bool(at_one[1] >> x & 1)) for x in bands.tensors)
        chosen = choose([Weights(v, size, size, 0)], problem.budget - used, "all")
        if used <= problem.budget and chosen is not None:
            yield size + (bands.count(rows, t) - 1) * chosen.refilled_bytes


def oracle(problem: FusionProblem) -> int:
    network = problem.network
    ends = network.input_roots | network.output_roots
    return network.weight_bytes + sum(network.tensors[t].bytes for t in bits(ends))


def head(*columns: str, corner: str = "network") -> Iterator[str]:
    yield "| " + " | ".join((corner, *columns)) + " |"
    yield "|---|" + "--:|" * len(columns)


def row(name: str, *sizes: int) -> str:
    return f"| {name} | " + " | ".join(map(words, sizes)) + " |"


def words(size: int) -> str:
    return f"{size / 2e6:.2f}"


if __name__ == "__main__":
    main()
