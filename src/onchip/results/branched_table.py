"""The modules of a network as a table for a terminal: Table 1 of the simple method."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from onchip.base.figures import Writers, columns
from onchip.check.replay import Ran, events_of
from onchip.network import Network
from onchip.planners.modules.table import ModuleTable, Row, accesses, counted
from onchip.plans import Plan
from onchip.report.grid import Grid
from onchip.report.wording import exact, shorten, visible
from onchip.results.branched_parts import BranchedModule, LongSkip, Unmerged

__all__ = ["resource_map", "table"]

MOST_ROWS = 100
"""The most modules, and stretches, that the terminal lists; the rest is in the totals and in --json."""

MOST_REASONS = 12
"""The most long connections, and concats and sums that close no module."""

SHORTEST_NAME, LONGEST_NAME = 9, 24


class InModules(Protocol):
    """The fields of a network in modules that the tables show (`onchip.Branched` documents them)."""

    @property
    def network(self) -> Network: ...

    @property
    def chip(self) -> str: ...

    @property
    def budget(self) -> int: ...

    @property
    def plan(self) -> Plan: ...

    @property
    def table(self) -> ModuleTable: ...

    @property
    def rows(self) -> Sequence[Row]: ...

    @property
    def total(self) -> Row: ...

    @property
    def modules(self) -> Sequence[BranchedModule]: ...

    @property
    def long_skips(self) -> Sequence[LongSkip]: ...

    @property
    def unmerged(self) -> Sequence[Unmerged]: ...

    @property
    def processing(self) -> Mapping[str, int]: ...

    @property
    def seconds(self) -> float: ...


def table(made: InModules, width: int) -> RenderableType:
    """Return a rich renderable: what was found, the table, the stretches, merges without module and why."""
    head = Text(visible(f"{made.network.name} on {made.chip}"), style="bold")
    head.append(f", {exact(made.budget)}: {modules_in_words(made)}", style="not bold")
    parts: list[RenderableType] = [head, Text(_sentence(made), style="dim")]
    if made.rows:
        body = _rows(made.rows, ("total", made.total), width=width - 2)
        parts += [Text(), *_section("Modules", EXPLANATION, body)]
    outside, whole = made.table.outside, ("all", made.table.network)
    if outside:
        sums = [("all outside", made.table.total_outside), whole] if made.rows else [whole]
        parts += [
            Text(),
            *_section("Outside modules", "one layer at a time", _rows(outside, *sums, width=width - 2)),
        ]
    if made.long_skips:
        what = "through DRAM; part of the rows above"
        parts += [Text(), *_section("Long connections", what, _skips(made, width - 2))]
    if made.unmerged:
        parts += [
            Text(),
            *_section("No module", "concats and sums that close none", _reasons(made, width - 2)),
        ]
    return Group(*parts)


def modules_in_words(made: InModules) -> str:
    """Return `11 modules, 10 with processing I and 1 with II`."""
    if not made.rows:
        return "no module of branches"
    count = counted(len(made.rows), "module")
    kinds = {kind: n for kind, n in made.processing.items() if n}
    if len(kinds) == 1:
        return f"{count}, processing {next(iter(kinds))}"
    return f"{count}, {kinds['I']:,} with processing I and {kinds['II']:,} with II"


def _sentence(made: InModules) -> str:
    total, speed = made.total, f"Planned in {made.seconds * 1000:,.1f} ms."
    if not made.rows:
        why = "for the reasons below" if made.unmerged else "for it has no concat or sum of several branches"
        count = counted(len(made.network.operators), "operator")
        return f"Nothing to keep on chip, {why}: all {count} run by themselves. {speed}"
    share = "" if total.fm_ratio is None else f"{100 * total.fm_ratio:.2f} % of naive; "
    return (
        f"Feature maps of modules that cross to DRAM: {_kb(total.fm_bytes)} of {_kb(total.naive_fm_bytes)}"
        f" KiB ({share}{accesses(total)}). {speed}"
    )


EXPLANATION = (
    "in KiB; W weights, FM feature maps, naive with every map through DRAM, r/w reads and writes of maps, %"
    " of naive"
)


def _section(heading: str, more: str, body: RenderableType) -> tuple[RenderableType, ...]:
    title = Text(heading, style="bold")
    title.append(f"  {more}", style="not bold dim")
    return title, Padding(body, (0, 0, 0, 2))


def _rows(rows: Sequence[Row], *sums: tuple[str, Row], width: int) -> RenderableType:
    shown, rest = rows[:MOST_ROWS], len(rows) - MOST_ROWS
    lines = [*((visible(row.name), row) for row in shown), *sums]
    kinds = [row.processing or "" for row in shown]
    every = columns(Row, [row for _, row in lines])
    cells = [[column.cell(row, WRITERS) for column in every] for _, row in lines]
    widths = [max(len(c.heading), *(len(row[i]) for row in cells)) + 2 for i, c in enumerate(every)]
    names = max(SHORTEST_NAME, *(len(name) for name, _ in lines))
    last = max(4, *map(len, kinds)) if any(kinds) else 0
    for patience in (4, 3, 2, 1):
        kept = [i for i, column in enumerate(every) if column.figure.gives_way < patience]
        room = width - sum(widths[i] for i in kept) - 2 - last
        if room >= min(names, LONGEST_NAME):
            break
    heads = [*(every[i].heading for i in kept), *(("kind",) if any(kinds) else ())]
    grid = Grid(("", False), *((heading, True) for heading in heads))
    for i, (name, _) in enumerate(lines):
        if i == len(shown) and rest > 0:
            grid.add_row("...")
        kind = [kinds[i]] if any(kinds) and i < len(shown) else []
        grid.add_row(shorten(name, max(SHORTEST_NAME, room)), *(cells[i][c] for c in kept), *kind)
    return _cut(grid, rest)


def _cut(grid: Grid, rest: int) -> RenderableType:
    """Return the rows that are shown, and a line that says where the others are."""
    return Group(grid, Text(f"{rest:,} more: --json lists all", style="dim")) if rest > 0 else grid


def _skips(made: InModules, width: int) -> RenderableType:
    figures = ("around layers", True), ("KiB", True), ("r/w", True)
    grid = Grid(("tensor", False), ("to", False), *figures)
    room = max(SHORTEST_NAME, (width - 44) // 2)
    for s in made.long_skips[:MOST_REASONS]:
        names = (shorten(visible(name), room) for name in (s.tensor, s.reader))
        moved = s.cost.read_bytes + s.cost.written_bytes
        grid.add_row(*names, f"{s.layers:,}", _kb(moved), f"{s.cost.reads:,}/{s.cost.writes:,}")
    return _cut(grid, len(made.long_skips) - MOST_REASONS)


def _reasons(made: InModules, width: int) -> RenderableType:
    grid = Grid(("", False), ("", False), header=False)
    for u in made.unmerged[:MOST_REASONS]:
        grid.add_row(shorten(visible(u.operator), max(SHORTEST_NAME, width // 3)), visible(u.reason))
    return _cut(grid, len(made.unmerged) - MOST_REASONS)


def resource_map(made: InModules, width: int) -> RenderableType:
    """Return, module by module: the regions with their offsets as they begin, then layers' needs and room."""
    parts: list[RenderableType] = []
    for module in made.modules:
        title = Text(visible(module.row.name), style="bold")
        title.append(f"  processing {module.row.processing}: {_order(module)}", style="not bold dim")
        for heading, body in ((title, _regions(made, module, width - 2)), (None, _layers(module, width - 2))):
            parts += [Text(), *([] if heading is None else [heading]), Padding(body, (0, 0, 0, 2))]
    return Group(*parts)


