"""onchip plans a neural network onto a chip's memory, proves the plan, runs it and shows it.

import onchip

plan = onchip.plan("zoo:resnet50", budget="MR")
plan.check()
plan.run()
plan.report("resnet50.html")
"""

from onchip.api import Plan, branches, chip, compare, fuse, load, plan, read
from onchip.branched import Branched
from onchip.chip import Chip
from onchip.comparison import Comparison
from onchip.errors import (
    ChipError,
    IllegalPlan,
    Infeasible,
    InputError,
    Mismatch,
    MissingExtra,
    ModelError,
    NegativeAnswer,
    OnchipError,
    PlanFormatError,
    UsageError,
)
from onchip.fused import Fused
from onchip.network import Geometry, Network, Operator, OperatorSpec, Tensor, View

__all__ = [  # noqa: RUF022 - grouped by what a reader looks for
    # verbs
    "load",
    "chip",
    "plan",
    "fuse",
    "branches",
    "compare",
    "read",
    # what they give
    "Plan",
    "Fused",
    "Branched",
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
    "MissingExtra",
    "NegativeAnswer",
    "Infeasible",
    "IllegalPlan",
    "Mismatch",
]
