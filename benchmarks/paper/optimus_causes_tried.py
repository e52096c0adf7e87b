"""What was tried where Optimus' figures do not come: overlap of transfers, prices of transport, concats that
move nothing, how much Eyeriss compresses, sums within convolutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from fusion_graphs import drawn
from optimus_causes import ratio
from optimus_online import merged, obeying
from optimus_parts import as_built
from optimus_schemes import LEVELS, OLDER, OURS, PAPER, WORD, Bench, Row, energies, one_sum, sized

from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip, PEArray, load_chip
from onchip.machines.chip_parts import AccessCosts
from onchip.planners.fusion.energy import group_energy
from onchip.planners.fusion.reproduced.baselines import baseline
from onchip.planners.fusion.strategy import Priced

__all__ = ["TRIED"]

WIDTHS = (64, 32, 24, 16)
"""Bits of the DRAM's bus; the chip's bandwidth is that of the first."""
RATIOS = (1.0, 1.1, 1.2, 1.4, 2.0)
"""How much Eyeriss compresses feature maps; the last is the chip's."""
COLUMNS = (8, 16, 24, 30, 31, 32, 48, 112)
"""Columns of the tile that the older fusers keep; the array's own are 16."""
ROOMS = (128, 120, 112, 111, 110, 108)
"""KB that the exact partition has for its maps."""
IN_ROWS = ("dnnvm", "efficient-s")
IN_TILES = ("dnnvm-tile", "efficient-s-tile")
FLOWS = ("ow-cout", "oh-ow", "cin-cout")
LATE = ("alexnet_features", "vgg16", "googlenet", "mobilenet_v1", "nasnetalarge")
"""Networks on which DNNVM still gains from 256 to 1,024 KB."""
LARGER = (256, 512, 1024, 2048, 4096, 8192)
"""KB of buffers in which it may stop."""
EARLY = ("googlenet", "mobilenet_v1", "squeezenet1_0", "resnet1202")
"""Networks on which an older fuser is better than no fusion at 32 KB already."""
SMALLER = (32, 16, 8, 4)
"""KB of buffers in which it may not be."""
MOST = 7
"""Operators of the largest groups that obey the on-line rules."""


