"""The options of a comparison: strategies, baselines, planners; the fields are also the flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from onchip.base.errors import UsageError
from onchip.base.options import group, option, options
from onchip.base.units import parse_bytes
from onchip.comparison import baselines
from onchip.planners import registry
from onchip.planners.placement import PlacementOptions
from onchip.planners.protocol import Planner

__all__ = ["CompareOptions", "other_planners"]

SECONDS = 10.0
"""The default time limit of a row: most searches end sooner by themselves, and one that does not would
delay all others."""

ORDERS = get_args(get_type_hints(PlacementOptions)["order"])
STRATEGIES = get_args(get_type_hints(PlacementOptions)["strategy"])


def other_planners() -> dict[str, Planner]:
    """Return the planners beside placement, whose strategies are rows of their own: by name, in row order."""
    found = [planner for planner in registry.listed() if planner.name != "placement"]
    return {p.name: p for p in sorted(found, key=lambda p: p.name != "joint")}  # joint may do what all may


@group("Rows of the table")
@options
@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of a comparison. The fields are also the command line's flags."""

    strategies: str = option(
        "exact",
        "Placement strategies, with commas between; `exact:given` or `exact:minpeak` fix the order.",
    )

    schemes: str = option(
        "all",
        "Baselines, with commas between: given-belady, given-greedy, minpeak-belady, minpeak-greedy, tflm, "
        "executorch; or `all`, or `none`.",
    )

    planners: str = option(
        "all",
        "onchip's other planners, with commas between: joint, fusion, branches; or `all`, or `none`.",
    )

    weights: Literal["streamed", "resident"] = option(
        "streamed",
        "Of strategies and baselines. `streamed`: weights take no scratchpad; `resident`: an operator's "
        "weights are held while it runs.",
    )

    time_limit: float | None = option(
        SECONDS,
        "Seconds for each row; when they are over, the row is the best so far, and its gap says how far "
        "above the least it may be.",
        each=True,
    )

    memory_limit: int = option(2 << 30, "Bytes that searches may hold, of each row.", parse=parse_bytes)

    seed: int = option(0, "Breaks ties: another seed may give another plan, as good.")

    def __post_init__(self) -> None:
        if not self.asked and not self.baselines and not self.others:
            raise UsageError("there is nothing to compare", item="strategies, schemes, planners")
        if unknown := [name for name in self.others if name not in other_planners()]:
            known = ", ".join(other_planners())
            raise UsageError(f"{unknown[0]!r} is not one of {known}, all, none", item="planners")
        if unknown := [name for name in self.baselines if name not in baselines.SCHEMES]:
            known = ", ".join(baselines.SCHEMES)
            raise UsageError(f"{unknown[0]!r} is not one of {known}, all, none", item="schemes")

    @property
    def asked(self) -> tuple[PlacementOptions, ...]:
        """The strategies as options of placement; raises `UsageError` naming what is wrong."""
        result = []
        for word in _words(self.strategies):
            strategy, _, order = word.partition(":")
            if strategy not in STRATEGIES or (order or "free") not in ORDERS:
                orders = ", ".join(o for o in ORDERS if o != "free")
                raise UsageError(
                    f"{word!r} is not one of {', '.join(STRATEGIES)}, alone or with : and one of {orders}",
                    item="strategies",
                )
            given: dict[str, Any] = {"strategy": strategy, "order": order or "free"}
            limits = {k: getattr(self, k) for k in ("weights", "time_limit", "memory_limit", "seed")}
            result.append(PlacementOptions(**given, **limits))
        return tuple(result)

    @property
    def baselines(self) -> tuple[str, ...]:
        """The names of the chosen baselines."""
        return _named(self.schemes, lambda: baselines.SCHEMES)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the chosen other planners."""
        return _named(self.planners, other_planners)


def _named(text: str, known: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    words = _words(text)
    return tuple(known()) if words == ("all",) else () if words == ("none",) else words


def _words(text: str) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise UsageError(f"expected names with commas between, not {text!r}", item="compare")
    return tuple(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
