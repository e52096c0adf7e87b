"""The options of running a sweep; the fields are also the command line's flags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onchip.base.errors import UsageError
from onchip.base.options import group, option, options

__all__ = ["SweepOptions"]


@group("Computing")
@options
@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of running a sweep. The fields are also the command line's flags."""

    jobs: int = option(0, "Worker processes on this machine; 0: one for each core.")

    dask: str | None = option(
        None,
        "Address of a Dask scheduler, HOST:PORT: its workers compute the points, each of which has onchip.",
    )

    dask_tls: tuple[str, ...] = option(
        (),
        "Files for TLS with --dask, three times: the authority's certificate, one's own certificate, its "
        "key.",
    )

    time_limit: float | None = option(
        None,
        "Seconds in all; when they are over, the same command goes on where it was.",
    )

    retry: bool = option(False, "Try the points again that failed in an earlier run.")

    trust: tuple[str, ...] = option(
        (),
        "Read this network of the spec, which may run code: `module:function` or `.pt2`; may be repeated.",
    )

    def __post_init__(self) -> None:
        if type(self.jobs) is not int or not 0 <= self.jobs <= 4096:
            raise UsageError(f"{self.jobs!r} is no number of processes from 0 to 4096", item="jobs")
        limit = self.time_limit
        if limit is not None and not (isinstance(limit, int | float) and 0 <= limit < float("inf")):
            raise UsageError(f"{limit!r} is no number of seconds from 0 up", item="time_limit")
        if self.dask is not None and self.jobs:
            raise UsageError("means nothing with --dask: its workers are started elsewhere", item="jobs")
        if self.dask_tls:
            self._check_tls()

    def _check_tls(self) -> None:
        if self.dask is None or not self.dask.startswith("tls://"):
            raise UsageError("is for --dask tls://HOST:PORT", item="dask_tls")
        if len(self.dask_tls) != 3:
            raise UsageError("wants three files: authority, certificate, key", item="dask_tls")
        for file in self.dask_tls:
            if not Path(file).is_file():
                raise UsageError("no such file", where=file, item="dask_tls")
