"""A record for each exhibit of the papers: figure, table, algorithm, numbered equation, theorem, or sentence
with a figure. The records of a paper are in the module of its name beside this one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["SECONDS", "Exhibit", "Outcome"]

Outcome = Literal["agrees", "differs", "not explained", "absent"]
"""`differs`: with a cause that was measured by changing that one thing. `not explained`: the cause was
looked for and not found. `absent`: nothing of ours stands beside it."""


SECONDS = 10.0
"""The factor within which seconds of two machines are one figure.

What counts is what the paper's own method takes here, on its problem and, where no start is named, from
nothing, in CPU seconds. A limit agrees where that is within it in every case, a figure where it is at most
`SECONDS` times as long or as short, a comparison where the same one is slower. Where that method was not run
so here, or does not end, the claim is not explained, whatever a method of ours takes.
"""


@dataclass(frozen=True)
class Exhibit:
    """One exhibit of a paper, and what of ours stands beside it.

    `made_by` is a command below `benchmarks/` (script and section, as `paper/vmcu.py --only fig7`); where
    the exhibit is implemented and not evaluated (an algorithm, an equation), the module of `onchip`.
    `page` is a page of the documentation with the anchor of its heading. `test` names a test as pytest does.
    `reason` says in one sentence what was changed to find the cause of a difference, and what came; for what
    agrees it may say how far.
    """

    name: str
    shows: str
    made_by: str = ""
    page: str = ""
    test: str = ""
    outcome: Outcome = "absent"
    reason: str = ""
    parts: tuple[str, ...] = field(default=(), kw_only=True)
    """Sections of the paper's script that print it (`--list`); by default the ones that `made_by` names."""

    seconds: bool = field(default=False, kw_only=True)
    """Whether its claim is on how long a search takes: judged by the rule of `SECONDS`."""

    @property
    def complete(self) -> bool:
        """Implemented, printed, shown, tested, and either the same or different for a known reason."""
        stands = bool(self.made_by and self.page and self.test)
        return stands and (self.outcome == "agrees" or (self.outcome == "differs" and bool(self.reason)))
