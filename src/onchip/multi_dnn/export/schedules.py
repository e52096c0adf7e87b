"""The module of each format of a schedule of several networks."""

from __future__ import annotations

from importlib import import_module

from onchip.base.errors import UsageError
from onchip.multi_dnn.judged import Judged

__all__ = ["SCHEDULE_FORMATS", "export_schedule"]

SCHEDULE_FORMATS = {
    "tensorrt": "onchip.multi_dnn.export.tensorrt",
    "trtexec": "onchip.multi_dnn.export.trtexec",
    "order": "onchip.multi_dnn.export.order",
    "json": "onchip.multi_dnn.export.schedule_table",
    "trace": "onchip.multi_dnn.export.schedule_trace",
}
"""The module of each format, with `write(made) -> str`."""


def export_schedule(made: Judged, to: str) -> bytes:
    """Return a judged schedule in another format (a name in `SCHEDULE_FORMATS`), as the bytes of a file.

    Raises `UsageError` for an unknown format and for a schedule that the format cannot express.
    """
    if to not in SCHEDULE_FORMATS:
        raise UsageError(f"{to!r} is none of {', '.join(SCHEDULE_FORMATS)} for a schedule", item="--to")
    written: str = import_module(SCHEDULE_FORMATS[to]).write(made)
    return written.encode()
