"""What `optimus.py measure` found, as tables and plots, each beside what the paper says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from optimus import HOWS, LEVELS, NETWORKS

Row = dict[str, Any]

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
READINGS = {"ours": "onchip's options", "paper": "the paper's options"}
LABELS = {
    "none": "no fusion",
    "dnnvm": "DNNVM",
    "efficient-s": "Efficient-S",
    "without-model": "w/o Model",
    "space1": "w/o Full Space 1",
    "space2": "w/o Full Space 2",
    "online": "on-line",
    "exact": "exact",
}
PAPER_TABLE_4 = {
    "eyeriss": (33.25, 31.75, 49.56, 34.44, 35.09, 23.77, 55.05, 87.59),
    "shidiannao": (37.86, 52.45, 49.45, 24.39, 34.43, 23.88, 57.28, 85.26),
    "lower-bound": (32.43, 27.41, 47.31, 16.86, 33.82, 25.32, 57.08, 84.29),
}
"""Per cent less DRAM access: AlexNet, VGG16, GoogLeNet, ResNet-18, -50, -152, MobileNet, SqueezeNet."""
PAPER_TABLE_5: dict[str, tuple[int, int | None, float, float, int]] = {
    "vgg16": (18, 171, 0.48, 0.11, 8),
    "resnet50": (52, 3510, 2.73, 0.29, 31),
    "resnet152": (154, 24250, 5.01, 0.23, 99),
    "resnet1202": (1204, None, 383.95, 5.26, 841),
    "googlenet": (72, 50436, 27.89, 0.64, 21),
    "squeezenet1_0": (38, 1057, 2.19, 0.24, 8),
    "nasnetalarge": (456, 29_000_000, 8713.16, 274.10, 328),
}
"""Operators, groups Optimus, milliseconds bottom-up Optimus and on-line, final groups.

The text we have runs the cells of a row together. Times have two decimals: 173.43 and 5.01 for ResNet-152.
Where ResNet-1202's groups end and those on line begin cannot be told."""


class Data:
    """The records, by what they are about."""

    def __init__(self, records: Iterable[Row]) -> None:
        self.records = list(records)

    def all(self, part: str, **wanted: Any) -> list[Row]:
        return [
            r for r in self.records if r["part"] == part and all(r.get(k) == v for k, v in wanted.items())
        ]

    def one(self, part: str, **wanted: Any) -> Row | None:
        found = self.all(part, **wanted)
        return found[-1] if found else None

    def names(self, part: str) -> list[str]:
        return [n for n in NETWORKS if self.all(part, network=n)]


def figures(data: Row) -> str:
    """Everything between the page's marks."""
    d = Data(data["records"])
    parts = [
        f"<!-- {data['machine']} -->",
        "## Fig. 2: feature maps against parameters\n",
        *_fig2(d),
        "\n## Fig. 7: what groups need if everything is kept on chip\n",
        *_fig7(d),
        "\n## Fig. 14: DRAM words\n",
        *_fig14(d),
        "\n## Fig. 15: what each part of the method brings\n",
        *_fig15(d),
        "\n## Fig. 13: energy and time\n",
        "![Energy by level of every scheme](images/optimus-energy.svg)\n",
        *_fig13(d),
        "\n## Fig. 16: buffer size\n",
        "![DRAM words against buffer size](images/optimus-buffer.svg)\n",
        *_fig16(d),
        "\n## Fig. 17: dataflow and registers (SqueezeNet)\n",
        *_fig17(d),
        "\n## Fig. 18: the eight configurations\n",
        *_fig18(d),
        "\n## Fig. 19: batch size\n",
        *_fig19(d),
        "\n## Table 4: other accelerators\n",
        *_tab4(d),
        "\n## Table 5: groups and seconds\n",
        *_tab5(d),
    ]
    return "\n".join(parts) + "\n"


def head(*cells: str, left: int = 1) -> Iterator[str]:
    line = " | ".join(cells)
    yield f"| {line} |"
    yield "|" + "---|" * left + "--:|" * (line.count(" | ") + 1 - left)


def mega(words: int) -> str:
    return f"{words / 1e6:,.2f}"


