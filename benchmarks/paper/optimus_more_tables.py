"""Tables of docs/optimus.md that show what was changed to find a cause, and the searches of Table 5."""

from __future__ import annotations

from collections.abc import Iterator

from optimus_data import LABELS, Data, evaluated, head, mega
from optimus_paper import DIRECTIONS, TABLE_5
from optimus_schemes import LEVELS, NETWORKS, OLDER
from optimus_tried_tables import concats, sums

__all__ = ["SHARES", "by_buffer", "directions", "groups", "grown", "intervals", "on_squeezenet", "standing"]

SHARES = (0.0, 0.1, 0.2, 0.3)
"""Energy that goes by time, as a share of what the smaller of two arrays takes."""
PAIRS = ((1, 2), (3, 4), (5, 6), (7, 8))
"""Configurations that differ in the array alone, the smaller one first (6 and 7 differ in registers, too)."""


def on_squeezenet(d: Data) -> Iterator[str]:
    """Figure 14's upper end with one thing changed."""
    yield "Less than each by the exact partition, SqueezeNet, the paper's options, one thing changed:\n"
    yield from head("change", *(LABELS[how] for how in OLDER))
    for r in d.all("cause-words"):
        yield f"| {r['change']} | " + " | ".join(f"{100 * r[how]:.1f} %" for how in OLDER) + " |"
    yield from concats(d)


def grown(d: Data, share: float, *, least: bool, pairs: tuple[tuple[int, int], ...] = PAIRS) -> list[float]:
    """How much more energy the larger array takes, by network and pair, with that share going by time."""
    found = []
    for name in evaluated(d, "fig18"):
        for pair in pairs:
            small, large = (
                d.all("fig18", network=name, chip=f"optimus-{i}", reading="paper")[-1] for i in pair
            )
            one, two = (sum((r["least"] if least else r)[x] for x in LEVELS) for r in (small, large))
            power = share * one / small["latency"]
            found.append((two + power * large["latency"]) / (one + power * small["latency"]) - 1)
    return found


def without_dram(d: Data) -> int:
    """Pairs in which the energy of all levels but DRAM's falls, with blocks of least energy."""
    levels = [x for x in LEVELS if x != "dram"]
    falls = 0
    for name in evaluated(d, "fig18"):
        for pair in PAIRS:
            one, two = (
                sum(
                    d.all("fig18", network=name, chip=f"optimus-{i}", reading="paper")[-1]["least"][x]
                    for x in levels
                )
                for i in pair
            )
            falls += two < one
    return falls


def standing(d: Data) -> Iterator[str]:
    """Figure 18: from the smaller array to the larger, with energy that goes by time."""
    yield (
        f"\n{_from(PAIRS)}, which differ in the array alone, ten networks, the paper's options: pairs in"
        " which the energy falls, and its change on average, where a share of what the smaller array takes is"
        " added as energy that goes by time, the same each second on both:\n"
    )
    ways = (("blocks of fewest words", False), ("blocks of least energy", True))
    yield from head("share by time", *(f"{title}: pairs | change" for title, _ in ways))
    for share in SHARES:
        cells = []
        for _, least in ways:
            found = grown(d, share, least=least)
            cells.append(f"{sum(x < 0 for x in found)} of {len(found)}")
            cells.append(f"{100 * sum(found) / len(found):.1f} %")
        yield f"| {100 * share:.0f} % | " + " | ".join(cells) + " |"
    yield "\nThe same pair by pair without energy by time; from 6 to 7 registers change, too:\n"
    yield from head("configurations", *(f"{title}: networks | change" for title, _ in ways))
    for pair in (*PAIRS, (6, 7)):
        cells = []
        for _, least in ways:
            found = grown(d, 0.0, least=least, pairs=(pair,))
            cells.append(f"{sum(x < 0 for x in found)} of {len(found)}")
            cells.append(f"{100 * sum(found) / len(found):.1f} %")
        yield f"| {pair[0]} to {pair[1]} | " + " | ".join(cells) + " |"
    count = len(grown(d, 0.0, least=True))
    yield (
        f"\nWith blocks of least energy and without DRAM's words it falls in {without_dram(d)} of {count}:"
        " they are a part of what is left."
    )


