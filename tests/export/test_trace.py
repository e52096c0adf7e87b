"""The trace: valid JSON, sorted, and its events add up to the plan's own figures."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.export import export
from onchip.machines.chip import Chip, Rates
from onchip.plans import Plan
from run.planner import random_plan, roomy
from strategies import random_network


def traced(plan: Plan) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    trace = json.loads(export(plan, "trace"))
    return [e for e in trace["traceEvents"] if e["ph"] != "M"], trace["otherData"]


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_events_are_the_plans_times_and_add_up_to_its_figures(rng: Random) -> None:
    chip = Chip("test", rng.choice((1, 4)))
    if rng.random() < 0.7:
        rates = Rates(dram_bytes_per_second=rng.choice((3.0, 1e9)), macs_per_second=1e9)
        chip = replace(chip, rates=rates)
    network = random_network(rng)
    plan = random_plan(network, roomy(network, chip) + rng.choice((0, 50)), rng, chip)
    events, other = traced(plan)
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(events))
    spans = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
    copies = [e for e in spans if e["cat"] != "run"]
    assert sum(e["args"]["bytes"] for e in copies) == plan.result.dram_bytes
    kinds = dict.fromkeys(("load", "store", "reload", "spill", "weights"), 0)
    for copy in copies:
        kinds[copy["cat"]] += copy["args"]["bytes"]
    assert (kinds["reload"], kinds["spill"]) == (plan.result.reload_bytes, plan.result.spill_bytes)
    assert kinds["weights"] == plan.result.weight_bytes
    levels = [e["args"]["bytes"] for e in events if e["ph"] == "C"]
    assert all(0 <= level <= plan.result.extent_bytes for level in levels)
    for track in (1, 2):
        mine = [e for e in spans if e["tid"] == track]
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 + b["ts"] * 1e-12 for a, b in pairwise(mine))
    if plan.timing:
        last = max(e["ts"] + e["dur"] for e in spans)
        assert last * 1e6 == pytest.approx(plan.result.latency_picoseconds)
        starts = {e["args"]["instruction"]: e["ts"] for e in spans}
        assert starts == {t.index: t.start / 10**6 for t in plan.timing}
    else:
        assert "states no rates" in other["time_unit"]
