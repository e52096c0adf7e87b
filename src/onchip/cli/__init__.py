"""The command line: one verb per function. Results go to stdout, progress and errors to stderr.

With `--json` an error is also a JSON object on stdout: {"error": {"kind", "message", "exit_code", ...}}.
Exit codes: 0 yes; 1 the answer is no (infeasible, illegal, mismatch); 2 wrong usage or input;
70 a fault of onchip's own; 130 interrupted.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import typer

from onchip.base import guard
from onchip.base.crash import catch_native
from onchip.base.errors import OnchipError, one_line
from onchip.cli import answer
from onchip.cli.app import COMMANDS, app, load_all
from onchip.cli.complete import mend_colons
from onchip.cli.wrong_usage import plainly

__all__ = ["app", "load_all", "main"]


def __getattr__(name: str) -> Any:
    """Return a command's module, as `onchip.cli.plan`."""
    if name in COMMANDS.values():
        return import_module(f"onchip.cli.{name}")
    raise AttributeError(f"module 'onchip.cli' has no attribute {name!r}")


def main() -> NoReturn:
    """Run the command line; every expected failure is one line on stderr and an exit code."""
    if "_ONCHIP_COMPLETE" in os.environ:  # the shell asks for completions
        mend_colons(os.environ)
        app()
    answer.forget()
    stdout = sys.stdout
    for stream in (stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # escape a name that the terminal cannot show, without an error
            stream.reconfigure(errors="backslashreplace")
    if guard.started():
        catch_native()
    try:
        if stdout is None:
            raise OSError(errno.EBADF, "stdout is closed")
        code = app(standalone_mode=False)
        stdout.flush()
    except OnchipError as problem:
        code = problem.exit_code
        _as_data(problem.data())
        _complain(f"onchip: {problem}")
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except (BrokenPipeError, SystemExit):
        # The reader of stdout has closed it (typer and rich turn that into SystemExit): this is no error.
        # Discard the buffered output; else the interpreter would report it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        code = 0
    except OSError as problem:
        line = one_line(f"{problem.filename or 'output'}: {problem.strerror}")
        _as_data({"kind": "os-error", "message": line, "exit_code": 2})
        _complain(f"onchip: {line}")
        code = 2
    except Exception as problem:
        if isinstance(problem.__cause__, KeyboardInterrupt):
            code = 130  # pressed while Python names the fields of a class, which makes an error of it
        elif not hasattr(problem, "format_message"):
            from onchip.base.crash import CRASHED, log_of

            line = log_of(problem)
            _as_data({"kind": "crash", "message": line, "exit_code": CRASHED})
            _complain(line)
            sys.exit(CRASHED)
        else:
            code = _misused(problem)
    if code == 130:
        # The answer may be complete in its file already: only the printing was interrupted.
        whole = answer.written()
        _complain(
            "onchip: interrupted" if whole is None else f"onchip: interrupted after {whole} was written"
        )
        code = 130 if whole is None else 0
    _settle()
    sys.exit(code if isinstance(code, int) else 0)


def _settle() -> None:
    """Discard output that cannot be written: the interpreter would report it at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _as_data(error: dict[str, Any]) -> None:
    """With `--json`, print errors as data on stdout too, unless the command's document is there already."""
    if not answer.as_data() or answer.printed():
        return
    try:
        print(json.dumps({"error": error}), flush=True)
    except OSError:  # stdout is closed or cannot be written: the line on stderr names the error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(line: str) -> None:
    """Print one line on stderr; ignore that it is closed."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _misused(problem: Any) -> int:
    """Say what is wrong with the arguments, or print the help where there are none; return the exit code."""
    if type(problem).__name__ == "NoArgsIsHelpError":  # the help is the answer
        try:
            print(problem.ctx.get_help(), flush=True)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
    line = one_line(plainly(" ".join(line.strip() for line in problem.format_message().split("\n"))))
    if line:
        _as_data({"kind": "usage-error", "message": line, "exit_code": 2})
        _complain(f"onchip: {line} (see {_command(problem)} --help)")
    return 2


def _command(problem: Any) -> str:
    """Return the command whose help says more: the parser does not say it of every mistake."""
    context = getattr(problem, "ctx", None)
    if context is not None:
        return str(context.command_path)
    named = sys.argv[1] if len(sys.argv) > 1 else ""
    return f"onchip {named}" if named in COMMANDS else "onchip"
