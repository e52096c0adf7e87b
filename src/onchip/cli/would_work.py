"""The same command with a budget that is enough: what a refusal ends with."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from onchip.base.errors import Infeasible

__all__ = ["naming_what_works", "would_work"]


@contextmanager
def naming_what_works() -> Iterator[None]:
    """Add to a refusal the command that would work, where one is known."""
    try:
        yield
    except Infeasible as no:
        raise no.but(would_work=would_work(no, sys.argv[1:])) from None


def would_work(no: Infeasible, arguments: Sequence[str]) -> str:
    """Return the command with enough bytes; empty where it is not known how many are.

    A need that is only a bound gives MR instead, with which all operators run whole.
    """
    enough = no.mr if no.at_least else no.needs
    if enough is None:
        return ""
    rest, given = _without_budget(arguments)
    if no.memory:
        parts = [p for p in re.split(r",(?=\s*[A-Za-z])", given) if p.partition("=")[0].strip() != no.memory]
        budget = ",".join([*filter(None, parts), f"{no.memory}={enough}"])
    else:
        budget = str(enough)
    return shlex.join(["onchip", *rest, "--budget", budget])


def _without_budget(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Return the arguments without `--budget`, and its value."""
    rest, given = list[str](), ""
    words = iter(arguments)
    for word in words:
        if word == "--budget":
            given = next(words, "")
        elif word.startswith("--budget="):
            given = word.partition("=")[2]
        else:
            rest.append(word)
    return rest, given
