"""The rows of every tensor that a group works on, band by band.

`walk` goes through the bands by definition. The closed form gives directly the most rows that each buffer
needs, exactly if some band meets no border of a map. docs/fusion-model.md derives both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from onchip.network import bits
from onchip.network.access import Operand
from onchip.network.windows import Window
from onchip.planners.fusion.problem import FusionProblem

__all__ = ["Bands", "bands_of", "buffer_rows", "halo_rows", "overlaps", "walk", "walked_rows"]


@dataclass(frozen=True, slots=True)
class Bands:
    """The cut of a group's tensors into bands of rows; mappings are by tensor id.

    `tensors` has producers before readers. A band is `t` rows of the coarsest map and `scale[x] * t` rows of
    x; at its end x has been made at most `ahead[x]` rows further than its own band (f; None: all its rows),
    and at least `surely[x]` rows while some reader wants more (v), `begins[x]` for the least of its readers
    (w). They differ where a band can end before anything of a map is needed.
    `readers[x]` are the windows onto x inside the group, with the tensor that is made through them. Bands of
    `longest` rows are a single one.
    """

    members: int
    tensors: tuple[int, ...]
    external: int
    escaping: int
    scale: Mapping[int, int]
    ahead: Mapping[int, int | None]
    surely: Mapping[int, int]
    begins: Mapping[int, int]
    readers: Mapping[int, tuple[tuple[Operand, int], ...]]
    longest: int

    def count(self, rows: Mapping[int, int], t: int) -> int:
        """Return the bands of t rows in an image (k); `rows` are the rows of every map."""
        return max(
            (
                -(-rows[x] // (self.scale[x] * t))
                for x in bits(self.escaping)
                if rows[x] > 1 and self.ahead[x] is not None
            ),
            default=1,
        )


def bands_of(problem: FusionProblem, members: int) -> Bands | None:
    """Return the bands of a group; None with an opaque operator, or strides that do not fit together."""
    ops = sorted(bits(members), key=problem.position.__getitem__)
    if any(problem.operators[v].form == "opaque" for v in ops):
        return None
    external, escaping = problem.external(members), problem.escaping(members)
    tensors = (*bits(external), *(t for v in ops for t in problem.operators[v].outputs))
    readers: dict[int, list[tuple[Operand, int]]] = {x: [] for x in tensors}
    for v in ops:
        op = problem.operators[v]
        for operand in op.operands:
            readers[operand.tensor] += [(operand, y) for y in op.outputs]
    rows = rows_of(problem, tensors)
    scale = _scales(tensors, readers, rows)
    if scale is None:
        return None
    ahead: dict[int, int | None] = {}
    surely: dict[int, int] = {}
    begins: dict[int, int] = {}
    for x in reversed(tensors):
        least = [_surely(operand.rows, scale[y], surely[y]) for operand, y in readers[x]]
        leaves = [0] if escaping >> x & 1 else []
        surely[x], begins[x] = max(least + leaves), min(leaves or least)
        reach: list[int | None] = [0] if escaping >> x & 1 else []
        for operand, y in readers[x]:
            f, window = ahead[y], operand.rows
            far = f is None or operand.whole or (rows[y] == 1 and rows[x] > 1)
            reach.append(None if f is None or far else window.stride * (f - 1) - window.before + window.span)
        known = [f for f in reach if f is not None]
        ahead[x] = max(known) if len(known) == len(reach) else None
    longest = max(
        (-(-rows[x] // scale[x]) for x in bits(escaping) if rows[x] > 1 and ahead[x] is not None), default=1
    )
    return Bands(
        members,
        tensors,
        external,
        escaping,
        scale,
        ahead,
        surely,
        begins,
        {x: tuple(r) for x, r in readers.items()},
        longest,
    )


def _surely(window: Window, scale: int, made: int) -> int:
    """Return v of an operand for one reader: nothing of it is needed before the reader needs anything."""
    needed = window.stride * (made - 1) - window.before + window.span
    return needed if scale + made >= 1 else min(needed, window.stride * made)


def rows_of(problem: FusionProblem, tensors: Sequence[int]) -> dict[int, int]:
    """Return the rows of each tensor's map."""
    result = {}
    for x in tensors:
        shape = problem.maps[x]
        assert shape is not None
        result[x] = shape.rows
    return result


