"""Plans with numbers that no planner writes, and very long ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostile.case import case, write
from hostile.networks import network, operator, tensor

RESULT = {
    "status": "feasible",
    "traffic_bytes": 0,
    "spill_bytes": 0,
    "reload_bytes": 0,
    "compulsory_bytes": 20,
    "weight_bytes": 0,
    "dram_bytes": 20,
    "lower_bound_bytes": 0,
    "peak_bytes": 20,
    "extent_bytes": 20,
    "seconds": 0.001,
    "macs": 0,
}
STEPS: list[list[Any]] = [["load", "x", 0], ["alloc", "y", 10], ["run", "o"], ["store", "y"]]


def _made(program: list[list[Any]], **changed: int) -> str:
    base = network([tensor("x", 10, "input"), tensor("y", 10)], [operator("o", ["x"], ["y"])], ["y"])
    plan = {
        "format": "onchip.plan/1",
        "network": base,
        "chip": {"name": "generic", "alignment_bytes": 1},
        "budget": 20,
        "program": program,
        "result": {**RESULT, **changed},
        "groups": [],
        "options": {},
    }
    return json.dumps(plan)


def _tried(
    name: str,
    what: str,
    *,
    want: Sequence[int] = (1, 2),
    command: Sequence[str] = ("check",),
    dear: bool = False,
) -> None:
    verb, *more = command
    case(f"{name}: {verb}", verb, name, *more, table="plans", what=what, want=want, dear=dear)


write("plan_honest.json", _made(STEPS))
_tried("plan_honest.json", "control: a plan of four instructions", want=(0,))


def _long(path: Path) -> None:
    again = [["load", "x", 0], *[["free", "x"], ["load", "x", 0]] * 200_000, *STEPS[1:]]
    path.write_text(_made(again, reload_bytes=2_000_000, traffic_bytes=2_000_000, dram_bytes=2_000_020))


write("plan_400000.json", _long)
_tried("plan_400000.json", "400,000 instructions, legal", want=(0, 2), dear=True)
page = ("report", "-o", "OUT/page.html")
_tried("plan_400000.json", "the same as a page", want=(0, 2), command=page, dear=True)
for name, text in (("nan", "NaN"), ("infinite", "1e999"), ("negative", "-1"), ("huge", "9" * 5000)):
    write(f"plan_{name}.json", _made(STEPS).replace('"budget": 20', f'"budget": {text}'))
    _tried(f"plan_{name}.json", f"a budget of {text if len(text) < 20 else text[:12] + '...'}")
write("plan_address.json", _made([["load", "x", 2**63], *STEPS[1:]]))
_tried("plan_address.json", "an address of 2^63")
