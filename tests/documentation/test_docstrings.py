"""Docstrings state what a thing is or does; they do not begin as a question about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import onchip

ROOT = Path(onchip.__file__).parent

QUESTION = re.compile(r"\s*(What|Whether|Who|How)\b")


def questions_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring, of fields and constants too, that begins as a question."""
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(ast.Constant(str(text))) if QUESTION.match(text):
                    yield statement.lineno, text.strip().splitlines()[0]


@pytest.mark.thorough
def test_no_docstring_begins_as_a_question() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        for line, text in questions_in(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_such_a_docstring_is_found_wherever_it_stands() -> None:
    source = (
        '"""What it is."""\nX = 1\n"""Whether."""\n'
        'class C:\n    """Whose."""\n    def f(self):\n        "How."\n'
    )
    assert [line for line, _ in questions_in(source)] == [1, 3, 7]
