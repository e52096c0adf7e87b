"""What `cosma.py measure` found, as tables and plots. `reductions` says what the means are of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from cosma import BUDGETS, FOUR, HUMAN, NAS

Row = dict[str, Any]

TITLES = {**HUMAN, **NAS}
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
PAPER_SECONDS = {
    "exact:given": {
        "pnasnet5large": (12.2, 12.3, 12.2),
        "amoebanet_d": (8.1, 8.3, 8.1),
        "nasnetalarge": (19.8, 20.0, 19.7),
        "darts": (5.0, 5.0, 5.0),
    },
    "exact:minpeak": {
        "pnasnet5large": (24.2, 22.4, 23.5),
        "amoebanet_d": (84.4, 8.2, 8.5),
        "nasnetalarge": (22.4, 22.4, 21.6),
        "darts": (5.2, 5.2, 5.2),
    },
    "dnc": {
        "pnasnet5large": (65.9, 63.5, 58.0),
        "amoebanet_d": (62.1, 59.9, 112.8),
        "nasnetalarge": (37.5, 22.9, 39.2),
        "darts": (19.1, 19.1, 19.1),
    },
}
"""Table II of the paper: seconds on an M1 Pro with Gurobi."""


# -- figures -------------------------------------------------------------------------------------------------


def chosen(records: Iterable[Row], names: Iterable[str], **wanted: str) -> list[Row]:
    """The records of these networks with these values."""
    records = list(records)
    return [
        r for n in names for r in records if r["network"] == n and all(r[k] == v for k, v in wanted.items())
    ]


def reductions(records: Iterable[Row]) -> tuple[float, float, int, int] | None:
    """Traffic that the exact plan does without, of the four schemes'.

    (mean over the pairs of record and scheme where the scheme has traffic, of the bytes of all schemes
    together, pairs with traffic, pairs); None where no scheme has any.
    """
    records = list(records)
    pairs = [(r["rows"]["exact"]["traffic"], r["rows"][s]["traffic"]) for r in records for s in FOUR]
    busy = [(ours, theirs) for ours, theirs in pairs if theirs]
    if not busy:
        return None
    total = 1 - sum(ours for ours, _ in busy) / sum(theirs for _, theirs in busy)
    return mean(1 - ours / theirs for ours, theirs in busy), total, len(busy), len(pairs)


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def traffic(row: Row) -> str:
    """Bytes; a star where those of a strategy of onchip are not proved least (for its order, if fixed)."""
    return f"{row['traffic']:,}" + ("" if row["status"] == "optimal" else " \\*")


# -- tables --------------------------------------------------------------------------------------------------


def figures(data: Row) -> str:
    """Everything between the page's marks."""
    records = data["records"]
    fused = [r for r in records if r["granularity"] == "fused"]
    parts = [
        f"<!-- {data['machine']} -->",
        "## Traffic removed\n",
        *_reduction_table(records),
        "\nPer network, fused, of all schemes and both tensor settings (NAS: activations):\n",
        *_per_network(fused),
        "\n## Fig. 3: ten human-designed networks\n",
        "![Traffic of the four schemes and the exact plan, by network](images/cosma-human.svg)\n",
        *_traffic_table(chosen(fused, HUMAN), ("exact", *FOUR)),
        "\n## Fig. 4: four networks found by search\n",
        "![Traffic of the schemes and of onchip's strategies, NAS networks](images/cosma-nas.svg)\n",
        *_traffic_table(
            chosen(fused, NAS), ("exact", "exact:given", "exact:minpeak", *_dnc(chosen(fused, NAS)), *FOUR)
        ),
        "\n\\* not proved least.\n",
        "## Table II: seconds\n",
        *_seconds_table(chosen(fused, NAS, weights="streamed")),
        "\n## Against the targets\n",
        *_targets(records),
        "\n## Every plan\n",
        *_every_plan(chosen(records, TITLES)),
    ]
    return "\n".join(parts) + "\n"


def _dnc(records: Iterable[Row]) -> tuple[str, ...]:
    return ("dnc",) if all("dnc" in r["rows"] for r in records) else ()