def starred(r: Row) -> str:
    """Mwords; with a star, and the gap, where it is not proved to be the least."""
    if r["how"] != "exact" or r["status"] == "optimal":
        return mega(r["words"])
    return f"{mega(r['words'])} \\* ({100 * (1 - r['bound'] / r['words']):.1f} %)"


def less(ours: int, theirs: int) -> str:
    return f"{100 * (1 - ours / theirs):.0f} %"


def _fig2(d: Data) -> Iterator[str]:
    yield from head("network", "feature maps, Mwords", "parameters, Mwords", "share of feature maps")
    for name in d.names("fig2"):
        r = d.one("fig2", network=name)
        assert r is not None
        share = r["maps"] / (r["maps"] + r["weights"])
        yield f"| {NETWORKS[name]} | {mega(r['maps'])} | {mega(r['weights'])} | {100 * share:.0f} % |"


def _fig7(d: Data) -> Iterator[str]:
    sizes = sorted({r["size"] for r in d.all("fig7")})
    yield from head("network", *(f"{s} operators: groups | fit 128 KB | median KB" for s in sizes))
    for name in d.names("fig7"):
        cells = []
        for size in sizes:
            r = d.one("fig7", network=name, size=size)
            cells.append(
                "- | - | -" if r is None else f"{r['groups']} | {r['fit']} | {r['median'] / 1024:,.0f}"
            )
        yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"


def _fig14(d: Data) -> Iterator[str]:
    hows = ("none", "dnnvm", "efficient-s", "online", "exact")
    for reading, title in READINGS.items():
        yield f"Mwords, {title}:\n"
        yield from head(
            "network",
            *(LABELS[h] for h in hows),
            "oracle",
            "less than none",
            "than DNNVM",
            "than Efficient-S",
        )
        for name in d.names("fig13"):
            rows = {h: d.one("fig13", network=name, reading=reading, how=h) for h in hows}
            exact = rows["exact"]
            if exact is None:
                continue
            cells = ["-" if r is None else starred(r) for r in rows.values()]
            others = (rows["none"], rows["dnnvm"], rows["efficient-s"])
            cells += [mega(exact["oracle"])]
            cells += ["-" if r is None else less(exact["words"], r["words"]) for r in others]
            yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
        yield ""
    yield "The paper: 19-75 % less than DNNVM, 17-58 % less than Efficient-S. \\*: not proved least (gap)."


def _fig15(d: Data) -> Iterator[str]:
    hows = tuple(h for h in HOWS if h not in ("dnnvm", "efficient-s", "online"))
    for reading, title in READINGS.items():
        yield f"Words relative to the exact partition, {title}:\n"
        yield from head("network", *(LABELS[h] for h in hows))
        for name in d.names("fig13"):
            rows = [d.one("fig13", network=name, reading=reading, how=h) for h in hows]
            if any(r is None for r in rows):
                continue
            exact = rows[-1]
            assert exact is not None
            cells = [f"{r['words'] / exact['words']:.2f}" for r in rows if r is not None]
            yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
        yield ""


def energy(r: Row) -> float:
    """Everything but the multiply-accumulates, which all schemes have: the paper's figure."""
    return float(sum(r[level] for level in LEVELS if level != "macs"))


def _fig13(d: Data) -> Iterator[str]:
    hows = ("none", "dnnvm", "efficient-s", "online", "exact")
    for reading, title in READINGS.items():
        yield f"Energy without multiply-accumulates, and latency, relative to the exact partition, {title}:\n"
        yield from head("network", *(f"{LABELS[h]}: energy | DRAM's energy | latency" for h in hows))
        for name in d.names("fig13"):
            rows = [d.one("fig13", network=name, reading=reading, how=h) for h in hows]
            exact = rows[-1]
            if exact is None or "latency" not in exact:
                continue
            cells = [
                "- | - | -"
                if r is None
                else f"{energy(r) / energy(exact):.2f} | {r['dram'] / exact['dram']:.2f}"
                f" | {r['latency'] / exact['latency']:.2f}"
                for r in rows
            ]
            yield f"| {NETWORKS[name]} | " + " | ".join(cells) + " |"
        yield ""
    yield "The paper: energy 1.89-3.66 (DNNVM) and 1.86-3.47 (Efficient-S), latency 1.44 and 1.10 on average."


