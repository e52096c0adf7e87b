"""The pictures of docs/optimus.md, one a figure of the paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from charts import Panel, bars, lines
from optimus_data import LABELS, READINGS, Data, energy
from optimus_executed import accuracy
from optimus_schemes import LEVELS, NETWORKS
from optimus_tables import CURVES, SCHEMES, curve

__all__ = ["PICTURES"]

OURS_FIRST = tuple(sorted(CURVES, key=lambda which: which[0] != "exact"))
"""Curves in the order of the plots' colours."""

SHORT = {
    "none": "none",
    "dnnvm": "DNNVM r",
    "dnnvm-tile": "DNNVM t",
    "efficient-s": "Eff-S r",
    "efficient-s-tile": "Eff-S t",
    "online": "on-line",
    "exact": "exact",
}


def fig1(folder: Path, d: Data) -> None:
    names = d.names("fig13")
    rows = [d.all("fig13", network=n, reading="ours", how="none")[-1] for n in names]
    wholes = [energy(r) + r["macs"] for r in rows]
    series = {x: [100 * r[x] / whole for r, whole in zip(rows, wholes, strict=True)] for x in LEVELS}
    panel = Panel("every operator alone, onchip's options", [NETWORKS[n] for n in names], series)
    bars(folder / "optimus-breakdown.svg", [panel], unit="% of energy", stacked=True)


def fig2(folder: Path, d: Data) -> None:
    names = d.names("fig2")
    rows = [d.all("fig2", network=n)[-1] for n in names]
    totals = [r["maps"] + r["weights"] for r in rows]
    series = {
        title: [100 * r[key] / total for r, total in zip(rows, totals, strict=True)]
        for title, key in (("feature maps", "maps"), ("parameters", "weights"))
    }
    panel = Panel("one image", [NETWORKS[n] for n in names], series)
    bars(folder / "optimus-maps.svg", [panel], unit="% of words", stacked=True)


def fig7(folder: Path, d: Data) -> None:
    names = d.names("fig7")
    sizes = sorted({r["size"] for r in d.all("fig7")})
    series: dict[str, list[float | None]] = {}
    for size in sizes:
        found = [d.one("fig7", network=n, size=size) for n in names]
        plural = "s" if size > 1 else ""
        series[f"{size} operator{plural}"] = [None if r is None else r["median"] / 1024 for r in found]
    panel = Panel("median group; the buffer has 128 KB", [NETWORKS[n] for n in names], series)
    bars(folder / "optimus-footprint.svg", [panel], unit="KB", log=True)


def fig12(folder: Path, d: Data) -> None:
    rows = sorted(
        (r for r in d.all("fig12") if r["bands"]), key=lambda r: accuracy(r["equation"], r["counted"])
    )
    labels = [str(i) if i % 10 == 0 else "" for i in range(1, len(rows) + 1)]
    series = {
        "our model": [100 * accuracy(r["modelled"], r["counted"]) for r in rows],
        "eq. 3": [100 * accuracy(r["equation"], r["counted"]) for r in rows],
    }
    lines(
        folder / "optimus-accuracy.svg",
        [Panel("groups in bands, by eq. 3's accuracy", labels, series)],
        unit="accuracy, %",
    )


def fig13(folder: Path, d: Data) -> None:
    panels = []
    for name in d.names("fig13"):
        rows = [d.all("fig13", network=name, reading="paper", how=h)[-1] for h in SCHEMES]
        whole = energy(rows[-1])
        levels = [level for level in LEVELS if level != "macs"]
        series = {level: [r[level] / whole for r in rows] for level in levels}
        panels.append(Panel(NETWORKS[name], [SHORT[h] for h in SCHEMES], series))
    bars(folder / "optimus-energy.svg", panels, unit="energy / exact's", across=4, stacked=True)
    relative(folder / "optimus-latency.svg", d, ("exact", *SCHEMES[:-1]), "latency", "latency / exact's")