def _from(pairs: tuple[tuple[int, int], ...]) -> str:
    said = [f"{a} to {b}" for a, b in pairs]
    return f"From configuration {', '.join(said[:-1])} and {said[-1]}"


def by_buffer(d: Data) -> Iterator[str]:
    """Figure 19, `held`, by the size of the buffer."""
    batches = sorted({r["batch"] for r in d.all("cause-batch")})
    yield "\nMwords an image, exact, held, by the size of the buffer:\n"
    yield from head("network", "buffer", *map(str, batches), "falls to 4", "from 4 to 32", left=2)
    for name in d.names("cause-batch"):
        for kib in dict.fromkeys(r["kib"] for r in d.all("cause-batch", network=name)):
            image = {b: d.words("cause-batch", network=name, kib=kib, batch=b) / b for b in batches}
            falls = (1 - image[4] / image[1], 1 - image[32] / image[4])
            cells = [mega(int(image[b])) for b in batches] + [f"{100 * x:.1f} %" for x in falls]
            yield f"| {NETWORKS[name]} | {kib} KB | " + " | ".join(cells) + " |"


def directions(d: Data) -> Iterator[str]:
    """Table 5's two directions of Algorithm 1."""
    yield from head(
        "network",
        "most successors",
        "top-down, ms",
        "bottom-up, ms",
        "paper: most successors",
        "top-down, ms",
        "bottom-up, ms",
    )
    for r in d.all("cause-directions"):
        times = ["more than 200,000 sub-problems", "-"]
        if r["top-down"] is not None:
            times[0] = f"{1e3 * r['top-down']:.2f}"
        if r["bottom-up"] is not None:
            times[1] = f"{1e3 * r['bottom-up']:.2f}"
        most, *theirs = DIRECTIONS[r["network"]]
        cells = [str(r["successors"]), *times, str(most), *theirs]
        yield f"| {NETWORKS[r['network']]} | " + " | ".join(cells) + " |"
    for name in (n for n in DIRECTIONS if n not in d.names("cause-directions")):
        most, *theirs = DIRECTIONS[name]
        yield f"| {NETWORKS[name]} | not tried | - | - | {most} | {' | '.join(theirs)} |"


def intervals(d: Data) -> Iterator[str]:
    """The exact search in the space of the bottom-up algorithm, intervals of one order."""
    yield "The exact search among intervals of one order, groups' costs included, the paper's options:\n"
    yield from head("network", "Mwords", "ms", "intervals priced")
    for r in d.all("cause-intervals"):
        took = f"{1e3 * r['seconds']:,.2f} | {r['priced']:,}"
        yield f"| {NETWORKS[r['network']]} | {mega(r['words'])} | {took} |"


def groups(d: Data) -> Iterator[str]:
    """Final groups with one thing changed, and on-line groups by the limit."""
    names = d.names("cause-groups")
    changes = dict.fromkeys(r["change"] for r in d.all("cause-groups"))
    yield "Final groups of the exact partition under the paper's options, with one thing changed:\n"
    yield from head("change", *(NETWORKS[n] for n in names))
    yield "| the paper's count | " + " | ".join(str(TABLE_5[n][-1]) for n in names) + " |"
    for change in changes:
        rows = [d.one("cause-groups", network=n, change=change) for n in names]
        yield f"| {change} | " + " | ".join("-" if r is None else str(r["groups"]) for r in rows) + " |"
    several = [d.one("cause-groups", network=n, change="as it is") for n in names]
    cells = " | ".join("-" if r is None else str(r["several"]) for r in several)
    yield f"| as it is, groups of several operators alone | {cells} |"
    for r in d.all("cause-groups", change="pools in their projections"):
        yield (
            f"\nGoogLeNet with its pools in their projections: {r['operators']} operators,"
            f" {r['convex']:,} convex groups."
        )
    yield "\nGroups that obey the on-line rules, by the most operators of a group:\n"
    found = d.all("cause-online")
    sizes = sorted({int(n) for r in found for n in r["counts"]})
    yield from head("network", "n in 128 KB", *map(str, sizes))
    for r in found:
        counts = {int(n): c for n, c in r["counts"].items()}
        cells = " | ".join(f"{counts[n]:,}" if n in counts else "-" for n in sizes)
        yield f"| {NETWORKS[r['network']]} | {r['limit']} | {cells} |"
    yield from sums(d)
