"""onchip plans a neural network onto a chip's memory, proves the plan, runs it and shows it.

import onchip

plan = onchip.plan("zoo:resnet50", budget="MR")
plan.check()
plan.run()
plan.report("resnet50.html")
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from onchip._verbs import VERBS, Front

if TYPE_CHECKING:
    from onchip.api import Plan, branches, chip, compare, corun, fuse, load, mcu, plan, read, sweep
    from onchip.chip import Chip
    from onchip.errors import (
        ChipError,
        IllegalPlan,
        IllegalSchedule,
        Infeasible,
        InputError,
        Mismatch,
        MissingExtra,
        ModelError,
        NegativeAnswer,
        OnchipError,
        PlanFormatError,
        ProfileError,
        UsageError,
    )
    from onchip.network import Geometry, Network, Operator, OperatorSpec, Tensor, View
    from onchip.results.branched import Branched
    from onchip.results.comparison import Comparison
    from onchip.results.corunned import Corunned
    from onchip.results.fused import Fused
    from onchip.results.microcontroller import Microcontroller
    from onchip.results.swept import Swept

__all__ = [  # noqa: RUF022 - grouped by what a reader looks for
    # verbs
    "load",
    "chip",
    "plan",
    "fuse",
    "branches",
    "corun",
    "mcu",
    "compare",
    "sweep",
    "read",
    # what they give
    "Plan",
    "Fused",
    "Branched",
    "Corunned",
    "Microcontroller",
    "Comparison",
    "Swept",
    "Chip",
    "Network",
    "Operator",
    "OperatorSpec",
    "Tensor",
    "View",
    "Geometry",
    # what they raise
    "OnchipError",
    "InputError",
    "UsageError",
    "ModelError",
    "ChipError",
    "PlanFormatError",
    "ProfileError",
    "MissingExtra",
    "NegativeAnswer",
    "Infeasible",
    "IllegalPlan",
    "IllegalSchedule",
    "Mismatch",
]

_HOMES: dict[str, tuple[str, ...]] = {
    "onchip.api": ("Plan", "compare", "fuse", "load", "read"),
    "onchip.chip": ("Chip",),
    "onchip.errors": (
        "ChipError",
        "IllegalPlan",
        "IllegalSchedule",
        "Infeasible",
        "InputError",
        "Mismatch",
        "MissingExtra",
        "ModelError",
        "NegativeAnswer",
        "OnchipError",
        "PlanFormatError",
        "ProfileError",
        "UsageError",
    ),
    "onchip.network": ("Geometry", "Network", "Operator", "OperatorSpec", "Tensor", "View"),
    "onchip.results.branched": ("Branched",),
    "onchip.results.comparison": ("Comparison",),
    "onchip.results.corunned": ("Corunned",),
    "onchip.results.fused": ("Fused",),
    "onchip.results.microcontroller": ("Microcontroller",),
    "onchip.results.swept": ("Swept",),
}
"""Where a name comes from when it is first asked for, so that `import onchip` costs next to nothing."""

sys.modules[__name__].__class__ = Front


def __getattr__(name: str) -> Any:
    if name in VERBS:
        return import_module(f"onchip.{name}")
    for home, names in _HOMES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(home), name))
    raise AttributeError(f"module 'onchip' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
