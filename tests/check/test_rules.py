"""Every rule: a plan that breaks exactly it is refused by its name, at the instruction to blame."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from random import Random

import broken_caches  # noqa: F401  registers its breakers
import broken_joins  # noqa: F401
import broken_memories  # noqa: F401
import broken_nests  # noqa: F401
import broken_pins  # noqa: F401
import broken_repeats  # noqa: F401
import broken_rings  # noqa: F401
import broken_rows  # noqa: F401
import broken_tiles  # noqa: F401
import broken_timed  # noqa: F401
import pytest
from broken_plans import BREAKERS, Site
from hypothesis import given, settings
from hypothesis import strategies as st
from legal_plans import legal_plan

from onchip.base.errors import IllegalPlan
from onchip.check import RULES, check

DOCS = Path(__file__).resolve().parents[2] / "docs" / "plan-program.md"


def test_every_rule_can_be_broken_here_and_stands_in_the_docs() -> None:
    assert set(BREAKERS) == set(RULES)
    rows = re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|$", DOCS.read_text(), re.MULTILINE)
    assert dict(rows) == RULES
    assert [name for name, _ in rows] == list(RULES)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES)
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=10)
def test_a_plan_that_breaks_one_rule_is_refused_by_its_name(rule: str, rng: Random) -> None:
    for _ in range(400):  # until a plan offers the occasion
        site = Site(rng, legal_plan(rng))
        found = list(itertools.islice(BREAKERS[rule](site), 12))
        if found:
            break
    else:
        pytest.fail("no plan offered an occasion")
    for plan, index in found:
        with pytest.raises(IllegalPlan) as refusal:
            check(plan)
        assert (refusal.value.rule, refusal.value.index) == (rule, index), refusal.value
        assert str(refusal.value).isprintable()
