"""Buffer sizes of a sweep: sizes, MR, MH and MP, the chip's own, and ranges between any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count, islice, takewhile
from math import pow
from typing import Any

from onchip.base.errors import UsageError
from onchip.base.units import MAX_BYTES, parse_bytes

__all__ = ["MOST_STEPS", "NAMED", "OWN", "Budget", "parse_budgets"]

NAMED = ("MR", "MH", "MP")
"""Budgets that depend on the network: the least of any plan, half-way, the least peak of any order."""

OWN = "chip"
"""The scratchpad that the chip states."""

MOST_STEPS = 10_000
"""The most sizes in one range."""

End = int | str


@dataclass(frozen=True, slots=True)
class Budget:
    """One buffer size: step `at` of `steps` from `low` to `high`, each bytes or a name, by equal factors.

    A single size has `low == high`, and one step.
    """

    low: End
    high: End
    at: int = 0
    steps: int = 1

    @property
    def text(self) -> str:
        """The size as the spec states it: `65536`, `MR`, `MR..MP 3/8`."""
        if self.steps == 1:
            return str(self.low)
        return f"{self.low}..{self.high} {self.at + 1}/{self.steps}"

    def resolve(self, named: Callable[[str], int]) -> int:
        """Return the size in bytes; `named` returns those of a name."""
        low, high = (named(end) if isinstance(end, str) else end for end in (self.low, self.high))
        if self.at == 0 or self.steps == 1 or high <= low:
            return low
        if self.at == self.steps - 1:
            return high
        return round(low * pow(high / low, self.at / (self.steps - 1)))


def parse_budgets(given: Any, where: str, item: str = "budgets") -> tuple[Budget, ...]:
    """Return the sizes of a spec's `budgets`, in its order and each once.

    `budgets` is a list of bytes, sizes (`"64KiB"`), names, and ranges `{from, to}` with one of `factor` (each
    size that many times the previous, from `from` up to `to`), `steps` (the number of sizes, both ends
    included, by equal factors) or `step` (bytes between sizes). A range between names takes only `steps`.
    Raises `UsageError` naming `where` and the element.
    """
    if not isinstance(given, list):
        given = [given]
    if not given:
        raise UsageError("is empty", where=where, item=item)
    found: dict[str, Budget] = {}
    for i, one in enumerate(given):
        at = f"{item}[{i}]"
        for budget in _range(one, where, at) if isinstance(one, dict) else (_single(one, where, at),):
            found.setdefault(budget.text, budget)
    return tuple(found.values())


def _single(given: Any, where: str, item: str) -> Budget:
    end = _end(given, where, item)
    return Budget(end, end)


def _end(given: Any, where: str, item: str) -> End:
    if isinstance(given, str):
        name = given.strip()
        if name.upper() in NAMED:
            return name.upper()
        if name.lower() == OWN:
            return OWN
        try:
            size = parse_bytes(given)
        except UsageError as problem:
            raise UsageError(
                f"{problem.reason}; or one of {', '.join(NAMED)}, {OWN}", where=where, item=item
            ) from None
    elif type(given) is int:
        size = given
    else:
        raise UsageError(f"{given!r} is no size, name or range", where=where, item=item)
    if not 0 < size <= MAX_BYTES:
        raise UsageError(f"{size:,} is not from 1 byte to 1 TiB", where=where, item=item)
    return size


def _range(given: Mapping[str, Any], where: str, item: str) -> tuple[Budget, ...]:
    known = {"from", "to", "factor", "steps", "step"}
    for key in given:
        if key not in known:
            raise UsageError(
                f"unknown key; a range has {', '.join(sorted(known))}", where=where, item=f"{item}.{key}"
            )
    for key in ("from", "to"):
        if key not in given:
            raise UsageError("a range needs it", where=where, item=f"{item}.{key}")
    low, high = (_end(given[key], where, f"{item}.{key}") for key in ("from", "to"))
    how = [key for key in ("factor", "steps", "step") if key in given]
    if len(how) != 1:
        raise UsageError("a range needs one of factor, steps and step", where=where, item=item)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise UsageError("is more than `to`", where=where, item=f"{item}.from")
    value, at = given[how[0]], f"{item}.{how[0]}"
    if how[0] == "steps":
        if type(value) is not int or not 2 <= value <= MOST_STEPS:
            raise UsageError(f"{value!r} is no whole number from 2 to {MOST_STEPS:,}", where=where, item=at)
        made = [Budget(low, high, i, value) for i in range(value)]
        if isinstance(low, int) and isinstance(high, int):
            return tuple(Budget(size, size) for size in (b.resolve(lambda _: 0) for b in made))
        return tuple(made)
    if not (isinstance(low, int) and isinstance(high, int)):
        raise UsageError(f"between names there are only steps, no {how[0]}", where=where, item=at)
    if how[0] == "factor":
        if type(value) not in (int, float) or not 1 < value <= 1e6:
            raise UsageError(f"{value!r} is no factor above 1", where=where, item=at)
        sizes = takewhile(lambda size: size <= high, (round(low * value**n) for n in count()))
    else:
        step = _end(value, where, at)
        if not isinstance(step, int):
            raise UsageError("is no size", where=where, item=at)
        sizes = takewhile(lambda size: size <= high, count(low, step))
    found = list(islice(sizes, MOST_STEPS + 1))
    if len(found) > MOST_STEPS:
        raise UsageError(f"gives more than {MOST_STEPS:,} sizes", where=where, item=at)
    return tuple(Budget(size, size) for size in dict.fromkeys(found))
