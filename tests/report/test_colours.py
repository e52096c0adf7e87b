"""The colours of a report can be told apart by people who see fewer of them."""

from __future__ import annotations

import re

import pytest

from onchip.report.shell import asset

SEEN_BY = {  # Machado, Oliveira and Fernandes (2009), severity 1
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.1523, 1.0526, -0.2049), (0.1145, 0.7863, 0.0992), (-0.0039, -0.0481, 1.0520)),
    "deuteranopia": ((0.3673, 0.8606, -0.2280), (0.2801, 0.6725, 0.0474), (-0.0118, 0.0429, 0.9689)),
    "tritanopia": ((1.2555, -0.0767, -0.1788), (-0.0784, 0.9308, 0.1476), (0.0047, 0.6914, 0.3039)),
}

TOGETHER = [
    ("compulsory", "spill", "reload", "weights"),
    ("input", "activation-0", "output", "spilled"),
]
"""Colours that stand side by side and mean different things."""

LEAST = 9.0
"""In units of CIE Lab; two or three are a just noticeable difference of large areas."""


def linear(hexadecimal: str) -> tuple[float, ...]:
    parts = (int(hexadecimal[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)


def lab(rgb: tuple[float, ...]) -> tuple[float, float, float]:
    def f(t: float) -> float:
        return t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116

    r, g, b = (min(1, max(0, c)) for c in rgb)
    x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505)
    y = f(0.2126 * r + 0.7152 * g + 0.0722 * b)
    z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def colours(theme: int) -> dict[str, str]:
    """The page's colours: of the light theme 0 or the dark one 1."""
    found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", asset("page.css"))
    return {name: pair[theme] for name, *pair in found}


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("names", TOGETHER)
def test_colours_that_stand_together_differ(names: tuple[str, ...], eyes: str, theme: int) -> None:
    known = colours(theme)
    seen = {}
    for name in names:
        rgb = linear(known[name])
        seen[name] = lab(tuple(sum(m * c for m, c in zip(row, rgb, strict=True)) for row in SEEN_BY[eyes]))
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            apart = sum((p - q) ** 2 for p, q in zip(seen[a], seen[b], strict=True)) ** 0.5
            assert apart >= LEAST, f"{a} and {b} are {apart:.1f} apart"


@pytest.mark.parametrize("theme", [0, 1])
def test_text_stands_out_from_what_it_is_on(theme: int) -> None:
    known = colours(theme)

    def light(name: str) -> float:
        r, g, b = linear(known[name])
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    for text, ground in [
        ("ink", "paper"),
        ("quiet", "paper"),
        ("focus", "paper"),
        ("on-fill", "activation-0"),
    ]:
        low, high = sorted((light(text), light(ground)))
        assert (high + 0.05) / (low + 0.05) >= 4.5, text  # WCAG 2.2, level AA
