"""Claims of Optimus on buffers, dataflows, arrays, batches, other accelerators and its searches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from optimus_data import Claim, Data, between, energy, evaluated, mega, verdict
from optimus_paper import ONLINE_GROUPS, TABLE_4, TABLE_4_NETWORKS, TABLE_5
from optimus_schemes import LEVELS, NETWORKS, OLDER

__all__ = ["accelerators", "arrays", "batches", "buffers", "dataflows", "groups", "times"]


def buffers(d: Data) -> Iterator[Claim]:
    points = [(r["network"], r["buffer"]) for r in d.all("fig16", how="exact", reading="paper")]
    ahead = sum(
        all(
            d.words("fig16", network=n, buffer=b, reading="paper", how="exact")
            <= d.words("fig16", network=n, buffer=b, reading="paper", how=how)
            for how in OLDER
        )
        for n, b in points
    )
    yield (
        "ahead of both at every buffer size (Fig. 16)",
        "all cases",
        f"{ahead} of {len(points)} networks and sizes, in both readings",
        verdict(ahead, len(points)),
        "" if ahead == len(points) else "no tile of theirs can run as it is priced",
    )
    names = [n for n in d.names("fig16") if (n, 32 << 10) in points]
    for how, title in (("dnnvm", "in rows"), ("dnnvm-tile", "in tiles")):
        none = sum(
            d.words("fig16", network=n, buffer=32 << 10, reading="paper", how=how)
            == d.words("fig16", network=n, buffer=32 << 10, reading="paper", how="none")
            for n in names
        )
        yield (
            f"in too small a buffer DNNVM is no better than no fusion ({title})",
            "no better",
            f"at 32 KB on {none} of {len(names)} networks",
            verdict(none, len(names)),
            "32 KB is not too small for small maps",
        )
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
        f"oh-ow moves {100 * more:.0f} % more because a tile has as many rows as the array (eq. 4): with one"
        f" row it moves {100 * less:.0f} % less",
    )
    small, large = (
        {
            r["dataflow"]: sum(r[x] for x in LEVELS)
            for r in d.all("fig17", how="exact", register_file=registers)
        }
        for registers in (64, 512)
    )
    fewer = sum(small[flow] < large[flow] for flow in small)
    yield (
        "a smaller register file takes less energy, DRAM's is the same",
        "less",
        f"64 B against 512 B: {fewer} of {len(small)} dataflows, words the same",
        verdict(fewer, len(small)),
        "an access costs less by our price of size; at 32 B words cross the array oftener",
    )


def arrays(d: Data) -> Iterator[Claim]:
    names = evaluated(d, "fig18")
    for what in ("words", "energy"):
        up = []
        least = []
        for name in names:
            for one, two in ((1, 2), (3, 4), (6, 7)):
                a, b = (
                    d.all("fig18", network=name, chip=f"optimus-{i}", reading="paper")[-1] for i in (one, two)
                )
                if what == "words":
                    up.append(b["words"] / a["words"] - 1)
                else:
                    up.append((energy(b) + b["macs"]) / (energy(a) + a["macs"]) - 1)
                    least.append(sum(b["least"][x] for x in LEVELS) / sum(a["least"][x] for x in LEVELS) - 1)
        if what == "words":
            yield (
                "a larger array asks for slightly more words (Fig. 18)",
                "slight increase",
                f"{100 * sum(up) / len(up):.1f} % more on average (configurations 1 to 2, 3 to 4, 6 to 7)",
                "yes" if 0 < sum(up) / len(up) < 0.1 else "in part",
                "",
            )
            continue
        fall, then = sum(x < 0 for x in up), sum(x < 0 for x in least)
        yield (
            "a larger array takes less energy",
            "decreases",
            f"it {_moves(up)} on average and falls in {fall} of {len(up)}",
            verdict(fall, len(up)),
            "our elements keep the block of sums with fewest words of the buffer; with the block of least"
            f" energy it {_moves(least)} and falls in {then}; what is left are DRAM's words",
        )


def _moves(shares: list[float]) -> str:
    mean = 100 * sum(shares) / len(shares)
    return f"{'rises' if mean > 0 else 'falls'} by {abs(mean):.1f} %"


def batches(d: Data) -> Claim:
    def image(name: str, how: str, batch: int) -> float:
        return d.words("fig19", network=name, how=how, reading="paper", batch=batch) / batch

    names = d.names("fig19")
    shared, held = (
        [100 * (1 - image(n, how, 32) / image(n, how, 4)) for n in names] for how in ("exact", "held")
    )
    return (
        "beyond four images words fall no more (Fig. 19)",
        "stops dropping",
        ", ".join(
            f"{NETWORKS[n]} falls another {s:.0f} % to 32 images" for n, s in zip(names, shared, strict=True)
        ),
        "no",
        "the buffer of one image serves all (`shared`); with buffers for all images (`held`) it falls by "
        + " and ".join(f"{h:.1f} %" for h in held),
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
        yield (
            f"DRAM words saved on {titles[chip]} (Table 4)",
            f"{min(printed):.2f}-{max(printed):.2f} %",
            f"{before:.0f} points away on average ({some} of 8 networks)",
            "yes" if before < 5 else "in part" if before < 15 else "no",
            f"with {words}: {after:.0f} points ({every} of 8)",
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
        f"GoogLeNet with its pools in their projections, 72 operators as the paper's: {merged['convex']:,}",
    )
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
        ours = {int(n): count for n, count in online[name].items()}[limit[name]]
        yield (
            f"on-line groups of {NETWORKS[name]}",
            str(theirs),
            str(ours),
            "yes" if ours == theirs else "no",
            "of the others the text leaves the digits open; none of our counts fits all of their rows",
        )


def times(d: Data) -> Iterator[Claim]:
    rows = [r for r in d.all("tab5", reading="paper", how="exact") if r["network"] in TABLE_5]
    proved = [1e3 * r["seconds"] for r in rows if r["status"] == "optimal"]
    line = d.all("fig13", network="nasnetalarge", reading="paper", how="space2")
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
    yield "milliseconds on line", "0.11-274.10", between(online), holds, ""
    each = [1e3 * r["seconds"] / max(1, r["candidates"]) for r in rows if r["status"] == "optimal"]
    yield (
        "milliseconds to cost a group",
        "shorter than 1",
        f"at most {max(each):.3f} for each candidate",
        "yes" if max(each) < 1 else "no",
        "",
    )
