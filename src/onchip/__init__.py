"""onchip plans a neural network onto a chip's memory, proves the plan, runs it and shows it.

import onchip

plan = onchip.plan("zoo:resnet50", budget="MR")
plan.check()
plan.run()
plan.report("resnet50.html")
"""

from onchip.api import Plan, branches, chip, compare, corun, fuse, load, mcu, plan, read
from onchip.branched import Branched
from onchip.chip import Chip
from onchip.comparison import Comparison
from onchip.corunned import Corunned
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
from onchip.fused import Fused
from onchip.microcontroller import Microcontroller
from onchip.network import Geometry, Network, Operator, OperatorSpec, Tensor, View

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
    "read",
    # what they give
    "Plan",
    "Fused",
    "Branched",
    "Corunned",
    "Microcontroller",
    "Comparison",
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