def _fig16(d: Data) -> Iterator[str]:
    buffers = sorted({r["buffer"] for r in d.all("fig16")})
    yield from head("network", "Mwords", *(f"{b >> 10} KB" for b in buffers), left=2)
    for name in d.names("fig16"):
        for how, reading in (
            ("none", "paper"),
            ("dnnvm", "paper"),
            ("efficient-s", "paper"),
            ("exact", "paper"),
            ("exact", "ours"),
        ):
            rows = [d.one("fig16", network=name, how=how, reading=reading, buffer=b) for b in buffers]
            cells = ["-" if r is None else starred(r) for r in rows]
            label = LABELS[how] + ("" if how != "exact" else f", {READINGS[reading]}")
            yield f"| {NETWORKS[name]} | {label} | " + " | ".join(cells) + " |"


def _fig17(d: Data) -> Iterator[str]:
    yield from head("dataflow", "register file", "scheme", *LEVELS, "Mwords", "ms", left=3)
    for r in d.all("fig17"):
        cells = [f"{r[level] / 1e9:.2f}" for level in LEVELS]
        yield (
            f"| {r['dataflow']} | {r['register_file']} B | {LABELS[r['how']]} | "
            + " | ".join(cells)
            + f" | {mega(r['words'])} | {1e3 * r['latency']:.1f} |"
        )
    yield "\nEnergies in 10^9 multiply-accumulates; prices grow with the memories' sizes (see the script)."


def _fig18(d: Data) -> Iterator[str]:
    chips = [f"optimus-{i}" for i in range(1, 9)]
    for reading, title in READINGS.items():
        yield f"Mwords | energy in 10^9 multiply-accumulates | ms, {title}:\n"
        yield from head("network", *(c.removeprefix("optimus-") for c in chips))
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


