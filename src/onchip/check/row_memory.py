"""The run of a group by rows on the bytes of its scratch: every byte knows the row that it belongs to.

A step reads rows whose bytes are all theirs, before and after it has written its own; so nothing is
overwritten that is still to be read, however long it lives. At the end what leaves the group is there, in one
piece.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from onchip.check.row_maps import Read, StepMap, maps_of
from onchip.check.rules import broken
from onchip.network import Network
from onchip.plans import Group, Rows

__all__ = ["RowsRun", "rows_run"]

MOST_BYTES = 1 << 28
"""More bytes of rows are a mistake."""

WORKSPACE = -2
"""The owner of a workspace's bytes; -1 is nobody."""


@dataclass(frozen=True, slots=True)
class RowsRun:
    """A group by rows: the bytes of its scratch, those that cross, and its multiply-accumulates.

    `ends` is the number of the map that holds each tensor that leaves the group.
    """

    need: int
    crossing: Mapping[int, int]
    macs: int
    maps: tuple[StepMap, ...]
    ends: Mapping[int, int]


def rows_run(
    network: Network, group: Group, ids: Sequence[int], streamed: Sequence[int] | None, leaves: Sequence[int]
) -> RowsRun:
    """Return the run of a group by rows, whose tensors `leaves` leave it. Raises `Broken`.

    `streamed` are the tensors that its run streams (None: not known, all operands).
    """
    rows = group.tiling
    assert isinstance(rows, Rows)
    if group.subgroups != 1 or group.refills or group.resident_weights:
        broken("rows-alone", f"group {group.name} states subgroups, refills or resident weights")
    maps = maps_of(network, group.name, rows.maps, ids)
    written = {t for op in ids for t in network.operators[op].outputs}
    operands = {t for op in ids for t in network.operators[op].inputs if t not in written} | set(leaves)
    if streamed is not None and operands - set(streamed):
        left = network.tensors[min(operands - set(streamed))].name
        broken("rows-alone", f"group {group.name} runs by rows and does not stream {left}")
    ranges = [
        (at, at + size)
        for one, made in zip(rows.maps, maps, strict=True)
        for size, addresses in ((made.bytes, one.addresses), (made.workspace, one.workspace))
        for at in addresses
    ]
    lowest, need = min((at for at, _ in ranges), default=0), max((end for _, end in ranges), default=0)
    if lowest < 0 or need > min(MOST_BYTES, max(group.scratch_bytes, 0)):
        broken(
            "group-scratch",
            f"group {group.name} states {group.scratch_bytes:,} bytes; rows lie from {lowest:,} to {need:,}",
        )
    ends = _Bytes(network, group, rows, maps, need).run(leaves)
    crossing = {t: network.tensors[t].bytes for t in leaves}
    for one, made in zip(rows.maps, maps, strict=True):
        if one.does == "fetch":
            crossing[made.tensor] = crossing.get(made.tensor, 0) + made.bytes * made.steps
    return RowsRun(need, crossing, sum(made.macs for made in maps), maps, ends)


class _Bytes:
    def __init__(
        self, network: Network, group: Group, rows: Rows, maps: Sequence[StepMap], need: int
    ) -> None:
        import numpy as np  # not for commands that prove nothing

        self.network, self.group, self.rows, self.maps = network, group, rows, maps
        self.owner = np.full(need, -1, np.int64)
        self.made = [0] * len(maps)
        self.first = [0]  # the number of each map's first step
        for made in maps:
            self.first.append(self.first[-1] + made.steps)

    def refuse(self, rule: str, time: int, reason: str) -> NoReturn:
        broken(rule, f"group {self.group.name}, step {time}: {reason}")

    def said(self, k: int, row: int) -> str:
        return f"row {row} of {self.network.tensors[self.maps[k].tensor].name} (map {k})"

    def run(self, leaves: Sequence[int]) -> dict[int, int]:
        """Run all steps; return the number of the map that holds each tensor that leaves the group."""
        for time, k in enumerate(self.rows.steps):
            if not 0 <= k < len(self.maps):
                self.refuse("rows-steps", time, f"there is no map {k}")
            self.step(time, k)
        for k, made in enumerate(self.maps):
            if self.made[k] != made.steps:
                self.refuse(
                    "rows-steps",
                    len(self.rows.steps),
                    f"map {k} has made {self.made[k]} of {made.steps} rows",
                )
        ends = {}
        for t in leaves:
            there = [k for k, made in enumerate(self.maps) if made.tensor == t and self.there(k)]
            if not there:
                name = self.network.tensors[t].name
                self.refuse("rows-complete", len(self.rows.steps), f"{name} is not there in one piece")
            ends[t] = there[0]
        return ends

    def step(self, time: int, k: int) -> None:
        """Make the next row of map k."""
        one, made = self.rows.maps[k], self.maps[k]
        step = self.made[k]
        if step >= made.steps:
            self.refuse("rows-steps", time, f"map {k} has only {made.steps} rows")
        reads = made.reads[step]
        for read in reads:
            self.prove_there(time, read)
            if made.pieces and self.place(read.map) is None:
                self.refuse("rows-pieces", time, f"map {read.map} is read whole and lies in pieces")
        at = one.addresses[step]
        if made.workspace:
            space = one.workspace[step if len(one.workspace) > 1 else 0]
            self.owner[space : space + made.workspace] = WORKSPACE
            if at < space + made.workspace and space < at + made.bytes:
                self.refuse("rows-alive", time, f"{self.said(k, step)} lies over its kernel's workspace")
        self.owner[at : at + made.bytes] = self.first[k] + step
        for read in reads:
            if read.map != k:  # sums go on from those before, which may lie in the same bytes
                self.prove_there(time, read)
        self.made[k] += 1

    def prove_there(self, time: int, read: Read) -> None:
        """Refuse rows that are not made, or of which a byte is another's by now."""
        for row in range(read.first, read.end):
            step, at, size = self.where(read.map, row)
            if step >= self.made[read.map]:
                self.refuse("rows-read", time, f"{self.said(read.map, row)} is not made yet")
            if (self.owner[at : at + size] != self.first[read.map] + step).any():
                self.refuse("rows-alive", time, f"{self.said(read.map, row)} is overwritten before this read")

    def where(self, k: int, row: int) -> tuple[int, int, int]:
        """Return the step that makes a row, its address and its bytes."""
        made, addresses = self.maps[k], self.rows.maps[k].addresses
        if made.steps == made.rows:
            return row, addresses[row], made.bytes
        return 0, addresses[0] + row * made.row_bytes, made.row_bytes

    def place(self, k: int) -> int | None:
        """Return the address of a map that lies in one piece; None of another."""
        made, one = self.maps[k], self.rows.maps[k]
        if one.does == "joined":
            at = None
            for part in one.reads:
                found = self.place(part)
                if found is None or (at is not None and found != at):
                    return None
                at = found + self.network.tensors[self.maps[part].tensor].bytes
            return None if at is None else at - self.network.tensors[made.tensor].bytes
        first = one.addresses[0]
        plain = all(at == first + n * made.bytes for n, at in enumerate(one.addresses))
        return first if plain else None

    def there(self, k: int) -> bool:
        """Return whether all of a map is there, in one piece, behind the last step."""
        one, made = self.rows.maps[k], self.maps[k]
        if one.does == "sums" or made.part or self.place(k) is None:
            return False
        if one.does == "joined":
            return all(self.there(part) for part in one.reads)
        return all(
            bool((self.owner[at : at + made.bytes] == self.first[k] + n).all())
            for n, at in enumerate(one.addresses)
        )
