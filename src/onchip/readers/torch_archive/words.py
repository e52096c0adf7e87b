"""The words of a `.pt2` archive that torch may receive: some become attributes, or source code."""

from __future__ import annotations

import keyword
import re

from onchip.readers.torch_archive.operators import ARITHMETIC, ATEN

__all__ = [
    "Senseless",
    "check_expression",
    "check_name",
    "check_operator",
    "check_path",
    "check_word",
    "shown",
]


class Senseless(ValueError):
    """A part of the archive is not known; `item` is that part, if one is to blame."""

    def __init__(self, reason: str, item: str | None = None) -> None:
        self.reason, self.item = reason, item
        super().__init__(reason)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,999}")
_PART = r"[A-Za-z0-9_+@/: \-]{1,999}"
_PATH = re.compile(rf"{_PART}(?:\.{_PART}){{0,99}}")
_WORD = re.compile(r"[A-Za-z0-9_ ,.>\-]{0,999}")
_TARGET = re.compile(r"torch\.ops\.aten\.([A-Za-z0-9_]+)\.([A-Za-z][A-Za-z0-9_]*)")
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z]\w*)(?P<called>\()?|-?[0-9]{1,20}(?:\.[0-9]{1,20})?|'[A-Za-z]\w{0,99}'|[(),=])",
    re.ASCII,
)
_FUNCTION_NAMES = """
    Symbol Integer Float Rational Add Mul Pow Mod Max Min Abs Eq Ne Lt Le Gt Ge And Or Not ITE Piecewise
    Equality Unequality StrictLessThan LessThan StrictGreaterThan GreaterThan FloorDiv CleanDiv CeilDiv
    ModularIndexing PythonMod Where LShift RShift PowByNatural FloatPow FloatTrueDiv IntTrueDiv TruncToFloat
    TruncToInt RoundToInt RoundDecimal FloorToInt CeilToInt ToFloat Identity ExprCondPair
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
"""The functions in expressions of sizes, as torch prints them."""

LONGEST_EXPRESSION = 100_000


def shown(given: str) -> str:
    """Return a word of the file as it may appear in a message."""
    return repr(given if len(given) <= 60 else given[:57] + "...")


def check_name(given: str, of: str) -> str:
    """Return the name. Raises `Senseless` unless it can be a Python variable and is nothing else."""
    if _NAME.fullmatch(given) is None or keyword.iskeyword(given) or given.startswith("__"):
        raise Senseless(f"{of} is named {shown(given)}, which is no name")
    return given


def check_path(given: str, of: str) -> str:
    """Return the dotted path of a parameter. Raises `Senseless` if it is none."""
    if _PATH.fullmatch(given) is None or any(part.startswith("__") for part in given.split(".")):
        raise Senseless(f"{of} is named {shown(given)}, which is no path of a parameter")
    return given


def check_word(given: str, of: str) -> str:
    """Return the text if it is no more than a word or two, such as `floor` or `ij,jk->ik`."""
    if _WORD.fullmatch(given) is None or "__" in given:
        raise Senseless(f"{of} is the text {shown(given)}, which no known operator takes")
    return given


def check_expression(given: str) -> None:
    """Raise `Senseless` unless it is a number, a symbol, or torch's form of sums and products of such.

    It is never evaluated: its value at the example's size is stated beside it, and torch receives that.
    """
    at = 0
    while 0 <= at < len(given) <= LONGEST_EXPRESSION:
        token = _TOKEN.match(given, at)
        if token is None or (token["called"] and token["name"] not in _FUNCTIONS) or "__" in token[0]:
            break
        at = token.end()
    if at < len(given) or not given:
        raise Senseless(f"a size is {shown(given)}, neither a whole number nor a plain symbol")


def check_operator(target: str) -> str:
    """Return the target of a call. Raises `Senseless` unless it is a known operator."""
    found = _TARGET.fullmatch(target)
    if target not in ARITHMETIC and (found is None or found[1].rstrip("_") not in ATEN):
        raise Senseless("is an operator that cannot be read")
    return target
