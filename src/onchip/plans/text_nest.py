"""The nest of a group in the text form: a block of lines behind the group's own, from `nest` to its `end`.

nest keep z
  for 2 over up:1 down:2 keep A:2 B:3@1/0
    run up slices 2:1 0:1 array 2 | 0 1
    run down slices 1:1 0:1 over h
  end
end

A name that is kept may have its copies behind a colon, and behind these its channels: `:2@LOAD/STORE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onchip.plans.nest import COUNTED, MOST_DEEP, Leaf, Loop, Nest, Ways
from onchip.plans.text_words import Word, counted, counts, integer, names, word, words

__all__ = ["NestBlock", "nest_lines"]

_LEAF = ("slices", "over", "array")
_LOOP = ("over", "keep", "ring")


def nest_lines(nest: Nest) -> list[str]:
    """Return the lines of a nest, from `nest` to `end`."""
    beside = " beside" if nest.beside else ""
    return [f"  nest{beside}{_kept(nest.keep, nest.ways)}", *_body(nest.body, "    "), "  end"]


def _body(body: Sequence[Loop | Leaf], indent: str) -> list[str]:
    found = []
    for item in body:
        if isinstance(item, Leaf):
            line = f"{indent}run {word(item.operator)}"
            line += "".join(
                f" {one}" for one in ("slices", *(f"{a}:{n}" for a, n in item.slices)) if item.slices
            )
            line += "" if item.over is None else f" over {word(item.over, _LEAF)}"
            sides = " | ".join(" ".join(map(str, side)) for side in item.array)
            found.append(f"{line} array {sides}".rstrip() if item.array else line)
        else:
            over = f" {counted(item.over)}" if item.over else ""
            lists = _kept(item.keep, item.ways) + _names("ring", item.ring)
            found.append(f"{indent}for {item.tile} over{over}{lists}")
            found += [*_body(item.body, indent + "  "), f"{indent}end"]
    return found


def _names(key: str, listed: Sequence[str]) -> str:
    return f" {key}{words(listed, _LOOP)}" if listed else ""


def _kept(listed: Sequence[str], ways: Ways) -> str:
    if not ways:
        return _names("keep", listed)
    copies, loads, stores, late = (dict(getattr(ways, key)) for key in COUNTED)
    found = " keep"
    for name in listed:
        number = str(copies[name]) if name in copies else ""
        if name in loads or name in stores:
            number += f"@{loads.get(name, '')}" + (f"/{stores[name]}" if name in stores else "")
        number += f"+{late[name]}" if name in late else ""
        found += f" {word(name, _LOOP)}" + (f":{number}" if number else "")
    return found


@dataclass
class _Open:
    """A loop whose `end` has not come; the outermost is the nest, without `over`."""

    keep: tuple[str, ...]
    ways: Ways
    ring: tuple[str, ...] = ()
    over: tuple[tuple[str, int], ...] = ()
    tile: int = 0
    body: list[Loop | Leaf] = field(default_factory=list)


class NestBlock:
    """A nest that is being read line by line. Raises `ValueError` with the reason for a wrong line."""

    def __init__(self, first: Sequence[Word]) -> None:
        """Begin with the words behind `nest`."""
        self.beside = first[:1] == [("beside", False)]
        lists = _lists(first[1:] if self.beside else first, ("keep",))
        self.open = [_Open(*_ways(lists.get("keep", ())))]

    def line(self, line: Sequence[Word]) -> Nest | None:
        """Take the words of a line; return the nest if that was its `end`."""
        match line:
            case [("end", False)]:
                done = self.open.pop()
                if not self.open:
                    return Nest(tuple(done.body), done.keep, done.ways, self.beside)
                self.open[-1].body.append(
                    Loop(done.over, done.tile, tuple(done.body), done.keep, done.ring, done.ways)
                )
            case [("for", False), (tile, False), *rest]:
                lists = _lists(rest, _LOOP)
                if len(self.open) > MOST_DEEP:
                    raise ValueError(f"a nest is at most {MOST_DEEP} loops deep")
                keep, ways = _ways(lists.get("keep", ()))
                over = counts(lists.get("over", ()))
                self.open.append(_Open(keep, ways, names(lists.get("ring", ())), over, integer(tile)))
            case [("run", False), (name, _), *rest]:
                said, array = _array(rest)
                lists = _lists(said, _LEAF[:2])
                replaced = names(lists.get("over", ()))
                if len(replaced) != ("over" in lists):
                    raise ValueError("`over` takes one operand")
                slices = tuple([_slice(one) for one in names(lists.get("slices", ()))])
                self.open[-1].body.append(Leaf(name, slices, replaced[0] if replaced else None, array))
            case _:
                raise ValueError(f"{' '.join(names(line))[:80]} is no line of a nest: for, run or end")
        return None


def _slice(text: str) -> tuple[int, int]:
    axis, _, tile = text.partition(":")
    return integer(axis), integer(tile)


def _array(line: Sequence[Word]) -> tuple[Sequence[Word], tuple[tuple[int, ...], ...]]:
    """Return the words of a leaf before `array`, and the axes on each side behind it."""
    at = next(
        (n for n, w in enumerate(line) if w == ("array", False) and line[n - 1 : n] != [("over", False)]),
        None,
    )
    if at is None:
        return line, ()
    sides: list[list[int]] = [[]]
    for text, _ in line[at + 1 :]:
        if text == "|":
            sides.append([])
        else:
            sides[-1].append(integer(text))
    return line[:at], tuple(map(tuple, sides))


def _ways(listed: Sequence[Word]) -> tuple[tuple[str, ...], Ways]:
    """Return the names that a body keeps, and the copies and channels behind them."""
    keep: list[str] = []
    found: dict[str, list[tuple[str, int]]] = {key: [] for key in COUNTED}
    for n, (text, quoted) in enumerate(listed):
        number = ""
        if not quoted and ":" in text:
            text, _, number = text.rpartition(":")
            if not text:  # the number of a quoted name, which is a word of its own
                if not n or not listed[n - 1][1]:
                    raise ValueError(f"expected a name before :{number[:60]}")
                text = keep.pop()
            ways, _, late = number.partition("+")
            copies, _, channels = ways.partition("@")
            load, _, store = channels.partition("/")
            if not (copies or load or store or late):
                raise ValueError(f"expected copies or channels, as :2 or :2@1/0+3, behind {text[:60]!r}")
            for key, one in zip(COUNTED, (copies, load, store, late), strict=True):
                found[key] += [(text, integer(one))] if one else []
        keep.append(text)
    return tuple(keep), Ways(*map(tuple, found.values()))


def _lists(line: Sequence[Word], keywords: Sequence[str]) -> dict[str, list[Word]]:
    """Return the words behind each keyword."""
    found: dict[str, list[Word]] = {}
    for text, quoted in line:
        if not quoted and text in keywords:
            if text in found:
                raise ValueError(f"{text} is given twice")
            found[text] = []
        elif not found:
            raise ValueError(f"expected {' or '.join(keywords)}; found {text[:60]!r}")
        else:
            found[list(found)[-1]].append((text, quoted))
    return found
