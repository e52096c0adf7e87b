"""The options of placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from onchip.base.errors import UsageError
from onchip.base.options import group, option, options
from onchip.base.units import MAX_BYTES, parse_bytes

__all__ = ["DEFAULTS", "PlacementOptions"]


@group("Whole tensors")
@options
@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """The options of placement. The fields are also the command line's flags."""

    weights: Literal["streamed", "resident"] = option(
        "streamed",
        "`streamed`: weights take no scratchpad; `resident`: an operator's weights are held while it runs.",
        group="Goal",
    )

    order: Literal["free", "given", "minpeak"] = option(
        "free",
        "`free` decides the order too, `given` keeps the network's, `minpeak` fixes the one of lowest peak.",
    )

    in_place: bool = option(
        False,
        "Element-wise operators may write their output over an input that nobody reads afterwards "
        "(strategies `exact`, `dnc`, `beam`).",
    )

    time_limit: float | None = option(
        None,
        "Seconds in all, reading included; when they are over, the plan is the best so far, with its gap.",
        group="Effort",
    )

    memory_limit: int = option(
        2 << 30,
        "Bytes that the search may hold; when they are full, the plan is the best so far, with its gap.",
        parse=parse_bytes,
        group="Effort",
    )

    strategy: Literal["exact", "dnc", "beam", "greedy", "ilp"] = option(
        "exact",
        "`exact`: complete search, then addresses. `dnc`: divide at break nodes, solve the pieces exactly. "
        "`beam`: a beam search. `greedy`: one pass, no search. `ilp`: COSMA's integer program, for small "
        "networks. All state a proved lower bound.",
    )

    beam_width: int = option(100, "States that strategy `beam` keeps of each length.")

    solver: Literal["cp-sat", "highs", "scip"] = option(
        "cp-sat",
        "What solves the program of strategy `ilp`; the other strategies need none.",
    )

    inputs: Literal["sensible", "literal"] = option(
        "sensible",
        "`sensible`: a network input lies in DRAM, so evicting it is free. `literal`: its first spill is "
        "charged, as COSMA's eq. 12 says (strategies `exact` and `ilp`).",
    )

    moves: bool = option(
        True,
        "On a chip with several memories tensors may move from one to another, or (`--no-moves`) stay in "
        "one.",
    )

    pin: tuple[str, ...] = option(
        (),
        "Keep TENSOR on chip from its creation to its last reader, in one place; or `weights:OPERATOR` for "
        "good. With @ADDRESS behind it there. May be given several times.",
    )

    state: tuple[str, ...] = option(
        (),
        "INPUT=OUTPUT[@ADDRESS]: the input is on chip at the start, and the output ends in its place for "
        "the next inference. An output that is the input with new rows behind it is a cache: it grows in a "
        "buffer of its own; =OUTPUT begins one. A `*` in both stands for the same text. May be given several "
        "times.",
    )

    capacity: int | None = option(
        None,
        "Rows that the buffers of caches given by --state have room for; without it, those that are there "
        "after this inference.",
    )

    seed: int = option(0, "Breaks ties: another seed may give another plan, as good.", group="Effort")

    objective: Literal["traffic", "peak", "latency", "energy", "edp"] = option(
        "traffic",
        "`traffic`: fewest DRAM bytes; `energy`: least energy; `latency`: shortest inference, with "
        "prefetching; `edp`: least product of energy and latency, with --fuse; `peak`: least scratchpad "
        "without any spill or reload.",
        group="Goal",
    )

    def __post_init__(self) -> None:
        for key, hint in get_type_hints(type(self)).items():
            value, allowed = getattr(self, key), get_args(hint)
            if get_origin(hint) is Literal and value not in allowed:
                raise UsageError(f"{value!r} is not one of {', '.join(map(str, allowed))}", item=key)
        if self.in_place and (self.strategy not in ("exact", "dnc", "beam") or self.inputs == "literal"):
            what = "inputs literal" if self.inputs == "literal" else f"strategy {self.strategy}"
            raise UsageError(f"is for strategies exact, dnc and beam, not for {what}", item="in_place")
        if self.inputs == "literal" and self.strategy not in ("exact", "ilp"):
            raise UsageError(f"literal is for strategies exact and ilp, not {self.strategy}", item="inputs")
        if self.inputs == "literal" and (self.pin or self.state):
            raise UsageError("literal keeps nothing on chip: leave out --pin and --state", item="inputs")
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, int | float) and 0 <= limit < float("inf")):
            raise UsageError(f"{limit!r} is no number of seconds from 0 up", item="time_limit")
        if type(self.memory_limit) is not int or not 1 <= self.memory_limit <= MAX_BYTES:
            raise UsageError(
                f"{self.memory_limit!r} is no number of bytes from 1 to 1 TiB", item="memory_limit"
            )
        if type(self.beam_width) is not int or not 1 <= self.beam_width <= 1_000_000:
            raise UsageError(f"{self.beam_width!r} is no whole number from 1 to 1,000,000", item="beam_width")
        for key in ("pin", "state"):
            if not (
                isinstance(getattr(self, key), tuple) and all(type(v) is str for v in getattr(self, key))
            ):
                raise UsageError(f"{getattr(self, key)!r} is no tuple of texts", item=key)
        rows = self.capacity
        if rows is not None and (type(rows) is not int or not 1 <= rows <= MAX_BYTES):
            raise UsageError(f"{rows!r} is no number of rows from 1 up", item="capacity")
        if type(self.seed) is not int or not 0 <= self.seed < 1 << 63:
            raise UsageError(f"{self.seed!r} is no whole number from 0 to 2^63 - 1", item="seed")


DEFAULTS = PlacementOptions()
