"""The tables of docs/optimus.md, one generator a figure or table of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from optimus_data import FEWER_LEVELS, LABELS, READINGS, Data, Row, energy, head, less, mega, starred
from optimus_executed import accuracy
from optimus_graphs import graphs
from optimus_lines import lines
from optimus_more_tables import by_buffer, directions, groups, intervals, on_squeezenet, standing
from optimus_paper import TABLE_4, TABLE_4_NETWORKS, TABLE_5
from optimus_schemes import LEVELS, NETWORKS, OLDER
from optimus_tried_tables import buffers, compression, flows, overlap, registers, rooms, widths

__all__ = ["TABLES"]

SCHEMES = ("none", *OLDER, "online", "exact")
CURVES = (*((how, "paper") for how in ("none", *OLDER, "exact")), ("exact", "ours"))


def fig1(d: Data) -> Iterator[str]:
    """Shares of the energy of every network run operator by operator."""
    yield from head("network", *LEVELS, "dram of dram, buffer and macs")
    for name in d.names("fig13"):
        r = d.all("fig13", network=name, reading="ours", how="none")[-1]
        whole = energy(r) + r["macs"]
        shares = [r[x] / whole for x in LEVELS] + [r["dram"] / sum(r[x] for x in FEWER_LEVELS)]
        yield f"| {NETWORKS[name]} | " + " | ".join(f"{100 * share:.0f} %" for share in shares) + " |"


def fig2(d: Data) -> Iterator[str]:
    yield from head("network", "feature maps, Mwords", "parameters, Mwords", "share of feature maps")
    for name in d.names("fig2"):
        r = d.all("fig2", network=name)[-1]
        share = r["maps"] / (r["maps"] + r["weights"])
        yield f"| {NETWORKS[name]} | {mega(r['maps'])} | {mega(r['weights'])} | {100 * share:.0f} % |"


def fig7(d: Data) -> Iterator[str]:
    sizes = sorted({r["size"] for r in d.all("fig7")})
    yield from head(
        "network", *(f"{s} operator{'s' * (s > 1)}: groups | fit 128 KB | median KB" for s in sizes)
    )
    for name in d.names("fig7"):
        rows = [d.one("fig7", network=name, size=size) for size in sizes]
        cells = (
            "- | - | -" if r is None else f"{r['groups']:,} | {r['fit']:,} | {r['median'] / 1024:,.0f}"
            for r in rows
        )
        yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"


def fig12(d: Data) -> Iterator[str]:
    yield from head("network", "groups", "our model: least | mean", "in bands", "eq. 3: least | mean", left=1)
    names = d.names("fig12")
    for title, rows in (
        *((NETWORKS[name], d.all("fig12", network=name)) for name in names),
        ("all", d.all("fig12")),
    ):
        if rows:
            yield f"| {title} | " + " | ".join(accuracies(rows)) + " |"


def accuracies(rows: list[Row]) -> Iterator[str]:
    """Groups and accuracies of both models, the equation's for groups in bands."""
    bands = [r for r in rows if r["bands"]]
    for some, model in ((rows, "modelled"), (bands, "equation")):
        found = [100 * accuracy(r[model], r["counted"]) for r in some]
        yield str(len(found))
        yield f"{min(found):.2f} %"
        yield f"{sum(found) / len(found):.2f} %"


def fig14(d: Data) -> Iterator[str]:
    for reading, title in READINGS.items():
        yield f"Mwords, {title}:\n"
        yield from head("network", *(LABELS[h] for h in SCHEMES), "oracle")
        for name in d.names("fig13"):
            rows = [d.one("fig13", network=name, reading=reading, how=h) for h in SCHEMES]
            cells = ["-" if r is None else starred(r) for r in rows]
            oracle = next(mega(r["oracle"]) for r in rows if r is not None)
            yield f"| {NETWORKS[name]} | " + " | ".join(cells) + f" | {oracle} |"
        yield f"\nLess than each by the exact partition, {title}:\n"
        yield from head("network", *(LABELS[h] for h in SCHEMES[:-1]))
        for name in d.names("fig13"):
            exact = d.words("fig13", network=name, reading=reading, how="exact")
            cells = [
                less(exact, d.words("fig13", network=name, reading=reading, how=h)) for h in SCHEMES[:-1]
            ]
            yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
        yield ""
    yield from on_squeezenet(d)
    yield from widths(d)
    yield from rooms(d)


def fig15(d: Data) -> Iterator[str]:
    hows = ("none", "without-model", "without-model-tile", "space1", "space2", "exact")
    for reading, title in READINGS.items():
        yield f"Words relative to the exact partition, {title}:\n"
        yield from head("network", *(LABELS[h] for h in hows))
        for name in d.names("fig13"):
            words = [d.words("fig13", network=name, reading=reading, how=h) for h in hows]
            cells = [f"{w / words[-1]:.2f}" for w in words]
            yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
        yield ""


