"""The lives of rows in a group by rows: from the step that makes a row to the one that reads it last."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.check.row_maps import StepMap, maps_of
from onchip.network import Network
from onchip.plans import Group, Rows

__all__ = ["RowLife", "RowLives", "lives_of"]


@dataclass(frozen=True, slots=True)
class RowLife:
    """Bytes [`address`, `address` + `bytes`) that step `made` makes for a map, and `last` reads last."""

    map: int
    step: int
    address: int
    bytes: int
    made: int
    last: int


@dataclass(frozen=True, slots=True)
class RowLives:
    """The lives of all rows of a legal plan, the maps, and the first step that is no row of a held input."""

    lives: tuple[RowLife, ...]
    maps: tuple[StepMap, ...]
    begin: int


def lives_of(network: Network, group: Group) -> RowLives:
    """Return the lives of the rows of a group whose plan is legal; what leaves it lives to the end."""
    rows = group.tiling
    assert isinstance(rows, Rows)
    ids = [network.operator_id[name] for name in group.operators]
    maps = maps_of(network, group.name, rows.maps, ids)
    made: list[list[int]] = [[] for _ in maps]
    last: list[list[int]] = [[0] * one.steps for one in maps]
    for time, k in enumerate(rows.steps):
        for read in maps[k].reads[len(made[k])]:
            whole = maps[read.map].steps != maps[read.map].rows
            for row in range(1) if whole else range(read.first, read.end):
                last[read.map][row] = time
        made[k].append(time)
        last[k][len(made[k]) - 1] = time
    end = len(rows.steps)
    for k in _leaving(network, rows, maps):
        last[k] = [end] * maps[k].steps
    lives = tuple(
        RowLife(k, step, rows.maps[k].addresses[step], maps[k].bytes, made[k][step], last[k][step])
        for k in range(len(maps))
        for step in range(maps[k].steps)
    )
    fetched = [rows.maps[k].does == "fetch" for k in rows.steps]
    first = fetched.index(False) if False in fetched else 0
    held = first == sum(fetched)
    return RowLives(lives, maps, first if held else 0)


def _leaving(network: Network, rows: Rows, maps: tuple[StepMap, ...]) -> set[int]:
    """Return the maps that hold outputs of the network at the end."""
    outputs = set(network.outputs)
    found = set()
    for k, (one, made) in enumerate(zip(rows.maps, maps, strict=True)):
        if made.tensor in outputs and one.does == "joined":
            found |= set(one.reads)
        elif made.tensor in outputs and not made.part and one.does in ("rows", "whole", "end"):
            found.add(k)
    return found
