"""Networks in a few words, for tests of the time of nests: operators by the letters of their axes.

`up MatMul: h(m,f) = x(m,d) A(d,f)`: letters that are no side of the output are summed over; operands that
are neither made nor named as inputs are constants. A side `*d` is needed whole; over a side `H@h:2:1:3`, of
the size of H, a window of 3 slides along h by steps of 2, from 1 before its begin on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.network.operators import Constant
from onchip.plans import Leaf, Loop, Nest, Ways


@dataclass(frozen=True)
class Worded:
    """A network, and for every operator the letters of its axes in order."""

    network: Network
    letters: Mapping[str, tuple[str, ...]]
    outside: Mapping[str, tuple[str, ...]]
    """By operator its operands and its output, constants included."""


def network_of(
    sizes: str, lines: Sequence[str], inputs: Collection[str], outputs: Sequence[str], element: int = 1
) -> Worded:
    """The network in these words."""
    size = {name: int(n) for name, _, n in (word.partition("=") for word in sizes.split())}
    tensors: dict[str, tuple[str, int, str]] = {}
    specs, letters, outside = [], {}, {}
    made = {line.partition(":")[2].strip().partition("(")[0] for line in lines}
    for line in lines:
        head, _, rest = line.partition(":")
        name, type_ = head.split()
        target, _, operands = rest.partition("=")
        (out, axes), *reads = (_term(word) for word in (target.strip(), *operands.split()))
        own = list(axes)
        for _, sides in reads:
            own += [s for s in sides if s[0] != "*" and "@" not in s and s not in own]
        taps = prod(size[s] for _, sides in reads for s in sides if s in own[len(axes) :] and s in ("k", "l"))
        sums = [s for s in own[len(axes) :] if s not in ("k", "l")]
        own = [*axes, *sums]

        def side(text: str, own: Sequence[str] = own) -> Side:
            plain, _, window = text.lstrip("*").partition("@")
            if text[0] == "*" or text in ("k", "l"):
                return Side(size[plain], span=size[plain])
            if window:
                axis, stride, before, span = window.split(":")
                return Side(size[plain], own.index(axis), int(stride), int(before), int(span))
            return Side(size[plain], own.index(plain))

        operand: list[tuple[Side, ...]] = []
        names: list[str] = []
        constants: list[Constant] = []
        for tensor, sides in reads:
            found = tuple(map(side, sides))
            total = prod(s.size for s in found) * element
            if tensor in made or tensor in inputs:
                names.append(tensor)
                operand.append(found)
                tensors.setdefault(tensor, (tensor, total, "input"))
            else:
                constants.append(Constant(tensor, total, found))
        tensors[out] = (out, prod(size[a] for a in axes) * element, "activation")
        reach = Reach(
            tuple(size[a] for a in axes), tuple(operand), tuple(constants), tuple(size[s] for s in sums)
        )
        products = prod(reach.extents) * taps if sums or taps > 1 else 0
        weights = sum(c.bytes for c in constants)
        specs.append(OperatorSpec(name, type_, names, [out], weights, macs=products, reach=reach))
        letters[name] = tuple(own)
        outside[name] = (*(tensor for tensor, _ in reads), out)
    network = Network.build("worded", list(tensors.values()), specs, outputs)  # type: ignore[arg-type]
    return Worded(network, letters, outside)


def _term(word: str) -> tuple[str, list[str]]:
    name, _, sides = word.partition("(")
    return name, sides.rstrip(")").split(",")


def nest_of(worded: Worded, lines: Sequence[str], *, beside: bool = False) -> tuple[Nest, tuple[str, ...]]:
    """A nest in indented words, `keep A:2 x`, `for f 2`, `run up array m | f`; and its operators.

    A norm or an element-wise operator that is to write in an operand's place says `over x`.
    """
    rows = [(len(line) - len(line.lstrip()), line.split()) for line in lines]
    body, keep, ways, _, names = _body(worded, rows, 0, rows[0][0])
    return Nest(body, keep, ways, beside), names


Rows = list[tuple[int, list[str]]]


def _body(
    worded: Worded, rows: Rows, at: int, deep: int
) -> tuple[tuple[Loop | Leaf, ...], tuple[str, ...], Ways, int, tuple[str, ...]]:
    items: list[Loop | Leaf] = []
    keep: list[str] = []
    copies: list[tuple[str, int]] = []
    loads: list[tuple[str, int]] = []
    stores: list[tuple[str, int]] = []
    late: list[tuple[str, int]] = []
    ran: list[str] = []
    ring: tuple[str, ...] = ()
    while at < len(rows) and rows[at][0] >= deep:
        words = rows[at][1]
        at += 1
        if words[0] == "keep":
            for word in words[1:]:
                name, _, number = word.partition(":")
                keep.append(name)
                number, _, behind = number.partition("+")
                count, _, channels = number.partition("@")
                load, _, store = channels.partition("/")
                copies += [(name, int(count))] if count else []
                loads += [(name, int(load))] if load else []
                stores += [(name, int(store))] if store else []
                late += [(name, int(behind))] if behind else []
        elif words[0] == "run":
            letters = worded.letters[words[1]]
            over, array = None, tuple[tuple[int, ...], ...]()
            if "array" in words:
                sides = " ".join(words[words.index("array") + 1 :]).split("|")
                array = tuple(tuple(letters.index(a) for a in side.split()) for side in sides)
            if "over" in words:
                over = words[words.index("over") + 1]
            items.append(Leaf(words[1], (), over, array))
            ran.append(words[1])
        else:
            _, letter, tile, *rest = words
            ring = tuple(rest[1:]) if rest[:1] == ["ring"] else ()
            inner, kept, ways, at, names = _body(worded, rows, at, rows[at][0])
            along = tuple((name, worded.letters[name].index(letter)) for name in names)
            items.append(Loop(along, int(tile), inner, kept, ring, ways))
            ran += names
    return (
        tuple(items),
        tuple(keep),
        Ways(tuple(copies), tuple(loads), tuple(stores), tuple(late)),
        at,
        tuple(ran),
    )
