"""The state of a command's answer, complete or not, on which the message of Ctrl-C or an error depends."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["as_data", "awaited", "forget", "print_data", "printed", "written"]

_Mark = tuple[int, int, int] | None

_outputs: list[tuple[Path, _Mark]] = []
_printed: list[bool] = []


def forget() -> None:
    """Begin a new command."""
    _outputs.clear()
    _printed.clear()


def awaited(path: Path) -> None:
    """Register an output that the command will put in its place whole; the first one is its answer."""
    _outputs.append((path, _mark(path)))


def written() -> Path | None:
    """Return the answer's file once it is in place; from then on Ctrl-C only cuts the display."""
    if not _outputs:
        return None
    path, before = _outputs[0]
    now = _mark(path)
    return path if now is not None and now != before else None


def _mark(path: Path) -> _Mark:
    """Return what distinguishes a file from an earlier one: outputs are renamed into their places."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def print_data(text: str) -> None:
    """Print the command's one JSON document on stdout."""
    _printed.append(True)
    print(text)


def printed() -> bool:
    """Return whether the JSON document is on stdout."""
    return bool(_printed)


def as_data() -> bool:
    """Return whether the call asks for data instead of tables."""
    arguments = sys.argv[1:]
    until = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:until]
