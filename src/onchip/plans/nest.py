"""The records of a nest: the loops in which a group of operators runs, and the places where buffers live.

docs/nests.md states the law: which nests are legal, the bytes that cross, and the bytes of scratch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from onchip.base.fields import LIMIT, Form, in_form

__all__ = ["COUNTED", "MOST_DEEP", "Leaf", "Loop", "Nest", "Ways", "leaves"]

MOST_DEEP = 64
"""The most loops around a leaf."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One operator runs, once in every turn of the loops around it.

    `slices` are loops of its own inside, outermost first: (axis, tile). The tile of every buffer that no
    loop's body keeps shrinks with them; they move no bytes twice. `over` names the operand in whose place
    the output is written. `array` are the axes that lie on each side of the chip's array, in its order.
    """

    operator: str
    slices: tuple[tuple[int, int], ...] = ()
    over: str | None = None
    array: tuple[tuple[int, ...], ...] = ()


COUNTED = ("copies", "loads", "stores", "late")
"""The words behind which a body gives numbers for names that it keeps."""

Numbers = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Ways:
    """The way in which buffers that a body keeps come and go, each by name.

    `copies` are 2 or more slots that it fills by turns; one that is not named shares the scratch. `loads` and
    `stores` are its channels to and from DRAM, where these are not the chip's first. Before the stores of one
    that is `late` the fetches of so many more steps stand.
    """

    copies: Numbers = ()
    loads: Numbers = ()
    stores: Numbers = ()
    late: Numbers = ()

    def __post_init__(self) -> None:
        for key in COUNTED:
            if len(dict(getattr(self, key))) < len(getattr(self, key)):
                raise ValueError(f"names a buffer twice in its {key}")

    def __bool__(self) -> bool:
        """Return whether anything is stated."""
        return bool(self.copies or self.loads or self.stores or self.late)


@dataclass(frozen=True, slots=True)
class Loop:
    """The items of `body` run in order, once for every `tile` indices along an axis of each operator inside.

    `over` gives that axis by operator (`onchip.network.axes` numbers them). `keep` names the buffers from
    outside the group, or that leave it, which are filled when a turn begins and given back when it ends.
    `ring` names buffers with their home in this body, over which windows slide, that keep what the next turn
    needs again. `ways` says how those that it keeps come and go.
    """

    over: tuple[tuple[str, int], ...]
    tile: int
    body: tuple[Loop | Leaf, ...]
    keep: tuple[str, ...] = ()
    ring: tuple[str, ...] = ()
    ways: Ways = Ways()

    def __post_init__(self) -> None:
        if len(dict(self.over)) < len(self.over):
            raise ValueError("has a loop that names an operator twice")


def _object(nest: Nest) -> dict[str, Any]:
    said: dict[str, Any] = {"keep": list(nest.keep)} if nest.keep else {}
    said |= {"beside": True} if nest.beside else {}
    return {"body": [_row(item) for item in nest.body]} | said | _counts(nest.ways)


def _counts(ways: Ways) -> dict[str, Any]:
    return {key: dict(given) for key in COUNTED if (given := getattr(ways, key))}


def _row(item: Loop | Leaf) -> list[Any]:
    said: dict[str, Any] = {}
    if isinstance(item, Leaf):
        if item.slices:
            said["slices"] = [list(one) for one in item.slices]
        if item.over is not None:
            said["over"] = item.over
        if item.array:
            said["array"] = [list(side) for side in item.array]
        return ["run", item.operator, *([said] if said else [])]
    if item.keep:
        said["keep"] = list(item.keep)
    if item.ring:
        said["ring"] = list(item.ring)
    said |= _counts(item.ways)
    body = [_row(inner) for inner in item.body]
    return ["for", dict(item.over), item.tile, body, *([said] if said else [])]


def _nest(value: dict[str, Any]) -> Nest:
    if not value.keys() <= {"body", "keep", "beside", *COUNTED} or not isinstance(value.get("body"), list):
        raise ValueError(
            "has a body, a list, and may have `keep`, `copies`, `loads`, `stores`, `late` and `beside`"
        )
    if type(value.get("beside", False)) is not bool:
        raise ValueError("is `beside` or not: true or false")
    keep, beside = _names(value.get("keep", [])), value.get("beside", False)
    return Nest(_body(value["body"], 0), keep, _ways(value), beside)


def _body(rows: list[Any], deep: int) -> tuple[Loop | Leaf, ...]:
    if deep > MOST_DEEP:
        _too_deep()
    return tuple([_item(row, deep) for row in rows])


def _item(row: Any, deep: int) -> Loop | Leaf:
    match row:
        case ["run", str(name), *rest]:
            said = _said(rest, {"slices", "over", "array"})
            over = said.get("over")
            if over is None or isinstance(over, str):
                slices = tuple([_slice(one) for one in said.get("slices", [])])
                return Leaf(name, slices, over, tuple([_side(one) for one in said.get("array", [])]))
        case ["for", dict(over), tile, list(body), *rest]:
            axes = tuple([(name, _whole(axis)) for name, axis in over.items()])
            said = _said(rest, {"keep", "ring", *COUNTED})
            keep, ring = (_names(said.get(key, [])) for key in ("keep", "ring"))
            return Loop(axes, _whole(tile), _body(body, deep + 1), keep, ring, _ways(said))
    raise ValueError(
        'has an item that is neither ["run", OPERATOR] nor ["for", {OPERATOR: AXIS}, TILE, BODY]'
    )


def _said(rest: list[Any], known: set[str]) -> dict[str, Any]:
    if not rest:
        return {}
    said = rest[0]
    if len(rest) > 1 or not isinstance(said, dict) or not said or not said.keys() <= known:
        raise ValueError(f"has an item with other attributes than {' and '.join(sorted(known))}")
    if not all(isinstance(said.get(key, []), list) for key in ("keep", "ring", "slices", "array")):
        raise ValueError("has an attribute that is no list")
    return said


def _slice(value: Any) -> tuple[int, int]:
    match value:
        case [axis, tile]:
            return _whole(axis), _whole(tile)
    raise ValueError("has a slice that is no [axis, tile]")


def _side(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ValueError("has a side of the array that is no list of axes")
    return tuple([_whole(axis) for axis in value])


def _ways(said: dict[str, Any]) -> Ways:
    counts = [said.get(key, {}) for key in COUNTED]
    if not all(isinstance(given, dict) for given in counts):
        raise ValueError(f"has {', '.join(COUNTED)} that are no numbers by name")
    return Ways(*(tuple([(name, _whole(n)) for name, n in given.items()]) for given in counts))


def _whole(value: Any) -> int:
    if type(value) is not int or not -LIMIT < value < LIMIT:  # JSON's true and false are none
        raise ValueError("has an axis or a tile that is no whole number of at most 18 digits")
    return value


def _names(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(name, str) for name in values):
        raise ValueError("keeps something that is no name")
    return tuple(values)


def _leaves(nest: Nest, kind: type) -> Sequence[Any]:
    texts, numbers = list(nest.keep), list[Any]()
    ways = [nest.ways]
    items = list(nest.body)
    while items:
        item = items.pop()
        if isinstance(item, Leaf):
            texts += [item.operator, *(() if item.over is None else (item.over,))]
            numbers += [n for one in (*item.slices, *item.array) for n in one]
        else:
            texts += [*item.keep, *item.ring, *(name for name, _ in item.over)]
            numbers += [item.tile, *(axis for _, axis in item.over)]
            items += item.body
            ways.append(item.ways)
    for key in COUNTED:
        texts += [name for one in ways for name, _ in getattr(one, key)]
        numbers += [n for one in ways for _, n in getattr(one, key)]
    return texts if kind is str else numbers if kind is int else ()


@in_form(Form(_object, _nest, _leaves))
@dataclass(frozen=True, slots=True)
class Nest:
    """A group runs as a tree of loops: `body` in order, the buffers `keep` there from its begin to its end.

    A buffer from outside that no `keep` around an operator names is private to that use: filled as deep in
    the operator's own slices as each of them cuts it. Likewise an output that leaves. A tensor made and read
    inside alone lives in the innermost body that holds all of its uses. `ways` is as in a `Loop`.
    A group `beside` the one before it begins to fetch while that still runs and stores.
    """

    body: tuple[Loop | Leaf, ...]
    keep: tuple[str, ...] = ()
    ways: Ways = Ways()
    beside: bool = False

    def __post_init__(self) -> None:
        level, deep = self.body, 0
        while level := tuple(inner for item in level if isinstance(item, Loop) for inner in item.body):
            deep += 1
            if deep > MOST_DEEP:
                _too_deep()


def _too_deep() -> NoReturn:
    raise ValueError(f"is more than {MOST_DEEP} loops deep")


def leaves(body: tuple[Loop | Leaf, ...]) -> Iterator[tuple[tuple[Loop, ...], Leaf]]:
    """Yield every leaf in the order in which it runs, with the loops around it, outermost first."""
    for item in body:
        if isinstance(item, Leaf):
            yield (), item
        else:
            for around, leaf in leaves(item.body):
                yield (item, *around), leaf
