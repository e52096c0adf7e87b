"""The options that choose a method, and those of the papers' methods."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from onchip.base.errors import UsageError
from onchip.base.options import group, like, option, options
from onchip.planners import registry
from onchip.planners.branches.options import BranchOptions
from onchip.planners.fusion.options import FusionOptions

__all__ = ["METHODS", "MethodOptions", "PaperOptions", "planner_of"]

METHODS = {"joint": "joint", "cosma": "placement", "optimus": "fusion", "simple": "branches"}
"""The planner of every method but `best`."""


@group("Method")
@options
@dataclass(frozen=True, slots=True)
class MethodOptions:
    """The options that say how the answer is found. The fields are also the command line's flags."""

    method: str = option(
        "best",
        "`best`: the best plan that the chip can run, fused in tiles where that moves less. Or one method "
        "alone: `joint` (tiles and whole tensors as one search: --fuse), `cosma` (tensors whole: --no-fuse), "
        "`optimus` (fused groups), `simple` (modules of branches), or a planner of your own by its name.",
    )

    level: str | None = option(
        None,
        "On a chip with several memories: the one that tiles are planned for. Without it, the innermost that "
        "operators read. The next one out takes DRAM's part.",
    )

    def __post_init__(self) -> None:
        for name in ("method", "level"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "level" and value is None):
                raise UsageError(f"{value!r} is no name", item=name)
        if self.method != "best":
            planner_of(self.method)


def planner_of(method: str) -> Any:
    """Return the planner of a method; raises `UsageError` where there is none."""
    planner = registry.find(METHODS.get(method, method))
    if planner is None or not planner.anywhere:
        raise UsageError(f"{method!r} is not one of {', '.join(('best', *METHODS))}", item="method")
    return planner


@group("With --method optimus or simple")
@options
@dataclass(frozen=True, slots=True)
class PaperOptions:
    """The options of the methods `optimus` and `simple` alone."""

    batch_weights: Literal["per-image", "held", "shared"] = like(FusionOptions, "batch_weights")
    isoa: Literal["channelwise", "paper", "off", "sums"] = like(FusionOptions, "isoa")
    halo: Literal["auto", "lines", "paper", "recompute"] = like(FusionOptions, "halo")
    residency: Literal["partial", "all", "none"] = like(FusionOptions, "residency")
    blocks: Literal["best", "fallback"] = like(FusionOptions, "blocks")
    weight_tile: bool = like(FusionOptions, "weight_tile")
    search: Literal["exact", "algorithm1", "algorithm1-top-down", "online"] = like(FusionOptions, "search")
    space: Literal["full", "dnnvm", "efficient-s"] = like(FusionOptions, "space")
    rules: Literal["paper", "ours"] = like(BranchOptions, "rules")
    long_skip: int = like(BranchOptions, "long_skip")

    def changed(self) -> dict[str, Any]:
        """Return the values that are not the defaults."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}
