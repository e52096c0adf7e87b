"""The names of modules: the common part of their operators' names, if it is unambiguous."""

from __future__ import annotations

import re
from collections.abc import Mapping

from onchip.network import Network, bits

__all__ = ["module_names"]

_SEPARATORS = re.compile(r"[./]")


def module_names(network: Network, operators: Mapping[int, int], inside: Mapping[int, int]) -> dict[int, str]:
    """Return names by merge; `operators` are bitsets by merge, `inside` the outer module's merge by merge.

    A module's name is the longest common beginning, up to a dot or slash, of its operators' names
    (`Mixed_5b`). If several have the same, the one that contains all others keeps it; the rest are named
    after their merges (`Mixed_7b.cat`).
    """
    shared = {merge: _common([network.operators[v].name for v in bits(o)]) for merge, o in operators.items()}
    claims: dict[str, list[int]] = {}
    for merge, name in shared.items():
        claims.setdefault(name, []).append(merge)
    owner = {name: _outermost(merges, inside) for name, merges in claims.items() if name}
    names: dict[int, str] = {}
    taken: set[str] = {name for name, merge in owner.items() if merge is not None}
    for merge, name in shared.items():
        if owner.get(name) != merge:
            base = name = network.operators[merge].name
            count = 1
            while name in taken:
                count += 1
                name = f"{base}~{count}"
        taken.add(name)
        names[merge] = name
    return names


def _common(names: list[str]) -> str:
    """Return the longest common beginning that ends before a separator or with a whole name."""
    first, last = min(names), max(names)
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    if length == len(first) and (len(last) == length or last[length] in "./"):
        return first
    ends = [m.start() for m in _SEPARATORS.finditer(first, 0, length)]
    return first[: ends[-1]] if ends else ""


def _outermost(merges: list[int], inside: Mapping[int, int]) -> int | None:
    """Return the module among these that contains all others, if there is one."""
    outer = merges[-1]  # outer modules come after those in them
    for merge in merges[:-1]:
        around: int | None = merge
        while around is not None and around != outer:
            around = inside.get(around)
        if around is None:
            return None
    return outer
