"""Sizes in bytes, as people write them. Nothing is guessed: a suffix has exactly its meaning."""

from __future__ import annotations

import re

from onchip.base.errors import UsageError

__all__ = ["MAX_BYTES", "exact", "parse_bytes", "short_size"]

MAX_BYTES = 1 << 40
"""The largest size (1 TiB) of one tensor, budget or memory; a larger one is a mistake."""

_FACTOR = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
}  # fmt: skip
# Commas only between thousands: elsewhere `1,5` means one and a half. No size needs more than 30 digits.
_WHOLE = r"[0-9]{1,3}(?:,[0-9]{3}){1,9}|[0-9]{1,30}|[0-9]{1,3}(?:_[0-9]{3}){1,9}"
_SIZE = re.compile(rf"\s*({_WHOLE})(\.[0-9]{{1,30}})?\s*([A-Za-z]*)\s*", re.ASCII)


def parse_bytes(text: str, *, option: str = "size") -> int:
    """Return a size in bytes from text: `65536`, `64KiB`, `1.5 MB`.

    KB, MB and GB are powers of 1000; KiB, MiB and GiB powers of 1024 (case does not matter). `,` or `_` may
    separate thousands. Raises `UsageError` naming `option` for anything else, for a fraction of a byte, and
    beyond `MAX_BYTES`.
    """
    match = _SIZE.fullmatch(text)
    shown = repr(text if len(text) <= 40 else text[:40] + "...")
    if match is None or match[3].upper() not in _FACTOR:
        raise UsageError(
            f"{shown} is not a size; write bytes or a number with KB, MB, GB, KiB, MiB or GiB", item=option
        )
    whole, fraction = match[1].replace(",", "").replace("_", ""), (match[2] or ".0")[1:]
    factor = _FACTOR[match[3].upper()]
    bytes_, rest = divmod(int(whole + fraction) * factor, int("1" + "0" * len(fraction)))
    if rest:
        raise UsageError(f"{shown} is not a whole number of bytes", item=option)
    if bytes_ > MAX_BYTES:
        raise UsageError(f"{shown} is beyond the largest size accepted, 1 TiB", item=option)
    return bytes_


def short_size(n: int) -> str:
    """Return three digits in binary units, as scratchpads are measured: `2.38 MiB`."""
    if n < 1024:
        return f"{n:,} B"
    value, unit = n / 1024, "KiB"
    for bigger in ("MiB", "GiB", "TiB"):
        if value < 1023.5:
            break
        value, unit = value / 1024, bigger
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {unit}"


def exact(n: int) -> str:
    """Return every byte, and the short form where it helps: `2,496,960 B (2.38 MiB)`."""
    return f"{n:,} B" if n < 10_240 else f"{n:,} B ({short_size(n)})"
