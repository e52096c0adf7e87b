"""The figures of a plan: what its planner claims and the checker derives, and when everything happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from onchip.base.fields import wire, without_nulls

__all__ = ["MemoryUse", "Moved", "Result", "Status", "Timed"]


Status = Literal["optimal", "feasible"]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The use that a program makes of one of several memories, in bytes.

    `peak_bytes` is the most that lies there at once, `extent_bytes` one past the highest byte reserved,
    `accessed_bytes` the bytes that runs and copies read and write there.
    """

    memory: str
    peak_bytes: int
    extent_bytes: int
    accessed_bytes: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The `bytes` that all moves together copy from memory `source` to memory `target`."""

    source: str
    target: str
    bytes: int


@without_nulls
@dataclass(frozen=True, slots=True)
class Result:
    """A plan's figures, in bytes unless the name says otherwise; `seconds` is the time of planning.

    `status`, `seconds` and the bounds are the planner's claim: no plan of its kind has less traffic, a lower
    extent, latency, energy or time at memories. The checker recomputes every other field from the program.
    An optional field is None if nothing is claimed, or if the chip states no rate for it. On a chip with
    several memories `peak_bytes` and `extent_bytes` are of all together, `memories` and `moves` of each and
    between each two, and `memory_picoseconds` is the time of all reads and writes there, one after the other.

    `space` names, in one sentence, the plans that the bounds and the word optimal range over; a planner makes
    it from its options. `version` is the onchip that made the claims, and `claim_sha256` binds them to their
    problem (`onchip.plans.claim`). All three are empty in files of versions that did not state them.
    """

    status: Status
    traffic_bytes: int
    spill_bytes: int
    reload_bytes: int
    compulsory_bytes: int
    weight_bytes: int
    dram_bytes: int
    lower_bound_bytes: int
    """Of `traffic_bytes`."""
    peak_bytes: int
    extent_bytes: int
    seconds: float
    peak_lower_bound_bytes: int | None = None
    """Of `extent_bytes`, which objective `peak` minimizes; not of `peak_bytes`."""
    latency_picoseconds: int | None = None
    latency_lower_bound_picoseconds: int | None = None
    energy_picojoules: int | None = None
    energy_lower_bound_picojoules: int | None = None
    dram_lower_bound_bytes: int | None = None
    macs: int | None = None
    move_bytes: int | None = None
    memory_picoseconds: int | None = None
    memory_lower_bound_picoseconds: int | None = None
    memories: tuple[MemoryUse, ...] = ()
    moves: tuple[Moved, ...] = ()
    space: str = ""
    version: str = ""
    claim_sha256: str = ""

    @property
    def energy_delay(self) -> int | None:
        """The product of energy and latency, in picojoules times picoseconds; None without either."""
        return _product(self.energy_picojoules, self.latency_picoseconds)

    @property
    def energy_delay_lower_bound(self) -> int | None:
        """The product of their bounds; None without either."""
        return _product(self.energy_lower_bound_picojoules, self.latency_lower_bound_picoseconds)


def _product(energy: int | None, latency: int | None) -> int | None:
    return None if energy is None or latency is None else energy * latency


@dataclass(frozen=True, slots=True)
class Timed:
    """The time of instruction `index` of the program: [start, end) in picoseconds.

    For a `scratch`, the time in which its resident weights are fetched. `fetched`, of a `run` only: the time
    at which all that it streams (weights, operands) has crossed, from its start on.
    """

    index: int
    start: int
    end: int
    fetched: int | None = field(default=None, metadata=wire(placed=True))
