"""A sweep's answer for its user: rows, curves, files, a table on the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.files import write_atomically
from onchip.sweeps.curves import Curve, Spot, curves_of
from onchip.sweeps.points import COLUMNS
from onchip.sweeps.run import Outcome
from onchip.sweeps.sram_columns import SRAM_COLUMNS, area_words
from onchip.sweeps.table import columns_of, has_parquet, to_csv, to_parquet

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["Swept"]

LONGEST_NETWORK, LONGEST_SERIES = 28, 32
"""Characters of names on the terminal."""


@dataclass(frozen=True)
class Swept:
    """The result of a sweep. `rows` are its points in the spec's order, each a mapping from column to value.

    `complete` is false after Ctrl-C or the time limit: rows are then missing, and the same call continues
    from there. `folder` has the journal and `files`, as `save` writes them.
    """

    outcome: Outcome
    folder: Path
    files: tuple[Path, ...] = ()

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The points that have an answer; every column is in every row."""
        return self.outcome.rows

    @property
    def complete(self) -> bool:
        """True if every point has an answer."""
        return self.outcome.complete

    @property
    def failed(self) -> int:
        """The number of points without a planner's answer: it raised an error, or killed its workers."""
        return self.outcome.failed

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The table's columns."""
        answers = COLUMNS if self.outcome.spec.sram is None else (*COLUMNS, *SRAM_COLUMNS)
        return columns_of(self.rows, self.outcome.labels, answers)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """DRAM bytes by buffer size for each network and series, with their knees."""
        return curves_of(self.rows, self.outcome.labels, self.outcome.spec.within)

    def data(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        o = self.outcome
        return {
            "spec": o.spec.path,
            "title": o.spec.title,
            "points": o.points,
            "computed": o.computed,
            "reused": o.reused,
            "failed": self.failed,
            "complete": self.complete,
            "end": o.end,
            "seconds": round(o.seconds, 3),
            "within": o.spec.within,
            "curves": [curve.data() for curve in self.curves],
            "rows": list(self.rows),
        }

    def html(self) -> str:
        """Return the curves and the table as one self-contained HTML page."""
        from onchip.sweeps.page import html

        return html(self.outcome, self.curves, self.sentence())

    def save(self) -> tuple[Path, ...]:
        """Write `table.csv`, `table.parquet` (with pyarrow) and `report.html`; return their paths."""
        made: dict[str, str | bytes] = {"table.csv": to_csv(self.rows, self.columns)}
        if has_parquet():
            made["table.parquet"] = to_parquet(self.rows, self.columns)
        else:  # an older file would belong to another table
            (self.folder / "table.parquet").unlink(missing_ok=True)
        made["report.html"] = self.html()
        for name, content in made.items():
            write_atomically(self.folder / name, content)
        return tuple(self.folder / name for name in made)

    def summary(self) -> Group:
        """Return the table that the terminal shows."""
        from rich.console import Group
        from rich.text import Text

        from onchip.base.short_names import distinct_names
        from onchip.report.grid import Grid
        from onchip.report.wording import short_size, visible

        def size(spot: Spot | None) -> str:
            return "-" if spot is None else short_size(spot.budget)

        def moved(spot: Spot | None) -> str:
            return "-" if spot is None else short_size(spot.dram)

        table = Grid(
            ("network, series" if any(curve.series for curve in self.curves) else "network", False),
            ("fits from", True),
            ("knee", True),
            ("DRAM there", True),
            (f"within {100 * self.outcome.spec.within:g} %", True),
            ("least DRAM", True),
            ("from", True),
            ("x compulsory", True),
            *((("mm2 at the knee", True),) if self.outcome.spec.sram else ()),
        )
        networks = distinct_names((_network(curve) for curve in self.curves), LONGEST_NETWORK)
        series = distinct_names((visible(curve.series) for curve in self.curves), LONGEST_SERIES)
        for curve in self.curves:
            least = curve.least
            over = "-" if least is None or not curve.limit else f"{least.dram / curve.limit:.3f}"
            table.add_row(
                networks[_network(curve)] + (f", {series[visible(curve.series)]}" if curve.series else ""),
                size(curve.first),
                size(curve.knee),
                moved(curve.knee),
                size(curve.near),
                moved(least),
                size(least),
                over,
                *((area_words(self.outcome.spec.sram, curve.knee),) if self.outcome.spec.sram else ()),
            )
        legend = (
            "fits from: the smallest buffer with a plan; knee: behind it more buffer pays less, with its DRAM"
            f" bytes; within {100 * self.outcome.spec.within:g} %: the smallest buffer so near to the least"
            " DRAM bytes; x compulsory: the least over what every plan moves; the page and the table say why"
            " a size has no plan"
        )
        if any(asked.planner == "plan" for asked in self.outcome.spec.asked):
            legend += "; planner plan keeps tensors whole, joint has tiles, too"
        return Group(Text(self.sentence()), Text(), table, Text(legend, style="dim"))

    def sentence(self) -> str:
        """Return a sentence that counts the points by answer."""
        o = self.outcome
        count: dict[str, int] = {}
        for row in self.rows:
            count[row["status"]] = count.get(row["status"], 0) + 1
        text = f"{len(self.rows):,} of {o.points:,} points: "
        text += (
            ", ".join(f"{n:,} {status}" for status, n in sorted(count.items(), key=lambda c: -c[1])) or "none"
        )
        if o.reused:
            text += f"; {o.reused:,} from before"
        return text

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.report.grid import printed

        return printed(self.summary(), 120)


def _network(curve: Curve) -> str:
    from onchip.report.wording import visible

    return visible(curve.network.removeprefix("zoo:"))
