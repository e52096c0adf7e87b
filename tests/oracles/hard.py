"""Small networks that a plausible but wrong pruning rule gets wrong, each reduced until nothing could go.

Found by random search against `oracles.states` with the rules of `oracles.twin` weakened one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from onchip.network import Network
from oracles.twin import Rules
from strategies import network_of

__all__ = ["HARD", "MOVED", "Hard", "Moved"]


@dataclass(frozen=True)
class Hard:
    """A network, a budget, its least traffic, and the weakened rules under which a search misses it."""

    network: Network
    budget: int
    traffic: int
    broken: Rules
    alignment: int = 1


HARD = (
    Hard(
        network_of(
            {"t5": 1, "t2": 5, "t4": 1, "t3": 3, "t1": 4, "t0": 5, "x0": 4},
            ["x0 -> t2", "t2 t3 -> t4", "t1 -> t3", "x0 -> t0", "t0 t2 -> t5"],
            "t1",
        ),
        budget=11,
        traffic=15,
        broken=Rules(r1="without copies"),
    ),
    Hard(
        network_of(
            {"a": 2, "b": 1, "c": 2, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1},
            ["-> a b", "-> c d", "d -> e f", "e a -> g", "c b -> h"],
            "f",
        ),
        budget=5,
        traffic=4,
        broken=Rules(r1="evictions at one size"),
    ),
    Hard(
        network_of(
            {"t2": 1, "t4": 1, "t6": 1, "t3": 1, "t1": 1},
            ["-> t4", "-> t2", "t4 -> t6 + 1", "t2 t1 -> t3"],
            "t3",
        ),
        budget=3,
        traffic=0,
        broken=Rules(r2="without size"),
    ),
    Hard(
        network_of(
            {"t4": 1, "t3": 2, "t0": 3, "t1": 2, "t6": 1, "t2": 2, "t5": 2, "x0": 2},
            ["x0 -> t1", "t0 t2 -> t4 + 2", "t3 t5 -> t6", "t0 x0 -> t2", "t2 t1 -> t5"],
            "x0",
        ),
        budget=9,
        traffic=2,
        broken=Rules(r2="without cost"),
    ),
    # The proofs' own example of why a safe move's outputs count twice.
    Hard(
        network_of(
            {"t0": 1, "t1": 1, "t2": 5, "t3": 5, "y": 1},
            ["t0 -> t1", "t0 -> t2", "t2 -> t3", "t1 t3 -> y"],
            "y",
        ),
        budget=10,
        traffic=1,
        broken=Rules(r2="one size"),
    ),
    Hard(
        network_of(
            {"x": 1, "a": 5, "b": 5, "c": 6, "d": 9, "e": 9, "f": 5, "g": 1, "h": 5, "i": 9},
            ["x -> a", "a -> b c", "x b a -> d", "d -> e f + 1", "c -> g h i"],
            "h",
        ),
        budget=40,
        alignment=4,
        traffic=11,
        broken=Rules(r2="plus, single tensors"),
    ),
    Hard(
        network_of(
            {"t0": 1, "a": 1, "b": 1, "c": 1, "d": 1, "e": 1},
            ["t0 -> a b", "-> c", "c -> d", "a c -> e"],
            "t0",
        ),
        budget=12,
        alignment=4,
        traffic=0,
        broken=Rules(r2="chains, last cut"),
    ),
    Hard(
        network_of(
            {"t6": 1, "t3c": 1, "x0": 9, "t5": 1, "t2": 1, "t3a": 1, "t0": 1, "t3b": 9, "t1": 1},
            ["t3c t5 -> t6", "t1 -> t2", "-> t5", "x0 -> t0", "t2 -> t3a t3b t3c", "x0 -> t1"],
            "t6",
        ),
        budget=40,
        alignment=8,
        traffic=0,
        broken=Rules(r2="chains, unlinked"),
    ),
    Hard(
        network_of(
            {"t3": 1, "t0": 1, "x0": 1, "t4": 1, "t5": 1, "t1": 1, "t2": 1},
            ["t2 -> t3 + 1", "t1 -> t2", "x0 -> t0", "t0 -> t1", "t3 x0 t4 t0 -> t5", "t1 -> t4"],
            "t5",
        ),
        budget=5,
        traffic=1,
        broken=Rules(r3="one set"),
    ),
    Hard(
        network_of(
            {"t3": 1, "t2b": 2, "t4b": 4, "t4a": 1, "t2a": 4, "t5": 1, "t1": 1, "x0": 1, "t0": 2},
            ["t4b t2a t4a -> t5", "t1 t2b -> t3", "-> t2a t2b", "x0 -> t0", "x0 -> t1", "t0 -> t4a t4b"],
            "t5",
        ),
        budget=10,
        traffic=7,
        broken=Rules(r3="smallest sets"),
    ),
)


@dataclass(frozen=True)
class Moved:
    """A network and budget whose tensors fit by size at `traffic`, and at their addresses only at `joint`."""

    network: Network
    budget: int
    traffic: int
    joint: int


STAIRS = "a -> b + {}", "b -> c + {}", "a c -> d + {}", "b d -> e + {}", "c e -> f + {}"
"""Three live ranges like stairs, while every workspace wants all that is free in one range."""

MOVED = tuple(
    Moved(
        network_of(
            dict(zip("abcdef", sizes, strict=True)),
            [line.format(free) for line, free in zip(STAIRS, workspaces, strict=True)],
            "f",
        ),
        budget,
        0,
        joint,
    )
    for sizes, workspaces, budget, joint in (
        ((3, 2, 2, 2, 2, 1), (7, 5, 3, 4, 7), 12, 3),
        ((3, 1, 1, 1, 1, 3), (5, 4, 3, 4, 4), 9, 2),
        ((1, 2, 1, 2, 2, 1), (4, 3, 1, 0, 3), 7, 1),
    )
)
