"""The kernels of layers that hold their own arithmetic, by the layer's type: a file for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onchip.microcontroller.int8.model import Own
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.kernels.move import move_use
from onchip.microcontroller.kernels.own_use import OwnUse

__all__ = ["OWN"]

OWN: Mapping[type[Own], Callable[[Any], OwnUse]] = {
    Move: move_use,
}
"""What makes the kernel of each."""
