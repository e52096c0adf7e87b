"""Sections of a page that a script writes, each between two marks that name it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

__all__ = ["Section", "marks", "put_into", "write"]

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


def write(sections: Mapping[str, Section], page: Path | None) -> None:
    """Print the sections line by line, or put each into the page once it is there; CPU times go to stderr."""
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
            page.write_text(put_into(page.read_text(), name, "\n".join(lines)))
        print(f"{name}: {_spent() - began:.1f} s of CPU", file=sys.stderr, flush=True)


def _spent() -> float:
    """CPU seconds of this process and of the programs that it ran."""
    return sum(os.times()[:4])
