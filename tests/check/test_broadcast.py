"""An output over an input that may be broadcast: legal where no reading of its shape loses a byte."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path
from random import Random

import pytest

from onchip.base.errors import IllegalPlan
from onchip.check import certify, check
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Instruction, Load, Run, Store, read_plan

REFUTED = Path(__file__).resolve().parents[1] / "refuted"


def test_an_operand_of_one_element_a_channel_is_not_taken_for_one_of_each_pixel() -> None:
    plan = read_plan(REFUTED / "chk_bcast_unsound.json")
    g = plan.network.operators[0].geometry
    assert g is not None
    # b is (1, 1, 1, 4): its last bytes are read for every pixel.
    assert loses_a_byte(g, (1, 1, 1, 4), 1, 11)
    with pytest.raises(IllegalPlan, match="overlap-unproved: b may be broadcast"):
        check(plan)


def order(g: Geometry) -> list[list[tuple[int, ...]]]:
    """The elements that are written at each time: by chunks of channels of `pixels` pixels of a row."""
    if (g.pixels, g.channels) == (1, 0) and g.kind == "elementwise":
        times = [[at] for at in product(*map(range, g.output))]
        return times[::-1] if g.traversal == "reverse" else times
    n, h, w, c = g.output
    chunk = g.channels or c
    found = []
    reverse = g.traversal == "reverse"

    def turned(size: int, step: int) -> list[list[int]]:
        if not reverse:
            return [list(range(i, min(i + step, size))) for i in range(0, size, step)]
        return [list(range(max(0, i - step), i)) for i in range(size, 0, -step)]

    for i in range(n)[:: -1 if reverse else 1]:
        for r in range(h)[:: -1 if reverse else 1]:
            for columns in turned(w, g.pixels):
                starts = list(range(0, c, chunk))
                for first in starts[::-1] if reverse else starts:
                    channels = range(first, min(first + chunk, c))
                    found.append([(i, r, q, k) for q in columns for k in channels])
    return found


def linear(shape: tuple[int, ...], at: tuple[int, ...]) -> int:
    found = 0
    for size, i in zip(shape, at, strict=True):
        found = found * size + i
    return found


def loses_a_byte(g: Geometry, shape: tuple[int, ...], width: int, by: int) -> bool:
    """Whether the operand of that shape, `by` above the output, is read where the output was written.

    Every chunk may read all that its step reads: all channels of its pixels where `rowwise` or in chunks.
    """
    gone: set[int] = set()
    whole = g.kind == "rowwise" or (g.pixels, g.channels) != (1, 0)
    for time in order(g):
        for at in time:
            every = [(*at[:-1], k) for k in range(g.output[-1])] if whole else [at]
            for one in every:
                mine = tuple(0 if size == 1 else i for size, i in zip(shape, one, strict=True))
                first = by + linear(shape, mine) * width
                if not gone.isdisjoint(range(first, first + width)):
                    return True
        gone |= {linear(g.output, at) for at in time}
    return False


def verdict(g: Geometry, size: int, by: int) -> str | None:
    y = prod(g.output)
    network = Network.build(
        "n",
        [("x", 8 * y, "input"), ("b", size, "input"), ("y", y, "activation")],
        [OperatorSpec("f", "F", ["x", "b"], ["y"], 0, 0, g)],
        ["y"],
    )
    base = 10 * y
    program: list[Instruction] = [
        Load("x", 0), Load("b", base + abs(by)), Alloc("y", base + abs(by) - by, "b", by), Run("f"),
        Store("y"),
    ]  # fmt: skip
    try:
        certify(
            network, Chip("c", 1), 100 * y + 100, program, status="feasible", lower_bound_bytes=0, seconds=0
        )
    except IllegalPlan as refused:
        return refused.rule
    return None


def judged(rng: Random) -> bool:
    shape = (rng.choice((1, 1, 2)), rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 4))
    kind = rng.choice(("elementwise", "elementwise", "rowwise"))
    pixels, channels = rng.choice(((1, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 2)))
    g = Geometry(
        kind, shape, shape, layout="NHWC", traversal=rng.choice(("forward", "reverse")),
        pixels=pixels, channels=channels,
    )  # fmt: skip
    repeated = tuple(rng.choice((1, size)) for size in shape)
    width = rng.choice((1, 1, 2, 4))
    size, y = prod(repeated) * width, prod(shape)
    by = rng.choice((0, y - size, rng.randint(-size - 1, y + 1), y - 1, y - shape[3], -size + 1))
    found = verdict(g, size, by)
    if found is None:
        for other in product(*((1, n) for n in shape)):
            if size % prod(other) == 0 and size // prod(other) in (1, 2, 4, 8):
                assert not loses_a_byte(g, other, size // prod(other), by), (g, other, by)
    else:
        assert found == "overlap-unproved"
        times = order(g)
        early = {linear(g.output, at) for time in times[:-1] for at in time}
        assert not early.isdisjoint(range(by, by + size))  # some reading of a last step loses it
    return found is None and -size < by < y


@pytest.mark.parametrize("seed", range(4))
def test_what_is_accepted_loses_nothing_however_the_operand_is_repeated(seed: int) -> None:
    rng = Random(seed)
    assert sum(judged(rng) for _ in range(150)) > 3


@pytest.mark.campaign
def test_thousands_of_operands_lose_nothing() -> None:
    rng = Random(7)
    for _ in range(6000):
        judged(rng)
