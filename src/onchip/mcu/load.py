"""An int8 network from what a user names: a file, or one that is made from a seed."""

from __future__ import annotations

from pathlib import Path

from onchip.mcu.model import Int8Model
from onchip.mcu.read import model_of, read_model

__all__ = ["MADE", "int8_model"]

MADE = "made:"


def int8_model(model: str | Path) -> Int8Model:
    """The network in a `.tflite` file, or `made:NAME` as `onchip.mcu.made` makes it.

    Raises `ModelError` naming the file and the operator.
    """
    if isinstance(model, str) and model.startswith(MADE):
        from onchip.mcu.made import made_model

        return model_of(made_model(model), name=model.removeprefix(MADE), where=model)
    return read_model(Path(model))
