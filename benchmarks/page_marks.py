"""Sections of a page that a script writes, each between two marks that name it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

__all__ = ["Section", "marks", "put_into", "tables_into", "write"]

Section = Callable[[], Iterator[str]]
"""The lines of a section, each as soon as it is known."""


def marks(name: str) -> tuple[str, str]:
    """What a section stands between on its page."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def put_into(page: str, name: str, text: str) -> str:
    """The page with the section's new text. Raises `SystemExit` where it has no such marks."""
    begin, end = marks(name)
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise SystemExit(f"the page has no {begin} ... {end}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def tables_into(page: str, printed: str) -> str:
    """The page with the rows of every printed table in its table of the same heading, where both have one."""
    new, old = _tables(printed), _tables(page)
    lines = page.splitlines()
    places = []
    for heading, begun in old.items():
        if len(begun) == 1 and len(new.get(heading, ())) == 1:
            places.append((*begun[0], *new[heading][0]))
    source = printed.splitlines()
    for first, end, begin, behind in sorted(places, reverse=True):
        lines[first:end] = source[begin:behind]
    return "\n".join(lines) + ("\n" if page.endswith("\n") else "")


def _tables(text: str) -> dict[str, list[tuple[int, int]]]:
    """By heading where tables of a text are: the numbers of their first row's line, and of the one behind."""
    found: dict[str, list[tuple[int, int]]] = {}
    lines = text.splitlines()
    for n, line in enumerate(lines):
        if n and re.fullmatch(r"[|:\- ]*-[|:\- ]*", line) and lines[n - 1].startswith("|"):
            end = next((m for m in range(n + 1, len(lines)) if not lines[m].startswith("|")), len(lines))
            found.setdefault(lines[n - 1].strip(), []).append((n + 1, end))
    return found


def write(sections: Mapping[str, Section], page: Path | None, *, at_once: bool = False) -> None:
    """Print the sections line by line, or put each into the page once it is there; CPU times go to stderr.

    With `at_once` the page stays as it is until all sections are there: those of one measurement.
    """
    found: dict[str, str] = {}
    for name, section in sections.items():
        began = _spent()
        lines = []
        for line in section():
            lines.append(line)
            if page is None:
                print(line, flush=True)
        if page is None:
            print(flush=True)
        else:
            found[name] = "\n".join(lines)
            if not at_once or len(found) == len(sections):
                page.write_text(_with_sections(page.read_text(), found))
        print(f"{name}: {_spent() - began:.1f} s of CPU", file=sys.stderr, flush=True)


def _with_sections(page: str, found: Mapping[str, str]) -> str:
    for name, text in found.items():
        page = put_into(page, name, text)
    return page


def _spent() -> float:
    """CPU seconds of this process and of the programs that it ran."""
    return sum(os.times()[:4])
