"""The options of joint planning, in addition to placement's."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from onchip.base.errors import UsageError
from onchip.base.options import group, like, option, options
from onchip.planners.fusion import FusionOptions
from onchip.planners.placement import PlacementOptions

__all__ = ["DEFAULTS", "FusedPlacementOptions", "JointOptions", "fusion_options", "refuse"]


@group("Tiles")
@options
@dataclass(frozen=True, slots=True)
class JointOptions:
    """The options of plans in tiles. The fields are also the command line's flags."""

    fuse: bool | None = option(
        None,
        "Let operators run fused, in tiles (fusion and placement as one search), or keep all tensors whole. "
        "Without either, `plan` gives the better one, and others keep tensors whole.",
    )

    overlap: bool = option(
        True,
        "With tiles: an output may take the place of an input that dies with its operator, where that is "
        "proved safe.",
    )

    nests: bool = option(
        True,
        "With tiles: neighbouring operators may run as a nest of loops over any of their axes, and groups in"
        " bands, blocks and boxes are written as nests where that costs nothing.",
    )

    concat_views: bool = option(
        True,
        "With tiles: the operands of a concat may lie side by side in DRAM, where they are its output.",
    )

    dram_tiles: bool = option(
        True,
        "With tiles, for the least time: tensors between groups may lie in DRAM in tiles that their maker and"
        " their readers move, and not row by row.",
    )

    recompute: bool = option(
        False,
        "With tiles: an operator may run again for a later reader instead of being stored, or kept, for it,"
        " where fewer bytes cross so.",
    )

    channel_tile: int | None = option(
        None,
        "With tiles: channels that are processed at a time (T_c); without, the chip's.",
    )

    def __post_init__(self) -> None:
        tile = self.channel_tile
        if tile is not None and (type(tile) is not int or not 1 <= tile <= 1 << 20):
            raise UsageError(f"{tile!r} is no number of channels from 1 to 1,048,576", item="channel_tile")
        for name in ("fuse", "overlap", "nests", "concat_views", "dram_tiles", "recompute"):
            value = getattr(self, name)
            if type(value) is not bool and not (name == "fuse" and value is None):
                raise UsageError(f"{value!r} is neither True nor False", item=name)
        if self.fuse is False:
            self.refuse_without_tiles()

    def refuse_without_tiles(self, but: tuple[str, ...] = ()) -> None:
        """Raise `UsageError` for an option that means nothing where tensors stay whole."""
        alone = {
            "channel_tile": ("--channel-tile", self.channel_tile is not None),
            "overlap": ("--no-overlap", not self.overlap),
            "nests": ("--no-nests", not self.nests),
            "concat_views": ("--no-concat-views", not self.concat_views),
            "dram_tiles": ("--no-dram-tiles", not self.dram_tiles),
            "recompute": ("--recompute", self.recompute),
        }
        for name, (flag, asked) in alone.items():
            if asked and name not in but:
                raise UsageError("goes with --fuse only", item=flag)


DEFAULTS = JointOptions(fuse=True)

SHARED = ("time_limit", "memory_limit", "seed", "in_place")
"""Options of placement that joint planning obeys; `in_place` is a part of `overlap`."""

OBJECTIVES = ("traffic", "energy", "latency", "edp")
"""The figures that joint plans may make small: bytes that cross, energy, or on chips with rates of tiles the
time, and the product of both."""


def refuse(options: JointOptions, placing: PlacementOptions) -> None:
    """Raise `UsageError` for an option of placement that joint planning does not have, or that `options`
    forbid."""
    if placing.in_place and not options.overlap:
        raise UsageError("asks for what --no-overlap forbids", item="--in-place")
    plain = PlacementOptions()
    for f in fields(PlacementOptions):
        asked = getattr(placing, f.name)
        begins = f.name in ("state", "capacity") and placing.state
        if begins and all(text.startswith("=") for text in placing.state):
            continue  # caches that begin
        if f.name == "objective" and asked in OBJECTIVES:
            continue
        if f.name not in SHARED and asked != getattr(plain, f.name):
            flag = ("--no-" if asked is False else "--") + f.name.replace("_", "-")
            raise UsageError("does not go with --fuse", item=flag)


@options
@dataclass(frozen=True, slots=True)
class FusedPlacementOptions:
    """The options of `onchip plan --fuse`: those of joint planning, and those of placement that it obeys."""

    overlap: bool = like(JointOptions, "overlap")
    nests: bool = like(JointOptions, "nests")
    concat_views: bool = like(JointOptions, "concat_views")
    dram_tiles: bool = like(JointOptions, "dram_tiles")
    recompute: bool = like(JointOptions, "recompute")
    channel_tile: int | None = like(JointOptions, "channel_tile")
    in_place: bool = like(PlacementOptions, "in_place")
    objective: Literal["traffic", "peak", "latency", "energy", "edp"] = like(PlacementOptions, "objective")
    memory_limit: int = like(PlacementOptions, "memory_limit")
    seed: int = like(PlacementOptions, "seed")
    time_limit: float | None = like(PlacementOptions, "time_limit")

    def __post_init__(self) -> None:
        refuse(*self.halves())  # each refuses unknown options

    def halves(self) -> tuple[JointOptions, PlacementOptions]:
        """Return the same in the form that the planner takes."""
        return (
            JointOptions(
                fuse=True,
                overlap=self.overlap,
                nests=self.nests,
                concat_views=self.concat_views,
                dram_tiles=self.dram_tiles,
                recompute=self.recompute,
                channel_tile=self.channel_tile,
            ),
            PlacementOptions(**{key: getattr(self, key) for key in (*SHARED, "objective")}),
        )


def fusion_options(options: JointOptions) -> FusionOptions:
    """Return the options that price groups: executable, several images together, weights resident if that
    pays."""
    return FusionOptions(batch_weights="held", channel_tile=options.channel_tile)
