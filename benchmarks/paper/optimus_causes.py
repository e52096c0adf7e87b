"""Why figures of ours are not the paper's: each time one thing is changed, and what comes is a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fusion_graphs import drawn, fusion_graph
from optimus_schemes import BATCH, OLDER, OURS, PAPER, WORD, Bench, Row, energies, one_sum, sized

import onchip
from onchip.machines.chip import Chip, load_chip
from onchip.network import Network
from onchip.planners.fusion.cost import GroupCost
from onchip.planners.fusion.energy import group_energy
from onchip.planners.fusion.online import OnlineFuser
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.search import Fuser, Space, count_convex
from onchip.planners.limits import Limits

BUDGET = 128 << 10
BEYOND_MACS = ("dram", "buffer", "array", "registers")


def energy(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 13: energy of the older fusers over the exact partition's, and one thing changed at a time."""
    chip = sized(load_chip("optimus"))
    problem = bench.problem(name, chip, PAPER)
    ours = bench.scheme(problem, name, "exact").groups
    exact, least = energies(problem, ours, chip), energies(problem, ours, chip, "energy")
    for how in OLDER:
        groups = bench.scheme(problem, name, how).groups
        theirs = energies(problem, groups, chip)
        yield {
            "how": how,
            "as it is": ratio(theirs, exact),
            "no registers": ratio(theirs, exact, ("dram", "buffer", "array")),
            "DRAM alone": ratio(theirs, exact, ("dram",)),
            "blocks of least energy": ratio(energies(problem, groups, chip, "energy"), least),
            "theirs with one sum": ratio(energies(problem, groups, one_sum(chip)), exact),
        }


def ratio(one: Row, other: Row, levels: tuple[str, ...] = BEYOND_MACS) -> float:
    return float(sum(one[x] for x in levels) / sum(other[x] for x in levels))


