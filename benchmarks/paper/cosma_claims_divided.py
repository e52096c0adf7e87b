"""COSMA's sentences on the four networks found by search: divide and conquer, and the order fixed."""

from __future__ import annotations

from collections.abc import Iterator

from cosma_data import PAPER_SECONDS, RULES, Claim, Row, chosen, percent, yes
from cosma_settings import FOUR, NAS, TITLES

__all__ = ["found_by_search"]


def found_by_search(nas: list[Row]) -> Iterator[Claim]:
    others = (*FOUR, "exact:given", "exact:minpeak")
    least = sum(r["rows"]["dnc"]["traffic"] <= min(r["rows"][s]["traffic"] for s in others) for r in nas)
    yield Claim(
        "divide and conquer has the least of all that it is compared with",
        "always",
        f"{least} of {len(nas)}",
        yes(least == len(nas)),
    )
    free = sum(r["rows"]["dnc"]["traffic"] == 0 for r in nas if r["at"] == "MP")
    yield Claim("divide and conquer has no traffic at MP", "always", f"{free} of 4", yes(free == 4))
    theirs = [s for seconds in PAPER_SECONDS["dnc"].values() for s in seconds]
    ours = [r["rows"]["dnc"]["seconds"] for r in nas]
    yield Claim(
        "divide and conquer, seconds: mean, most",
        f"one minute, 2 minutes (Table II: {sum(theirs) / len(theirs):.0f}, {max(theirs):.0f})",
        f"{sum(ours) / len(ours):.1f}, {max(ours):.1f}",
        WITHIN if max(ours) < 120 and sum(ours) < 60 * len(ours) else "no",
        "break nodes by hand there, by rule here; pieces by the program there, by the exact search here",
    )
    proved = sum(r["rows"]["exact"]["status"] == "optimal" for r in nas)
    yield Claim(
        "the optimum for these four",
        "not in 24 hours",
        f"{proved} of {len(nas)} proved, in {max(r['rows']['exact']['seconds'] for r in nas):.1f} s at most",
        "by another search",
        "a search of its own; [the ILP](placement-ilp.md#equal-to-the-exact-search) with a free order is"
        " refused for its size",
    )
    fixed = [r["rows"][k]["seconds"] for r in nas for k in ("exact:given", "exact:minpeak")]
    yield Claim(
        "order fixed, seconds",
        "under 30, one 84.4",
        f"{min(fixed):.2f} to {max(fixed):.2f}",
        WITHIN if max(fixed) < 30 else "no",
        "by [the ILP](placement-ilp.md#equal-to-the-exact-search) 20 to 344 with the own order, at MR and MH",
    )
    spread = {(name, way): apart(nas, name, way) for name in NAS for way in FIXED.values()}
    least, most = sorted(spread.values())[-2:]
    worst = max(spread, key=lambda key: spread[key])
    yield Claim(
        "order fixed, seconds apart between budgets: most, and all but one",
        "marginal (Table II: but for one)",
        f"{most:.2f}, {least:.2f}",
        "yes, but one, by another search",
        f"{TITLES[worst[0]]} in its own order at MR, where no cheapest schedule was packed",
    )
    yield _divided_beside_fixed(nas)
    yield from _order_fixed(nas)


WITHIN = "within it, by another search"
"""Of a limit for seconds: ours is within it, and the paper's own method is another, told beside."""
FIXED = {"own": "exact:given", "least-peak": "exact:minpeak"}
"""The two orders that may be given."""


def apart(nas: list[Row], name: str, way: str) -> float:
    """How many seconds lie between a network's budgets, in hundredths."""
    seconds = [r["rows"][way]["seconds"] for r in chosen(nas, [name])]
    return round(max(seconds) - min(seconds), 2)


def _divided_beside_fixed(nas: list[Row]) -> Claim:
    """Where the seconds of divide and conquer are further apart than both of a fixed order."""
    tables = {way: PAPER_SECONDS[way] for way in ("dnc", *FIXED.values())}
    theirs = {n: [max(t[n]) - min(t[n]) for t in tables.values()] for n in NAS}
    ours = {n: [apart(nas, n, way) for way in tables] for n in NAS}
    most = max(ours, key=lambda n: ours[n][0])
    return Claim(
        "divide and conquer: seconds hang more on the budget than with the order fixed",
        f"more (Table II: on {_further(theirs)})",
        f"on {_further(ours)}; {ours[most][0]:.2f} s apart at most, {TITLES[most]}",
        "yes, but one, by another search"
        if sum(one[0] < max(one[1:]) for one in ours.values()) == 1
        else "in part",
        "each has one network on which one of the two given orders has more, there that of least peak and"
        " here the own one; DARTS's seconds are the same for every budget",
    )


def _further(spread: dict[str, list[float]]) -> str:
    """Networks whose first spread is the largest, and those with more in another."""
    more = [TITLES[n] for n, (first, *rest) in spread.items() if first > max(rest)]
    less = [TITLES[n] for n, (first, *rest) in spread.items() if first < max(rest)]
    return f"{' and '.join(more)}, less on {' and '.join(less)}"


def _order_fixed(nas: list[Row]) -> Iterator[Claim]:
    for title, way in FIXED.items():
        order = way.partition(":")[2]
        pairs = [
            (r["rows"][way]["traffic"], r["rows"][f"{order}-{rule}"]["traffic"])
            for r in nas
            for rule in RULES
        ]
        shares = [1 - ours / theirs for ours, theirs in pairs if theirs]
        yield Claim(
            f"the {title} order fixed: accesses fewer than by the arena and either rule, mean, least",
            "greatly reduced",
            f"{percent(sum(shares) / len(shares))}, {percent(min(shares))}, fewer in"
            f" {sum(share > 0 for share in shares)} of {len(pairs)}",
            yes(all(share > 0 for share in shares)),
        )
