"""Searches that go deeper only on the cheapest way find what searches find that go deeper everywhere."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.planners.joint import by_bytes, planning, rounds
from onchip.planners.joint.incumbents import Incumbent
from onchip.planners.joint.nests import nests_of
from onchip.planners.joint.options import JointOptions
from onchip.planners.joint.search import Found, JointSearch
from onchip.plans import Plan
from oracles.nest_cases import groups_network

CHIP = Chip("test", 1)


def planned(network: Network, budget: int) -> Plan | None:
    try:
        return planning.plan(network, CHIP, budget, JointOptions(fuse=True))
    except Infeasible:
        return None


def none(best: Incumbent | None, search: JointSearch, *_: object) -> tuple[Incumbent | None, Found | None]:
    return best, None


@pytest.mark.thorough
def test_rounds_change_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first searches look at next to nothing, so that many are cut off."""
    monkeypatch.setattr(by_bytes, "nests_of", partial(nests_of, looks=1))
    monkeypatch.setattr(by_bytes, "MORE_LOOKS", 1)
    ended = proved = deeper = 0

    def counted(*args: object) -> tuple[Incumbent | None, Found | None]:
        nonlocal ended, deeper
        best, last = rounds.in_rounds(*args)  # type: ignore[arg-type]
        ended += last is not None and last.complete
        deeper += len(rounds_of)
        return best, last

    rounds_of: list[int] = []
    forget = JointSearch.forget_nests

    def forgotten(self: JointSearch, *, hopeful: bool = False) -> None:
        if hopeful:
            rounds_of.append(1)
        forget(self, hopeful=hopeful)

    monkeypatch.setattr(JointSearch, "forget_nests", forgotten)
    for seed in range(60):
        random = Random(seed)
        network = groups_network(random, 6, windows=True)
        budget = random.choice([60, 120, 200, 400])
        rounds_of.clear()
        monkeypatch.setattr(by_bytes, "in_rounds", counted)
        made = planned(network, budget)
        monkeypatch.setattr(by_bytes, "in_rounds", none)
        other = planned(network, budget)
        assert (made is None) == (other is None)
        if made is None or other is None:
            continue
        assert check(made) == made.result
        proved += made.result.status == other.result.status == "optimal"
        for one, two in ((made, other), (other, made)):
            assert one.result.dram_lower_bound_bytes <= two.result.dram_bytes
        if made.result.status == other.result.status == "optimal":
            assert made.result.dram_bytes == other.result.dram_bytes
    assert proved >= 40
    assert ended >= 6
    assert deeper >= 30
