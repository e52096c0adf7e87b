"""Errors in an option's value, in the words of the command line.

The library that reads the arguments has another one check them, and passes its words on.
"""

from __future__ import annotations

import re

__all__ = ["plainly"]

_WORDS = (
    (r"Value error, ", ""),
    (r"Input should be a valid integer\b.*", "is not a whole number"),
    (r"Input should be a valid number\b.*", "is not a number"),
    (r"Input should be (greater than or equal to) (-?[\d.]+)", r"is not \2 or more"),
    (r"Input should be (less than or equal to) (-?[\d.]+)", r"is not \2 or less"),
)


def plainly(message: str) -> str:
    """Return a message of the argument parser without the words of the checker below it."""
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message