def _order(module: BranchedModule) -> str:
    sizes = [len(branch) for branch in module.section.branches]
    words = ", ".join("identity" if n == 0 else counted(n, "layer") for n in sizes)
    return f"branches of {words}, in this order"


def _regions(made: InModules, module: BranchedModule, width: int) -> Grid:
    figures = ("from", True), ("to", True), ("bytes", True), ("layers", True)
    grid = Grid(*figures, ("what", False), ("of", False))
    room = max(SHORTEST_NAME, width - 62)
    inside = range(module.section.first, module.section.end)
    runs = [e.index for e in events_of(made.plan) if isinstance(e, Ran) and e.index in inside]
    for r in module.regions:
        first = min(bisect_left(runs, r.first) + 1, len(runs))
        last = max(first, bisect_left(runs, r.end))
        while_ = f"{first}" if first == last else f"{first}-{last}"
        name = shorten(visible(r.name), room)
        grid.add_row(f"{r.address:,}", f"{r.address + r.bytes:,}", f"{r.bytes:,}", while_, r.kind, name)
    return grid


def _layers(module: BranchedModule, width: int) -> Grid:
    figures = ("required", True), ("available", True)
    grid = Grid(("branch", False), *figures, ("output", False), ("layer", False))
    room = max(SHORTEST_NAME, width - 46)
    for layer in module.layers:
        grid.add_row(
            ".".join(map(str, layer.branch)) or "merge",
            f"{layer.required_bytes:,}",
            f"{layer.available_bytes:,}",
            "stays" if layer.forwarded else "DRAM",
            shorten(visible(layer.operator), room),
        )
    return grid


def _kb(n: int) -> str:
    return f"{n / 1024:,.1f}"


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.2f}"


WRITERS: Writers = {"kb": _kb, "percent": _percent, "pair": lambda both: "{:,}/{:,}".format(*both)}
