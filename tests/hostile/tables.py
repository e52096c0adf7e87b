"""Tables of buffers to pack."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from hostile.case import case, write


def _pack(
    name: str,
    what: str,
    *,
    want: Sequence[int] = (0, 1, 2),
    capacity: str = "1MiB",
    more: Sequence[str] = (),
    dear: bool = False,
) -> None:
    case(
        " ".join((name, *more)),
        *("pack", name, "--capacity", capacity, "-o", "OUT/out.csv", "--time-limit", "2", *more),
        table="tables",
        what=what,
        want=want,
        limit=2,
        dear=dear,
    )


HEAD = "id,lower,upper,size\n"
rng = random.Random(1)


def _rows(n: int, row: Callable[[int], str]) -> Callable[[Path], None]:
    """So many rows, written when they are needed."""
    return lambda path: path.write_text(HEAD + "".join(map(row, range(n)))) and None


write("buffers_100000.csv", _rows(100_000, lambda i: f"b{i},{i % 1000},{i % 1000 + 500},{i % 97 + 1}\n"))
_pack("buffers_100000.csv", "100,000 buffers, up to 50,000 of them alive at once: 1.8 MB", dear=True)
_pack("buffers_100000.csv", "the same, the smallest capacity sought", more=("--minimise",), dear=True)
write("buffers_in_a_row.csv", _rows(400_000, lambda i: f"b{i},{i},{i + 2},8\n"))
_pack("buffers_in_a_row.csv", "400,000 buffers, two alive at once", dear=True)
write(
    "buffers_hard.csv",
    HEAD
    + "".join(
        f"b{i},{rng.randrange(100)},{100 + rng.randrange(100)},{rng.randrange(1, 2**40)}\n"
        for i in range(400)
    ),
)
_pack(
    "buffers_hard.csv", "400 buffers of odd sizes, all alive at once", capacity="900GiB", more=("--minimise",)
)
gaps = " ".join(f"{2 * i}-{2 * i + 1}" for i in range(9_000))
write("gaps_9000.csv", f"id,lower,upper,size,gaps\na,0,20001,4,{gaps}\nb,0,20001,4,{gaps}\n")
_pack("gaps_9000.csv", "9,000 gaps in each of two buffers")
write("numbers.csv", HEAD + f"a,0,{2**63 - 1},4\nb,-{2**63},3,{10**29}\n")
_pack("numbers.csv", "numbers beyond 63 bits", want=(1, 2))
write("nan.csv", HEAD + "a,nan,3,1e999\n")
_pack("nan.csv", "NaN and 1e999", want=(2,))
