"""What a user asks of a co-run besides networks, SoC and objective; the fields are also the flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onchip.base.errors import UsageError
from onchip.base.options import option, options
from onchip.machines.soc import SoC
from onchip.multi_dnn.grouping import MOST_GROUPS
from onchip.multi_dnn.judged import told_apart
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.workload import Job, Workload

__all__ = ["CorunOptions", "workload_of"]

MAX_COUNT = 10**6


@options
@dataclass(frozen=True, slots=True)
class CorunOptions:
    """How the networks run together, and where their profiles come from."""

    contention: str | None = option(
        None,
        "The set of constants of the contention model: light, medium, heavy or none, or one of the SoC's "
        "file [default: the SoC's own, light for the built-in boards].",
    )

    profile: tuple[str, ...] = option(
        (),
        "A measured profile, FILE.csv or FILE.json: MODEL=FILE, or just FILE where one model is given. "
        "`synthetic` is a roofline even for what the paper measured, `measured` runs each network on this "
        "machine, as is done for the SoC `local`.",
    )

    most_groups: int = option(MOST_GROUPS, "Layer groups of a network whose profile is made here, at most.")

    iterations: tuple[str, ...] = option(
        (),
        "NETWORK:TIMES, counted from 1: how often a network runs in each frame, to balance short ones with "
        "long ones.",
    )

    after: tuple[str, ...] = option(
        (),
        "LATER:EARLIER, counted from 1: a network that begins a frame only when another has finished it.",
    )

    frames: int = option(
        1,
        "Frames of a stream that are scheduled; throughput is that of the second half of them.",
    )

    pipelined: bool = option(
        True,
        "Whether a network may begin its next frame before the others have finished this one.",
    )

    in_flight: int | None = option(
        None,
        "Frames of a stream that may be under way at once, 0 for any number [default: as many as there are "
        "networks, at least 2].",
    )


def workload_of(profiles: Sequence[Profile], soc: SoC, options: CorunOptions) -> Workload:
    """The workload of networks given by their profiles, in their order.

    Raises `UsageError` for a flag that means nothing, `ChipError` for an unknown contention set,
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
    """Two numbers with a colon between them, the first that of a network."""
    first, _, second = text.partition(":")
    if not (first.isascii() and second.isascii() and first.isdecimal() and second.isdecimal()):
        raise UsageError(f"{text!r} is not two numbers with a colon between, as in 2:1", item=option)
    if len(first) > 6 or len(second) > 6 or int(second) < 1:
        raise UsageError(f"{text!r}: numbers are from 1 to 999,999", item=option)
    if not 0 < int(first) <= networks:
        raise UsageError(f"{text!r}: there are networks 1 to {networks}", item=option)
    return int(first), int(second)
