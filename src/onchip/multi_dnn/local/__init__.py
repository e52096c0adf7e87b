"""Executing a schedule of several networks on the cores of this machine (HaX-CoNN, without a board).

Each unit is one process on one core with one engine; tensors cross through shared memory, and the order
on every unit is enforced. docs/corun-local.md explains what that proves: mapping, order, transitions and
outputs, and hardly anything about contention.
"""

from onchip.multi_dnn.local.execute import run_schedule
from onchip.multi_dnn.local.outcome import LocalReport, NetworkOutcome
from onchip.multi_dnn.local.pieces import Cut, cut
from onchip.multi_dnn.local.runtime import Execution, Runtime

__all__ = ["Cut", "Execution", "LocalReport", "NetworkOutcome", "Runtime", "cut", "run_schedule"]
