"""The workload that a caller asks for: networks, how often each runs, and which waits for which."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.base.errors import UsageError
from onchip.machines.soc import SoC
from onchip.multi_dnn.judged import told_apart
from onchip.multi_dnn.options import CorunOptions
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.workload import Job, Workload

__all__ = ["CorunOptions", "workload_of"]

MAX_COUNT = 10**6


def workload_of(profiles: Sequence[Profile], soc: SoC, options: CorunOptions) -> Workload:
    """Return the workload of networks given by their profiles, in their order.

    Raises `UsageError` for an invalid flag, `ChipError` for an unknown contention set,
    `ProfileError` for networks that wait for each other and the like.
    """
    names = told_apart([profile.network for profile in profiles])
    times = dict(_pair(text, len(names), "--iterations") for text in options.iterations)
    if len(times) < len(options.iterations):
        raise UsageError("says how often a network runs twice", item="--iterations")
    after: dict[int, list[str]] = {}
    for text in options.after:
        later, earlier = _pair(text, len(names), "--after")
        if not 0 < earlier <= len(names):
            raise UsageError(f"{text!r}: there are networks 1 to {len(names)}", item="--after")
        after.setdefault(later, []).append(names[earlier - 1])
    if not 1 <= options.frames <= MAX_COUNT:
        raise UsageError(f"{options.frames:,} is not from 1 to {MAX_COUNT:,}", item="--frames")
    in_flight = max(2, len(names)) if options.in_flight is None else options.in_flight
    if not 0 <= in_flight <= MAX_COUNT:
        raise UsageError(f"{in_flight:,} is not from 0 to {MAX_COUNT:,}", item="--in-flight")
    jobs = tuple(
        Job(name, profile, times.get(n, 1), tuple(dict.fromkeys(after.get(n, ()))))
        for n, (name, profile) in enumerate(zip(names, profiles, strict=True), 1)
    )
    return Workload(soc, jobs, soc.model(options.contention), options.frames, options.pipelined, in_flight)


def _pair(text: str, networks: int, option: str) -> tuple[int, int]:
    """Return two numbers with a colon between them, the first that of a network."""
    first, _, second = text.partition(":")
    if not (first.isascii() and second.isascii() and first.isdecimal() and second.isdecimal()):
        raise UsageError(f"{text!r} is not two numbers with a colon between, as in 2:1", item=option)
    if len(first) > 6 or len(second) > 6 or int(second) < 1:
        raise UsageError(f"{text!r}: numbers are from 1 to 999,999", item=option)
    if not 0 < int(first) <= networks:
        raise UsageError(f"{text!r}: there are networks 1 to {networks}", item=option)
    return int(first), int(second)
