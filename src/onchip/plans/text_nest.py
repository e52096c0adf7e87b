"""The nest of a group in the text form: a block of lines behind the group's own, from `nest` to its `end`.

nest keep z
  for 2 over up:1 down:2
    run up slices 2:1 0:1
    run down slices 1:1 0:1 over h
  end
end
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onchip.plans.nest import MOST_DEEP, Leaf, Loop, Nest
from onchip.plans.text_words import Word, counted, counts, integer, names, word, words

__all__ = ["NestBlock", "nest_lines"]

_LEAF = ("slices", "over")
_LOOP = ("over", "keep", "ring")


def nest_lines(nest: Nest) -> list[str]:
    """Return the lines of a nest, from `nest` to `end`."""
    return [f"  nest{_names('keep', nest.keep)}", *_body(nest.body, "    "), "  end"]


def _body(body: Sequence[Loop | Leaf], indent: str) -> list[str]:
    found = []
    for item in body:
        if isinstance(item, Leaf):
            line = f"{indent}run {word(item.operator)}"
            line += "".join(
                f" {one}" for one in ("slices", *(f"{a}:{n}" for a, n in item.slices)) if item.slices
            )
            found.append(line if item.over is None else f"{line} over {word(item.over, _LEAF)}")
        else:
            over = f" {counted(item.over)}" if item.over else ""
            lists = _names("keep", item.keep) + _names("ring", item.ring)
            found.append(f"{indent}for {item.tile} over{over}{lists}")
            found += [*_body(item.body, indent + "  "), f"{indent}end"]
    return found


def _names(key: str, listed: Sequence[str]) -> str:
    return f" {key}{words(listed, _LOOP)}" if listed else ""


@dataclass
class _Open:
    """A loop whose `end` has not come; the outermost is the nest, without `over`."""

    keep: tuple[str, ...]
    ring: tuple[str, ...] = ()
    over: tuple[tuple[str, int], ...] = ()
    tile: int = 0
    body: list[Loop | Leaf] = field(default_factory=list)


class NestBlock:
    """A nest that is being read line by line. Raises `ValueError` with the reason for a wrong line."""

    def __init__(self, first: Sequence[Word]) -> None:
        """Begin with the words behind `nest`."""
        lists = _lists(first, ("keep",))
        self.open = [_Open(names(lists.get("keep", ())))]

    def line(self, line: Sequence[Word]) -> Nest | None:
        """Take the words of a line; return the nest if that was its `end`."""
        match line:
            case [("end", False)]:
                done = self.open.pop()
                if not self.open:
                    return Nest(tuple(done.body), done.keep)
                self.open[-1].body.append(Loop(done.over, done.tile, tuple(done.body), done.keep, done.ring))
            case [("for", False), (tile, False), *rest]:
                lists = _lists(rest, _LOOP)
                if len(self.open) > MOST_DEEP:
                    raise ValueError(f"a nest is at most {MOST_DEEP} loops deep")
                keep, ring = (names(lists.get(key, ())) for key in ("keep", "ring"))
                self.open.append(_Open(keep, ring, counts(lists.get("over", ())), integer(tile)))
            case [("run", False), (name, _), *rest]:
                lists = _lists(rest, _LEAF)
                over = names(lists.get("over", ()))
                if len(over) != ("over" in lists):
                    raise ValueError("`over` takes one operand")
                slices = tuple([_slice(one) for one in names(lists.get("slices", ()))])
                self.open[-1].body.append(Leaf(name, slices, over[0] if over else None))
            case _:
                raise ValueError(f"{' '.join(names(line))[:80]} is no line of a nest: for, run or end")
        return None


def _slice(text: str) -> tuple[int, int]:
    axis, _, tile = text.partition(":")
    return integer(axis), integer(tile)


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