def _fig19(d: Data) -> Iterator[str]:
    batches = sorted({r["batch"] for r in d.all("fig19")})
    yield "Mwords an image:\n"
    yield from head("network", "scheme", *(str(b) for b in batches), left=2)
    for name in d.names("fig19"):
        for how, reading in (
            ("none", "paper"),
            ("dnnvm", "paper"),
            ("efficient-s", "paper"),
            ("exact", "paper"),
            ("exact", "ours"),
        ):
            rows = [d.one("fig19", network=name, how=how, reading=reading, batch=b) for b in batches]
            cells = ["-" if r is None else mega(r["words"] // r["batch"]) for r in rows]
            label = LABELS[how] + ("" if how != "exact" else f", {READINGS[reading]}")
            yield f"| {NETWORKS[name]} | {label} | " + " | ".join(cells) + " |"


def _tab4(d: Data) -> Iterator[str]:
    order = ("alexnet", "vgg16", "googlenet", "resnet18", "resnet50", "resnet152", "mobilenet_v1")
    names = (*order, "squeezenet1_0")
    yield "Less DRAM access than the accelerator as it was built, %:\n"
    yield from head("chip", "figure of", *(NETWORKS[n] for n in names), left=2)
    for chip, theirs in PAPER_TABLE_4.items():
        yield f"| {chip} | the paper | " + " | ".join(f"{value:.2f}" for value in theirs) + " |"
        for reading, title in READINGS.items():
            cells = []
            for name in names:
                built = d.one("tab4", network=name, chip=chip, reading=reading, how="as-built")
                exact = d.one("tab4", network=name, chip=chip, reading=reading, how="exact")
                if built is None or exact is None:
                    cells.append("-")
                else:
                    cells.append(f"{100 * (1 - exact['words'] / built['words']):.2f}")
            yield f"| {chip} | {title} | " + " | ".join(cells) + " |"


def _tab5(d: Data) -> Iterator[str]:
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
        for reading in READINGS:
            exact = d.one("tab5", network=name, how="exact", reading=reading)
            online = d.one("tab5", network=name, how="online", reading=reading)
            if exact is None or online is None:
                continue
            theirs = ["-"] * 5
            if name in PAPER_TABLE_5:
                operators, evaluated, seconds, quick, final = PAPER_TABLE_5[name]
                groups = "-" if evaluated is None else f"{evaluated:,}"
                theirs = [str(operators), groups, str(final), f"{seconds:.2f}", f"{quick:.2f}"]
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
    yield "\nThe paper's times are its C++ on a Core i7-6700 (3.4 GHz), bottom-up; ours are CPU time here."
    yield "Cells run together in the text we have: 5.01 is ResNet-152's by the two decimals that"
    yield "times have; what part of ResNet-1202's digits are its groups cannot be told."


# -- the page and the plots ----------------------------------------------------------------------------------


def put_into(page: Path, data: Row) -> None:
    """Replace what stands between the marks, and the plots beside the page."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{page}: has no {BEGIN} ... {END}")
    new = f"{BEGIN}\n{figures(data)}{END}"
    page.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: new, text, flags=re.DOTALL))
    d = Data(data["records"])
    plot_energy(page.parent / "images" / "optimus-energy.svg", d)
    plot_buffer(page.parent / "images" / "optimus-buffer.svg", d)


LEVEL_COLOURS = dict(zip(LEVELS, ("#1f4e79", "#c55a11", "#7f7f7f", "#a9c4de", "#e8c39e"), strict=True))
LINES = {
    ("none", "paper"): ("#7f7f7f", ":"),
    ("dnnvm", "paper"): ("#c44e52", "--"),
    ("efficient-s", "paper"): ("#8172b3", "--"),
    ("exact", "paper"): ("#4c9f9f", "-"),
    ("exact", "ours"): ("#1b7f5a", "-"),
}


def plot_energy(path: Path, d: Data) -> None:
    """Stacked energies of the schemes, one group of bars a network, relative to the exact partition's."""
    plt = pyplot()
    hows = ("dnnvm", "efficient-s", "online", "exact")
    names = [n for n in d.names("fig13") if d.one("fig13", network=n, reading="ours", how="exact")]
    figure, axis = plt.subplots(figsize=(10, 3.2))
    width = 0.8 / len(hows)
    for x, name in enumerate(names):
        exact = d.one("fig13", network=name, reading="ours", how="exact")
        assert exact is not None
        for i, how in enumerate(hows):
            r = d.one("fig13", network=name, reading="ours", how=how)
            bottom = 0.0
            for level in LEVELS if r is not None else ():
                assert r is not None
                height = r[level] / (energy(exact) + exact["macs"])
                label = level if x == i == 0 else None
                place = x + i * width
                axis.bar(
                    [place], [height], width * 0.9, bottom=bottom, color=LEVEL_COLOURS[level], label=label
                )
                bottom += height
            axis.text(x + i * width, bottom, how, rotation=90, ha="center", va="bottom", fontsize=6)
    axis.set_xticks([x + 0.4 - width / 2 for x in range(len(names))], [NETWORKS[n] for n in names])
    axis.set_ylabel("energy / exact's")
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(y=0.2)
    axis.legend(ncol=len(LEVELS), frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.18))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def plot_buffer(path: Path, d: Data) -> None:
    """Small multiples, one network each: Mwords against KB of buffer."""
    plt = pyplot()
    names = d.names("fig16")
    across = 4
    down = max(1, -(-len(names) // across))
    figure, axes = plt.subplots(down, across, figsize=(10, 2.2 * down + 0.4), squeeze=False)
    for axis, name in zip(axes.flat, names, strict=False):
        for (how, reading), (colour, style) in LINES.items():
            rows = sorted(d.all("fig16", network=name, how=how, reading=reading), key=lambda r: r["buffer"])
            label = LABELS[how] + ("" if how != "exact" else f", {READINGS[reading]}")
            axis.plot(
                [r["buffer"] / 1024 for r in rows],
                [r["words"] / 1e6 for r in rows],
                style,
                color=colour,
                marker=".",
                label=label,
            )
        axis.set_xscale("log", base=2)
        axis.set_ylim(bottom=0)
        axis.set_title(NETWORKS[name], fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in list(axes.flat)[len(names) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("Mwords")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(LINES), frameon=False)
    figure.tight_layout(rect=(0, 0.4 / (2.2 * down + 0.4), 1, 1))
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def pyplot() -> Any:
    """matplotlib that writes the same file from the same data."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "onchip", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot as plt

    return plt
