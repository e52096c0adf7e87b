"""The options of fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args, get_origin, get_type_hints

from onchip.base.errors import UsageError
from onchip.base.options import option, options
from onchip.base.units import MAX_BYTES, parse_bytes

__all__ = ["DEFAULTS", "FusionOptions"]


@options
@dataclass(frozen=True, slots=True)
class FusionOptions:
    """The options of fusion. The fields are also the command line's flags."""

    batch_weights: Literal["per-image", "held", "shared"] = option(
        "per-image",
        "`per-image`: refilled weights are fetched for every band of every image, and whole images run "
        "together where several fit; `held`: so do bands, with line buffers for every image; `shared`: once "
        "per band or block for the whole batch, with the buffers of one image, as the paper counts (nothing "
        "can run that: figures only).",
    )

    isoa: Literal["channelwise", "paper", "off", "sums"] = option(
        "channelwise",
        "Which tensors are held a few channels at a time. `channelwise`: neighbours may, where no channels "
        "are summed between them; `paper`: never neighbours (figures only); `off`: none; `sums`: whatever "
        "no sum forbids, in an order of passes or not (figures only).",
    )

    halo: Literal["auto", "lines", "paper", "recompute"] = option(
        "auto",
        "Rows that neighbouring bands share. `lines`: as many as really overlap, in line buffers; `paper`: "
        "as eq. 4 of Optimus counts them; `recompute`: made anew by every band (figures only); `auto`: "
        "`paper` with --isoa paper, else `lines`.",
    )

    residency: Literal["partial", "all", "none"] = option(
        "partial",
        "Which operators of a group keep their weights on chip: the best choice, all or nothing, or none.",
    )

    blocks: Literal["best", "fallback"] = option(
        "best",
        "When an operator that runs alone does so in blocks of rows, columns and channels: where that moves "
        "less than bands of rows, or only where no band fits.",
    )

    weight_tile: bool = option(
        True,
        "Refilled weights take the scratchpad of one tile; without, none, as eq. 4 says (figures only).",
    )

    search: Literal["exact", "algorithm1", "algorithm1-top-down", "online"] = option(
        "exact",
        "`exact`: the best of all partitions; `algorithm1`: the paper's, bottom up or top down; `online`: "
        "its fast variant.",
    )

    space: Literal["full", "dnnvm", "efficient-s"] = option(
        "full",
        "Which groups are looked at: all, or only those that another fuser knows.",
    )

    channel_tile: int | None = option(
        None,
        "Channels that are processed at a time (T_c); without, the chip's.",
    )

    time_limit: float | None = option(
        None,
        "Seconds in all; when they are over, the result is the best so far, with its gap.",
    )

    memory_limit: int = option(
        2 << 30,
        "Bytes of search states; when they are full, the result is the best so far, with its gap.",
        parse=parse_bytes,
    )

    def __post_init__(self) -> None:
        if self.halo == "auto":  # from now on it is one of the others
            object.__setattr__(self, "halo", "paper" if self.isoa == "paper" else "lines")
        for key, hint in get_type_hints(type(self)).items():
            value, allowed = getattr(self, key), get_args(hint)
            if get_origin(hint) is Literal and value not in allowed:
                raise UsageError(f"{value!r} is not one of {', '.join(map(str, allowed))}", item=key)
        if type(self.weight_tile) is not bool:
            raise UsageError(f"{self.weight_tile!r} is neither True nor False", item="weight_tile")
        tile = self.channel_tile
        if tile is not None and (type(tile) is not int or not 1 <= tile <= 1 << 20):
            raise UsageError(f"{tile!r} is no number of channels from 1 to 1,048,576", item="channel_tile")
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, int | float) and 0 <= limit < float("inf")):
            raise UsageError(f"{limit!r} is no number of seconds from 0 up", item="time_limit")
        if type(self.memory_limit) is not int or not 1 <= self.memory_limit <= MAX_BYTES:
            raise UsageError(
                f"{self.memory_limit!r} is no number of bytes from 1 to 1 TiB", item="memory_limit"
            )


DEFAULTS = FusionOptions()
