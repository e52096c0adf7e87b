"""Tables of docs/optimus.md that show what was tried where a difference has no cause that was found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from optimus_data import EVALUATED, LABELS, Data, head, mega
from optimus_paper import TABLE_4, TABLE_4_NETWORKS
from optimus_schemes import NETWORKS, OLDER

__all__ = [
    "ahead_by_ratio", "away_by_ratio", "buffers", "compression", "concats", "ends", "ends_in",
    "flow_energies", "flows", "larger", "mean_latency", "overlap", "registers", "rooms",
    "saved_in_the_smallest", "smaller", "stops", "sums", "widths",
]  # fmt: skip

COMPARED = ("alexnet_features", *TABLE_4_NETWORKS[1:])
NINE = 9
"""Networks whose least and most are shown: fewer would have others."""
STOPPED = 0.005
"""A fall by less than this, as a fraction, is none."""
WAYS = ("within groups", "not at all", "over the network")


def mean_latency(d: Data, how: str, way: str, bits: int) -> float:
    """Of the evaluated networks, an older fuser's latency over the exact partition's."""
    rows = [r for r in d.all("cause-overlap", how=how, bits=bits) if r["network"] in EVALUATED]
    return float(sum(r[way] for r in rows) / len(rows))


def overlap(d: Data) -> Iterator[str]:
    """Figure 13's latency by what transfers overlap with and the width of the bus."""
    widths = dict.fromkeys(r["bits"] for r in d.all("cause-overlap"))
    yield (
        "\nMean latency over the exact partition's, ten networks, by where transfers overlap arithmetic and"
        " the width of the bus:\n"
    )
    yield from head("overlap", "bits", *(LABELS[how] for how in OLDER), left=2)
    for way in WAYS:
        for bits in widths:
            cells = " | ".join(f"{mean_latency(d, how, way, bits):.2f}" for how in OLDER)
            yield f"| {way} | {bits} | {cells} |"


def concats(d: Data) -> Iterator[str]:
    """One row more of the changes on SqueezeNet."""
    for r in d.all("cause-concats"):
        yield f"| {r['change']} | " + " | ".join(f"{100 * r[how]:.1f} %" for how in OLDER) + " |"


def ends(d: Data, how: str, columns: int) -> tuple[float, float]:
    """Of nine networks, least and most per cent saved over an older fuser with tiles so wide."""
    saved = [100 * r[how] for r in d.all("cause-widths", columns=columns)]
    return min(saved), max(saved)


def widths(d: Data) -> Iterator[str]:
    """Figure 14's ends by the width of the older fusers' tile."""
    found = d.all("cause-widths")
    if len(d.names("cause-widths")) < NINE:
        return
    yield "\nLess than each by the exact partition, nine networks, none NASNet, by the width of their tile:\n"
    yield from head("columns", "DNNVM: least | most", "Efficient-S: least | most")
    yield "| the paper | 19 % | 75 % | 17 % | 58 % |"
    for columns in dict.fromkeys(r["columns"] for r in found):
        cells = [f"{x:.1f} %" for how in ("dnnvm-tile", "efficient-s-tile") for x in ends(d, how, columns)]
        yield f"| {columns} | " + " | ".join(cells) + " |"


def flows(d: Data) -> Iterator[str]:
    """Figure 17's energy by dataflow, one thing changed."""
    found = d.all("cause-flows")
    names = dict.fromkeys(r["dataflow"] for r in found)
    yield "\nEnergy of the exact partition in 10^9 multiply-accumulates, 64 B, with one thing changed:\n"
    yield from head("change", *names, "apart")
    for change in dict.fromkeys(r["change"] for r in found):
        values = [d.all("cause-flows", dataflow=n, change=change)[-1]["energy"] for n in names]
        cells = " | ".join(f"{v / 1e9:.2f}" for v in values)
        yield f"| {change} | {cells} | {100 * (max(values) / min(values) - 1):.0f} % |"


def rooms(d: Data) -> Iterator[str]:
    """Figure 14's ends by what the exact partition alone has for its maps."""
    found = d.all("cause-room")
    if len(d.names("cause-room")) < NINE:
        return
    yield "\nLess than each in rows in 128 KB, nine networks; the exact partition alone has less:\n"
    yield from head("KB", "DNNVM: least | most", "Efficient-S: least | most", "final groups of ResNet-152")
    yield "| the paper | 19 % | 75 % | 17 % | 58 % | 99 |"
    for kib in dict.fromkeys(r["kib"] for r in found):
        cells = [f"{x:.1f} %" for how in ("dnnvm", "efficient-s") for x in ends_in(d, how, kib)]
        groups = d.one("cause-room", network="resnet152", kib=kib)
        cells.append("-" if groups is None else str(groups["groups"]))
        yield f"| {kib} | " + " | ".join(cells) + " |"


def ends_in(d: Data, how: str, kib: int | str) -> tuple[float, float]:
    """Of nine networks, least and most per cent saved over an older fuser in rows."""
    saved = [100 * r[how] for r in d.all("cause-room", kib=kib)]
    return min(saved), max(saved)