def fig13(d: Data) -> Iterator[str]:
    hows = SCHEMES[:-1]
    for what in ("Energy without multiply-accumulates", "Latency"):
        for reading, title in READINGS.items():
            yield f"{what}, relative to the exact partition, {title}:\n"
            yield from head("network", *(LABELS[h] for h in hows))
            sums = dict.fromkeys(hows, 0.0)
            names = d.names("fig13")
            for name in names:
                exact = d.one("fig13", network=name, reading=reading, how="exact")
                cells = []
                for how in hows:
                    r = d.one("fig13", network=name, reading=reading, how=how)
                    assert r is not None
                    assert exact is not None
                    of = energy if what.startswith("Energy") else latency
                    sums[how] += of(r) / of(exact)
                    cells.append(f"{of(r) / of(exact):.2f}")
                yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
            means = (f"{sums[how] / len(names):.2f}" for how in hows)
            yield "| mean | " + " | ".join(means) + " |\n"
    changes = [k for k in d.all("cause-energy")[0] if k not in ("part", "network", "how")]
    yield "Energy over the exact partition's under the paper's options, with one thing changed:\n"
    yield from head("network", "older fuser", *changes, left=2)
    for r in d.all("cause-energy"):
        cells = [f"{r[change]:.2f}" for change in changes]
        yield f"| {NETWORKS[r['network']]} | {LABELS[r['how']]} | " + " | ".join(cells) + " |"
    yield from registers(d)
    yield "\nLatency over the exact partition's under the paper's options, by the width of the DRAM's bus:\n"
    yield from head("network", *(f"{LABELS[how]}: 64 bits | 32 bits" for how in OLDER))
    for name in d.names("cause-latency"):
        found = [d.all("cause-latency", network=name, how=how)[-1] for how in OLDER]
        cells = [f"{r[bits]:.2f}" for r in found for bits in ("64 bits", "32 bits")]
        yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
    yield from overlap(d)


def latency(r: Row) -> float:
    return float(r["latency"])


def fig16(d: Data) -> Iterator[str]:
    buffers = sorted({r["buffer"] for r in d.all("fig16")})
    yield from head("network", "Mwords", *(f"{b >> 10} KB" for b in buffers), left=2)
    for name in d.names("fig16"):
        for how, reading in CURVES:
            rows = [d.one("fig16", network=name, how=how, reading=reading, buffer=b) for b in buffers]
            cells = ["-" if r is None else starred(r) for r in rows]
            yield f"| {NETWORKS[name]} | {curve(how, reading)} | " + " | ".join(cells) + " |"


def curve(how: str, reading: str) -> str:
    return LABELS[how] + ("" if how != "exact" else f", {READINGS[reading]}")


def fig17(d: Data) -> Iterator[str]:
    yield from head("dataflow", "register file", "scheme", *LEVELS, "all", "Mwords", "ms", left=3)
    for r in d.all("fig17"):
        cells = [f"{r[level] / 1e9:.2f}" for level in LEVELS] + [f"{sum(r[x] for x in LEVELS) / 1e9:.2f}"]
        yield (
            f"| {r['dataflow']} | {r['register_file']} B | {LABELS[r['how']]} | "
            + " | ".join(cells)
            + f" | {mega(r['words'])} | {1e3 * r['latency']:.1f} |"
        )
    yield "\nThe exact partition with one thing changed; a tile is T_h x T_w x T_c:\n"
    yield from head("dataflow", "change", "tile", "Mwords", left=3)
    for r in d.all("cause-dataflow"):
        yield f"| {r['dataflow']} | {r['change']} | {r['tile']} | {mega(r['words'])} |"
    yield from flows(d)


def fig18(d: Data) -> Iterator[str]:
    chips = [f"optimus-{i}" for i in range(1, 9)]
    numbers = [c.removeprefix("optimus-") for c in chips]
    for reading, title in READINGS.items():
        yield f"Mwords / energy in 10^9 multiply-accumulates / ms, {title}:\n"
        yield from head("network", *numbers)
        for name in d.names("fig18"):
            rows = [d.one("fig18", network=name, chip=c, reading=reading) for c in chips]
            cells = [
                "-"
                if r is None
                else f"{starred(r)} / {(energy(r) + r['macs']) / 1e9:.1f} / {1e3 * r['latency']:.1f}"
                for r in rows
            ]
            yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
        yield ""
    yield "The same energy, the paper's options, where blocks of sums are chosen for the least energy:\n"
    yield from head("network", *numbers)
    for name in d.names("fig18"):
        found = [d.one("fig18", network=name, chip=c, reading="paper") for c in chips]
        cells = [f"{sum(r['least'][x] for x in LEVELS) / 1e9:.1f}" for r in found if r is not None]
        yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
    yield from standing(d)


