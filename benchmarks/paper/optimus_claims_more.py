"""Claims of Optimus on buffers, dataflows, other accelerators and its searches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from optimus_claims_sentences import growth, marginal, small_buffers
from optimus_data import Claim, Data, between, mega, verdict
from optimus_paper import ONLINE_GROUPS, TABLE_4, TABLE_4_NETWORKS, TABLE_5
from optimus_schemes import LEVELS, NETWORKS, OLDER
from optimus_tried_tables import ahead_by_ratio, away_by_ratio, flow_energies, stops

__all__ = ["accelerators", "buffers", "dataflows", "groups", "times"]


def buffers(d: Data) -> Iterator[Claim]:
    points = [(r["network"], r["buffer"]) for r in d.all("fig16", how="exact", reading="paper")]
    margins = [
        min(d.words("fig16", network=n, buffer=b, reading="paper", how=how) for how in OLDER)
        - d.words("fig16", network=n, buffer=b, reading="paper", how="exact")
        for n, b in points
    ]
    ahead, equal = sum(m > 0 for m in margins), sum(m == 0 for m in margins)
    ties = [f"{NETWORKS[n]} at {b >> 10} KB" for (n, b), m in zip(points, margins, strict=True) if m == 0]
    yield (
        "ahead of both at every buffer size (Fig. 16)",
        "all cases",
        f"{ahead} of {len(points)} networks and sizes, in both readings; equal in {equal}",
        verdict(ahead, len(points)),
        f"equal on {', '.join(ties)}" if ahead + equal == len(points) else "theirs can be below a tile",
    )
    yield from small_buffers(d)
    names = d.names("fig16")
    falls = sum(
        all(a >= b for a, b in pairwise(_curve(d, n, how))) for n in names for how in ("exact", *OLDER)
    )
    yield (
        "larger buffers reduce words for all three",
        "all",
        f"{falls} of {len(names) * (1 + len(OLDER))} curves never rise",
        verdict(falls, len(names) * (1 + len(OLDER))),
        "",
    )
    stopped = [n for n in names if not _falls(d, n, "dnnvm-tile")]
    later = ", ".join(f"{NETWORKS[n]} at {kib >> 10} MB" for n, kib in stops(d).items())
    goes = [n for n in names if _falls(d, n, "exact")]
    yield (
        "larger buffers stop to help DNNVM, not Optimus and Efficient-S",
        "stops",
        f"from 256 to 1,024 KB DNNVM in tiles falls by less than 5 % on {len(stopped)} of {len(names)}"
        f" networks ({', '.join(NETWORKS[n] for n in stopped)}); the exact partition falls further on"
        f" {len(goes)}",
        verdict(len(stopped), len(names)),
        "on chains, as VGG16, MobileNet and AlexNet's convolutions, its space has all groups: it gains on;"
        f" it stops [in larger buffers](#fig-16-buffer-size) on {later}",
    )
    yield from marginal(d)


def _falls(d: Data, name: str, how: str) -> bool:
    """By 5 % or more from 256 KB to 1,024."""
    at, last = (
        d.words("fig16", network=name, how=how, reading="paper", buffer=kib << 10) for kib in (256, 1024)
    )
    return last < 0.95 * at


def _curve(d: Data, name: str, how: str) -> list[int]:
    rows = sorted(d.all("fig16", network=name, how=how, reading="paper"), key=lambda r: int(r["buffer"]))
    return [int(r["words"]) for r in rows]


def dataflows(d: Data) -> Iterator[Claim]:
    words = {(r["dataflow"], r["change"]): r["words"] for r in d.all("cause-dataflow")}
    flows = {r["dataflow"]: r["words"] for r in d.all("fig17", how="exact")}
    more = flows["oh-ow"] / flows["ow-cout"] - 1
    less = 1 - words["oh-ow", "T_h = 1"] / flows["ow-cout"]
    yield (
        "dataflows move about the same (Fig. 17, SqueezeNet)",
        "similar",
        ", ".join(f"{flow} {mega(w)}" for flow, w in flows.items()) + " Mwords",
        "no" if more > 0.1 else "yes",
        f"the text names none but ow-cout (Table 2); oh-ow moves {100 * more:.0f} % more with tiles of as"
        f" many rows as the array has (eq. 4), with one row {100 * less:.0f} % less: not explained",
    )
    small, large = (
        {
            r["dataflow"]: sum(r[x] for x in LEVELS)
            for r in d.all("fig17", how="exact", register_file=registers)
        }
        for registers in (64, 512)
    )
    least = {r["dataflow"]: sum(r[x] for x in LEVELS) for r in d.all("fig17", how="exact", register_file=32)}
    low, high = min(small.values()), max(small.values())
    dram = [r["dram"] for r in d.all("fig17", how="exact", register_file=64)]
    yield (
        "dataflows take about the same energy (Fig. 17, SqueezeNet)",
        "similar",
        ", ".join(f"{flow} {e / 1e9:.2f}" for flow, e in small.items())
        + " 10^9 multiply-accumulates at 64 B",
        "no" if high > 1.1 * low else "yes",
        f"{100 * (high / low - 1):.0f} % apart, {(high - low) / 1e9:.2f}, of which DRAM's words are"
        f" {(max(dram) - min(dram)) / 1e9:.2f} at most: the rest is on chip, not explained; %"
        f" apart with one thing changed: {', '.join(flow_energies(d))}",
    )
    fewer, fewest = (sum(a[flow] < b[flow] for flow in small) for a, b in ((small, large), (least, small)))
    array = {(r["dataflow"], r["register_file"]): r["array"] for r in d.all("fig17", how="exact")}
    worse = [flow for flow in small if least[flow] > small[flow]]
    yield (
        "a smaller register file takes less energy, DRAM's is the same",
        "less",
        f"32 B against 64 B, Table 3's sizes: {fewest} of {len(small)} dataflows; 64 B against 512 B, a size"
        f" of ours: {fewer} of {len(small)}; words the same",
        verdict(fewest, len(small)),
        ", ".join(
            f"{flow} takes {least[flow] / 1e9:.2f} at 32 B and {small[flow] / 1e9:.2f} at 64 B, its array"
            f" {array[flow, 32] / 1e9:.2f} and {array[flow, 64] / 1e9:.2f}"
            for flow in worse
        )
        + ": which sizes Fig. 17 has its text does not say",
    )


def accelerators(d: Data) -> Iterator[Claim]:
    titles = {"eyeriss": "Eyeriss", "shidiannao": "ShiDianNao", "lower-bound": "[7]"}
    causes = {
        "eyeriss": ("uncompressed", "its feature maps not compressed"),
        "shidiannao": ("one row", "a tile of one row instead of eight"),
        "lower-bound": (
            "half as much memory again",
            "half as much memory again (which of its machines was taken is not said)",
        ),
    }
    for chip, printed in TABLE_4.items():
        change, words = causes[chip]
        away = []
        for key in ("", change):
            apart = []
            for name, theirs in zip(TABLE_4_NETWORKS, printed, strict=True):
                network = "alexnet_features" if name == "alexnet" else name
                r = d.one("tab4", network=network, chip=chip, reading="paper", change=key)
                if r is not None:
                    apart.append(abs(100 * r["less"] - theirs))
            away.append((sum(apart) / len(apart), len(apart)))
        (before, some), (after, every) = away
        if chip == "eyeriss":
            yield _uncompressed(d)
            words = "a baseline that compresses by 1.2, not 2"
            after = away_by_ratio(d, 1.2)
        yield (
            f"DRAM words saved on {titles[chip]} (Table 4)",
            f"{min(printed):.2f}-{max(printed):.2f} %",
            f"{before:.0f} points away on average ({some} of 8 networks)",
            "yes" if before < 5 else "in part" if before < 15 else "no",
            f"with {words}: {after:.0f} points ({every} of 8), not explained",
        )


def _uncompressed(d: Data) -> Claim:
    """Section 7.8's sentence: the paper's options have maps as they are, the baseline halves them."""
    less = {
        n: 100 * r["less"]
        for n in d.names("tab4")
        if (n == "alexnet_features" or n in TABLE_4_NETWORKS[1:])
        and (r := d.one("tab4", network=n, chip="eyeriss", reading="paper", change="")) is not None
    }
    better = sum(x > 0 for x in less.values())
    worse = [f"{NETWORKS[n]} {x:.2f} %" for n, x in less.items() if x <= 0]
    return (
        "on Eyeriss Optimus without compression moves less than Eyeriss with it",
        "better",
        f"on {better} of {len(less)} networks",
        verdict(better, len(less)),
        f"{', '.join(worse)}: how much the baseline compresses is not said, 2 is ours; by 1.2, and nothing"
        f" else changed, on {ahead_by_ratio(d, 1.2)} of {len(less)} ([ratios](#table-4-other-accelerators))",
    )


def groups(d: Data) -> Iterator[Claim]:
    counted = ("vgg16", "resnet50", "resnet152", "squeezenet1_0", "googlenet")
    convex = {n: d.all("tab5", network=n, how="exact", reading="paper")[-1]["convex"] for n in counted}
    same = [n for n in counted if f"{convex[n]:,}" == TABLE_5[n][1]]
    merged = d.all("cause-groups", network="googlenet", change="pools in their projections")[-1]
    yield (
        "groups evaluated (Table 5)",
        ", ".join(TABLE_5[n][1] for n in counted),
        ", ".join(f"{convex[n]:,}" for n in counted),
        verdict(len(same), len(counted)),
        f"GoogLeNet with its pools in their projections, 72 operators as the paper's: {merged['convex']:,},"
        " the rest not explained; NASNet's 2.9e+07 are not counted, ResNet-1202's run together in the text we"
        " have",
    )
    operators = {
        n: d.all("tab5", network=n, how="exact", reading="paper")[-1]["operators"]
        for n in TABLE_5
        if d.all("tab5", network=n)
    }
    same = [n for n, count in operators.items() if count == TABLE_5[n][0]]
    yield (
        "operators of " + ", ".join(NETWORKS[n] for n in operators) + " (Table 5)",
        ", ".join(str(TABLE_5[n][0]) for n in operators),
        ", ".join(str(count) for count in operators.values()),
        verdict(len(same), len(operators)),
        "ResNet-50 and -152 have the paper's groups to the digit with 20 and 54 operators more, 16 and 50"
        " sums and 4 projections each: without them 52 and 154, and ResNet-1202 1,203, one pool less than the"
        " paper's, as CIFAR-10's has one; the paper's are the layers of the name and two pools;"
        " NASNet has the paper's 456, and its ten successors, [where parts of operators are none of their"
        " own](#nasnets-graph)",
    )
    yield growth(d, convex | {"googlenet": merged["convex"]}, {"googlenet": merged["operators"]})
    names = [n for n in TABLE_5 if d.all("tab5", network=n)]
    finals = {n: d.all("tab5", network=n, how="exact", reading="paper")[-1]["groups"] for n in names}
    same = [n for n in names if finals[n] == TABLE_5[n][-1]]
    wide = d.all("cause-groups", network="resnet1202", change="224 x 224 pixels")[-1]["groups"]
    yield (
        "final groups of " + ", ".join(NETWORKS[n] for n in names),
        ", ".join(str(TABLE_5[n][-1]) for n in names),
        ", ".join(str(finals[n]) for n in names),
        verdict(len(same), len(names)),
        f"GoogLeNet as above {merged['groups']}; ResNet-1202 on 224 x 224 {wide}; the rest not explained",
    )
    online = {r["network"]: r["counts"] for r in d.all("cause-online")}
    limit = {r["network"]: r["limit"] for r in d.all("cause-online")}
    for name, theirs in ONLINE_GROUPS.items():
        counts = {int(n): count for n, count in online[name].items()}  # JSON has made words of numbers
        ours = counts[limit[name]]
        yield (
            f"on-line groups of {NETWORKS[name]}",
            str(theirs),
            str(ours),
            "yes" if ours == theirs else "no",
            "of all others but NASNet the text leaves the digits open; none of our counts fits all of their"
            " rows"
            if ours == theirs
            else f"at our limit of {limit[name]}; {counts[2]:,} at the least, 2, of the zoo's 886"
            f" operators; of [the paper's 456](#nasnets-graph) {_of_456(d)}: not explained",
        )


def times(d: Data) -> Iterator[Claim]:
    rows = [r for r in d.all("tab5", reading="paper", how="exact") if r["network"] in TABLE_5]
    proved = [1e3 * r["seconds"] for r in rows if r["status"] == "optimal"]
    line = d.all("cause-intervals", network="nasnetalarge")
    milliseconds = ", ".join(f"{1e3 * r['seconds']:,.0f}" for r in line)
    yield (
        "milliseconds to the optimum, bottom-up",
        "0.48-8713.16",
        between(proved) + "; NASNet ends by the clock with a gap",
        "in part",
        "ours is held to a bound of all partitions; in the space of the paper's bottom-up algorithm,"
        f" intervals of one order, NASNet takes {milliseconds} ms",
    )
    online = [
        1e3 * r["seconds"] for r in d.all("tab5", reading="paper", how="online") if r["network"] in TABLE_5
    ]
    holds = "yes" if max(online) < 274.10 else "in part"
    if all(d.all("cause-intervals", network=n) for n in ("resnet1202", "nasnetalarge")):
        yield _successors(d)
    both = [r for r in d.all("cause-directions") if r["top-down"] is not None]
    quicker = sum(r["bottom-up"] < r["top-down"] for r in both)
    yield (
        "the bottom-up search is faster than the top-down one",
        "runs fast",
        f"on {quicker} of {len(both)} networks, "
        + between([r["top-down"] / r["bottom-up"] for r in both])
        + " times",
        verdict(quicker, len(both)),
        "less than in Table 5: both look groups' costs up here ([figures](#table-5-groups-and-seconds));"
        " on VGG16 the paper's own top-down is faster",
    )
    yield "milliseconds on line", "0.11-274.10", between(online), holds, ""
    each = [1e3 * r["seconds"] / max(1, r["candidates"]) for r in rows if r["status"] == "optimal"]
    yield (
        "milliseconds to cost a group",
        "shorter than 1",
        f"at most {max(each):.3f} for each candidate",
        "yes" if max(each) < 1 else "no",
        "",
    )


def _of_456(d: Data) -> str:
    """On-line groups of NASNet's graph with the paper's number of operators, by n."""
    counts = d.all("cause-nasnet")[-1]["counts"]
    return " and ".join(f"{count:,} at {n}" for n, count in enumerate(counts[1:], 2))


def _successors(d: Data) -> Claim:
    """Section 7.9: NASNet takes longer than ResNet-1202, as its operators have more successors."""
    exact, line = (
        {n: 1e3 * d.all(part, network=n, **wanted)[-1]["seconds"] for n in ("resnet1202", "nasnetalarge")}
        for part, wanted in (("tab5", {"reading": "paper", "how": "exact"}), ("cause-intervals", {}))
    )
    holds = [times["resnet1202"] < times["nasnetalarge"] for times in (exact, line)]
    priced = {r["network"]: r["priced"] for r in d.all("cause-intervals")}
    return (
        "ResNet-1202 takes less time than NASNet, whose operators have more successors",
        "less",
        ", ".join(
            f"{title} {times['resnet1202']:,.0f} against {times['nasnetalarge']:,.0f} ms"
            for title, times in (("all partitions", exact), ("intervals of one order", line))
        ),
        verdict(sum(holds), len(holds)),
        "by intervals of one order, where successors play no part, ResNet-1202 takes longer: of it"
        f" {priced['resnet1202']:,} intervals are priced, of NASNet {priced['nasnetalarge']:,}",
    )
