"""Old names of modules: an import of one warns in one line and returns the module under its new name.

`import onchip.placement` returns `onchip.planners.placement`. This file goes with the release after 0.1.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["NOW", "install"]

VERBS = ("branches", "chip", "corun", "mcu", "plan", "sweep")
"""Old names of modules that are functions of `onchip` now."""

NOW = {
    "_validate": "network.build",
    "allowance": "base.allowance",
    "baselines": "comparison.baselines",
    "baselines.segments": "microcontroller.compare.segments",
    "baselines.tflm_arena": "microcontroller.compare.tflm_arena",
    "board": "machines.board",
    "branches": "planners.branches",
    "budgets": "planners.budgets",
    "cells": "base.cells",
    "check.drive": "check.ring_order",
    "check.held": "check.pinned",
    "check.maps": "network.maps",
    "check.overlap": "check.operator_overlap",
    "check.passes": "check.channel_passes",
    "check.walk": "check.operator_walk",
    "child": "base.child",
    "chip": "machines.chip",
    "chip_memory": "machines.chip_memory",
    "corun": "multi_dnn",
    "corun.contention": "machines.contention",
    "corun.enumerate": "papers.hax_conn.enumerate",
    "corun.fit": "papers.hax_conn.fit",
    "corun.soc": "machines.soc",
    "corun.soc_file": "machines.soc_file",
    "corun.z3_check": "papers.hax_conn.z3_check",
    "corun_profiles": "multi_dnn.result.profiles",
    "crash": "base.crash",
    "elementwise": "network.elementwise",
    "errors": "base.errors",
    "export.devices": "multi_dnn.export.devices",
    "export.order": "multi_dnn.export.order",
    "export.schedule_table": "multi_dnn.export.schedule_table",
    "export.schedule_trace": "multi_dnn.export.schedule_trace",
    "export.schedules": "multi_dnn.export.schedules",
    "export.tensorrt": "multi_dnn.export.tensorrt",
    "export.trtexec": "multi_dnn.export.trtexec",
    "files": "base.files",
    "flags": "base.flags",
    "fusion": "planners.fusion",
    "fusion.algorithm1": "planners.fusion.reproduced.algorithm1",
    "fusion.algorithm2": "papers.optimus.algorithm2",
    "fusion.baselines": "planners.fusion.reproduced.baselines",
    "fusion.dag": "planners.fusion.reproduced.dag",
    "fusion.downsets": "planners.fusion.reproduced.downsets",
    "fusion.groups": "planners.fusion.reproduced.groups",
    "fusion.published": "planners.fusion.reproduced.costs",
    "fusion.restricted": "planners.fusion.reproduced.restricted",
    "fusion.spaces": "planners.fusion.reproduced.spaces",
    "guard": "base.guard",
    "interrupt": "base.interrupt",
    "joint": "planners.joint",
    "joint.plan": "planners.joint.planning",
    "limits": "base.limits",
    "mcu": "microcontroller",
    "mcu.arithmetic": "microcontroller.int8.arithmetic",
    "mcu.factors": "microcontroller.int8.factors",
    "mcu.kernel": "microcontroller.kernel_language",
    "mcu.model": "microcontroller.int8.model",
    "mcu.read": "microcontroller.int8.read",
    "mcu.read_elements": "microcontroller.int8.read_elements",
    "mcu.read_layers": "microcontroller.int8.read_layers",
    "mcu.read_maps": "microcontroller.int8.read_maps",
    "mcu.read_rules": "microcontroller.int8.read_rules",
    "mcu.read_site": "microcontroller.int8.read_site",
    "mcu.read_sums": "microcontroller.int8.read_sums",
    "mcu.read_window": "microcontroller.int8.read_window",
    "mcu.reference": "microcontroller.int8.reference",
    "mcu.softmax": "microcontroller.int8.softmax",
    "modules": "planners.modules",
    "network_json": "network.json",
    "packing": "planners.packing",
    "placement": "planners.placement",
    "placement.budgets": "planners.placement.least_budgets",
    "placement.held": "planners.placement.pinning",
    "placement.plan": "planners.placement.planning",
    "placement.zero_traffic": "planners.placement.without_traffic",
    "plan": "plans",
    "plan.limits": "plans.file_limits",
    "plan.parse": "plans.text_reading",
    "plan.reach": "plans.text_reach",
    "plan.text": "plans.text_writing",
    "plan.words": "plans.text_words",
    "plans.fused_group": "planners.fused_group",
    "plans.words": "plans.text_words",
    "progress": "planners.limits",
    "proving": "results.proving",
    "report.corun": "multi_dnn.report",
    "report.notebook": "report.in_notebook",
    "report.timeline": "report.steps",
    "results.beside": "comparison.beside",
    "results.beside_table": "comparison.beside_table",
    "results.comparison": "comparison.comparison",
    "results.comparison_table": "comparison.comparison_table",
    "results.corunned": "multi_dnn.result.corunned",
    "results.corunned_data": "multi_dnn.result.corunned_data",
    "results.corunned_table": "multi_dnn.result.corunned_table",
    "results.fused_table": "results.fused",
    "results.microcontroller": "microcontroller.result.microcontroller",
    "results.microcontroller_beside": "microcontroller.result.microcontroller_beside",
    "results.microcontroller_build": "microcontroller.result.microcontroller_build",
    "results.microcontroller_front": "microcontroller.result.microcontroller_front",
    "results.microcontroller_kernels": "microcontroller.result.microcontroller_kernels",
    "results.microcontroller_plan": "microcontroller.result.microcontroller_plan",
    "results.microcontroller_table": "microcontroller.result.microcontroller_table",
    "results.swept": "sweeps.swept",
    "results.what_if": "comparison.what_if",
    "run.held": "run.pinned",
    "run.local": "multi_dnn.local",
    "run.local.crew": "multi_dnn.local.processes",
    "run.mcu": "microcontroller.emulator",
    "segments": "microcontroller.segments",
    "segments.affine": "papers.vmcu.affine",
    "segments.circular": "papers.vmcu.circular",
    "segments.front": "microcontroller.segments.frontier",
    "segments.in_place": "microcontroller.compare.in_place",
    "segments.lives": "microcontroller.compare.lives",
    "segments.nests": "papers.vmcu.nests",
    "segments.overlapped": "microcontroller.compare.overlapped",
    "segments.patches": "microcontroller.compare.patches",
    "segments.plan": "microcontroller.segments.planning",
    "segments.window_fused": "microcontroller.compare.window_fused",
    "sweep": "sweeps",
    "toml_file": "base.toml_file",
    "units": "base.units",
}
"""Old name, new name, both below `onchip`; names below an old one are renamed likewise."""


def install() -> None:
    """Make old names importable."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Verb(ModuleType):
    # An old module whose name is now a function's: it can still be called as the function.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        function = vars(self).get(name) or getattr(import_module("onchip.api"), name)
        return function(*args, **kwargs)