def latency(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 13: latency of the older fusers over the exact partition's, also with half the bandwidth: DDR3-800
    on a bus of 32 bits, not 64."""
    chip = load_chip("optimus")
    problem = bench.problem(name, chip, PAPER)
    for how in OLDER:
        seconds = [seconds_of(problem, bench.scheme(problem, name, x).groups, chip) for x in (how, "exact")]
        (theirs, theirs_half), (ours, ours_half) = seconds
        yield {"how": how, "64 bits": theirs / ours, "32 bits": theirs_half / ours_half}


def seconds_of(problem: FusionProblem, groups: Sequence[GroupCost], chip: Chip) -> tuple[float, float]:
    """Seconds of all groups at the chip's bandwidth and at half of it."""
    found = [group_energy(problem, group, chip) for group in groups]
    times = [(f.compute_seconds or 0.0, f.dram_seconds or 0.0) for f in found]
    return sum(max(a, b) for a, b in times), sum(max(a, 2 * b) for a, b in times)


def dataflow(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 17: words of `oh-ow`; with a tile of one row, not 16; with 16 channels, not one."""
    if name != "squeezenet1_0":
        return
    for flow in ("ow-cout", "oh-ow"):
        chip = replace(load_chip("optimus"), dataflow=flow)
        problem = bench.problem(name, chip, OURS)
        changes: dict[str, FusionProblem] = {"as it is": problem, "T_h = 1": replace(problem, least_rows=1)}
        if flow == "oh-ow":
            changes["T_c = 16"] = bench.problem(name, chip, replace(OURS, channel_tile=16))
        for change, changed in changes.items():
            words = bench.scheme(changed, name, "exact").dram_bytes // WORD
            tile = f"{changed.least_rows} x {changed.least_columns} x {changed.channel_tile}"
            yield {"dataflow": flow, "change": change, "tile": tile, "words": words}


def finals(bench: Bench, name: str) -> Iterator[Row]:
    """Table 5: final groups under the paper's options, and one thing changed at a time."""
    if name not in ("vgg16", "squeezenet1_0", "googlenet", "resnet50", "resnet152", "resnet1202"):
        return
    network = bench.network(name, BATCH)
    yield from _finals(network, "as it is")
    for key, value in CHANGES:
        yield from _finals(network, f"{key} {value}", **{key: value})
    for kib in (256, 512):
        yield from _finals(network, f"{kib} KB", budget=kib << 10)
    for batch in (1, 16):
        yield from _finals(bench.network(name, batch), f"batch {batch}")
    if name == "googlenet":
        yield from _finals(fusion_graph(pools_in_projections(), BATCH), "pools in their projections")
    if name == "resnet1202":
        for side in (64, 224):
            wide = onchip.load(f"zoo:resnet1202@{side}x{side}", dtype="int16", batch=BATCH).network
            yield from _finals(wide, f"{side} x {side} pixels")
        wide = fusion_graph(widened(drawn("resnet1202@56x56"), 4), BATCH)
        yield from _finals(wide, "56 x 56 pixels, 64 to 256 channels")


CHANGES: tuple[tuple[str, Any], ...] = (
    ("isoa", "channelwise"),
    ("isoa", "off"),
    ("halo", "lines"),
    ("residency", "none"),
    ("batch_weights", "per-image"),
    ("weight_tile", True),
    ("channel_tile", 1),
)


def _finals(network: Network, change: str, budget: int = BUDGET, **options: Any) -> Iterator[Row]:
    problem = FusionProblem.of(network, load_chip("optimus"), replace(PAPER, **options), budget)
    found = Fuser(problem).best(limits=Limits(60.0))
    assert found.complete
    yield {
        "change": change,
        "operators": len(network.operators),
        "convex": count_convex(problem),
        "groups": len(found.groups),
        "several": sum(g.members.bit_count() > 1 for g in found.groups),
        "words": found.dram_bytes // WORD,
    }


def pools_in_projections() -> Row:
    """GoogLeNet's graph with the nine pools of stride one in the convolutions behind them: 72 operators."""
    graph = drawn("googlenet")
    rows = {row["name"]: dict(row) for row in graph["operators"]}
    for row in list(rows.values()):
        before = rows.get(row["reads"][0])
        if row["kind"] == "conv" and before and before["kind"] == "pool" and before["stride"] == 1:
            row |= {"reads": before["reads"], "kernel": before["kernel"]}
            del rows[before["name"]]
    return graph | {"operators": list(rows.values())}


def widened(graph: Row, times: int) -> Row:
    """The graph with so many times the channels in every map but its input."""
    rows = []
    first = graph["input_chw"][0]
    for row in graph["operators"]:
        inputs = first if row["reads"] == ["input"] else times * row["c_in"]
        outputs = row["c_out"] if row["kind"] == "fc" else times * row["c_out"]
        words = inputs * outputs * row["kernel"] ** 2 + outputs if row["weight_words"] else 0
        rows.append(row | {"c_in": inputs, "c_out": outputs, "weight_words": words})
    return graph | {"operators": rows}


def online(bench: Bench, name: str) -> Iterator[Row]:
    """Table 5: groups that obey the on-line rules, by the most operators of a group."""
    if name not in ("vgg16", "squeezenet1_0", "googlenet", "resnet50", "resnet152", "nasnetalarge"):
        return
    problem = bench.problem(name, load_chip("optimus"), PAPER)
    limit = OnlineFuser.of(problem).limit(BUDGET)
    counts = {}
    for largest in range(2, 13 if name != "nasnetalarge" else 7):
        fuser = Fuser(replace(problem, budget=1 << 40), Space(largest=largest, whole_fan_out=True))
        several = sum(group.bit_count() > 1 for group, _ in fuser.prepare(None).groups)
        counts[largest] = len(problem.operators) + several
    yield {"limit": limit, "counts": counts}


CAUSES: dict[str, Callable[[Bench, str], Iterator[Row]]] = {
    "cause-energy": energy,
    "cause-latency": latency,
    "cause-dataflow": dataflow,
    "cause-groups": finals,
    "cause-online": online,
}
