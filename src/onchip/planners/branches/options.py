"""The options of the branches planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from onchip.base.errors import UsageError
from onchip.base.options import option, options

__all__ = ["DEFAULTS", "BranchOptions"]


@options
@dataclass(frozen=True, slots=True)
class BranchOptions:
    """The options of the branches planner. The fields are also the command line's flags."""

    rules: Literal["paper", "ours"] = option(
        "paper",
        "`paper`: Algorithms 1 to 6 to the letter; `ours`: the best of all branch orders, a module's input "
        "is given back after its last reader, a sum may be written over it, and layers outside modules hand "
        "on chip what fits. `ours` moves no more than `paper` in the whole network; in the modules alone it "
        "may.",
    )

    long_skip: int = option(
        8,
        "A connection around more layers than this is long: it goes through DRAM, and closes no module.",
    )

    def __post_init__(self) -> None:
        allowed = get_args(get_type_hints(BranchOptions)["rules"])
        if self.rules not in allowed:
            raise UsageError(f"{self.rules!r} is none of {', '.join(allowed)}", item="--rules")
        if type(self.long_skip) is not int or self.long_skip < 0:
            raise UsageError(f"{self.long_skip!r} is no number of layers", item="--long-skip")


DEFAULTS = BranchOptions()