def _scales(
    tensors: Sequence[int], readers: Mapping[int, list[tuple[Operand, int]]], rows: Mapping[int, int]
) -> dict[int, int] | None:
    """Return the smallest whole scales with A_in = A_out * stride along every window, None if there are none.

    Windows that read all rows, and maps of one row, bind nothing; parts that only they connect are scaled
    separately.
    """
    bound: dict[int, list[tuple[int, Fraction]]] = {x: [] for x in tensors}
    for x in tensors:
        for operand, y in readers[x]:
            if not operand.whole and rows[x] > 1 and rows[y] > 1:
                bound[x].append((y, Fraction(1, operand.rows.stride)))
                bound[y].append((x, Fraction(operand.rows.stride)))
    scale: dict[int, int] = {}
    for start in tensors:
        if start in scale:
            continue
        part = {start: Fraction(1)}
        waiting = [start]
        while waiting:
            x = waiting.pop()
            for y, factor in bound[x]:
                if y not in part:
                    part[y] = part[x] * factor
                    waiting.append(y)
                elif part[y] != part[x] * factor:
                    return None
        common = lcm(*(f.denominator for f in part.values()))
        whole = {x: int(f * common) for x, f in part.items()}
        divisor = gcd(*whole.values())
        scale |= {x: a // divisor for x, a in whole.items()}
    return scale


def overlaps(problem: FusionProblem, bands: Bands, streamed: int) -> dict[int, int | None]:
    """Return for each tensor the rows beyond its band's own that its buffer needs (m); None: all its rows.

    `streamed` is the bitset of tensors held a few channels at a time (S): their overlaps are made again, so
    their inputs have to reach further back.
    """
    halo = problem.options.halo
    back: dict[int, int] = {}  # g: a band begins at row scale * t * j + g
    result: dict[int, int | None] = {}
    for x in reversed(bands.tensors):
        f = bands.ahead[x]
        if halo == "paper":
            result[x] = None if f is None else _paper(bands, result, x)
            continue
        if f is None:
            result[x] = None
            continue
        starts = [bands.begins[x]]
        for operand, y in bands.readers[x]:
            anew = halo == "recompute" or streamed >> y & 1
            window = operand.rows
            starts.append(window.stride * (back[y] if anew else bands.surely[y]) - window.before)
        back[x] = min(starts)
        result[x] = max(f, f - back[x])
    return result


def _paper(bands: Bands, known: Mapping[int, int | None], x: int) -> int:
    """Return R_h of eq. 4 without its band: span - stride and the reader's own, strided."""
    reach = [0] if bands.escaping >> x & 1 else []
    for operand, y in bands.readers[x]:
        m, window = known[y], operand.rows
        assert m is not None
        reach.append(window.stride * m + window.span - window.stride)
    return max(reach)


def buffer_rows(
    problem: FusionProblem, bands: Bands, overlap: Mapping[int, int | None], t: int
) -> dict[int, int]:
    """Return rows of every buffer for bands of t rows, in closed form: an upper bound at borders of maps."""
    rows = rows_of(problem, bands.tensors)
    single = bands.count(rows, t) == 1
    result = {}
    for x in bands.tensors:
        more = bands.ahead[x] if single else overlap[x]
        whole = more is None or rows[x] == 1
        result[x] = rows[x] if whole else max(0, min(rows[x], bands.scale[x] * t + (more or 0)))
    return result


def walk(
    problem: FusionProblem, bands: Bands, streamed: int, t: int
) -> Iterator[dict[int, tuple[int, int, int]]]:
    """Yield for each band, by tensor, (before, low, high): [low, high) are made, [0, before) existed before.

    By definition, not by the closed form: rows are clamped to their maps, and windows without outputs need
    nothing.
    """
    rows = rows_of(problem, bands.tensors)
    before = dict.fromkeys(bands.tensors, 0)
    if problem.options.halo == "recompute":
        streamed = (1 << len(problem.maps)) - 1
    for j in range(bands.count(rows, t)):
        high: dict[int, int] = {}
        for x in reversed(bands.tensors):
            needs = [operand.rows.end(high[y]) for operand, y in bands.readers[x]]
            if bands.escaping >> x & 1:
                whole = bands.ahead[x] is None
                needs.append(rows[x] if whole else min(rows[x], (j + 1) * bands.scale[x] * t))
            high[x] = max(needs)
        low: dict[int, int] = {}
        begins: dict[int, int] = {}
        for x in reversed(bands.tensors):
            lows = [before[x]]
            for operand, y in bands.readers[x]:
                if begins[y] < high[y]:
                    lows.append(0 if operand.whole else operand.rows.start(begins[y]))
            low[x] = min(lows)
            begins[x] = low[x] if streamed >> x & 1 else before[x]
        yield {x: (before[x], low[x], high[x]) for x in bands.tensors}
        before = high


def walked_rows(problem: FusionProblem, bands: Bands, streamed: int, t: int) -> dict[int, int]:
    """Return the rows of every tensor's buffer when a band has t rows: the most that any band needs."""
    if problem.options.halo != "lines":
        return buffer_rows(problem, bands, overlaps(problem, bands, streamed), t)
    result = dict.fromkeys(bands.tensors, 0)
    for band in walk(problem, bands, streamed, t):
        for x, (_, low, high) in band.items():
            result[x] = max(result[x], high - low)
    return result


def halo_rows(problem: FusionProblem, bands: Bands, streamed: int, t: int) -> dict[int, int]:
    """Return for each external input that is streamed the rows of an image that cross again."""
    again = (1 << len(problem.maps)) - 1 if problem.options.halo == "recompute" else streamed
    inputs = tuple(bits(bands.external & again))
    result = dict.fromkeys(inputs, 0)
    if inputs:
        for band in walk(problem, bands, streamed, t):
            for x in inputs:
                before, low, _ = band[x]
                result[x] += max(0, before - low)
    return result
