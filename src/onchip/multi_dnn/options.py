"""The options of a co-run besides networks, SoC and objective; the fields are also the flags."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.base.options import group, option, options

__all__ = ["DEFAULTS", "MOST_GROUPS", "CorunOptions", "SolveOptions"]

MOST_GROUPS = 10
"""The default number of groups: as many as HaX-CoNN's Table 2 has for GoogLeNet."""


@group("Networks and frames")
@options
@dataclass(frozen=True, slots=True)
class CorunOptions:
    """The options of running the networks together, and the sources of their profiles."""

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


@group("Search")
@options
@dataclass(frozen=True, slots=True)
class SolveOptions:
    """The options of the solvers."""

    any_order: bool = option(
        True,
        "Look at every order on every unit; off: only schedules in which no unit waits while a group is "
        "ready.",
    )
    prove: bool = option(True, "Prove the best of two chains, as far as memory allows.")
    switches: int | None = option(
        None,
        "Look only at mappings in which a run changes its unit at most so often; one frame only.",
    )
    delays: bool = option(False, "Insert idle time where it pays.")
    tries: int = option(20_000, "Schedules that local search plays at most.")
    nodes: int = option(200_000, "States that branch and bound looks at, at most; 0 leaves it out.")
    time_limit: float | None = option(
        None,
        "Seconds for the search. Baselines come on top: no other is begun when they took as long.",
    )
    seed: int = option(0, "Breaks ties: another seed may give another schedule.")


DEFAULTS = SolveOptions()
