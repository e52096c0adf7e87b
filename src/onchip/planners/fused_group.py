"""The figures of one group of a plan: the record from which JSON, the table and the page are made.

A new figure is one field here and its computation: in the cost model for `fuse`, in the replay for a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onchip.base.figures import figure
from onchip.plans.program import (
    Blocks,
    Boxes,
)

__all__ = ["TIMES", "FusedGroup", "bands_in_words", "bands_shortly", "sides_of"]

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class FusedGroup:
    """One group, or an operator that runs alone, in running order; bytes are of the whole batch.

    Operators and tensors go by name. `rows` are those of a band (0: whole, or in blocks), `subgroups` the
    number of sub-groups (as in `onchip.plans.Group`), `images` the images of one. A few channels at a time of
    the tensors `streamed` are in the buffer; the weights of `resident` operators stay there, and `weighted`
    is the number of operators that have any. `in_bytes` exclude the rows that two bands share: those are
    `halo_bytes`. `blocks` are (output channels, rows, columns) of a block, for an operator that fits in no
    band of rows, or the sides of a box; `loops` is the number of loops of a nest, None without one. `labels`
    describe each operator briefly; `whole_bytes` are those of operands that lie beside the scratch while it
    runs.
    """

    name: str = figure(key="name", order=1)
    operators: tuple[str, ...] = figure(key="operators", order=2)
    rows: int = figure(key="rows", order=4)
    subgroups: int = figure(key="subgroups", order=3)
    images: int = figure(key="images", order=5)
    streamed: tuple[str, ...] = figure(
        key="streamed", unit="names", heading="sliced", page="streamed", optional=True, place=2, order=6
    )
    resident: tuple[str, ...] = figure(
        key="resident", heading="kept", cell="kept", page="resident weights", on_page="kept_of", place=3,
        order=7,
    )  # fmt: skip
    scratch_bytes: int = figure(
        key="scratch_bytes", unit="bytes", heading="scratch", page="scratch", place=4, order=8
    )
    in_bytes: int = figure(
        key="in_words", unit="words", heading="in", narrow="maps", page="read", place=6, order=10
    )
    out_bytes: int = figure(
        key="out_words", unit="words", heading="out", narrow="maps", page="written", place=8, order=11
    )
    halo_bytes: int = figure(
        key="halo_words", unit="words", heading="halo", narrow="maps", page="halo", place=7, order=12
    )
    weight_bytes: int = figure(
        key="weight_words", unit="words", heading="weights", page="weights", place=9, order=13
    )
    dram_bytes: int = figure(
        key="dram_words", unit="words", heading="DRAM", page="DRAM bytes", place=99, order=9
    )
    blocks: tuple[int, ...] | None = figure(
        key="blocks", heading="tiles", cell="bands", page="runs in", on_page="tile", place=1, order=14
    )
    labels: tuple[str, ...] = field(default=(), repr=False)
    weighted: int = field(default=0, repr=False)
    whole_bytes: int = figure(
        0, repr=False, unit="bytes", heading="whole", page="whole operands", optional=True, place=5
    )
    loops: int | None = field(default=None, repr=False)

    @property
    def bands(self) -> str:
        """The group's tiling in a table's width."""
        return bands_shortly(self.rows, self.subgroups, self.images, self.blocks, self.loops)

    @property
    def tile(self) -> str:
        """The group's tiling in words."""
        return bands_in_words(self.rows, self.subgroups, self.images, self.blocks, self.loops)

    @property
    def kept(self) -> str:
        """`1/3`: one of three operators with weights keeps them."""
        return f"{len(self.resident)}/{self.weighted}" if self.weighted else ""

    @property
    def kept_of(self) -> str:
        """`1 of 3`."""
        return f"{len(self.resident)} of {self.weighted}" if self.weighted else ""


def sides_of(blocks: Blocks | Boxes | None) -> tuple[int, ...] | None:
    """Return the sides of a block, output channels first, or of a box; None without blocks."""
    match blocks:
        case Boxes(sizes):
            return sizes
        case Blocks(rows, columns, output_channels):
            return output_channels, rows, columns
    return None


def bands_in_words(
    rows: int, subgroups: int, images: int, blocks: tuple[int, ...] | None, loops: int | None = None
) -> str:
    """Return a group's tiling in words; `blocks` are (output channels, rows, columns) or a box's sides."""
    if loops == 0:
        return "whole operators in turn"
    if loops is not None:
        return f"a nest of {loops:,} {'loop' if loops == 1 else 'loops'}"
    if blocks is not None:
        return f"blocks of {f' {TIMES} '.join(f'{n:,}' for n in blocks)}"
    if subgroups == 1 or not rows:
        return "one piece"
    of = f" of {images:,} images" if images > 1 else ""
    return f"{subgroups:,} {TIMES} {rows:,} {'row' if rows == 1 else 'rows'}{of}"


def bands_shortly(
    rows: int, subgroups: int, images: int, blocks: tuple[int, ...] | None, loops: int | None = None
) -> str:
    """Return the same in a table's width: sub-groups and rows, `28x4`."""
    if loops is not None:
        return "nest"
    if blocks is not None:
        return "blocks"
    if subgroups == 1 or not rows:
        return "1"
    return f"{subgroups:,}{TIMES}{rows:,}{f'{TIMES}{images:,}' if images > 1 else ''}"