def flow_energies(d: Data) -> Iterator[str]:
    """How far the dataflows' energies are apart, in %, with one thing changed after the other."""
    for change in dict.fromkeys(r["change"] for r in d.all("cause-flows")):
        values = [r["energy"] for r in d.all("cause-flows", change=change)]
        yield f"{change} {100 * (max(values) / min(values) - 1):.0f}"


def ahead_by_ratio(d: Data, ratio: float) -> int:
    """Networks of Table 4 on which the exact partition moves less than Eyeriss as it was built."""
    return sum(r["less"] > 0 for r in d.all("cause-compression", ratio=ratio) if r["network"] in COMPARED)


def compression(d: Data) -> Iterator[str]:
    """Table 4 on Eyeriss by how much it compresses as built."""
    ratios = dict.fromkeys(r["ratio"] for r in d.all("cause-compression"))
    names = ["alexnet_features" if n == "alexnet" else n for n in TABLE_4_NETWORKS]
    names = [n for n in names if d.all("cause-compression", network=n)]
    yield "\nThe same on Eyeriss, the paper's options, by how much it compresses feature maps as built:\n"
    yield from head("ratio", *(NETWORKS[n] for n in names), "points away")
    for ratio in ratios:
        less = [d.all("cause-compression", network=n, ratio=ratio)[-1]["less"] for n in names]
        cells = " | ".join(f"{100 * x:.2f}" for x in less)
        yield f"| {ratio:.1f} | {cells} | {away_by_ratio(d, ratio):.1f} |"


def away_by_ratio(d: Data, ratio: float) -> float:
    """Points from the paper's row for Eyeriss, on average of the networks that there are."""
    apart = []
    for name, theirs in zip(TABLE_4_NETWORKS, TABLE_4["eyeriss"], strict=True):
        network = "alexnet_features" if name == "alexnet" else name
        found = d.all("cause-compression", network=network, ratio=ratio)
        apart += [abs(100 * r["less"] - theirs) for r in found]
    return sum(apart) / len(apart)


def sums(d: Data) -> Iterator[str]:
    """On-line groups of the ResNets where sums are within convolutions."""
    found = d.all("cause-sums")
    if not found:
        return
    sizes = sorted({int(n) for r in found for n in r["counts"]})
    yield "\nThe same where a sum is part of the last convolution that it reads:\n"
    yield from head("network", "operators", *map(str, sizes))
    for r in found:
        counts = {int(n): c for n, c in r["counts"].items()}
        cells = " | ".join(f"{counts[n]:,}" for n in sizes)
        yield f"| {NETWORKS[r['network']]} | {r['operators']} | {cells} |"


def larger(d: Data) -> Iterator[str]:
    """Fig. 16: DNNVM in tiles in larger buffers."""
    sizes = _sizes(d)
    found = stops(d)
    yield from head("Mwords, DNNVM in tiles", *(f"{kib:,} KB" for kib in sizes), "no step of 0.5 % from")
    for name in d.names("cause-larger"):
        words = (mega(d.words("cause-larger", network=name, kib=kib)) for kib in sizes)
        stop = f"{found[name]:,} KB" if name in found else "-"
        yield f"| {NETWORKS[name]} | {' | '.join(words)} | {stop} |"


def smaller(d: Data) -> Iterator[str]:
    """Fig. 16: what the older fusers save of no fusion in smaller buffers."""
    if not d.all("cause-smaller"):
        return
    yield "\nLess than no fusion, the paper's options; no row where some operator fits nowhere:\n"
    yield from head("network", "KB", *(LABELS[how] for how in OLDER))
    for r in d.all("cause-smaller"):
        cells = " | ".join(f"{100 * r[how]:.1f} %" for how in OLDER)
        yield f"| {NETWORKS[r['network']]} | {r['kib']} | {cells} |"


def saved_in_the_smallest(d: Data) -> tuple[int, float]:
    """KB of the smallest buffer that is tried, and the most per cent that an older fuser saves there."""
    least = min(int(r["kib"]) for r in d.all("cause-smaller"))
    return least, max(100 * r[how] for r in d.all("cause-smaller", kib=least) for how in OLDER)


def buffers(d: Data) -> Iterator[str]:
    """Fig. 16 in larger buffers, and in smaller ones."""
    yield from larger(d)
    yield from smaller(d)


def registers(d: Data) -> Iterator[str]:
    """Fig. 13: what registers of one sum cost the exact partition itself."""
    if not d.all("cause-registers"):
        return
    said = ", ".join(f"{NETWORKS[r['network']]} {r['times']:.2f}" for r in d.all("cause-registers"))
    yield f"\nThe exact partition's own energy with registers of one sum, over what it is: {said}."


def stops(d: Data) -> dict[str, int]:
    """KB from which larger buffers bring DNNVM nothing, of the networks on which it stops."""
    found, sizes = {}, _sizes(d)
    for name in d.names("cause-larger"):
        words = [d.words("cause-larger", network=name, kib=kib) for kib in sizes]
        falls = [n for n, (a, b) in enumerate(pairwise(words), 1) if 1 - b / a >= STOPPED]
        if (last := max(falls, default=0)) < len(sizes) - 1:
            found[name] = sizes[last]
    return found


def _sizes(d: Data) -> list[int]:
    return list(dict.fromkeys(int(r["kib"]) for r in d.all("cause-larger")))
