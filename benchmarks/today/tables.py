"""The tables of docs/today.md, from the answers of `today_networks.py`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from export import FAMILIES, FORMS, SMALL, path_of

__all__ = ["tables"]

Case = Mapping[str, Any]
BUDGETS, SHARES = ("512KiB", "2MiB"), ("1/8", "1/2")


def tables(known: Mapping[str, Case]) -> str:
    """Return a table of what the older exporter writes, of large networks and of small ones, one of all other
    forms, and what is refused."""
    cases = {
        (name, form): known.get(path_of(Path(), name, form).name, {})
        for family in FAMILIES.values()
        for name in family
        for form in FORMS
    }
    rows = {small: _head(*(SHARES if small else BUDGETS)) for small in (False, True)}
    others = [form for form in FORMS if form != "script"]
    marks = [f"| network | {' | '.join(others)} |", "|---|" + "---|" * len(others)]
    for family, networks in FAMILIES.items():
        small = family in SMALL
        for table in (rows[small], marks):
            table.append(f"| **{family}** |" + " |" * (table[0].count("|") - 2))
        for name in networks:
            figures = _figures(cases[name, "script"], *(SHARES if small else BUDGETS))
            rows[small].append(f"| {name} | {figures} |")
            marks.append(f"| {name} | {' | '.join(_mark(cases[name, form]) for form in others)} |")
    parts = (
        *map("\n".join, (rows[False], rows[True], marks)),
        _counts(cases),
        _refusals(cases),
        _whole(cases),
    )
    return "\n\n".join(parts)


def _head(first: str, other: str) -> list[str]:
    words = ["network", "operators", "in parts", f"groups, {first}", "operators in them"]
    words += ["of the least bytes", "executed", f"groups, {other}", "of the least bytes"]
    return [f"| {' | '.join(words)} |", "|---|--:|--:|--:|--:|--:|---|--:|--:|"]


def _first(case: Case) -> Case:
    """Return what became of a file at the first of its budgets."""
    found: Case = case.get(BUDGETS[0], case.get(SHARES[0], {}))
    return found


def _figures(case: Case, *budgets: str) -> str:
    if "operators" not in case:
        return " | ".join([_mark(case), *[""] * 7])
    parts = case["operators"] - len(case["whole"])
    words = [str(case["operators"]), "all" if not case["whole"] else str(parts)]
    for budget in budgets:
        found = case.get(budget, {})
        if "groups" not in found:
            words += ["no plan"] + [""] * (3 if budget == budgets[0] else 1)
            continue
        words.append(str(found["several"]))
        if budget == budgets[0]:
            words.append(str(found["fused"]))
        words.append(f"{found['dram'] / found['least']:.2f}" if "least" in found else "")
        if budget == budgets[0]:
            words.append(_state(found))
    return " | ".join(words)


def _state(found: Case) -> str:
    if "refused" in found:
        return "refused"
    return "yes" if "executed" in found else "unfinished" if "long" in found else "not asked"


def _mark(case: Case) -> str:
    """Return what became of a file in a word, and its operators."""
    if "unexported" in case:
        return "no file"
    if not case:
        return "not asked"
    if "refused" in case:
        return "refused"
    found = _first(case)
    state = "read"
    if "groups" in found:
        state = "run" if "executed" in found else "planned" if "refused" not in found else "planned, not run"
    elif "refused" in found:
        state = "no plan"
    share = f", {100 * found['fused'] // case['operators']} %" if found.get("fused") else ""
    return f"{state}, {case['operators']}{share}"


def _counts(cases: Mapping[tuple[str, str], Case]) -> str:
    """Return a table of how many files of each form came how far."""
    lines = [
        "| form | files | read | planned | executed | differ or refused then |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for form in FORMS:
        here = [case for (_, f), case in cases.items() if f == form and case and "unexported" not in case]
        plans = [_first(case) for case in here]
        figures = (
            len(here),
            sum("operators" in case for case in here),
            sum("checked" in plan for plan in plans),
            sum("executed" in plan for plan in plans),
            sum("checked" in plan and "refused" in plan for plan in plans),
        )
        lines.append(f"| {form} | {' | '.join(map(str, figures))} |")
    return "\n".join(lines)


def _refusals(cases: Mapping[tuple[str, str], Case]) -> str:
    lines = []
    for (name, form), case in cases.items():
        said = [case.get("refused"), case.get("unexported")]
        said += [
            f"at {budget}: {case[budget]['refused']}"
            for budget in (*BUDGETS, *SHARES)
            if "refused" in case.get(budget, {})
        ]
        lines += [f"| {name} | {form} | {_short(line)} |" for line in said if line]
    return "\n".join(["| network | form | what is said |", "|---|---|---|", *lines]) if lines else ""


def _short(line: str) -> str:
    text = line.replace("|", "/").split("; among:")[0].split("  [Caused")[0]
    text = re.sub(r"Load model from \S+ failed:", "", text)
    start = text.find("node ")
    return text[start:] if text.startswith("/") and start > 0 else text[:200]


def _whole(cases: Mapping[tuple[str, str], Case]) -> str:
    """Return the types of the operators that run whole, by how many files have them."""
    words = Counter(
        word
        for case in cases.values()
        for word in {t for type_ in case.get("whole", ()) for t in type_.split("+")}
    )
    for word in ("DequantizeLinear", "QuantizeLinear", "Add"):
        words.pop(word, None)
    return ", ".join(f"`{word}` ({count} files)" for word, count in words.most_common())
