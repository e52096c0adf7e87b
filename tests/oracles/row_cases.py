"""Random small int8 networks with branches, of all the layers that have rows."""

from __future__ import annotations

import random

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import Builder, Map

__all__ = ["random_model"]


def random_model(seed: int) -> Int8Model:
    """Return a network of three to seven layers, its maps at most eight rows high."""
    choose = random.Random(seed)
    b = Builder(seed)
    shape = (1, choose.randint(2, 8), choose.randint(1, 6), choose.randint(1, 4))
    maps = [b.input(shape, 0.05, choose.randint(-20, 20))]
    unread = list(maps)
    for _ in range(choose.randint(3, 7)):
        x = choose.choice(maps[-3:])
        made = _layer(b, choose, x, maps)
        if x in unread:
            unread.remove(x)
        maps.append(made)
        unread.append(made)
    ends = [m for m in unread if m is not maps[0]]
    try:
        return model_of(b.file(*ends[-2:]), name=f"random {seed}", where="random")
    except ModelError:  # an output that only reshapes the input
        return random_model(seed + 1_000_003)


def _layer(b: Builder, choose: random.Random, x: Map, maps: list[Map]) -> Map:
    if len(x.shape) < 4:
        x = b.reshape(x, (1, 1, 1, x.shape[-1]))
    _, rows, columns, channels = x.shape
    alike = [m for m in maps if m.shape == x.shape and m is not x]
    level = [m for m in maps if len(m.shape) == 4 and m.shape[1:3] == x.shape[1:3] and m is not x]
    kind = choose.choice(
        ["conv", "conv", "pointwise", "depthwise", "max", "average", "nearest", "bilinear", "pad", "table"]
        + ["mean", "rows", "fully", "softmax"]
        + 4 * (["add", "mul"] if alike else [])
        + 4 * (["concat", "joined"] if level else [])
    )
    kernel = (choose.randint(1, min(3, rows)), choose.randint(1, min(3, columns)))
    stride = (choose.randint(1, 2), choose.randint(1, 2))
    padding = choose.choice(("SAME", "VALID"))
    few = choose.randint(1, 4)
    match kind:
        case "conv":
            return b.conv(x, few, kernel, stride, padding=padding)
        case "depthwise":
            step = choose.randint(1, 2)
            return b.depthwise(x, kernel, step, padding=padding, multiplier=choose.randint(1, 2))
        case "max":
            return b.max_pool(x, kernel, stride, padding=padding)
        case "average":
            return b.average_pool(x, kernel, stride, padding=padding)
        case "nearest" | "bilinear":
            size = min(8, rows * 2), min(8, columns * 2)
            return b.resize(x, size, kind, half_pixel_centers=kind == "bilinear" and choose.random() < 0.5)
        case "pad":
            padded = b.pad(x, tuple(choose.randint(0, 1) for _ in range(4)))  # type: ignore[arg-type]
            return b.conv(padded, few, (1, 1), padding="VALID") if choose.random() < 0.7 else padded
        case "table":
            return b.logistic(b.conv(x, few))
        case "mean":
            return b.mean(x, choose.choice(((1, 2), (1,), (2,))))
        case "rows":
            return b.average_pool(x, (rows, columns))
        case "fully":
            return b.reshape(
                b.fully_connected(b.reshape(x, (1, rows * columns * channels)), few), (1, 1, 1, few)
            )
        case "softmax":
            return b.softmax(x)
        case "add":
            return b.add(x, choose.choice(alike))
        case "mul":
            return b.mul(x, choose.choice(alike))
        case "concat":
            return b.conv(b.concat(x, choose.choice(level)), few, kernel)
        case "joined":
            return b.concat(x, choose.choice(level))
    return b.conv(x, few)
