"""A program as stays: the occupants of the scratchpad during runs, and how early or late their copies are.

Runs are numbered in the order of the program; *gap* g lies between run g - 1 and run g. A stay occupies its
bytes during runs [begin, end). Prefetching decides `early` and `late`: the number of runs by which a tensor
(or an operator's weights) is fetched ahead of its first use, and the number of runs that its store may take
while its bytes stay untouched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from onchip.check import Clock
from onchip.plans import Alloc, Free, Instruction, Load, Run, Scratch, Store

__all__ = ["Stay", "Stays"]


@dataclass(frozen=True, slots=True)
class Stay:
    """One stay, as in the program.

    `first` and `last` are the first and last run that need it (for an output, `first` makes it). `copied` if
    it arrives by a copy, `stored` if it is stored (at the earliest after `first`). `after` is the previous
    stay of the same tensor, `over` the stay that it is written over, `by` bytes above it.
    """

    name: str
    arrival: type[Load] | type[Alloc] | type[Scratch]
    size: int
    address: int
    first: int
    last: int
    copied: bool
    stored: bool = False
    freed: bool = False
    after: int | None = None
    over: int | None = None
    by: int = 0


@dataclass(frozen=True)
class Stays:
    """A straight program: its runs, and its stays in the order of arrival."""

    runs: tuple[Run, ...]
    stays: tuple[Stay, ...]

    late: tuple[int, ...]
    """For each stay, how late its store is in the program."""

    @classmethod
    def of(cls, program: Sequence[Instruction], clock: Clock) -> Stays | None:
        """Return the stays of a legal program; None if unsupported (streaming, a second store)."""
        reading = _Reading(clock)
        if not all(reading.follow(instruction) for instruction in program):
            return None
        stays = tuple(reading.finish())
        if any(stay.first < 0 for stay in stays):
            return None
        return cls(tuple(reading.runs), stays, tuple(reading.late))

    @cached_property
    def clusters(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Stays with dependent addresses (written over each other), as (stay, offset in the cluster)."""
        at: dict[int, tuple[int, int]] = {}  # stay -> its cluster's first stay, and its offset from that
        for i, stay in enumerate(self.stays):
            first, offset = (i, 0) if stay.over is None else at[stay.over]
            at[i] = (first, offset - stay.by)
        found: dict[int, list[tuple[int, int]]] = {}
        for i, (first, offset) in at.items():
            found.setdefault(first, []).append((i, offset))
        return tuple(
            tuple((i, offset - min(o for _, o in rows)) for i, offset in rows) for rows in found.values()
        )

    def rectangles(self, early: Sequence[int], late: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return for each cluster [begin, end) in runs, and its bytes."""
        count = len(self.runs)
        return [
            (
                min(self.begin(i, early) for i, _ in rows),
                min(count, max(self.end(i, late) for i, _ in rows)),
                max(offset + self.stays[i].size for i, offset in rows),
            )
            for rows in self.clusters
        ]

    # -- with copies moved -----------------------------------------------------------------------------

    def begin(self, i: int, early: Sequence[int]) -> int:
        """Return the first run during which stay `i` occupies its bytes."""
        return max(0, self.stays[i].first - early[i])

    def end(self, i: int, late: Sequence[int]) -> int:
        """Return one past the last run during which it does."""
        stay = self.stays[i]
        return max(stay.last, stay.first + late[i] if stay.stored else 0) + 1

    def allows(self, early: Sequence[int], late: Sequence[int]) -> bool:
        """Return whether every tensor still leaves before it comes back, and is stored before it ends."""
        return all(
            late[i] <= self.latest[i]
            and (stay.after is None or self.end(stay.after, late) <= self.begin(i, early))
            for i, stay in enumerate(self.stays)
        )

    @cached_property
    def latest(self) -> tuple[int, ...]:
        """The most runs that each stay's store may be late: before the end, and before it is overwritten."""
        overwritten = {stay.over for stay in self.stays}
        return tuple(
            max(0, stay.last - stay.first - 1) if i in overwritten else len(self.runs) - stay.first
            for i, stay in enumerate(self.stays)
        )

    def load(self, early: Sequence[int], late: Sequence[int]) -> list[int]:
        """Return the bytes occupied during each run."""
        change = [0] * (len(self.runs) + 1)
        for begin, end, size in self.rectangles(early, late):
            change[begin] += size
            change[end] -= size
        return list(accumulate(change[:-1]))

    def program(
        self, early: Sequence[int], late: Sequence[int], addresses: Sequence[int]
    ) -> tuple[Instruction, ...]:
        """Return the instructions. In each gap: prefetches, stores, frees, and copies needed now.

        Prefetched tensors share no bytes with what the gap frees, so they do not wait for it.
        """
        count = len(self.runs)
        ahead: list[list[int]] = [[] for _ in range(count + 1)]
        stores: list[list[int]] = [[] for _ in range(count + 1)]
        frees: list[list[int]] = [[] for _ in range(count + 1)]
        needed: list[list[int]] = [[] for _ in range(count + 1)]
        for i, stay in enumerate(self.stays):
            begin = stay.first - early[i]
            (ahead if early[i] else needed)[min(stay.first, begin + 1)].append(i)
            if stay.stored:
                stores[min(stay.first + late[i] + 1, count)].append(i)
            if stay.freed:
                frees[min(self.end(i, late), count)].append(i)
        result: list[Instruction] = []
        for gap in range(count + 1):
            for i in sorted(ahead[gap], key=lambda i: self.stays[i].first):
                result.append(self._arrive(i, addresses))
            result += [Store(self.stays[i].name) for i in stores[gap]]
            result += [Free(self.stays[i].name) for i in frees[gap]]
            for i in sorted(needed[gap], key=lambda i: self.stays[i].arrival is not Load):
                result.append(self._arrive(i, addresses))
            if gap < count:
                result.append(self.runs[gap])
        return tuple(result)

    def _arrive(self, i: int, addresses: Sequence[int]) -> Instruction:
        stay = self.stays[i]
        if stay.over is None:
            return stay.arrival(stay.name, addresses[i])
        return Alloc(stay.name, addresses[i], self.stays[stay.over].name, stay.by)


@dataclass
class _Open:
    """A stay that is being read."""

    name: str
    arrival: type[Load] | type[Alloc] | type[Scratch]
    size: int
    address: int
    copied: bool
    needed: list[int] = field(default_factory=list)
    stored: int | None = None
    freed: bool = False
    after: int | None = None
    over: int | None = None
    by: int = 0


class _Reading:
    """Follows a program; `follow` returns false if stays cannot represent it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.runs: list[Run] = []
        self.found: list[_Open] = []
        self.here: dict[str, int] = {}  # resident tensor -> its stay
        self.scratch: dict[str, int] = {}
        self.last: dict[str, int] = {}  # tensor -> its latest stay

    def follow(self, instruction: Instruction) -> bool:
        match instruction:
            case Load(name, address):
                self.arrive(_Open(name, Load, self.bytes(name), address, True))
            case Alloc(name, address, over, by):
                self.arrive(_Open(name, Alloc, self.bytes(name), address, False, by=by))
                if over is not None:
                    self.found[-1].over = self.here[over]
            case Scratch(name, address):
                size = self.clock.chip.round_up(self.clock.units[name].workspace)
                self.scratch[name] = len(self.found)
                self.found.append(_Open(name, Scratch, size, address, self.clock.kept[name] > 0))
                return size > 0
            case Run(name, streaming):
                self.run(instruction)
                return not streaming
            case Store(name):
                stay = self.found[self.here[name]]
                if stay.stored is not None or stay.arrival is Load:
                    return False
                stay.stored = len(self.runs) - 1
            case Free(name):
                self.found[self.here.pop(name)].freed = True
        return True

    def bytes(self, name: str) -> int:
        return self.clock.chip.round_up(self.clock.bytes[name])

    def arrive(self, stay: _Open) -> None:
        stay.after = self.last.get(stay.name)
        self.here[stay.name] = self.last[stay.name] = len(self.found)
        self.found.append(stay)

    def run(self, run: Run) -> None:
        now, name = len(self.runs), run.operator
        self.runs.append(run)
        for t in (*self.clock.reads[name], *self.clock.writes[name]):
            if t in self.here:
                self.found[self.here[t]].needed.append(now)
        for t in self.clock.writes[name]:
            over = self.found[self.here[t]].over if t in self.here else None
            if over is not None:
                del self.here[self.found[over].name]
        if name in self.scratch:
            self.found[self.scratch.pop(name)].needed.append(now)

    def finish(self) -> Iterator[Stay]:
        end = len(self.runs)
        overwritten = {stay.over for stay in self.found}
        for i, stay in enumerate(self.found):
            needed = max(stay.needed, default=-1)
            ends = stay.freed or stay.arrival is Scratch or i in overwritten
            yield Stay(
                stay.name,
                stay.arrival,
                stay.size,
                stay.address,
                min(stay.needed, default=-1),
                needed if ends else end - 1,
                stay.copied,
                stay.stored is not None,
                stay.freed,
                stay.after,
                stay.over,
                stay.by,
            )

    @property
    def late(self) -> Iterator[int]:
        for stay in self.found:
            stored = stay.stored is not None and stay.needed
            yield max(0, stay.stored - stay.needed[0]) if stored and stay.stored is not None else 0
