"""SVG as text: elements whose attributes and words are escaped, numbers rounded to a tenth of a pixel."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

__all__ = ["NARROW", "element", "fitted", "number", "picture", "title"]

NARROW = 0.56
"""Width of a character of the page's type over its size: enough to tell what fits."""


def element(name: str, *inside: str, **attributes: str | float | None) -> Markup:
    """Return `<name key="value">inside</name>`.

    `class_` is `class`, `data_x` is `data-x`, and None leaves a key out.
    """
    text = ""
    for key, value in attributes.items():
        if value is not None:
            shown = escape(value) if isinstance(value, str) else number(value)
            text += f' {key.rstrip("_").replace("_", "-")}="{shown}"'
    if not inside:
        return Markup(f"<{name}{text}/>")
    return Markup(f"<{name}{text}>{''.join(str(escape(part)) for part in inside)}</{name}>")


def title(words: str) -> Markup:
    """Return an element's description, for readers of the picture without the page's script."""
    return element("title", words)


def picture(width: float, height: float, label: str, inside: Iterable[str], *, whole: bool = True) -> Markup:
    """Return a picture, named for screen readers: as wide as the page or, unless `whole`, its own width."""
    return element(
        "svg",
        Markup("").join(inside) or Markup(" "),
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_="sheet whole" if whole else "sheet",
    )


def number(value: float) -> str:
    """Return the number with at most one digit after the point: a tenth of a pixel."""
    short = f"{value:.1f}"
    return short[:-2] if short.endswith(".0") else short


def fitted(text: str, width: float, size: float) -> str:
    """Return the text as far as it fits `width` at a type of `size`; empty where that would be no word."""
    room = int(width / (size * NARROW))
    if len(text) <= room:
        return text
    if room < 4:
        return ""
    head = (room - 1) // 3
    return text[:head] + "\N{HORIZONTAL ELLIPSIS}" + text[len(text) - (room - 1 - head) :]
