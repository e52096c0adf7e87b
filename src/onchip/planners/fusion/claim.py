"""The plans that the claims of fusion range over: one sentence, made from the options."""

from __future__ import annotations

from onchip.planners.fusion.options import FusionOptions

__all__ = ["space_of", "ways"]


def ways(options: FusionOptions, channel_tile: int, least_rows: int = 1, banded: int = 0) -> str:
    """Return how groups and operators may run, as a part of a sentence.

    `banded` are the most operators of a group in bands, 0 for any number.
    """
    images = {
        "held": "any number of images together",
        "per-image": "one image at a time or several whole ones",
        "shared": "the batch in buffers of one image",
    }[options.batch_weights]
    stay = {"partial": "any weights", "all": "all weights or none", "none": "no weights"}[options.residency]
    blocks = "" if options.blocks == "best" else " where no band fits"
    groups = f"groups of at most {banded} operators" if banded else "groups"
    return (
        f"{groups} in bands of T_h {least_rows} rows or more over the whole width, {images}, tensors held or"
        f" in slices of T_c {channel_tile} channels, {stay} resident and others fetched for every band in"
        f" tiles of T_c x T_c, operators alone also in blocks{blocks} with all operands streamed, those"
        " without bands whole, in boxes with all operands streamed, or streamed through their workspace"
    )


def space_of(options: FusionOptions, channel_tile: int, least_rows: int = 1) -> str:
    """Return the plans that `optimal`, the bound and `infeasible` of fused groups range over."""
    among = "" if options.space == "full" else f" that {options.space} knows"
    return (
        f"all partitions into groups{among}, every operator run once, what passes between groups through"
        f" DRAM, {ways(options, channel_tile, least_rows)}; isoa {options.isoa}, halo {options.halo}"
    )
