"""onchip plans a neural network onto a chip's memory, proves the plan, runs it and shows it.

import onchip

plan = onchip.plan("zoo:resnet50", budget="MR")
plan.check()
plan.run()
plan.report("resnet50.html")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onchip import _renamed

if TYPE_CHECKING:
    from onchip.api import (
        Plan,
        branches,
        chip,
        compare,
        corun,
        fuse,
        lengths,
        load,
        mcu,
        mcu_fit,
        mcu_several,
        plan,
        read,
        session,
        sweep,
    )
    from onchip.at_run_time import Prepared, fusion_energy, prepare_fusion, workload
    from onchip.base.errors import (
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
    from onchip.by_length.session import Session
    from onchip.by_length.table import Lengths
    from onchip.comparison.comparison import Comparison
    from onchip.machines.chip import Chip
    from onchip.microcontroller.result.board_fits import BoardFit
    from onchip.microcontroller.result.microcontroller import Microcontroller
    from onchip.microcontroller.result.microcontroller_several import SeveralNetworks
    from onchip.multi_dnn.dynamic import DynamicScheduler, StaticScheduler
    from onchip.multi_dnn.result.corunned import Corunned
    from onchip.network import Geometry, Network, Operator, OperatorSpec, Tensor, View
    from onchip.results.branched import Branched
    from onchip.results.fused import Fused
    from onchip.sweeps.swept import Swept

__all__ = [  # noqa: RUF022 - grouped by what a reader looks for
    # verbs
    "load",
    "chip",
    "plan",
    "fuse",
    "branches",
    "corun",
    "mcu",
    "mcu_fit",
    "mcu_several",
    "compare",
    "sweep",
    "lengths",
    "session",
    "read",
    # verbs for planning at run time
    "prepare_fusion",
    "fusion_energy",
    "workload",
    # their results
    "Plan",
    "Fused",
    "Branched",
    "Corunned",
    "Microcontroller",
    "SeveralNetworks",
    "BoardFit",
    "Comparison",
    "Swept",
    "Lengths",
    "Session",
    "Prepared",
    "DynamicScheduler",
    "StaticScheduler",
    "Chip",
    "Network",
    "Operator",
    "OperatorSpec",
    "Tensor",
    "View",
    "Geometry",
    # their errors
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
    "onchip.api": (
        "Plan",
        "branches",
        "chip",
        "compare",
        "corun",
        "fuse",
        "lengths",
        "load",
        "mcu",
        "mcu_fit",
        "mcu_several",
        "plan",
        "read",
        "session",
        "sweep",
    ),
    "onchip.at_run_time": ("Prepared", "fusion_energy", "prepare_fusion", "workload"),
    "onchip.machines.chip": ("Chip",),
    "onchip.base.errors": (
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
    "onchip.comparison.comparison": ("Comparison",),
    "onchip.multi_dnn.dynamic": ("DynamicScheduler", "StaticScheduler"),
    "onchip.multi_dnn.result.corunned": ("Corunned",),
    "onchip.results.fused": ("Fused",),
    "onchip.microcontroller.result.board_fits": ("BoardFit",),
    "onchip.microcontroller.result.microcontroller": ("Microcontroller",),
    "onchip.microcontroller.result.microcontroller_several": ("SeveralNetworks",),
    "onchip.sweeps.swept": ("Swept",),
    "onchip.by_length.session": ("Session",),
    "onchip.by_length.table": ("Lengths",),
}
"""The module of each name, imported on its first use, so that `import onchip` costs next to nothing."""

_renamed.install()


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(home), name))
    raise AttributeError(f"module 'onchip' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
