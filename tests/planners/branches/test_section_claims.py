"""What a plan says of its modules is what its program does: every falsehood is refused by rule `section`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from module_networks import random_module_network
from onchip.base.errors import IllegalPlan, Infeasible
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import plan_branches
from onchip.plans import Join, Plan, Run, Section

NPU = load_chip("exynos-npu")


def planned(seed: int, rules: Literal["paper", "ours"] = "paper") -> Plan | None:
    rng = Random(seed)
    network = random_module_network(rng, long_skips=rng.choice([0, 0.4]), extra_outputs=0.1).network()
    budget = max(64, int(sum(t.bytes for t in network.tensors) * rng.choice([0.1, 0.2, 0.4, 2])))
    options = BranchOptions(rules=rules, long_skip=rng.choice([8, 3]))
    try:
        return plan_branches(network, NPU, budget, options).plan
    except Infeasible:
        return None


def refused(plan: Plan, at: int, **changes: object) -> None:
    sections = list(plan.sections)
    sections[at] = replace(sections[at], **changes)  # type: ignore[arg-type]
    refused_with(plan, *sections)


def refused_with(plan: Plan, *sections: Section) -> None:
    with pytest.raises(IllegalPlan) as refusal:
        check(replace(plan, sections=sections))
    assert refusal.value.rule == "section"


def modules(plan: Plan) -> Iterator[tuple[int, Section]]:
    return ((i, s) for i, s in enumerate(plan.sections) if s.merge is not None)


@pytest.mark.thorough
@settings(max_examples=10)
@given(seed=st.integers(0, 10**9))
def test_other_processing_start_and_merge_are_refused(seed: int) -> None:
    plan = planned(seed)
    for i, section in modules(plan) if plan is not None else ():
        assert plan is not None
        network = plan.network
        refused(plan, i, processing="II" if section.processing == "I" else "I")
        inside = [network.operator_id[v] for branch in section.branches for v in branch]
        for t in network.tensors:
            everywhere = all(
                any(network.reads[network.operator_id[v]] >> t.id & 1 for v in (*branch,) or (section.merge,))
                for branch in section.branches
            )
            if network.root[t.id] == t.id and t.name != section.start and not everywhere:
                refused(plan, i, start=t.name)
        for v in inside:
            refused(plan, i, merge=network.operators[v].name)
            without = tuple(
                tuple(n for n in branch if n != network.operators[v].name) for branch in section.branches
            )
            if section.merge is not None:
                swapped = (*without[:-1], (*without[-1], section.merge))
                refused(plan, i, merge=network.operators[v].name, branches=swapped)


@pytest.mark.thorough
@settings(max_examples=10)
@given(seed=st.integers(0, 10**9))
def test_other_branches_are_refused(seed: int) -> None:
    plan = planned(seed)
    for i, section in modules(plan) if plan is not None else ():
        assert plan is not None
        branches = section.branches
        refused(plan, i, branches=())
        refused(plan, i, branches=tuple(() for _ in branches))
        refused(plan, i, branches=(*branches, ()))
        if sum(map(bool, branches)) > 1:
            refused(plan, i, branches=branches[::-1])
            refused(plan, i, branches=(tuple(v for branch in branches for v in branch), ()))
        refused(plan, i, branches=(tuple(v for branch in branches for v in branch),))
        for b, branch in enumerate(branches):
            if len(branch) > 1:
                refused(plan, i, branches=(*branches[:b], branch[::-1], *branches[b + 1 :]))
                refused(plan, i, branches=(*branches[:b], branch[:1], branch[1:], *branches[b + 1 :]))
            for name in branch:
                left = [tuple(v for v in other if v != name) for other in branches]
                refused(plan, i, branches=tuple(left))
                for to in range(len(branches)):
                    if to == b or (len(branch) == 1 and not branches[to]):
                        continue  # where the branch without operators stands says nothing
                    for moved in ((*left[to], name), (name, *left[to])):
                        refused(plan, i, branches=(*left[:to], moved, *left[to + 1 :]))


@settings(max_examples=10)
@given(seed=st.integers(0, 10**9))
def test_other_ends_are_refused(seed: int) -> None:
    plan = planned(seed)
    if plan is None:
        return
    runs = [i for i, x in enumerate(plan.program) if isinstance(x, Run | Join)]
    for i, (one, two) in enumerate(pairwise(plan.sections)):
        if one.merge is None and two.merge is None:
            continue
        before, after = max(r for r in runs if r < one.end), min(r for r in runs if r >= one.end)
        for end in (before, after + 1):
            ends = replace(one, end=end), replace(two, first=end)
            refused_with(plan, *plan.sections[:i], *ends, *plan.sections[i + 2 :])


@settings(max_examples=10)
@given(seed=st.integers(0, 10**9))
def test_a_branch_cannot_be_left_outside(seed: int) -> None:
    """The first branch given to the stretch before, with the instructions that run it."""
    plan = planned(seed)
    for i, section in modules(plan) if plan is not None else ():
        assert plan is not None
        if i == 0 or plan.sections[i - 1].merge is not None or not section.branches[0]:
            continue
        names = section.branches[0]
        end = 1 + max(
            j for j, x in enumerate(plan.program) if isinstance(x, Run | Join) and x.operator in names
        )
        ends = (
            replace(plan.sections[i - 1], end=end),
            replace(section, first=end, branches=section.branches[1:]),
        )
        refused_with(plan, *plan.sections[: i - 1], *ends, *plan.sections[i + 1 :])


def test_sections_have_different_names() -> None:
    plan = next(p for p in map(planned, range(100)) if p is not None and len(p.sections) > 1)
    refused(plan, 1, name=plan.sections[0].name)


@pytest.mark.thorough
@pytest.mark.parametrize("rules", ["paper", "ours"])
def test_what_planners_say_is_true_of_both_kinds(rules: Literal["paper", "ours"]) -> None:
    kinds = set()
    for seed in range(25):
        plan = planned(seed, rules)
        if plan is not None:
            check(plan)
            kinds |= {section.processing for _, section in modules(plan)}
    assert kinds == {"I", "II"}
