"""Harmful files, and the commands that they are tried with.

Nothing in the files does harm: a payload makes an empty file in the folder that the environment variable
ONCHIP_MARKER names, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CASES", "FILES", "Case", "case", "touch", "write"]

Content = bytes | str | Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """One command that is tried in the folder `cwd`.

    `want` are the exit codes that are right, `limit` the --time-limit it is given, `torch` whether it can be
    judged only where torch is, `needs` the files besides those in `argv` (a name that ends in `/` is all
    files below it), `pages` and `tables` what it writes that a browser or a spreadsheet may open. OUT
    stands for an empty folder. `dear` cases take more than some two seconds.
    """

    name: str
    table: str
    argv: tuple[str, ...]
    what: str
    want: tuple[int, ...]
    limit: float | None
    torch: bool
    cwd: str
    needs: tuple[str, ...]
    pages: tuple[str, ...]
    tables: tuple[str, ...]
    dear: bool

    def files(self) -> list[str]:
        """The files that the case is about."""
        named = [os.path.join(self.cwd, part.removeprefix("./")) for part in self.argv]
        whole = tuple(need for need in self.needs if need.endswith("/"))
        return [
            file
            for file in FILES
            if file in named or file in self.needs or (whole and file.startswith(whole))
        ]


CASES: list[Case] = []
FILES: dict[str, Content] = {}


def case(
    name: str,
    *argv: str,
    table: str,
    what: str,
    want: Sequence[int] = (2,),
    limit: float | None = None,
    torch: bool = False,
    cwd: str = "",
    needs: Sequence[str] = (),
    pages: Sequence[str] = (),
    tables: Sequence[str] = (),
    dear: bool = False,
) -> None:
    """Add a case."""
    assert all(made.name != name for made in CASES), name
    CASES.append(
        Case(
            name,
            table,
            argv,
            what,
            tuple(want),
            limit,
            torch,
            cwd,
            tuple(needs),
            tuple(pages),
            tuple(tables),
            dear,
        )
    )


def write(name: str, content: Content) -> None:
    """Add a file: its bytes, its text, or what writes it at a path when it is needed."""
    assert FILES.setdefault(name, content) == content, name


def touch(name: str) -> str:
    """Python that makes an empty file in the folder of the marker: what every payload is."""
    return f"__import__('pathlib').Path(__import__('os').environ['ONCHIP_MARKER'], '{name}').touch()"


def lay(folder: Path, names: Sequence[str]) -> None:
    """Write these files."""
    for name in names:
        content, path = FILES[name], folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_bytes(content.encode("utf-8", "surrogatepass"))
        else:
            content(path)
