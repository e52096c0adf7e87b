"""The plan as one self-contained HTML file: no network, no other file, no later version of onchip.

The content security policy runs only the page's own script and style, by their hashes.
Names reach the page escaped by the template, or as JSON that the script writes with textContent only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from onchip.check import standing
from onchip.network import bits
from onchip.planners.fused_group import TIMES
from onchip.plans import Plan
from onchip.report import claims, crossings, findings, grouped, modules, times, what_if
from onchip.report.bounds import bounds_of
from onchip.report.graph import picture
from onchip.report.graph.units import units
from onchip.report.nest import ShownNest, shown_nests
from onchip.report.nest.drawing import MOST_RAILS, page_nests, script_names
from onchip.report.shell import asset, embedded, hash_of, template, version
from onchip.report.steps import Timeline, timeline
from onchip.report.what_if import WhatIf
from onchip.report.wording import short_size, visible

if TYPE_CHECKING:
    import jinja2

__all__ = ["html"]

_SCRIPTS = ("model.js", "draw.js", "detail.js")
_INPUT_SCRIPTS = ("tabs.js", "input.js")
_TIME_SCRIPTS = ("times.js",)
_GRAPH_SCRIPTS = ("graph.js", "graph_input.js")
_MODULE_SCRIPTS = ("modules.js",)
_MOST_ROWS = 200


def html(plan: Plan, beyond: WhatIf | None = None) -> str:
    """Return the report of a plan as one self-contained HTML page; `beyond` are the costs at other budgets.

    Raises `IllegalPlan` for a program that is not legal.
    """
    from markupsafe import Markup

    line = timeline(plan)
    graph, nests = picture(plan, line), dict[str, ShownNest]()
    found = modules.page_words(plan, line)
    style, scripts = asset("page.css"), list(_SCRIPTS)
    if graph is not None:
        style += asset("graph.css")
        scripts += _GRAPH_SCRIPTS
        nests |= shown_nests(plan, line)
        graph["nests"] = script_names(nests, [unit.name for unit in units(plan, line)])
        if nests:
            style += asset("nest.css")
    lanes = times.bars(plan, line)
    if lanes is not None:
        scripts += _TIME_SCRIPTS
    scripts += _INPUT_SCRIPTS
    if found is not None:
        style += asset("modules.css")
        scripts += _MODULE_SCRIPTS
    script = '(() => {\n"use strict";\n' + "\n".join(asset(name) for name in scripts) + "})();\n"
    tabs = [
        *([("groups", "Groups")] if graph is not None else []),
        *([("modules", "Modules")] if found is not None else []),
        ("map", "Memory map"),
        ("times", "Timeline"),
        ("traffic", "Traffic by tensor"),
        *([("what-if", "What if")] if beyond is not None else []),
    ]
    return _template().render(
        **_words(plan, line),
        tabs=tabs,
        modules=found,
        groups=None if graph is None else grouped.page_words(plan, line),
        nests=page_nests(nests),
        crossings=crossings.page_words(line),
        timed=lanes is not None,
        nests_timed=lanes is not None and lanes["nests"],
        beyond=None if beyond is None else what_if.page_words(beyond),
        data=Markup(embedded({**_data(plan, line), "graph": graph, "times": lanes})),
        style=Markup(style),
        script=Markup(script),
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        version=version(),
    )


@cache
def _template() -> jinja2.Template:
    return template("page.html.j2", link=_link, by=TIMES, most_rails=MOST_RAILS)


def _link(tensor: int | None, name: str) -> Any:
    from markupsafe import Markup

    if tensor is None:
        return Markup("<bdi>{}</bdi>").format(name)
    return Markup('<button type="button" class="link" data-tensor="{}"><bdi>{}</bdi></button>').format(
        tensor, name
    )


def _data(plan: Plan, line: Timeline) -> dict[str, Any]:
    """Return the data that the script draws; it refers to steps and tensors by index."""
    net = plan.network
    made: dict[int, int] = {}
    read: dict[int, list[int]] = {}
    for step in line.steps:
        for op in step.operators:
            for t in bits(net.writes[op]):
                made[t] = step.index
            for t in bits(net.reads[op]):
                if step.index not in read.setdefault(t, []):
                    read[t].append(step.index)
    known = findings.budgets(plan)
    maps = _maps(line)
    base = {name: at for name, at, _, _ in maps}
    return {
        "budget": plan.budget,
        "extent": line.extent_bytes if len(maps) < 2 else maps[-1][1] + maps[-1][2],
        "marks": []
        if plan.chip.memories
        else [
            ("MR", known.mr),
            ("zero traffic" if known.zero_traffic else "zero traffic ≥", known.zero_traffic or known.mp),
        ],
        "memories": [(visible(name or ""), at, shown, size) for name, at, shown, size in maps if name],
        "tensors": [
            [visible(t.name), t.bytes, line.role(t.id), made.get(t.id, -1), read.get(t.id, [])]
            for t in net.tensors
        ],
        "steps": [
            [
                visible(findings.step_label(s)),
                visible(s.type) if s.type else "",
                len(s.operators),
                s.inputs,
                s.outputs,
                s.workspace,
                s.occupancy_bytes,
                s.traffic.compulsory_in,
                s.traffic.compulsory_out,
                s.traffic.spill,
                s.traffic.reload,
                s.traffic.weights,
                s.streamed,
            ]
            for s in line.steps
        ],
        "residencies": [
            [
                -1 if r.tensor is None else r.tensor,
                base[r.memory] + r.address,
                r.size,
                r.start,
                r.end,
                r.arrival,
                r.departure,
                *([visible(r.name)] if r.role == "weights" else []),
            ]
            for r in line.residencies
        ],
        "absences": [
            [
                a.tensor,
                a.left,
                a.back,
                -1 if a.crowded is None else a.crowded,
                a.live_bytes,
                a.written,
                a.reloaded,
                a.how,
            ]
            for a in findings.absences(line)
        ],
    }


def _maps(line: Timeline) -> list[tuple[str | None, int, int, int]]:
    """Return each memory's map: name, start on the axis of all maps, bytes shown, size.

    Maps lie side by side with a gap between them, and each shows the extent of the program in its memory.
    """
    size = {m.name: m.bytes for m in line.plan.chip.memories}
    gap = max(1, sum(line.extents.values()) // 40)
    found: list[tuple[str | None, int, int, int]] = []
    at = 0
    for name, extent in line.extents.items():
        found.append((name, at, extent, size.get(name or "", line.plan.budget)))
        at += max(extent, gap) + gap
    return found


def _words(plan: Plan, line: Timeline) -> dict[str, Any]:
    """Return everything that the template says in words, for readers with and without the script."""
    traffic, absences = line.traffic, findings.absences(line)
    shown = sorted(sorted(absences, key=lambda a: -a.cost)[:_MOST_ROWS], key=lambda a: a.left)
    return {
        "title": visible(findings.title(plan)),
        "network": visible(plan.network.name),
        "chip": visible(plan.chip.name),
        "status": claims.status_words(plan),
        "status_class": plan.result.status,
        "sentence": claims.status_sentence(plan, traffic.spill + traffic.reload),
        "space": claims.space_sentence(plan),
        "standing": claims.standing_sentence(plan),
        "zero_traffic": findings.zero_traffic_sentence(plan, line),
        "memories_sentence": findings.memory_sentence(plan),
        "repeats_sentence": findings.repeats_sentence(plan),
        "times": "" if (found := times.times(plan)) is None else times.sentence(found),
        "figures": _figures(plan, line),
        "facts": _facts(plan),
        "peak": _peak_rows(line),
        "peak_sentence": findings.peak_sentence(line),
        "largest": [
            {
                "tensor": tensor,
                "name": visible(plan.network.tensors[tensor].name),
                "producer": _producer(plan, tensor),
                "bytes": size,
                "steps": steps,
                "stays": stays,
            }
            for tensor, size, steps, stays in findings.largest(line, 25)
        ],
        "absences": [
            {
                "tensor": a.tensor,
                "name": visible(a.name),
                "bytes": a.bytes,
                "out": findings.step_range(a.left, a.back),
                "step": a.crowded,
                "by": findings.room_needed_by(line, a),
                "why": findings.absence_reason(line, a),
                "written": a.written,
                "reloaded": a.reloaded,
            }
            for a in shown
        ],
        "absences_sentence": _absences_sentence(absences, len(shown)),
    }


def _absences_sentence(absences: tuple[findings.Absence, ...], shown: int) -> str:
    written, reloaded = sum(a.written for a in absences), sum(a.reloaded for a in absences)
    tensors = len({a.tensor for a in absences})
    text = (
        f"{tensors:,} {'tensor' if tensors == 1 else 'tensors'} out {len(absences):,}"
        f" {'time' if len(absences) == 1 else 'times'}: {short_size(written)} written,"
        f" {short_size(reloaded)} read back. Room is needed by the first operator that the tensor would"
        " not have fitted beside."
    )
    return text if shown == len(absences) else f"{text} The {shown} costliest are listed."


def _figures(plan: Plan, line: Timeline) -> list[tuple[str, str, str, str]]:
    """Return the header's figures: (name, short form, exact bytes, note)."""
    t = line.traffic
    share = f"{100 * line.peak_bytes / plan.budget:.1f} % of the budget" if plan.budget else ""

    def row(name: str, n: int, note: str = "") -> tuple[str, str, str, str]:
        return name, short_size(n), f"{n:,} B", note

    grouped = claims.is_grouped(plan)
    several = plan.chip.memories
    rows = [
        row("Budget", plan.budget, "all memories" if several else ""),
        row("Peak live bytes", line.peak_bytes, share),
        *(
            row(f"In {visible(m.name)}", line.extents[m.name], f"of {short_size(m.bytes)} reached")
            for m in several
        ),
        *([row("Moved", findings.moved_bytes(plan), "from memory to memory")] if several else []),
        *([] if several else [row("Highest address", line.extent_bytes)]),
        row("Spilled", t.spill, "written between groups" if grouped else ""),
        row("Reloaded", t.reload, "read again, halo included" if grouped else ""),
        row("Compulsory", t.compulsory, "inputs in, outputs out"),
        row("Weights", t.weights),
        row("All DRAM bytes", t.total, "this plan"),
        *([] if claims.is_of_ram(plan) else _bounds(plan)),
    ]
    return rows + [(what, value, "", "") for what, value in findings.cost_of_dram(plan, line)]


