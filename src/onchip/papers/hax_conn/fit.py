"""The three-region model's constants from a measured matrix: one unit's speed at many bandwidths.

For given region bounds (`normal_bw`, `intensive_bw`) and start of the normal region's line (`tbwdc`, `cbp`),
the loss of speed is linear in `mrmc` and `rate`, which least squares then give directly. The four are
therefore searched: the first two among the measured bandwidths, since values between two of them are
indistinguishable, the others on grids that are refined around the best.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from onchip.base.errors import ProfileError
from onchip.base.files import read_bytes
from onchip.machines.contention import LEAST_SPEED, Contention

__all__ = ["Fit", "Sample", "fit_contention", "read_matrix"]

_Array = npt.NDArray[np.float64]

GRID = 13
"""Points a side of each grid of `tbwdc` and `cbp`."""

ROUNDS = 8
"""The number of refinements of a grid around its best point, to about a third each time."""

MAX_SAMPLES = 10_000
MAX_LEVELS = 40
"""More than any practical measurement; it bounds time and memory."""

KEPT = 6
"""The number of pairs of region bounds to refine."""


class Sample(NamedTuple):
    """A measurement: the group's requested GB/s, the others' GB/s, and the percent of its speed it kept."""

    requested: float
    external: float
    percent: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The constants found, and the root of the mean squared error of the speeds, in percent of speed."""

    constants: Contention
    rms: float


def read_matrix(path: Path) -> tuple[Sample, ...]:
    """Return the measurements in a CSV matrix.

    The first row has the external bandwidths, the first column the requested ones, both in GB/s (the corner
    is ignored); a cell is the percent of its speed alone that the unit kept. Empty cells were not measured.
    Raises `ProfileError` naming the file, row and column of an invalid cell.
    """
    where = str(path)
    try:
        lines = [
            *csv.reader(io.StringIO(read_bytes(path, error=ProfileError).decode("utf-8-sig")), strict=True)
        ]
    except (UnicodeDecodeError, csv.Error) as problem:
        raise ProfileError(f"is no CSV ({problem})", where=where) from None
    lines = [line for line in lines if line]
    if len(lines) < 2 or len(lines[0]) < 2:
        raise ProfileError(
            "must have a row of external bandwidths, and a row for each requested one", where=where
        )

    def number(text: str, item: str, most: float) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not (isfinite(value) and 0 <= value <= most):
            raise ProfileError(
                f"{text.strip()[:40]!r} is not a number from 0 to {most:g}", where=where, item=item
            )
        return value

    external = [number(text, f"row 1, column {n}", 1e6) for n, text in enumerate(lines[0][1:], 2)]
    samples = []
    for n, line in enumerate(lines[1:], 2):
        if len(line) != len(lines[0]):
            raise ProfileError(f"has {len(line)} cells, not {len(lines[0])}", where=where, item=f"row {n}")
        requested = number(line[0], f"row {n}, column 1", 1e6)
        samples += [
            Sample(requested, y, number(text, f"row {n}, column {m}", 150))
            for m, (y, text) in enumerate(zip(external, line[1:], strict=True), 2)
            if text.strip()
        ]
    return tuple(samples)


