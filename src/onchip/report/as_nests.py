"""The words on a plan whose groups in bands, blocks or boxes are told as nests of loops, too."""

from __future__ import annotations

from typing import Any

from onchip.check.as_nests import DIFFERENCES, REASONS, AsNests, Compared
from onchip.plans import Plan
from onchip.report.grid import Grid
from onchip.report.wording import shorten, visible

__all__ = ["as_nests_data", "as_nests_sentence", "as_nests_table", "why_lines"]

MOST_ROWS = 12
"""The most groups that the terminal lists; of more, those that take most more."""

FITS = {
    "in place": "it fits in place",
    "moved": "it fits if addresses are found anew",
    "no": "it does not fit",
    "refused": "it is no legal plan",
}


def as_nests_sentence(plan: Plan, found: AsNests) -> str:
    """Return in one sentence what the plan's groups in tiles cost as nests, and whether it fits then."""
    forms = [(form, sum(g.form == form for g in found.groups)) for form in ("bands", "blocks", "boxes")]
    shown = ", ".join(f"{n:,} in {form}" for form, n in forms if n)
    what = f"As nests of loops, for the groups in tiles ({shown}): "
    if found.fits == "refused":
        return f"{what}no legal plan: {visible(found.refusal)}"
    before = plan.result.dram_bytes
    moved = "as many bytes" if found.dram_bytes == before else f"{found.dram_bytes:,} B, not {before:,},"
    room = f"{found.peak_bytes:,} B of {plan.budget:,} are taken at most"
    left = sum(g.nest_dram_bytes is None for g in found.groups)
    but = f" {left:,} {'group has no nest' if left == 1 else 'groups have no nest'}." if left else ""
    return f"{what}{moved} cross, and {room}: {FITS[found.fits]}.{but}"


def as_nests_table(found: AsNests) -> Grid | None:
    """Return a row for every group that costs other bytes as a nest, or is none; None if there is no such.

    Of very many, those that take more are listed first.
    """
    rows = [
        g
        for g in found.groups
        if (g.scratch_bytes, g.dram_bytes) != (g.nest_scratch_bytes, g.nest_dram_bytes)
    ]
    if not rows:
        return None
    most = sorted(rows, key=_much, reverse=True)[:MOST_ROWS]
    grid = Grid(
        ("group", False), ("runs in", False), ("scratch", True), ("as a nest", True), ("DRAM bytes", True),
        ("as a nest", True), ("why", False),
    )  # fmt: skip
    for g in rows:
        if g in most:
            scratch, moved = (
                _cell(g.nest_scratch_bytes, g.scratch_bytes),
                _cell(g.nest_dram_bytes, g.dram_bytes),
            )
            grid.add_row(
                shorten(visible(g.name), 14), g.form, f"{g.scratch_bytes:,}", scratch, f"{g.dram_bytes:,}",
                moved, ", ".join(g.reasons),
            )  # fmt: skip
    if left := len(rows) - len(most):
        grid.add_row("", f"{left:,} more")
    return grid


def _much(group: Compared) -> tuple[bool, int, int]:
    """Return a key by which groups that have no nest come last, then those that take more."""
    more = max(0, (group.nest_dram_bytes or 0) - group.dram_bytes)
    return group.nest_dram_bytes is None, more, (group.nest_scratch_bytes or 0) - group.scratch_bytes


def _cell(after: int | None, before: int) -> str:
    return "none" if after is None else "same" if after == before else f"{after:,}"


def why_lines(found: AsNests) -> list[str]:
    """Return what the reasons in the table mean, each once."""
    names = {name for group in found.groups for name in group.reasons}
    return [f"{name}: {text}" for name, text in (REASONS | DIFFERENCES).items() if name in names]


def as_nests_data(found: AsNests) -> dict[str, Any]:
    """Return the same as data, every group with both figures."""
    return {
        "dram_bytes": found.dram_bytes,
        "peak_bytes": found.peak_bytes,
        "fits": found.fits,
        **({"refusal": found.refusal} if found.refusal else {}),
        "groups": [
            {
                "group": g.name,
                "runs_in": g.form,
                "scratch_bytes": g.scratch_bytes,
                "dram_bytes": g.dram_bytes,
                "nest_scratch_bytes": g.nest_scratch_bytes,
                "nest_dram_bytes": g.nest_dram_bytes,
                "why": list(g.reasons),
                **({"detail": g.detail} if g.detail else {}),
            }
            for g in found.groups
        ],
    }
