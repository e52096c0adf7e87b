"""The plans that the claims of joint planning range over: one sentence, made from the options."""

from __future__ import annotations

from onchip.planners.fusion.claim import ways
from onchip.planners.joint.candidates import LARGEST, MANY, SMALL
from onchip.planners.joint.nests import FEW, IN_BANDS, MOST_LOOKS, SPINE, UNBANDED, WINDOWS
from onchip.planners.joint.options import JointOptions, fusion_options

__all__ = ["space_of"]


def space_of(
    options: JointOptions,
    channel_tile: int,
    least_rows: int = 1,
    banded: int = 0,
    accumulator: int | None = None,
    *,
    again: bool = False,
) -> str:
    """Return the plans that `optimal`, the bound and `infeasible` of `plan --fuse` range over.

    `banded` are the most operators of a group in bands, 0 for any number; `accumulator` are the bytes of a
    partial sum, where the chip states them. `again`: operators may run again, whole and in groups.
    """
    over = "operators that run whole may write at the address of an input that dies"
    if options.nests:
        over += ", and so may one output of every nest"
    sharing = over if options.overlap else "no tensor over another"
    if options.concat_views:
        sharing += (
            "; concats of operands that lie side by side joined in DRAM, of those that share one the largest"
        )
    nests = (
        f" at most {LARGEST} neighbouring operators, in the network's order or as they are needed (in"
        f" networks of over {MANY} operators only those that lie apart in its own order), linked by tensors"
        f" (of more than {SMALL} those where leaving out either end lets more bytes of tensors cross) as a"
        f" nest of loops (up to {SPINE} around one another, each along axes of its own, with free tiles,"
        f" windows along at most {WINDOWS} of them, no operator repeated but for rows of windows; outputs"
        " over operands that they alone read, of sums no wider than elements if the output leaves or lies"
        " further out, and there where no windows slide;"
        f" neighbours up to {UNBANDED.passes} times in slices together where an operator has no bands or, in"
        f" networks of at most {FEW} operators, no windows slide; without groups of more than"
        f" {IN_BANDS.most_shapes:,} shapes of nests in this budget, {UNBANDED.most_shapes:,} there, or of"
        f" which a search looks at more than {MOST_LOOKS:,}, unless the plan has it), any operands whole;"
    )
    priced = fusion_options(options)
    sums = (
        ""
        if accumulator is None
        else f" partial sums {accumulator} bytes wide in nests, as wide as elements in all other tiles;"
    )
    return (
        f"all orders and partitions into groups, every operator run once{' or again' if again else ''},"
        f" evictions and reloads of whole tensors, {ways(priced, channel_tile, least_rows, banded)},"
        " any operands of bands kept whole on chip;"
        f"{nests + sums if options.nests else ''} {sharing}"
    )
