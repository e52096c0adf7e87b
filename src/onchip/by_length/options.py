"""The options of planning for many lengths, in addition to those of reading and of placement."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onchip.base.errors import UsageError
from onchip.base.options import group, option, options

__all__ = ["LengthOptions", "SessionOptions"]

MOST = 1 << 20
"""The most lengths of one table."""


@group("Prompt")
@options
@dataclass(frozen=True, slots=True)
class SessionOptions:
    """The options of planning a prompt and the steps behind it, in addition to those of the steps."""

    prompt_dims: str = option(
        "",
        "Values for symbolic dimensions of the prompt, `words=40`; `--dims` and `--length` are the steps'.",
    )

    begins: tuple[str, ...] = option(
        (),
        "Outputs of the prompt that begin the caches, in the order of --state; without, those of the same "
        "names as the steps'. May be given several times.",
    )

    def __post_init__(self) -> None:
        if not isinstance(self.prompt_dims, str):
            raise UsageError(f"{self.prompt_dims!r} is no text like words=40", item="prompt_dims")
        begins = self.begins
        if not isinstance(begins, tuple) or not all(type(name) is str for name in begins):
            raise UsageError(f"{begins!r} is no tuple of texts", item="begins")


@group("Lengths")
@options
@dataclass(frozen=True, slots=True)
class LengthOptions:
    """The options of planning for many lengths. The fields are also the command line's flags."""

    length: str = option(
        "",
        "The open dimension and its lengths, `past=1..2048`.",
    )

    slack: float = option(
        0.0,
        "Percent of DRAM bytes that a plan may move beyond the best of a length: fewer plans for all.",
    )

    read: int = option(
        256,
        "The most lengths at which the model is read to see that its tensors grow evenly. Proofs name it.",
    )

    def __post_init__(self) -> None:
        self.lengths()
        if not (isinstance(self.slack, int | float) and 0 <= self.slack <= 100):
            raise UsageError(f"{self.slack!r} is no percentage from 0 to 100", item="slack")
        if type(self.read) is not int or not 2 <= self.read <= MOST:
            raise UsageError(f"{self.read!r} is no number of lengths from 2 to {MOST:,}", item="read")

    def lengths(self) -> tuple[str, int, int]:
        """Return the dimension's name, the first length and the last one."""
        match = re.fullmatch(
            r"(?P<name>[^=,]+)=(?P<first>[0-9]{1,7})\.\.(?P<last>[0-9]{1,7})", str(self.length)
        )
        if not self.length:
            raise UsageError("is needed: NAME=FIRST..LAST, as past=1..2048", item="--length")
        if match is None:
            raise UsageError(f"{self.length!r} is not NAME=FIRST..LAST, as past=1..2048", item="--length")
        first, last = int(match["first"]), int(match["last"])
        if not 1 <= first <= last <= MOST:
            raise UsageError(f"{first:,} to {last:,} are no lengths from 1 to {MOST:,}", item="--length")
        return match["name"], first, last
