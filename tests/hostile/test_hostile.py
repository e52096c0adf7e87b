"""Every harmful file, with the command it is tried with: refused or read, and nothing else happens."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from hostile.case import Case
from hostile.judge import shortcomings
from hostile.run import run
from hostile.tried import CASES, KNOWN_SHORT

ALLOWANCE = 4.0
"""Seconds that a machine at work on other things may add; `python -m hostile` gives none."""

CAMPAIGN = frozenset({
    "buffers_100000.csv --minimise",
    "buffers_in_a_row.csv",
    "chain_49999.json: --fuse, 2 s",
    "chain_49999.json: plan, 2 s",
    "chain_million.json",
    "dense_1400.json: --fuse, 2 s",
    "dense_1400.json: plan, 2 s",
    "fan_2000.json: --strategy beam, 2 s",
    "fan_2000.json: --strategy dnc, 2 s",
    "fan_20000.json: --fuse, 0.5 s",
    "plan_400000.json: report",
    "relus_200000.onnx",
})  # fmt: skip
"""Cases of some two to forty seconds, which `python -m hostile` runs: others of their kind are here."""


def _parameters() -> list[object]:
    found = []
    for case in CASES:
        marks: list[pytest.MarkDecorator] = []
        if case.name in CAMPAIGN:
            continue
        if case.dear:
            marks.append(pytest.mark.slow)
        if case.torch and importlib.util.find_spec("torch") is None:
            marks.append(pytest.mark.skip(reason="needs torch"))
        if case.name in KNOWN_SHORT:
            marks.append(pytest.mark.xfail(strict=True, reason="falls short still"))
        found.append(pytest.param(case, id=f"{case.table}-{case.name}", marks=marks))
    return found


def test_the_list_of_what_falls_short_names_cases() -> None:
    assert {case.name for case in CASES} >= KNOWN_SHORT


@pytest.mark.thorough
@pytest.mark.parametrize("case", _parameters())
def test_nothing_happens(case: Case, tmp_path: Path) -> None:
    ended = run(case, tmp_path)
    assert shortcomings(case, ended, tmp_path, allowance=ALLOWANCE) == []
