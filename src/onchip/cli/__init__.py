"""The command line: one verb per function. Results go to stdout, progress and errors to stderr.

Exit codes: 0 yes; 1 the answer is no (infeasible, illegal, mismatch); 2 wrong usage or input;
130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

import typer

from onchip.cli import branches, catalogue, compare, corun, export, fuse, judge, mcu, pack, plan  # noqa: F401  each registers its own
from onchip.cli.app import app
from onchip.errors import OnchipError

__all__ = ["app", "main"]


def main() -> NoReturn:
    """Run the command line; every expected failure is one line on stderr and an exit code."""
    stdout = sys.stdout
    for stream in (stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is escaped, no error
            stream.reconfigure(errors="backslashreplace")
    try:
        if stdout is None:
            raise OSError(errno.EBADF, "stdout is closed")
        code = app(standalone_mode=False)
        stdout.flush()
    except OnchipError as problem:
        print(f"onchip: {problem}", file=sys.stderr)
        code = problem.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except (BrokenPipeError, SystemExit):
        # The reader of our output has gone (typer and rich turn that into SystemExit): no error of ours.
        # What is still buffered goes nowhere; else the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        code = 0
    except OSError as problem:
        print(f"onchip: {problem.filename or 'output'}: {problem.strerror}", file=sys.stderr)
        code = 2
    except Exception as problem:
        if not hasattr(problem, "format_message"):
            raise
        lines = problem.format_message().split("\n")
        print(f"onchip: {' '.join(line.strip() for line in lines)} (see onchip --help)", file=sys.stderr)
        code = 2
    if code == 130:
        print("onchip: interrupted", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)
