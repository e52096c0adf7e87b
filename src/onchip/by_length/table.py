"""The table of plans by length that a runtime follows, as JSON, CSV and on a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.errors import UsageError
from onchip.base.files import write_atomically
from onchip.by_length.rows import Beyond, Row
from onchip.by_length.stretch import plan_at
from onchip.plans import Plan, write_plan

if TYPE_CHECKING:
    from onchip.by_length.series import Series

__all__ = ["FORMAT", "Lengths"]

FORMAT = "onchip.lengths/1"

Record = Callable[[Plan, int], Any]
"""From a plan and its length to the plan as a user has it, with the verbs and how the model is read."""

COLUMNS = (
    "from",
    "to",
    "plan",
    "dram_bytes_from",
    "dram_bytes_to",
    "traffic_bytes_from",
    "traffic_bytes_to",
    "peak_bytes",
    "extent_bytes",
    "gap_bytes",
    "proof",
    "why_not_below",
)


@dataclass(frozen=True)
class Lengths:
    """Plans for all lengths from `first` to `last` of dimension `name`, as far as there are plans.

    `beyond` is the first length without a plan, if one has none. `asked` is the first length that was asked
    for: shorter ones than `first` were not planned, because time was over.
    """

    name: str
    first: int
    last: int
    rows: tuple[Row, ...]
    beyond: Beyond | None
    series: Series = field(repr=False)
    asked: int = 1
    record: Record = field(default=lambda plan, _: plan, repr=False)

    def row(self, length: int) -> Row:
        """Return the row of a length; raises `UsageError` for one without."""
        for row in self.rows:
            if row.first <= length <= row.last:
                return row
        raise UsageError(f"{length:,} has no plan in this table", item=self.name)

    def plan(self, length: int) -> Any:
        """Return the plan of a length, proved legal: its row's instructions and addresses, its own sizes."""
        row = self.row(length)
        made = plan_at(row.plan, self.series.at(length), row.part(length).bound(length))
        assert made is not None
        return self.record(made, length)

    def proof(self, row: Row) -> str:
        """Return in words how it is known that a row's plan is the best at all of its lengths."""
        best = "optimal" if not row.gap_bytes else f"within {row.gap_bytes:,} B of the best"
        long = [part for part in row.stretches if part.last - part.first > 1]
        if not long:
            return f"{best}: checked at every length"
        read = set(self.series.read)
        unread = sum(n not in read for part in long for n in range(part.first, part.last + 1))
        seen = "all lengths" if not unread else f"all lengths read ({unread:,} were not)"
        parts = "" if len(row.stretches) == 1 else f" of {len(row.stretches):,} stretches"
        return f"{best}: proved by the ends{parts}, sizes growing evenly at {seen}"

    def data(self) -> dict[str, Any]:
        """Return the table as JSON has it."""
        return {
            "format": FORMAT,
            "network": self.rows[-1].plan.network.name,
            "source": self.rows[-1].plan.network.source,
            "sha256": self.rows[-1].plan.network.sha256,
            "chip": self.rows[-1].plan.chip.name,
            "budget": self.rows[-1].plan.budget,
            "dimension": self.name,
            "from": self.first,
            "to": self.rows[-1].last,
            "rows": [self._row(row) for row in self.rows],
            **(
                {}
                if self.beyond is None
                else {"no_plan_from": self.beyond.length, "reason": self.beyond.reason}
            ),
        }

    def _row(self, row: Row) -> dict[str, Any]:
        short, long = row.begins.result, row.plan.result
        return {
            "from": row.first,
            "to": row.last,
            "plan": row.file,
            "dram_bytes_from": short.dram_bytes,
            "dram_bytes_to": long.dram_bytes,
            "traffic_bytes_from": short.traffic_bytes,
            "traffic_bytes_to": long.traffic_bytes,
            "peak_bytes": long.peak_bytes,
            "extent_bytes": long.extent_bytes,
            "gap_bytes": row.gap_bytes,
            "proof": self.proof(row),
            "why_not_below": row.why,
        }

    def to_json(self) -> str:
        """Return the table as JSON text."""
        return json.dumps(self.data(), indent=1) + "\n"

    def to_csv(self) -> str:
        """Return the rows as CSV text."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.data()["rows"])
        return text.getvalue()

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write `lengths.json`, `lengths.csv` and the plans into a folder; return the files."""
        into = Path(folder)
        into.mkdir(parents=True, exist_ok=True)
        written = []
        for row in self.rows:
            write_plan(row.plan, into / row.file)
            written.append(into / row.file)
        for name, text in (("lengths.csv", self.to_csv()), ("lengths.json", self.to_json())):
            write_atomically(into / name, text)
            written.append(into / name)
        return tuple(written)

    def recorded(self, record: Record) -> Lengths:
        """Return the table with its plans as `record` gives them."""
        rows = tuple(
            replace(row, plan=record(row.plan, row.last), begins=record(row.begins, row.first))
            for row in self.rows
        )
        return replace(self, rows=rows, record=record)

    def __repr__(self) -> str:
        from onchip.report.grid import one_screen

        return one_screen(str(self))

    def __str__(self) -> str:
        from onchip.by_length.shown import shown
        from onchip.report.grid import printed

        return printed(shown(self), 100)
