"""What `cosma.py measure` found, as tables and plots. `reductions` says what the means are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from cosma_arena import orders, readings
from cosma_belady import belady_readings
from cosma_claims import claims
from cosma_data import PAPER_SECONDS, Row, chosen, percent, reductions
from cosma_readings import all_readings
from cosma_settings import BUDGETS, FOUR, HUMAN, NAS, TITLES
from page_marks import Section


def traffic(row: Row) -> str:
    """Bytes; a star where those of a strategy of onchip are not proved least (for its order, if fixed)."""
    return f"{row['traffic']:,}" + ("" if row["status"] == "optimal" else " \\*")


# -- tables --------------------------------------------------------------------------------------------------


def sections(data: Row) -> dict[str, Section]:
    """The parts of the page, by the name of their marks."""
    records = data["records"]
    fused = [r for r in records if r["granularity"] == "fused"]
    nas = chosen(fused, NAS)
    ways = ("exact", "exact:given", "exact:minpeak", *_dnc(nas), *FOUR)

    def removed() -> Iterator[str]:
        yield f"<!-- {data['machine']} -->"
        yield from _reduction_table(records)

    return {
        "claims": lambda: claims(records),
        "averages": lambda: averages(records),
        "removed": removed,
        "networks": lambda: _per_network(fused),
        "fig3": lambda: _traffic_table(chosen(fused, HUMAN), ("exact", *FOUR)),
        "fig4": lambda: _traffic_table(nas, ways),
        "table2": lambda: _seconds_table(chosen(fused, NAS, weights="streamed")),
        "targets": lambda: _targets(records),
        "plans": lambda: _every_plan(chosen(records, TITLES)),
        "arena": readings,
        "arena_all": all_readings,
        "belady": belady_readings,
        "orders": orders,
    }


def pictures(data: Row, images: Path) -> None:
    """Fig. 3 and Fig. 4 with our data."""
    fused = [r for r in data["records"] if r["granularity"] == "fused"]
    plot(images / "cosma-human.svg", chosen(fused, HUMAN), HUMAN, ("exact", *FOUR), across=5)
    nas = chosen(fused, NAS, weights="streamed")
    ways = ("exact", *_dnc(nas), "exact:given", "exact:minpeak", *FOUR)
    plot(images / "cosma-nas.svg", nas, NAS, ways, across=4)


def _dnc(records: Iterable[Row]) -> tuple[str, ...]:
    return ("dnc",) if all("dnc" in r["rows"] for r in records) else ()


SETTINGS = {"streamed": "activations", "resident": "with parameters", None: "both settings"}


def _of_setting(records: list[Row], weights: str | None) -> list[Row]:
    return [r for r in records if weights in (None, r["weights"])]


def averages(records: list[Row]) -> Iterator[str]:
    """The paper's two means beside ours at MR and over all three budgets."""
    yield "| networks | tensors | paper | MR: fused | op | all three: fused | op |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for label, names, weights, paper in (
        ("human-designed", HUMAN, "streamed", ""),
        ("human-designed", HUMAN, "resident", ""),
        ("human-designed", HUMAN, None, "84 %"),
        ("NAS", NAS, "streamed", "85 %"),
    ):
        cells = []
        for budgets in (("MR",), BUDGETS):
            for granularity in ("fused", "op"):
                asked = _of_setting(chosen(records, names, granularity=granularity), weights)
                found = reductions(r for r in asked if r["at"] in budgets)
                cells.append("-" if found is None else percent(found[0]))
        yield f"| {label} | {SETTINGS[weights]} | {paper} | " + " | ".join(cells) + " |"


def _reduction_table(records: list[Row]) -> Iterator[str]:
    budgets = (*BUDGETS, "all three")
    yield "| networks | tensors | granularity | " + " | ".join(f"{b} | of bytes" for b in budgets) + " |"
    yield "|---|---|---|" + "--:|--:|" * len(budgets)
    for label, names in (("human-designed", HUMAN), ("NAS", NAS)):
        for weights, what in SETTINGS.items():
            if weights is None and names is NAS:
                continue  # the paper has these four with activations only
            for granularity in ("fused", "op"):
                cells = []
                here = _of_setting(chosen(records, names, granularity=granularity), weights)
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


# -- the plots ----------------------------------------------------------------------------------------------

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
