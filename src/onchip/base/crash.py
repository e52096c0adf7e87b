"""Faults of onchip's own: not an answer, but an exit code, one line, and a log with the traceback."""

from __future__ import annotations

import faulthandler
import os
import secrets
import sys
import traceback
from importlib.metadata import version

from onchip import _core
from onchip.base.errors import one_line

__all__ = ["CRASHED", "catch_native", "log_of"]

CRASHED = 70
"""The exit code of a crash: a fault of onchip or of a library, never a statement about the input."""


def catch_native() -> None:
    """From now on end a crash of native code in one line and a log, with the interpreter's frames."""
    traces = os.memfd_create("onchip-traceback")
    path = _path()
    line = one_line(f"): please report it with {path}, which has the traceback") + "\n"
    head = _head().encode(errors="backslashreplace")
    _core.guard_crash(os.fsencode(path), head, line.encode(), traces, CRASHED)
    faulthandler.enable(traces, all_threads=False)


def log_of(problem: BaseException) -> str:
    """Write the log of an unexpected exception; return the line that reports it."""
    path = _path()
    kind = type(problem).__name__
    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace") as log:
            log.write(_head())
            traceback.print_exception(problem, file=log)
    except OSError:
        return f"onchip: a fault of onchip's own ({kind}): please report it; its log cannot be written"
    fault = f"onchip: a fault of onchip's own ({kind})"
    return one_line(f"{fault}: please report it with {path}, which has the traceback")


def _path() -> str:
    """Return a new name for a log, in the folder of temporary files."""
    folder = next((d for d in (os.environ.get("TMPDIR"), "/tmp", ".") if d and os.access(d, os.W_OK)), ".")
    return os.path.join(folder, f"onchip-crash-{os.getpid()}-{secrets.token_hex(4)}.log")


def _head() -> str:
    words = " ".join(sys.argv[1:])[:2000]
    python = sys.version.split()[0]
    return f"onchip {version('onchip')}, Python {python}, {os.uname().machine}\nonchip {words}\n"
