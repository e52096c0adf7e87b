"""The formal page's example is run, in both forms, and says what the checker computes."""

from __future__ import annotations

import re
from pathlib import Path

from onchip.check import check
from onchip.plan import from_json, from_text, to_json, to_text

PAGE = Path(__file__).resolve().parents[2] / "docs" / "plan-program.md"


def test_the_example_is_legal_and_the_same_in_both_forms() -> None:
    text, json = re.findall(r"^```(?:text|json)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    plan = from_text(text)
    assert from_json(json) == plan
    assert check(plan) == plan.result
    assert from_text(to_text(plan)) == from_json(to_json(plan)) == plan