def relative(path: Path, d: Data, hows: tuple[str, ...], key: str, unit: str) -> None:
    """Bars of every network, relative to the exact partition's; a panel for each set of options."""
    panels = []
    names = d.names("fig13")
    for reading, title in READINGS.items():
        series: dict[str, list[float | None]] = {}
        for how in hows:
            rows = [(d.one("fig13", network=n, reading=reading, how=how), n) for n in names]
            series[LABELS[how]] = [
                None
                if r is None
                else r[key] / d.all("fig13", network=n, reading=reading, how="exact")[-1][key]
                for r, n in rows
            ]
        panels.append(Panel(title, [NETWORKS[n] for n in names], series))
    bars(path, panels, unit=unit, across=1)


def fig14(folder: Path, d: Data) -> None:
    relative(folder / "optimus-words.svg", d, ("exact", *SCHEMES[:-1]), "words", "words / exact's")


def fig15(folder: Path, d: Data) -> None:
    hows = ("exact", "none", "without-model", "without-model-tile", "space1", "space2")
    relative(folder / "optimus-parts.svg", d, hows, "words", "words / exact's")


def fig16(folder: Path, d: Data) -> None:
    panels = []
    for name in d.names("fig16"):
        buffers = sorted({r["buffer"] for r in d.all("fig16", network=name)})
        series = {}
        for how, reading in OURS_FIRST:
            found = [d.one("fig16", network=name, how=how, reading=reading, buffer=b) for b in buffers]
            series[curve(how, reading)] = [None if r is None else r["words"] / 1e6 for r in found]
        panels.append(Panel(NETWORKS[name], [str(b >> 10) for b in buffers], series))
    lines(folder / "optimus-buffer.svg", panels, unit="Mwords", across=4)


def fig17(folder: Path, d: Data) -> None:
    panels = []
    for how in ("none", "exact"):
        rows = d.all("fig17", how=how)
        series = {level: [r[level] / 1e9 for r in rows] for level in LEVELS}
        labels = [f"{r['dataflow']} {r['register_file']} B" for r in rows]
        panels.append(Panel(f"SqueezeNet, {LABELS[how]}", labels, series))
    bars(folder / "optimus-dataflow.svg", panels, unit="10^9 MACs' energy", across=2, stacked=True)


def fig18(folder: Path, d: Data) -> None:
    panels = []
    chips = [f"optimus-{i}" for i in range(1, 9)]
    for title, key in (("words", "words"), ("energy", "energy"), ("energy, least-energy blocks", "least")):
        series: dict[str, list[float | None]] = {}
        for name in d.names("fig18"):
            rows = [d.all("fig18", network=name, chip=c, reading="paper")[-1] for c in chips]
            if key == "words":
                values = [float(r["words"]) for r in rows]
            elif key == "energy":
                values = [energy(r) + r["macs"] for r in rows]
            else:
                values = [sum(r["least"][x] for x in LEVELS) for r in rows]
            series[NETWORKS[name]] = [v / values[0] for v in values]
        panels.append(Panel(f"{title} by configuration", [c[-1] for c in chips], series))
    lines(folder / "optimus-arrays.svg", panels, unit="of configuration 1's", across=3)


def fig19(folder: Path, d: Data) -> None:
    panels = []
    for name in d.names("fig19"):
        batches = sorted({r["batch"] for r in d.all("fig19", network=name)})
        series = {}
        for how, reading in (*OURS_FIRST, ("held", "paper")):
            found = [d.one("fig19", network=name, how=how, reading=reading, batch=b) for b in batches]
            series[curve(how, reading)] = [
                None if r is None else r["words"] / r["batch"] / 1e6 for r in found
            ]
        panels.append(Panel(NETWORKS[name], [str(b) for b in batches], series))
    lines(folder / "optimus-batch.svg", panels, unit="Mwords an image", across=2)


PICTURES: dict[str, Callable[[Path, Data], None]] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig7": fig7,
    "fig12": fig12,
    "fig13": fig13,
    "fig14": fig14,
    "fig15": fig15,
    "fig16": fig16,
    "fig17": fig17,
    "fig18": fig18,
    "fig19": fig19,
}
