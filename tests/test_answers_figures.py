"""A figure of an answer stands once: what is added to a record is in JSON, in the table and on the page."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import onchip
from onchip.base.figures import columns, data, derived, figure
from onchip.planners.fused_group import FusedGroup
from onchip.planners.fusion import cost
from onchip.planners.modules import table
from onchip.report import grouped
from onchip.report.modules import page
from onchip.results import branched_table


@dataclass(frozen=True, slots=True)
class Row:
    """Two maps and what only some rows have."""

    name: str
    written: int = figure(key="written", unit="words", heading="out", narrow="maps", page="written", place=2)
    read: int = figure(key="read", unit="words", heading="in", narrow="maps", page="read", place=1)
    kept: tuple[str, ...] = figure((), key="kept", unit="names", heading="kept", place=4)
    whole: int = figure(0, unit="bytes", heading="KiB", page="whole", optional=True, place=3)


ROWS = [Row("a", 30, 10, ("w",)), Row("b", 5, 1)]


def test_json_has_the_order_of_the_fields_and_tables_have_their_own() -> None:
    assert data(ROWS[0], {"words": lambda n: n // 2}) == {"written": 15, "read": 5, "kept": ["w"]}
    assert list(data(ROWS[0], {})) == ["written", "read", "kept"]
    assert [c.heading for c in columns(Row, ROWS)] == ["in", "out", "kept"]
    assert [c.heading for c in columns(Row, ROWS, "page")] == ["read", "written"]


def test_an_optional_column_is_there_where_some_row_has_it() -> None:
    rows = [*ROWS, Row("c", 0, 0, (), 2048)]
    *_, whole, _ = found = columns(Row, rows)
    assert [c.heading for c in found] == ["in", "out", "KiB", "kept"]
    assert [whole.cell(row, {"bytes": lambda n: n / 1024}) for row in rows] == ["", "", "2.0"]
    assert [c.heading for c in columns(Row, rows, "page")] == ["read", "written", "whole"]


def test_on_a_narrow_terminal_columns_are_added_up() -> None:
    maps, kept = columns(Row, ROWS, wide=False)
    assert (maps.heading, maps.of(*ROWS), maps.cell(ROWS[1], {})) == ("maps", 46, "6")
    assert [kept.cell(row, {}) for row in ROWS] == ["1", ""]
    assert len(columns(Row, ROWS, "page", wide=False)) == 2


@dataclass(frozen=True, slots=True)
class Moved:
    """A figure that follows from others."""

    into: int = figure(key="into", heading="in", place=2, gives_way=1, order=2)
    out: int = figure(key="out", heading="out", place=3)

    @derived(key="both", heading="all", unit="pair", place=1, order=1)
    def both(self) -> tuple[int, int]:
        """In and out."""
        return self.into, self.out


def test_a_property_is_a_figure_like_a_field() -> None:
    row = Moved(3, 4)
    assert row.both == (3, 4)
    assert Moved.both.__doc__ == "In and out."
    assert data(row, {}) == {"both": [3, 4], "into": 3, "out": 4}
    assert list(data(row, {})) == ["both", "into", "out"]
    first, *rest = columns(Moved, [row])
    assert first.cell(row, {"pair": lambda two: "{}/{}".format(*two)}) == "3/4"
    assert [(c.heading, c.figure.gives_way) for c in rest] == [("in", 1), ("out", 0)]


@dataclass(frozen=True, slots=True)
class Wider(FusedGroup):
    """A group with one figure more."""

    @staticmethod
    def seen(operators: tuple[str, ...]) -> int:
        return 1000 + len(operators)

    checked: int = figure(0, key="checked", heading="checks", page="checked operators", place=50)

    def __post_init__(self) -> None:
        object.__setattr__(self, "checked", self.seen(self.operators))


def test_a_new_figure_of_a_group_is_a_field_and_what_computes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cost, grouped):
        monkeypatch.setattr(module, "FusedGroup", Wider)
    made = onchip.fuse("zoo:alexnet", "optimus", budget="128KiB")
    counts = [1000 + len(group.operators) for group in made.groups]
    assert [group["checked"] for group in made.data()["groups"]] == counts
    assert "checks" in str(made)
    assert f"{counts[0]:,}" in str(made)
    assert made.plan is not None
    shown = made.plan.report()
    assert '<th class="n">checked operators</th>' in shown
    assert f'<td class="n">{counts[0]:,}</td>' in shown


@dataclass(frozen=True, slots=True)
class WiderRow(table.Row):
    """A module with one figure more."""

    @derived(key="layers_moved", heading="per layer", page="accesses a layer", place=50)
    def a_layer(self) -> int:
        """Accesses of its feature maps, over its layers."""
        return 1000 + (self.reads + self.writes) // max(1, self.operators)


def test_a_new_figure_of_a_module_is_one_property(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (table, branched_table, page):
        monkeypatch.setattr(module, "Row", WiderRow)
    made = onchip.branches("zoo:squeezenet1_0", "exynos-npu", budget="512KiB")
    row = made.rows[0]
    assert isinstance(row, WiderRow)
    assert made.data()["modules"][0]["layers_moved"] == row.a_layer
    assert "per layer" in str(made)
    assert f"{row.a_layer:,}" in str(made)
    shown = made.plan.report()
    assert '<th class="n">accesses a layer</th>' in shown
    assert f'<td class="n">{row.a_layer:,}</td>' in shown
