"""The records of Optimus' evaluation by what they are about, and how their figures are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from optimus_schemes import LEVELS, NETWORKS

Row = dict[str, Any]

READINGS = {"paper": "the paper's options", "ours": "onchip's options"}
LABELS = {
    "none": "no fusion",
    "dnnvm": "DNNVM, rows",
    "dnnvm-tile": "DNNVM, tiles",
    "efficient-s": "Efficient-S, rows",
    "efficient-s-tile": "Efficient-S, tiles",
    "without-model": "w/o Model, rows",
    "without-model-tile": "w/o Model, tiles",
    "space1": "w/o Full Space 1",
    "space2": "w/o Full Space 2",
    "online": "on-line",
    "exact": "exact",
    "held": "exact, held",
}


class Data:
    """The records, by what they are about."""

    def __init__(self, records: Iterable[Row]) -> None:
        self.records = list(records)

    def all(self, part: str, **wanted: Any) -> list[Row]:
        return [
            r for r in self.records if r["part"] == part and all(r.get(k) == v for k, v in wanted.items())
        ]

    def one(self, part: str, **wanted: Any) -> Row | None:
        found = self.all(part, **wanted)
        return found[-1] if found else None

    def names(self, part: str) -> list[str]:
        return [n for n in NETWORKS if self.all(part, network=n)]

    def words(self, part: str, **wanted: Any) -> int:
        """The words of a record that must be there."""
        found = self.one(part, **wanted)
        if found is None:
            raise SystemExit(f"nothing measured for {part} {wanted}")
        return int(found["words"])


def head(*cells: str, left: int = 1) -> Iterator[str]:
    line = " | ".join(cells)
    yield f"| {line} |"
    yield "|" + "---|" * left + "--:|" * (line.count(" | ") + 1 - left)


def mega(words: int) -> str:
    return f"{words / 1e6:,.2f}"


def starred(r: Row) -> str:
    """Mwords; with a star, and the gap, where it is not proved to be the least."""
    if r["how"] != "exact" or r["status"] == "optimal":
        return mega(r["words"])
    return f"{mega(r['words'])} \\* ({100 * (1 - r['bound'] / r['words']):.1f} %)"


def less(ours: int, theirs: int) -> str:
    return f"{100 * (1 - ours / theirs):.0f} %"


def energy(r: Row) -> float:
    """Everything but the multiply-accumulates, which all schemes have: the paper's figure."""
    return float(sum(r[level] for level in LEVELS if level != "macs"))


EVALUATED = tuple(n for n in NETWORKS if n != "alexnet")
"""The ten networks that counts and averages are over, AlexNet without its fully connected layers."""

FEWER_LEVELS = ("dram", "buffer", "macs")
"""Levels of an accelerator whose elements have no registers and pass nothing on."""

Claim = tuple[str, str, str, str, str]
"""Claim, the paper's figure, ours, whether it holds, why (not)."""


def between(values: Sequence[float], digits: int = 2) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def verdict(holding: int, of: int) -> str:
    return "yes" if holding == of else "no" if 2 * holding < of else "in part"


def evaluated(d: Data, part: str) -> list[str]:
    return [n for n in d.names(part) if n in EVALUATED]
