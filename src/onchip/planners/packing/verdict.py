"""The complete verdict on a packing problem: offsets, or the buffers that are too many and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from onchip.base.errors import UsageError
from onchip.base.options import option, options
from onchip.base.units import MAX_BYTES, parse_bytes
from onchip.planners.limits import Limits
from onchip.planners.packing.buffers import Buffer, Engine, Status, max_load
from onchip.planners.packing.extent import minimise
from onchip.planners.packing.irreducible import shrink
from onchip.planners.packing.pack import Progress, pack

__all__ = ["Conflict", "PackOptions", "Verdict", "decide"]


ESTIMATE = 0.1
"""Share of the time limit kept for a packing above the capacity, if none within it is found."""


@options
@dataclass(frozen=True, slots=True)
class PackOptions:
    """The options of packing. The fields are also the command line's flags."""

    alignment: int = option(
        1,
        "Every offset is a multiple of this, on top of what the file asks for.",
        parse=parse_bytes,
    )

    time_limit: float = option(
        60.0,
        "Seconds for the search; naming what does not fit may take as long again.",
    )

    minimise: bool = option(False, "Look for the smallest capacity, between proved bounds.")

    seed: int = option(0, "Another seed may give another packing.")

    def __post_init__(self) -> None:
        if type(self.alignment) is not int or not 1 <= self.alignment <= MAX_BYTES:
            raise UsageError(f"{self.alignment!r} is no number of bytes from 1 to 1 TiB", item="alignment")
        if not 0 <= self.time_limit < float("inf"):
            raise UsageError(f"{self.time_limit!r} is no number of seconds from 0 up", item="time_limit")
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 63:
            raise UsageError(f"{self.seed!r} is no whole number from 0 to 2^63 - 1", item="seed")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Buffers (indices) that do not fit together. `minimal`: proved that any one fewer fits."""

    which: tuple[int, ...]
    minimal: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer. `extent` is that of the lowest packing found; none exists below `lower_bound`.

    `offsets` are those of a packing within the capacity, in bytes; without a capacity, of the lowest found.
    For an infeasible problem `needs` is the least capacity in bytes that holds all buffers, or if not `exact`
    only a bound below it; None if no capacity is enough, because two are fixed to the same bytes.
    """

    status: Status
    capacity: int | None
    max_load: int
    lower_bound: int
    extent: int | None
    offsets: tuple[int, ...]
    conflict: Conflict | None
    engine: Engine
    nodes: int
    seconds: float
    interrupted: bool = False
    needs: int | None = None
    exact: bool = False

    @property
    def missing(self) -> int | None:
        """Bytes that the capacity lacks, at least; None without `needs` or a capacity."""
        return None if self.needs is None or self.capacity is None else self.needs - self.capacity


def decide(
    buffers: Sequence[Buffer],
    capacity: int | None,
    options: PackOptions,
    *,
    progress: Progress | None = None,
) -> Verdict:
    """Pack within `capacity` bytes or give the reason why not; with `options.minimise` as low as possible.

    Without `minimise` a capacity is required: `UsageError` otherwise, and for a fixed offset that is no
    multiple of `options.alignment`.
    """
    if capacity is None and not options.minimise:
        raise UsageError("a capacity is needed: --capacity SIZE, or --minimise, which looks for the smallest")
    limits = Limits.of(options)
    given = _aligned(buffers, options.alignment)
    load = max_load(given)
    if options.minimise:
        verdict = _lowest(given, capacity, load, limits, progress)
    else:
        assert capacity is not None
        verdict = _within(given, capacity, load, limits, progress)
    if verdict.status != "infeasible" or capacity is None:
        return verdict
    which, minimal = shrink(given, capacity, time_limit=limits.share(1 / 2).left())
    verdict = replace(verdict, conflict=Conflict(which, minimal))
    if options.minimise:  # the need of all is already known
        bound, extent = verdict.lower_bound, verdict.extent
    else:
        bound, extent = _least(given, limits, progress)
    needs = None if extent is None else max(bound, capacity + 1)
    return replace(verdict, needs=needs, exact=needs == extent)


def _aligned(buffers: Sequence[Buffer], alignment: int) -> list[Buffer]:
    """Return the buffers with offsets aligned; unlike in `pack`, sizes count unrounded."""
    if alignment == 1:
        return list(buffers)
    try:
        return [replace(b, alignment=lcm(b.alignment, alignment)) for b in buffers]
    except ValueError as problem:
        raise UsageError(str(problem), item="alignment") from None


def _within(
    buffers: Sequence[Buffer], capacity: int, load: int, limits: Limits, progress: Progress | None
) -> Verdict:
    found = pack(
        buffers,
        capacity,
        time_limit=limits.share(1 - ESTIMATE).left(),
        seed=limits.seed,
        progress=progress,
    )
    extent: int | None = None
    if found.status == "packed":
        extent = max((at + b.size for at, b in zip(found.offsets, buffers, strict=True)), default=0)
    elif found.status == "unknown":
        extent = minimise(buffers, time_limit=limits.left(), seed=limits.seed, progress=progress).bytes
    bound = capacity + 1 if found.status == "infeasible" else load
    return Verdict(
        found.status,
        capacity,
        load,
        max(bound, load),
        extent,
        found.offsets,
        None,
        found.engine,
        found.nodes,
        found.seconds,
    )


def _lowest(
    buffers: Sequence[Buffer],
    capacity: int | None,
    load: int,
    limits: Limits,
    progress: Progress | None,
) -> Verdict:
    try:
        found = minimise(buffers, time_limit=limits.left(), seed=limits.seed, progress=progress)
    except ValueError:  # fixed buffers overlap
        return Verdict("infeasible", capacity, load, load, None, (), None, "bound", 0, limits.spent())
    status: Status = "unknown"
    if capacity is None or found.bytes <= capacity:
        status = "packed"
    elif found.lower_bound > capacity:
        status = "infeasible"
    return Verdict(
        status,
        capacity,
        load,
        found.lower_bound,
        found.bytes,
        found.offsets if status == "packed" else (),
        None,
        found.engine,
        found.nodes,
        found.seconds,
        found.interrupted,
    )


def _least(buffers: Sequence[Buffer], limits: Limits, progress: Progress | None) -> tuple[int, int | None]:
    """Return a lower bound of the capacity for all buffers, and a capacity that holds them, or None."""
    try:
        least = minimise(buffers, time_limit=limits.share(1 / 2).left(), seed=limits.seed, progress=progress)
    except ValueError:  # fixed buffers overlap
        return 0, None
    return least.lower_bound, least.bytes