def _reduction_table(records: list[Row]) -> Iterator[str]:
    budgets = (*BUDGETS, "all three")
    yield "| networks | tensors | granularity | " + " | ".join(f"{b} | of bytes" for b in budgets) + " |"
    yield "|---|---|---|" + "--:|--:|" * len(budgets)
    for label, names in (("human-designed", HUMAN), ("NAS", NAS)):
        for weights, what in (("streamed", "activations"), ("resident", "with parameters")):
            for granularity in ("fused", "op"):
                cells = []
                here = chosen(records, names, weights=weights, granularity=granularity)
                for at in budgets:
                    got = reductions(r for r in here if at in (r["at"], "all three"))
                    if got is None:
                        cells.append("- | -")
                    else:
                        cells.append(f"{percent(got[0])} ({got[2]} of {got[3]}) | {percent(got[1])}")
                yield f"| {label} | {what} | {granularity} | " + " | ".join(cells) + " |"


def _per_network(records: list[Row]) -> Iterator[str]:
    yield "| network | " + " | ".join(BUDGETS) + " |"
    yield "|---|" + "--:|" * 3
    for name, title in TITLES.items():
        cells = []
        for at in BUDGETS:
            wanted = chosen(records, [name], at=at)
            got = reductions(r for r in wanted if name in HUMAN or r["weights"] == "streamed")
            cells.append("no traffic" if got is None else percent(got[0]))
        yield f"| {title} | " + " | ".join(cells) + " |"


def _traffic_table(records: list[Row], columns: Iterable[str]) -> Iterator[str]:
    columns = tuple(columns)
    yield (
        "| network | tensors | at | budget | "
        + " | ".join(c.replace("exact:", "exact, ") for c in columns)
        + " | s | states | MB |"
    )
    yield "|---|---|---|--:|" + "--:|" * (len(columns) + 3)
    for r in records:
        what = "activations" if r["weights"] == "streamed" else "with parameters"
        cells = [f"{r['rows'][c]['traffic']:,}" if c in FOUR else traffic(r["rows"][c]) for c in columns]
        yield (
            f"| {TITLES[r['network']]} | {what} | {r['at']} | {r['budget']:,} | "
            + " | ".join(cells)
            + f" | {r['rows']['exact']['seconds']:.2f} | {r['states']:,} | {r['megabytes']:.1f} |"
        )


def _seconds_table(records: list[Row]) -> Iterator[str]:
    kinds = {
        "exact:given": "own order",
        "exact:minpeak": "least-peak order",
        "dnc": "divide and conquer",
        "exact": "any order, exact",
    }
    if not _dnc(records):
        del kinds["dnc"]
    yield (
        "| network | at | "
        + " | ".join(f"{k} | paper" for k in kinds.values())
        + " | least-peak order found in |"
    )
    yield "|---|---|" + "--:|--:|" * len(kinds) + "--:|"
    for r in records:
        cells = []
        for kind in kinds:
            paper = PAPER_SECONDS.get(kind, {}).get(r["network"])
            theirs = "none in 24 h" if paper is None else f"{paper[BUDGETS.index(r['at'])]}"
            cells.append(f"{r['rows'][kind]['seconds']:.2f} | {theirs}")
        yield (
            f"| {TITLES[r['network']]} | {r['at']} | " + " | ".join(cells) + f" | {r['order_seconds']:.2f} |"
        )


def _targets(records: list[Row]) -> Iterator[str]:
    human, nas = chosen(records, HUMAN), chosen(records, NAS)
    yield "| claim | holds | worst |"
    yield "|---|--:|---|"

    def line(claim: str, cases: list[Row], holds: list[bool], worst: tuple[float, str]) -> str:
        return f"| {claim} | {sum(holds)} of {len(cases)} | {worst[1]} |"

    def slowest(cases: list[Row], kinds: tuple[str, ...]) -> tuple[float, str]:
        return max(
            (r["rows"][k]["seconds"], f"{r['rows'][k]['seconds']:.2f} s: {case(r)}, {k}")
            for r in cases
            for k in kinds
        )

    optimal = [r["rows"]["exact"]["status"] == "optimal" for r in records]
    yield line("optimal with proof", records, optimal, (0, ""))
    at_mp = chosen(records, TITLES, at="MP")
    yield line("no traffic at MP", at_mp, [r["rows"]["exact"]["traffic"] == 0 for r in at_mp], (0, ""))
    yield line(
        "human-designed: planned in 0.1 s",
        human,
        [r["rows"]["exact"]["seconds"] < 0.1 for r in human],
        slowest(human, ("exact",)),
    )
    yield line(
        "NAS: planned in 30 s",
        nas,
        [r["rows"]["exact"]["seconds"] < 30 for r in nas],
        slowest(nas, ("exact",)),
    )
    most = max((r["resident_megabytes"], f"{r['resident_megabytes']:,.0f} MB: {case(r)}") for r in nas)
    yield line("NAS: under 2 GB (whole process)", nas, [r["resident_megabytes"] < 2e3 for r in nas], most)
    fixed = ("exact:given", "exact:minpeak")
    yield line(
        "NAS, fixed order: planned in 0.1 s",
        nas,
        [all(r["rows"][k]["seconds"] < 0.1 for k in fixed) for r in nas],
        slowest(nas, fixed),
    )