def _bounds(plan: Plan) -> list[tuple[str, str, str, str]]:
    """Return the two figures beside the plan's own DRAM bytes: of its space, and of every schedule."""
    found, claimed = bounds_of(plan), standing(plan) == "claimed"
    least = (
        ("not known", "", "")
        if found.space is None
        else (
            short_size(found.space),
            f"{found.space:,} B",
            "DRAM bytes, as claimed" if claimed else "DRAM bytes",
        )
    )
    every = (short_size(found.every), f"{found.every:,} B", "inputs, outputs, weights, once")
    return [("Least of its space", *least), ("Every schedule moves", *every)]


def _facts(plan: Plan) -> list[tuple[str, str]]:
    """Return the footer: the network's source and how the plan was made."""
    net = plan.network
    facts = [("network from", visible(net.source)), ("sha256", net.sha256[:16])] if net.source else []
    facts += [("granularity", visible(net.granularity)), ("element", visible(net.element))]
    facts += [
        (visible(str(k)).replace("_", " "), {"True": "on", "False": "off"}.get(str(v), visible(str(v))))
        for k, v in plan.options.items()
        if v is not None and k not in ("granularity", "element") and not k.endswith("_bytes")
    ]
    facts.append(("planned in", f"{plan.result.seconds:.3g} s"))
    return [(key, value) for key, value in facts if value]


def _peak_rows(line: Timeline) -> list[dict[str, Any]]:
    total = sum(n for _, _, n in line.peak_live) or 1
    ids = line.plan.network.tensor_id
    return [
        {
            "tensor": None if role in ("scratch", "weights") else ids[name],
            "name": visible(name),
            "role": role,
            "bytes": n,
            "share": f"{100 * n / total:.1f} %",
        }
        for name, role, n in line.peak_live[:_MOST_ROWS]
    ]


def _producer(plan: Plan, tensor: int) -> str:
    op = plan.network.producer[tensor]
    return "network input" if op is None else visible(plan.network.operators[op].name)
