"""The cost of the same network with more or less scratchpad: a curve, and its figures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from onchip.report.svg import element, picture, title
from onchip.report.wording import exact, short_size

__all__ = ["WhatIf", "WhatIfPoint", "page_words"]

_WIDTH, _HEIGHT = 1340.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 80.0, 34.0, 22.0, 40.0


@dataclass(frozen=True, slots=True)
class WhatIfPoint:
    """The plan for another budget, or the reason why there is none.

    `bound` is a lower bound of any plan of this kind; `status` is `optimal`, `feasible` or `infeasible`, in
    which case `dram_bytes` is None and `needs` the least bytes that would suffice, if that is known.
    """

    budget: int
    status: str
    dram_bytes: int | None = None
    traffic_bytes: int | None = None
    bound: int | None = None
    needs: int | None = None


@dataclass(frozen=True, slots=True)
class WhatIf:
    """DRAM bytes over budgets, ascending; `own` is the budget of the plan that is shown.

    `limit` are the bytes that every plan moves: inputs in, outputs out, each weight once.
    """

    planner: str
    own: int
    limit: int
    points: tuple[WhatIfPoint, ...]


def page_words(found: WhatIf) -> dict[str, Any]:
    """Return the curve and its table."""
    return {
        "sentence": _sentence(found),
        "picture": _picture(found),
        "rows": [
            {
                "budget": f"{p.budget:,}",
                "short": short_size(p.budget),
                "own": p.budget == found.own,
                "status": p.status,
                "dram": "" if p.dram_bytes is None else f"{p.dram_bytes:,}",
                "beyond": "" if p.dram_bytes is None else f"{p.dram_bytes - found.limit:,}",
                "bound": "" if p.bound is None else f"{p.bound:,}",
                "needs": "" if p.needs is None else f"needs {p.needs:,} B",
            }
            for p in found.points
        ],
    }


def _sentence(found: WhatIf) -> str:
    made = [p for p in found.points if p.dram_bytes is not None]
    text = f"Every point is a plan of its own by the same planner ({found.planner}), proved legal."
    least = next((p for p in made if p.dram_bytes == found.limit), None)
    if least is not None:
        text += f" From {exact(least.budget)} on nothing crosses that need not: {exact(found.limit)}."
    elif made:
        last = made[-1]
        assert last.dram_bytes is not None
        over = 100 * (last.dram_bytes - found.limit) / max(1, found.limit)
        text += (
            f" The largest budget shown is {over:.1f} % above what every plan moves, {exact(found.limit)}."
        )
    return text


def _picture(found: WhatIf) -> Markup:
    budgets = [p.budget for p in found.points]
    low, high = math.log2(min(budgets)), math.log2(max(budgets))
    most = max([p.dram_bytes or 0 for p in found.points] + [found.limit, 1]) * 1.05

    def x(budget: float) -> float:
        share = (math.log2(budget) - low) / (high - low) if high > low else 0.5
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(n: float) -> float:
        return _TOP + (1 - n / most) * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        *_axes(budgets, most, x, y),
        element(
            "path",
            title(f"what every plan moves: {exact(found.limit)}"),
            d=f"M{_LEFT} {y(found.limit):.1f}H{_WIDTH - _RIGHT}",
            class_="limit",
        ),
        element(
            "text",
            "inputs, outputs and each weight once",
            x=_LEFT + 4,
            y=y(found.limit) + 13,
            class_="quiet",
        ),
        element("path", d=f"M{x(found.own):.1f} {_TOP}V{_HEIGHT - _BOTTOM}", class_="own"),
        element("text", "this plan", x=x(found.own) + 5, y=_TOP + 10, class_="quiet"),
    ]
    made = [(x(p.budget), y(p.dram_bytes)) for p in found.points if p.dram_bytes is not None]
    parts.append(
        element("path", d="M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in made), class_="curve")
        if made
        else Markup("")
    )
    for p in found.points:
        words = f"{exact(p.budget)}: " + (
            "no plan" + (f", needs {exact(p.needs)}" if p.needs else "")
            if p.dram_bytes is None
            else f"{exact(p.dram_bytes)}, {p.status}"
        )
        at = y(p.dram_bytes) if p.dram_bytes is not None else _TOP + 8
        if p.dram_bytes is None:
            shape = f"M{x(p.budget) - 5:.1f} {at - 5:.1f}l10 10m0 -10l-10 10"
            parts.append(element("path", title(words), d=shape, class_="none"))
        else:
            kind = "point" if p.status == "optimal" else "point open"
            parts.append(element("circle", title(words), cx=x(p.budget), cy=at, r=5, class_=kind))
    label = "DRAM bytes of one inference over the size of the scratchpad; the table below has the figures"
    return picture(_WIDTH, _HEIGHT, label, parts)


def _axes(budgets: Sequence[int], most: float, x: Any, y: Any) -> Iterator[Markup]:
    each = 10 ** math.floor(math.log10(most))
    each = next(s for s in (each // 5, each // 2, each, 2 * each) if s and most / s <= 6)
    for i in range(int(most // each) + 1):
        n = i * each
        yield element("path", d=f"M{_LEFT} {y(n):.1f}H{_WIDTH - _RIGHT}", class_="grid")
        yield element("text", f"{n:,}", x=_LEFT - 6, y=y(n) + 4, class_="quiet end")
    taken = -math.inf
    for budget in budgets:
        if x(budget) - taken > 62:
            yield element(
                "text", short_size(budget), x=x(budget), y=_HEIGHT - _BOTTOM + 16, class_="quiet middle"
            )
            taken = x(budget)
    yield element("text", "DRAM bytes", x=0, y=12, class_="quiet")
    yield element("text", "scratchpad", x=_WIDTH - _RIGHT, y=_HEIGHT - 4, class_="quiet end")
