"""The DRAM bytes of a plan by tensor and by weight, and the steps at which they cross."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from onchip.network import bits
from onchip.report.steps import Timeline
from onchip.report.svg import element, picture, title
from onchip.report.wording import exact, visible

__all__ = ["page_words"]

KINDS = {
    "compulsory_in": "compulsory",
    "compulsory_out": "compulsory",
    "spill": "spill",
    "reload": "reload",
}
"""Each kind of crossing and the name of its colour."""

_MOST_ROWS = 200
_WIDTH, _HEIGHT = 260.0, 12.0


def page_words(line: Timeline) -> dict[str, Any]:
    """Return the rows of the page, the costliest tensors first, then the costliest weights."""
    net = line.plan.network
    moved: dict[int, dict[str, int]] = {}
    when: dict[int, list[int]] = {}
    for c in line.crossings:
        kinds = moved.setdefault(c.tensor, dict.fromkeys(KINDS, 0))
        kinds[c.kind] += c.bytes
        steps = when.setdefault(c.tensor, [])
        if c.step not in steps:
            steps.append(c.step)
    tensors = sorted(moved, key=lambda t: (-sum(moved[t].values()), t))
    weights = sorted((s for s in line.steps if s.traffic.weights), key=lambda s: -s.traffic.weights)
    most = max(
        [sum(kinds.values()) for kinds in moved.values()] + [s.traffic.weights for s in weights], default=1
    )
    total = line.traffic.total or 1
    return {
        "sentence": _sentence(line, len(tensors)),
        "tensors": [
            {
                "tensor": t,
                "name": visible(net.tensors[t].name),
                "role": line.role(t),
                "bytes": net.tensors[t].bytes,
                **moved[t],
                "total": (all_of := sum(moved[t].values())),
                "share": f"{100 * all_of / total:.1f} %",
                "steps": len(when[t]),
                "step": when[t][0],
                "bar": _bar(moved[t], most, visible(net.tensors[t].name)),
            }
            for t in tensors[:_MOST_ROWS]
        ],
        "hidden": max(0, len(tensors) - _MOST_ROWS),
        "weights": [
            {
                "step": s.index,
                "name": visible(s.name),
                "once": sum(net.operators[i].weight_bytes for i in s.operators),
                "total": s.traffic.weights,
                "share": f"{100 * s.traffic.weights / total:.1f} %",
                "bar": _bar({"weights": s.traffic.weights}, most, visible(s.name)),
            }
            for s in weights[:_MOST_ROWS]
        ],
        "hidden_weights": max(0, len(weights) - _MOST_ROWS),
    }


def _sentence(line: Timeline, tensors: int) -> str:
    t = line.traffic
    parts = [
        f"{exact(n)} {what}"
        for n, what in (
            (t.compulsory, "compulsory"),
            (t.spill, "spilled"),
            (t.reload, "reloaded"),
            (t.weights, "of weights"),
        )
        if n
    ]
    kept = sum(1 for t in bits(_made(line)) if all(c.tensor != t for c in line.crossings))
    some = "1 tensor crosses" if tensors == 1 else f"{tensors:,} tensors cross"
    text = f"{exact(t.total)} cross to or from DRAM"
    text += f": {', '.join(parts)}. " if parts else ". "
    return text + f"{some}; {kept:,} of those that operators make never do."


def _made(line: Timeline) -> int:
    """Return the bitset of tensors that operators write and that have bytes of their own."""
    net, found = line.plan.network, 0
    for writes in net.writes:
        found |= writes
    return found


def _bar(kinds: dict[str, int], most: int, name: str) -> Markup:
    """Return a bar of what one row moves, by kind, against the row that moves most."""
    x, parts = 0.0, []
    for kind, n in kinds.items():
        wide = _WIDTH * n / most
        if wide:
            colour = KINDS.get(kind, kind)
            parts.append(
                element(
                    "rect",
                    title(f"{colour} {exact(n)}"),
                    x=x,
                    y=0,
                    width=max(wide, 0.4),
                    height=_HEIGHT,
                    class_=colour,
                )
            )
        x += wide
    return picture(_WIDTH, _HEIGHT, name, parts, whole=False)
