"""Which format of a schedule of several networks is written by which module."""

from __future__ import annotations

from importlib import import_module

from onchip.corun.judged import Judged
from onchip.errors import UsageError

__all__ = ["SCHEDULE_FORMATS", "export_schedule"]

SCHEDULE_FORMATS = {
    "tensorrt": "onchip.export.tensorrt",
    "trtexec": "onchip.export.trtexec",
    "order": "onchip.export.order",
    "json": "onchip.export.schedule_table",
    "trace": "onchip.export.schedule_trace",
}
"""The module of each format, with `write(made) -> str`."""


def export_schedule(made: Judged, to: str) -> bytes:
    """A judged schedule in another format (a name in `SCHEDULE_FORMATS`), as the bytes of a file.

    Raises `UsageError` for an unknown format and for a schedule that the format cannot say.
    """
    if to not in SCHEDULE_FORMATS:
        raise UsageError(f"{to!r} is none of {', '.join(SCHEDULE_FORMATS)} for a schedule", item="--to")
    written: str = import_module(SCHEDULE_FORMATS[to]).write(made)
    return written.encode()