def fit_contention(samples: Sequence[Sample], peak: float) -> Fit:
    """Return the constants that explain `samples` best, by least squares of the speed.

    `peak` is the memory's bandwidth in GB/s.
    Raises `ProfileError` for fewer than six samples (there are six constants) or more than `MAX_SAMPLES`.
    """
    if len(samples) > MAX_SAMPLES:
        raise ProfileError(f"{len(samples):,} measurements are more than {MAX_SAMPLES:,}", where="contention")
    if len(samples) < 6:
        raise ProfileError(
            f"{len(samples)} measurements are too few to fit six constants", where="contention"
        )
    x, y, percent = (np.array(column, dtype=np.float64) for column in zip(*samples, strict=True))
    loss = 100.0 - percent
    inner = np.unique(x)[1:]
    if len(inner) > MAX_LEVELS:
        inner = inner[np.linspace(0, len(inner) - 1, MAX_LEVELS).astype(int)]
    levels = [0.0, *inner.tolist(), float(max(peak, x.max()) * 2)]
    most = float(max(y.max(), 1e-9))
    wide = ((0.0, float(x.max()) + most), (most / GRID, most))
    coarse = []
    for n, normal in enumerate(levels):
        for intensive in levels[n:]:
            found = _grid(x, y, loss, peak, normal, intensive, wide)
            coarse.append((found[0], normal, intensive, found))
    coarse.sort(key=lambda row: row[:3])
    best: tuple[float, Contention] | None = None
    for _, normal, intensive, found in coarse[:KEPT]:
        ranges = wide
        for _ in range(ROUNDS):
            ranges = _around(found[1], found[2], ranges)
            finer = _grid(x, y, loss, peak, normal, intensive, ranges)
            found = min(found, finer)
        error, tbwdc, cbp, mrmc, rate = found
        if best is None or error < best[0]:
            best = error, Contention(normal, intensive, mrmc, tbwdc, cbp, rate)
    assert best is not None
    speed = np.array([best[1].speed(s.requested, s.external, peak) for s in samples])
    return Fit(best[1], float(np.sqrt(np.mean((speed - percent) ** 2))))


_Range = tuple[float, float]


def _around(tbwdc: float, cbp: float, ranges: tuple[_Range, _Range]) -> tuple[_Range, _Range]:
    """Return a third of each range, centred at the best point."""
    reach = [(high - low) / 6 for low, high in ranges]
    return (max(0.0, tbwdc - reach[0]), tbwdc + reach[0]), (max(0.0, cbp - reach[1]), cbp + reach[1])


def _grid(
    x: _Array,
    y: _Array,
    loss: _Array,
    peak: float,
    normal: float,
    intensive: float,
    ranges: tuple[_Range, _Range],
) -> tuple[float, float, float, float, float]:
    """Return the least squared error over a grid of (tbwdc, cbp): (error, tbwdc, cbp, mrmc, rate)."""
    tbwdc = np.linspace(*ranges[0], GRID)[:, None, None]
    cbp = np.linspace(*ranges[1], GRID)[None, :, None]
    outside = np.minimum(y, cbp)
    beyond = np.maximum(0.0, x + outside - np.maximum(tbwdc, x))
    # The factor of `rate`, per sample; that of `mrmc` is y / peak.
    line = np.where(x >= intensive, outside, np.where(x >= normal, beyond, 0.0))
    minor = np.broadcast_to(y / peak, line.shape)
    aa, ab, bb = (minor * minor).sum(-1), (minor * line).sum(-1), (line * line).sum(-1)
    al, bl = (minor * loss).sum(-1), (line * loss).sum(-1)
    tiny = 1e-12
    determinant = aa * bb - ab * ab
    regular = determinant > tiny * np.maximum(aa * bb, tiny)
    safe = np.where(regular, determinant, 1.0)
    # Both constants are at least 0: the best lies inside, or on one of the two axes.
    inside = ((al * bb - bl * ab) / safe, (bl * aa - al * ab) / safe)
    fine = regular & (inside[0] >= 0) & (inside[1] >= 0)
    zero = np.zeros_like(aa)
    axes = [
        (np.where(fine, inside[0], 0.0), np.where(fine, inside[1], 0.0)),
        (np.maximum(al / np.maximum(aa, tiny), 0.0), zero),
        (zero, np.maximum(bl / np.maximum(bb, tiny), 0.0)),
    ]
    answers = []
    for mrmc, rate in axes:
        predicted = np.minimum(mrmc[..., None] * minor + rate[..., None] * line, 100.0 - LEAST_SPEED)
        error = ((predicted - loss) ** 2).sum(-1)
        i, j = np.unravel_index(int(np.argmin(error)), error.shape)
        answers.append(
            (
                float(error[i, j]),
                float(tbwdc[i, 0, 0]),
                float(cbp[0, j, 0]),
                float(mrmc[i, j]),
                float(rate[i, j]),
            )
        )
    return min(answers)