def fig19(d: Data) -> Iterator[str]:
    batches = sorted({r["batch"] for r in d.all("fig19")})
    yield "Mwords an image:\n"
    yield from head("network", "scheme", *(str(b) for b in batches), left=2)
    for name in d.names("fig19"):
        for how, reading in (*CURVES, ("held", "paper")):
            rows = [d.one("fig19", network=name, how=how, reading=reading, batch=b) for b in batches]
            cells = ["-" if r is None else mega(r["words"] // r["batch"]) for r in rows]
            yield f"| {NETWORKS[name]} | {curve(how, reading)} | " + " | ".join(cells) + " |"
    yield from by_buffer(d)


def tab4(d: Data) -> Iterator[str]:
    names = d.names("tab4")
    yield "Less DRAM access than the accelerator as it was built, %:\n"
    yield from head("chip", "figure of", *(NETWORKS[n] for n in names), left=2)
    for chip, printed in TABLE_4.items():
        theirs = dict(zip(TABLE_4_NETWORKS, printed, strict=True))
        theirs["alexnet_features"] = theirs["alexnet"]
        cells = [f"{theirs[n]:.2f}" if n in theirs else "-" for n in names]
        yield f"| {chip} | the paper | " + " | ".join(cells) + " |"
        ways = dict.fromkeys((r["reading"], r["change"]) for r in d.all("tab4", chip=chip))
        for reading, change in ways:
            found = [d.one("tab4", network=n, chip=chip, reading=reading, change=change) for n in names]
            cells = ["-" if r is None else f"{100 * r['less']:.2f}" for r in found]
            what = READINGS[reading] + (f", {change}" if change else "")
            yield f"| {chip} | {what} | " + " | ".join(cells) + " |"
    yield from compression(d)


def tab5(d: Data) -> Iterator[str]:
    yield from head(
        "network",
        "options",
        "operators",
        "convex groups",
        "candidates",
        "groups",
        "exact, ms",
        "on-line, ms",
        "status",
        "paper: operators",
        "groups",
        "final groups",
        "exact, ms",
        "on-line, ms",
        left=2,
    )
    for name in d.names("tab5"):
        for reading in ("ours", "paper"):
            exact = d.one("tab5", network=name, how="exact", reading=reading)
            online = d.one("tab5", network=name, how="online", reading=reading)
            if exact is None or online is None:
                continue
            theirs = ["-"] * 5
            if name in TABLE_5:
                operators, evaluated, seconds, quick, final = TABLE_5[name]
                theirs = [str(operators), evaluated, str(final), f"{seconds:.2f}", f"{quick:.2f}"]
            convex = "-" if exact.get("convex") is None else f"{exact['convex']:,}"
            status = "proved"
            if exact["status"] != "optimal":
                status = f"gap {100 * (1 - exact['bound'] / exact['words']):.2f} %"
            cells = [
                str(exact["operators"]),
                convex,
                f"{exact['candidates']:,}",
                str(exact["groups"]),
                f"{1e3 * exact['seconds']:,.2f}",
                f"{1e3 * online['seconds']:,.2f}",
                status,
                *theirs,
            ]
            yield f"| {NETWORKS[name]} | {reading} | " + " | ".join(cells) + " |"


TABLES: dict[str, tuple[Callable[[Data], Iterator[str]], tuple[str, ...]]] = {
    "fig1": (fig1, ("fig13",)),
    "fig2": (fig2, ("fig2",)),
    "fig7": (fig7, ("fig7",)),
    "fig12": (fig12, ("fig12",)),
    "fig13": (fig13, ("fig13", "cause-energy", "cause-registers", "cause-latency", "cause-overlap")),
    "fig14": (fig14, ("fig13", "cause-words", "cause-concats", "cause-widths", "cause-room")),
    "line": (lines, ("cause-line",)),
    "fig15": (fig15, ("fig13",)),
    "fig16": (fig16, ("fig16",)),
    "larger": (buffers, ("cause-larger", "cause-smaller")),
    "fig17": (fig17, ("fig17", "cause-dataflow", "cause-flows")),
    "fig18": (fig18, ("fig18",)),
    "fig19": (fig19, ("fig19", "cause-batch")),
    "tab4": (tab4, ("tab4", "cause-compression")),
    "tab5": (tab5, ("tab5",)),
    "directions": (directions, ("cause-directions",)),
    "intervals": (intervals, ("cause-intervals",)),
    "groups": (groups, ("cause-groups", "cause-online", "cause-sums")),
    "graphs": (graphs, ("cause-nasnet",)),
}
"""Sections, and the parts whose records they show."""