class _Finder:
    # A finder and loader by duck typing: `importlib.abc` alone takes longer to import than all of this.

    def __init__(self) -> None:
        self.specs: dict[str, ModuleSpec | None] = {}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return None if _now(name) is None else ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        now = _now(spec.name)
        assert now is not None
        warnings.warn(f"{spec.name} is {now} now", FutureWarning, stacklevel=2)
        there = import_module(now)
        old = spec.name.removeprefix("onchip.")
        if old not in VERBS and not callable(vars(there).get(old.rpartition(".")[2])):
            self.specs[there.__name__] = there.__spec__
            return there
        verb = _Verb(spec.name)  # bound to its package by that name from now on
        verb.__dict__.update({k: v for k, v in vars(there).items() if k not in ("__name__", "__spec__")})
        return verb

    def exec_module(self, module: ModuleType) -> None:
        """Give a module back its own spec; it has been imported by its own name."""
        if not isinstance(module, _Verb):
            module.__spec__ = self.specs.pop(module.__name__, module.__spec__)


def _now(name: str) -> str | None:
    """Return the current name of a module, None where it has no other."""
    old = name.removeprefix("onchip.")
    if old == name:
        return None
    below = ""
    while old:
        if old in NOW:
            return f"onchip.{NOW[old]}{below}"
        old, _, last = old.rpartition(".")
        below = f".{last}{below}"
    return None