def overlap(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 13: latency over the exact partition's where transfers overlap arithmetic within each group, and
    where they do over the whole network, by the width of the bus."""
    chip = load_chip("optimus")
    problem = bench.problem(name, chip, PAPER)
    times: dict[str, list[tuple[float, float]]] = {}
    for how in (*OLDER, "exact"):
        found = [group_energy(problem, g, chip) for g in bench.scheme(problem, name, how).groups]
        times[how] = [(f.compute_seconds or 0.0, f.dram_seconds or 0.0) for f in found]
    for how in OLDER:
        for bits in WIDTHS:
            theirs, ours = (_latencies(times[x], WIDTHS[0] / bits) for x in (how, "exact"))
            ratios = {way: theirs[way] / ours[way] for way in theirs}
            yield {"how": how, "bits": bits} | ratios


def _latencies(times: list[tuple[float, float]], slower: float) -> dict[str, float]:
    arithmetic, transfers = (sum(column) for column in zip(*times, strict=True))
    return {
        "within groups": sum(max(a, slower * b) for a, b in times),
        "not at all": arithmetic + slower * transfers,
        "over the network": max(arithmetic, slower * transfers),
    }


def widths(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 14: shares saved over the older fusers by the width of the tile that they keep."""
    if name in ("alexnet", "nasnetalarge"):
        return
    problem = bench.problem(name, load_chip("optimus"), PAPER)
    exact = bench.scheme(problem, name, "exact").dram_bytes
    for columns in COLUMNS:
        tiles = replace(problem, least_columns=columns)
        saved = {how: 1 - exact / bench.scheme(tiles, name, how).dram_bytes for how in IN_TILES}
        yield {"columns": columns} | saved


TILE_PAID = "128, a tile of kernels paid"


def room(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 14: shares saved over the older fusers in rows where the exact partition alone has less room.

    Parameters that are fetched again have to lie somewhere, which eq. 4 leaves out: with a tile of kernels
    paid by the exact partition alone, in all of the memory, the last row.
    """
    if name in ("alexnet", "nasnetalarge"):
        return
    chip = load_chip("optimus")
    whole = bench.problem(name, chip, PAPER)
    theirs = {how: bench.scheme(whole, name, how).dram_bytes for how in IN_ROWS}
    for kib in ROOMS:
        exact = bench.scheme(bench.problem(name, chip, PAPER, budget=kib << 10), name, "exact")
        saved = {how: 1 - exact.dram_bytes / words for how, words in theirs.items()}
        yield {"kib": kib, "groups": len(exact.groups)} | saved
    paid = bench.scheme(bench.problem(name, chip, replace(PAPER, weight_tile=True)), name, "exact")
    saved = {how: 1 - paid.dram_bytes / words for how, words in theirs.items()}
    yield {"kib": TILE_PAID, "groups": len(paid.groups)} | saved


def flows(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 17: energy by dataflow, one thing changed at a time."""
    if name != "squeezenet1_0":
        return
    for flow in FLOWS:
        base = replace(load_chip("optimus"), dataflow=flow)
        chip = sized(base)
        problem = bench.problem(name, chip, OURS)
        groups = bench.scheme(problem, name, "exact").groups
        row = replace(problem, least_rows=1)
        large = sized(replace(base, array=PEArray(16, 16, 512)))
        costs = chip.access_costs
        assert costs is not None
        found = {
            "as it is": energies(problem, groups, chip),
            "blocks of least energy": energies(problem, groups, chip, "energy"),
            "T_h = 1": energies(row, bench.scheme(row, name, "exact").groups, chip),
            "512 B of registers": energies(problem, groups, large),
            "array at half its price": energies(problem, groups, _priced(chip, costs, array=costs.array / 2)),
            "array at no price": energies(problem, groups, _priced(chip, costs, array=0.0)),
            "buffer at half its price": energies(
                problem, groups, _priced(chip, costs, buffer=costs.buffer / 2)
            ),
        }
        for change, levels in found.items():
            yield {"dataflow": flow, "change": change, "energy": sum(levels[x] for x in LEVELS)}


def _priced(chip: Chip, costs: AccessCosts, **prices: float) -> Chip:
    return replace(chip, access_costs=replace(costs, **prices))


def concats(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 14: shares saved on SqueezeNet where a concat that runs alone moves nothing, in all schemes."""
    if name != "squeezenet1_0":
        return
    problem = bench.problem(name, load_chip("optimus"), PAPER)
    joins = sum(1 << op.id for op in problem.network.operators if op.type == "cat")

    def moved(how: str) -> int:
        return sum(
            g.dram_bytes
            for g in bench.scheme(problem, name, how).groups
            if g.members & ~joins or g.members.bit_count() > 1
        )

    yield {"change": "concats alone move nothing"} | {how: 1 - moved("exact") / moved(how) for how in OLDER}


def larger(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 16: DNNVM in larger buffers, on the networks where it has not stopped to gain."""
    if name not in LATE:
        return
    for kib in LARGER:
        problem = bench.problem(name, load_chip("optimus"), PAPER, budget=kib << 10)
        words = baseline(problem, IN_TILES[0], Priced(problem)).dram_bytes // WORD
        yield {"kib": kib, "words": words}


def smaller(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 16: what the older fusers save in smaller buffers; nothing where an operator fits nowhere."""
    if name not in EARLY:
        return
    for kib in SMALLER:
        problem = bench.problem(name, load_chip("optimus"), PAPER, budget=kib << 10)
        with suppress(Infeasible):
            none = bench.scheme(problem, name, "none").dram_bytes
            saved = {how: 1 - bench.scheme(problem, name, how).dram_bytes / none for how in OLDER}
            yield {"kib": kib} | saved


def registers(bench: Bench, name: str) -> Iterator[Row]:
    """Fig. 13: the exact partition's own energy with registers of one sum, over its energy as it is."""
    if name == "nasnetalarge":
        return
    chip = sized(load_chip("optimus"))
    problem = bench.problem(name, chip, PAPER)
    groups = bench.scheme(problem, name, "exact").groups
    yield {"times": ratio(energies(problem, groups, one_sum(chip)), energies(problem, groups, chip))}


def compression(bench: Bench, name: str) -> Iterator[Row]:
    """Table 4: what is saved on Eyeriss, by how much the chip as built compresses its feature maps."""
    chip = load_chip("eyeriss")
    problem = bench.problem(name, chip, PAPER)
    exact = bench.scheme(problem, name, "exact").dram_bytes
    for times in RATIOS:
        built = as_built(problem, replace(chip, feature_map_compression=times))
        yield {"ratio": times, "less": 1 - exact / built}


def sums(bench: Bench, name: str) -> Iterator[Row]:
    """Table 5: groups that obey the on-line rules, the ResNets' sums within the convolutions before them."""
    if name not in ("resnet50", "resnet152"):
        return
    reads = merged(drawn(name))
    counts = dict(enumerate(obeying(reads, MOST), 1))
    yield {"operators": len(reads), "counts": counts}


TRIED: dict[str, Callable[[Bench, str], Iterator[Row]]] = {
    "cause-overlap": overlap,
    "cause-widths": widths,
    "cause-room": room,
    "cause-flows": flows,
    "cause-concats": concats,
    "cause-compression": compression,
    "cause-sums": sums,
    "cause-larger": larger,
    "cause-smaller": smaller,
    "cause-registers": registers,
}
