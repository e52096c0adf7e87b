"""Line breaks between a graph's columns: the largest scale, the fewest links cut, even lines."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["broken"]

MANY = 500
"""The number of columns from which on lines are filled greedily."""

CUT = 0.04
"""The cost of one cut link, in squares of the empty part of a line."""


def broken(
    widths: Sequence[float],
    heights: Sequence[float],
    links: Sequence[tuple[int, int, int]],
    room: tuple[float, float],
    gutter: float,
) -> list[tuple[int, int]]:
    """Return lines as [first column, end), chosen so that they fit `room` (width, height) at the largest
    scale, and as few as possible where they fit unscaled.

    `links` are (column, later column, net).
    """
    cut = _cuts(len(widths), links)
    total, best, largest = sum(widths), [(0, len(widths))], 0.0
    count = 1
    while count <= len(widths):
        at_most = max(max(widths), total / count * (1.0 if count == 1 else 1.12))
        lines = (_filled if len(widths) > MANY else _even)(widths, cut, at_most)
        across = max(sum(widths[a:b]) for a, b in lines)
        down = sum(max(heights[a:b]) + gutter for a, b in lines)
        scale = min(room[0] / across, room[1] / down, 1.0)
        if scale > largest * 1.001:
            best, largest = lines, scale
        elif down * room[0] > 4 * across * room[1]:
            break  # far too high already
        count = count + 1 if count < 24 else count + count // 8
    return best


def _cuts(count: int, links: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return, for each column, the nets that a break before it would cut."""
    spans: dict[int, tuple[int, int]] = {}
    for a, b, net in links:
        first, last = spans.get(net, (a, b))
        spans[net] = min(first, a), max(last, b)
    change = [0] * (count + 1)
    for first, last in spans.values():
        change[first + 1] += 1
        change[last + 1] -= 1
    found, open_ = [], 0
    for c in range(count):
        open_ += change[c]
        found.append(open_)
    return found


def _filled(widths: Sequence[float], cut: Sequence[int], at_most: float) -> list[tuple[int, int]]:
    lines, first, used = [], 0, 0.0
    for c, width in enumerate(widths):
        if used + width > at_most and c > first:
            lines.append((first, c))
            first, used = c, 0.0
        used += width
    return [*lines, (first, len(widths))]


def _even(widths: Sequence[float], cut: Sequence[int], at_most: float) -> list[tuple[int, int]]:
    """Return the breaks of least cost, by dynamic programming over their positions."""
    n = len(widths)
    cost = [0.0] + [float("inf")] * n
    came = [0] * (n + 1)
    for end in range(1, n + 1):
        used = 0.0
        for first in range(end - 1, -1, -1):
            used += widths[first]
            if used > at_most and first < end - 1:
                break
            empty = max(0.0, 1 - used / at_most)
            this = cost[first] + empty**2 * (0.6 if end == n else 1) + CUT * (cut[first] if first else 0)
            if this < cost[end]:
                cost[end], came[end] = this, first
    lines = []
    end = n
    while end:
        lines.append((came[end], end))
        end = came[end]
    return lines[::-1]
