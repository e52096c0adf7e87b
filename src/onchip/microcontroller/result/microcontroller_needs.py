"""The least RAM with which `onchip mcu` succeeds: the plan's bytes, the stack and all else that is linked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onchip.base.errors import Infeasible, NeedsTraffic, OnchipError
from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.result.microcontroller import Microcontroller
from onchip.microcontroller.result.microcontroller_build import Maker, built, can_build

if TYPE_CHECKING:
    from onchip.microcontroller.emulator import Image

__all__ = ["with_all_that_is_linked"]

TRIES = 16
"""The number of sizes of RAM to try: a plan with fewer bytes may take more stack."""


def with_all_that_is_linked(
    no: Infeasible | NeedsTraffic, maker: Maker, shared: Collection[str]
) -> Infeasible | NeedsTraffic:
    """Return the same answer, whose `needs` are the fewest bytes of RAM with which the program fits.

    The result is checked: these bytes suffice, and one less does not. The plan's own need is marked as a
    bound where the search does not end, where a time limit leaves no time for it, or where the program does
    not fit for other reasons.
    """
    if not can_build(maker.board):
        return no  # then only the plan is compared with the RAM
    fewest = None
    if maker.options.time_limit is None:
        try:
            fewest = _fewest(replace(maker, runs=0, builder=_Linked(), known=no), no.needs, shared)
        except OnchipError:  # it cannot be built or emulated
            fewest = None
    if isinstance(no, NeedsTraffic):
        if fewest is None:
            return no
        least = fewest if no.needs == no.at_least else no.at_least
        return NeedsTraffic(needs=fewest, at_least=least, has=no.has, space=no.space)
    if fewest is None:
        return no.but(at_least=True)
    beside = (("stack and other data", fewest - no.needs),) if fewest > no.needs else ()
    return no.but(needs=fewest, tensors=no.tensors + beside)


class _Linked:
    """Builds as `built` does, each program once: its size does not depend on the board's memories."""

    def __init__(self) -> None:
        self._images: dict[int, tuple[object, Image]] = {}

    def __call__(self, model: Any, board: Any, plan: Any, sources: Any, **how: Any) -> Microcontroller:
        text = tuple(sorted(sources.files.items()))
        if (known := self._images.get(hash(text))) is None or known[0] != text:
            roomy = replace(board, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES)
            made = built(model, roomy, plan, sources, **how)
            if made.image is None:
                raise OnchipError("is not linked")
            known = self._images[hash(text)] = text, made.image
        image = known[1]
        short = image.beyond(board.ram_bytes, board.flash_bytes)
        if any(memory == "flash" for memory, *_ in short):
            raise OnchipError("no RAM is enough, or kernels are shared")
        return Microcontroller(model, board, plan, sources, None if short else image, short, None)


def _fewest(maker: Maker, needs: int, shared: Collection[str]) -> int | None:
    """Return the fewest bytes that are enough while one less is not; None where none are found."""
    tried: dict[int, tuple[bool, int]] = {}

    def enough(ram: int) -> bool:
        """Return whether so many bytes are enough, and record the program's need in `tried`."""
        if ram not in tried:
            try:
                made = replace(maker, board=replace(maker.board, ram_bytes=ram)).in_ram(shared)
            except (Infeasible, NeedsTraffic) as no:
                tried[ram] = False, no.needs
            else:
                tried[ram] = not made.lacks("RAM"), made.ram_bytes
        return tried[ram][0]

    ram = replace(maker, board=replace(maker.board, ram_bytes=needs)).planned(needs, shared).ram_bytes
    low, high = 0, MOST_BYTES  # too little, and enough
    while len(tried) < TRIES and high - low > 1:
        if enough(ram):
            high = ram
            ram = min(tried[ram][1], ram - 1)
        elif tried[ram][1] <= ram:
            return None
        else:
            low = ram
            ram = tried[ram][1]
        if not low < ram < high:  # less RAM may bring another plan, which takes more stack
            ram = (low + high) // 2
    return high if high - low == 1 else None