def _every_plan(records: list[Row]) -> Iterator[str]:
    yield "| network | graph | tensors | at | budget | traffic | status | s | search s | states | MB |"
    yield "|---|---|---|---|--:|--:|---|--:|--:|--:|--:|"
    for r in records:
        what = "activations" if r["weights"] == "streamed" else "with parameters"
        exact = r["rows"]["exact"]
        yield (
            f"| {TITLES[r['network']]} | {r['granularity']} | {what} | {r['at']} | {r['budget']:,} "
            f"| {exact['traffic']:,} | {exact['status']} | {exact['seconds']:.3f} "
            f"| {r['search_seconds']:.3f} | {r['states']:,} | {r['megabytes']:.1f} |"
        )


def case(r: Row) -> str:
    what = "activations" if r["weights"] == "streamed" else "with parameters"
    return f"{TITLES[r['network']]} {r['granularity']}, {what}, {r['at']}"


# -- the page and the plots ----------------------------------------------------------------------------------


def put_into(page: Path, data: Row) -> None:
    """Replace what stands between the marks, and the plots beside the page."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{page}: has no {BEGIN} ... {END}")
    new = f"{BEGIN}\n{figures(data)}{END}"
    page.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: new, text, flags=re.DOTALL))
    fused = [r for r in data["records"] if r["granularity"] == "fused"]
    images = page.parent / "images"
    plot(images / "cosma-human.svg", chosen(fused, HUMAN), HUMAN, ("exact", *FOUR), across=5)
    nas = chosen(fused, NAS, weights="streamed")
    bars = ("exact", *_dnc(nas), "exact:given", "exact:minpeak", *FOUR)
    plot(images / "cosma-nas.svg", nas, NAS, bars, across=4)


COLOURS = {
    "exact": "#1b7f5a",
    "dnc": "#7fb069",
    "exact:given": "#4c9f9f",
    "exact:minpeak": "#90c6c0",
    "given-belady": "#c44e52",
    "given-greedy": "#e39a9c",
    "minpeak-belady": "#8172b3",
    "minpeak-greedy": "#bdb3d9",
}


def plot(
    path: Path, records: list[Row], names: dict[str, str], bars: tuple[str, ...], *, across: int
) -> None:
    """Small multiples, one network each: traffic in MB at every budget. The same data give the same file."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "onchip", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot as plt

    here = [n for n in names if any(r["network"] == n for r in records)]
    down = -(-len(here) // across)
    figure, axes = plt.subplots(down, across, figsize=(2.6 * across, 2.3 * down + 0.4), squeeze=False)
    for axis, name in zip(axes.flat, here, strict=False):
        own = [r for r in records if r["network"] == name]
        width = 0.8 / len(bars)
        for i, kind in enumerate(bars):
            heights = [r["rows"][kind]["traffic"] / 1e6 for r in own]
            axis.bar(
                [x + i * width for x in range(len(own))], heights, width, color=COLOURS[kind], label=kind
            )
        labels = [r["at"] + ("p" if r["weights"] == "resident" else "") for r in own]
        axis.set_xticks([x + 0.4 - width / 2 for x in range(len(own))], labels)
        axis.set_title(names[name], fontsize=9)
        axis.set_ylim(0, None if any(bar.get_height() for bar in axis.patches) else 1)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in list(axes.flat)[len(here) :]:
        axis.set_visible(False)
    for row in axes:
        row[0].set_ylabel("traffic, MB")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(bars), frameon=False)
    figure.tight_layout(rect=(0, 0.4 / (2.3 * down + 0.4), 1, 1))
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
