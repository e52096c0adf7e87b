"""The plan in a notebook: figures and a small memory map, as HTML that many cells can show at once.

It has no script, no style sheet and no element id, so it cannot conflict with anything else on the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from onchip.plans import Plan
from onchip.report import claims, findings
from onchip.report.steps import Residency, Timeline, timeline
from onchip.report.wording import short_size, visible

__all__ = ["notebook"]

_WIDTH, _MAP, _HEIGHT = 860, 600, 300
_LEFT, _TOP = 44, 22
_MOST_BOXES = 1500
_ACTIVATION = ("#6fb1dc", "#8fc3e5", "#579dcb")
_COLOUR = {"input": "#4db894", "output": "#d58ab4", "scratch": "#a9b1ba"}
_SPILLED, _OUT, _BACK, _LIVE = "#edb94a", "#d55e00", "#b87700", "#8fa3b5"


def notebook(plan: Plan) -> str:
    """Return a fragment of HTML: status, figures, and the map with addresses across and steps down.

    Of more than 1,500 residencies the ones that cover most are drawn, and the fragment says so. Raises
    `IllegalPlan` for a program that is not legal.
    """
    line = timeline(plan)
    t = line.traffic
    figures = [
        ("budget", plan.budget),
        ("peak", line.peak_bytes),
        ("spilled", t.spill),
        ("reloaded", t.reload),
        ("compulsory", t.compulsory),
        ("weights", t.weights),
        ("all DRAM bytes", t.total),
    ]
    cells = "".join(
        f'<span style="margin-right:1.6em" title="{n:,} bytes"><span style="opacity:.65">{name}</span>'
        f" <b>{short_size(n)}</b></span>"
        for name, n in figures
    )
    heading = escape(visible(findings.title(plan)))
    status = escape(claims.status_words(plan))
    among = f"<div>{escape(space)}</div>" if (space := claims.space_sentence(plan)) else ""
    hidden = len(line.residencies) - _MOST_BOXES
    note = f"<div>{hidden:,} smaller residencies are not drawn.</div>" if hidden > 0 else ""
    return (
        '<div style="font:13px/1.5 system-ui,sans-serif;overflow-x:auto">'
        f"<div><b>{heading}</b> · {status}</div>{among}<div>{cells}</div>{_map(plan, line)}{note}</div>"
    )


def _map(plan: Plan, line: Timeline) -> str:
    across = max(plan.budget, line.extent_bytes, 1)
    down = max(len(line.steps), 1)

    def x(n: int) -> float:
        return _LEFT + n / across * _MAP

    def y(step: int) -> float:
        return _TOP + step / down * _HEIGHT

    def rect(r: Residency) -> str:
        stays = line.stays[r.tensor] if r.tensor is not None else ()
        fill = _SPILLED if len(stays) > 1 else _COLOUR.get(r.role, _ACTIVATION[(r.tensor or 0) % 3])
        height = max(y(r.end) - y(r.start), 0.4)
        steps = f"{r.start + 1}-{r.end}" if r.end > r.start + 1 else f"{r.start + 1}"
        label = f"{visible(r.name)}: {r.role}, {r.size:,} bytes at {r.address:,}, steps {steps}"
        width = max(r.size / across * _MAP, 0.4)
        shape = (
            f'<rect x="{x(r.address):.1f}" y="{y(r.start):.1f}" width="{width:.1f}" height="{height:.1f}"'
            f' fill="{fill}"><title>{escape(label)}</title></rect>'
        )
        for happened, colour, at in (
            (r.departure in ("spill", "evict"), _OUT, y(r.end) - 1),
            (r.arrival == "reload", _BACK, y(r.start)),
        ):
            if happened and height > 2:
                shape += (
                    f'<rect x="{x(r.address):.1f}" y="{at:.1f}" width="{r.size / across * _MAP:.1f}"'
                    f' height="1" fill="{colour}"/>'
                )
        return shape

    shown = sorted(line.residencies, key=lambda r: -r.size * max(r.end - r.start, 1))[:_MOST_BOXES]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_TOP + _HEIGHT + 20}" width="{_WIDTH}" role="img"'
        ' aria-label="Memory map: addresses across, steps down, occupancy beside it"'
        ' style="max-width:100%;height:auto;font:11px system-ui,sans-serif" fill="currentColor">'
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_MAP}" height="{_HEIGHT}" fill="currentColor"'
        ' fill-opacity=".05"/>'
        + "".join(rect(r) for r in shown)
        + "".join(_axes(plan, line, x(plan.budget), down))
        + _occupancy(line, across, down)
        + "</svg>"
    )


def _axes(plan: Plan, line: Timeline, budget_x: float, down: int) -> Iterator[str]:
    yield f'<text x="{_LEFT}" y="14">address 0</text>'
    yield f'<text x="{budget_x:.1f}" y="14" text-anchor="end">budget {short_size(plan.budget)}</text>'
    yield (
        f'<path d="M{budget_x:.1f} {_TOP - 4}V{_TOP + _HEIGHT}" stroke="currentColor" stroke-width="1.5"'
        ' fill="none"/>'
    )
    yield f'<text x="{_LEFT + _MAP + 24}" y="14">occupancy</text>'
    ticks = sorted({round(i * (down - 1) / 5) for i in range(6)})
    for step in ticks:
        at = _TOP + (step + 0.5) / down * _HEIGHT
        yield f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{step + 1}</text>'
    yield (
        f'<text x="{_LEFT}" y="{_TOP + _HEIGHT + 15}">steps downwards,'
        f" {len(line.steps):,} in all; yellow: leaves the scratchpad and comes back</text>"
    )


def _occupancy(line: Timeline, across: int, down: int) -> str:
    """Return live bytes as one filled outline; of steps that share a pixel row, the fullest."""
    left, width = _LEFT + _MAP + 24, _WIDTH - _LEFT - _MAP - 34
    rows = min(down, _HEIGHT)
    points = []
    for row in range(rows):
        first, last = row * down // rows, max(row * down // rows + 1, (row + 1) * down // rows)
        most = max((s.occupancy_bytes for s in line.steps[first:last]), default=0)
        top, bottom = _TOP + row / rows * _HEIGHT, _TOP + (row + 1) / rows * _HEIGHT
        points.append(f"V{top:.1f}H{left + most / across * width:.1f}V{bottom:.1f}")
    path = f"M{left} {_TOP}" + "".join(points) + f"H{left}Z"
    return f'<path d="{path}" fill="{_LIVE}"><title>live bytes of each step</title></path>'
