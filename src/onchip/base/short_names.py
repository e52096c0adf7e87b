"""Readable names of tensors: what converters write, shortened as far as different tensors stay different.

A converter joins the names of all that it has merged, as in
`model/activation/Relu;model/batch_normalization/FusedBatchNormV3;model/conv2d/BiasAdd`. A reader looks for
the first of them, without the folders in which all tensors lie: `activation/Relu`; and of an input's
`serving_default_image:0` for `image`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

__all__ = ["LONGEST", "distinct_names", "short_names"]

LONGEST = 40
"""The most characters of a name that can be shortened to so many."""


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return a readable name for each of these names; different names get different ones.

    A name takes the first form, from the shortest to itself, that no other name has in any form that is as
    short; where even cut ends collide, a number tells them apart.
    """
    given = list(dict.fromkeys(names))
    folder = _common_folder(given)
    found: dict[str, str] = {}
    left = given
    for form in _FORMS:
        shapes = {name: _cut(form(name, folder)) for name in left}
        times = Counter(shapes.values())
        taken = {*found.values(), *given}
        for name, shape in shapes.items():
            if times[shape] == 1 and (shape == name or shape not in taken):
                found[name] = shape
        left = [name for name in left if name not in found]
    taken = {*found.values(), *given}
    for name in left:
        found[name] = _numbered(_cut(_first_part(name, folder)), taken)
        taken.add(found[name])
    return {name: found[name] for name in given}


def distinct_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Return each of these names in at most `width` characters, different ones as different ones.

    A name that is too long loses what exporters add to all (`/model.6/cv1/act/Mul_output_0`), then as little
    of the end or the beginning of its path as will do (`model.6/cv1`), and last its middle: it takes the
    first of these forms in which no other name is shown. Where all of them collide a number, which may take
    more room, tells them apart.
    """
    given = list(dict.fromkeys(names))
    forms = {name: _shorter(name, width) for name in given if len(name) > width}
    found = {name: name for name in given if name not in forms}
    for rank in range(max(map(len, forms.values()), default=0)):
        left = {name: own[rank] for name, own in forms.items() if name not in found and rank < len(own)}
        times, taken = Counter(left.values()), {*found.values(), *given}
        found |= {name: form for name, form in left.items() if times[form] == 1 and form not in taken}
    taken = {*found.values(), *given}
    for name in given:
        if name not in found:
            found[name] = _numbered(_middle_out(name, width, 3), taken)
            taken.add(found[name])
    return {name: found[name] for name in given}


def _shorter(name: str, width: int) -> list[str]:
    """Return the forms of a longer name in so many characters, the best first."""
    found = []
    for whole in dict.fromkeys((name.strip("/").removesuffix("_output_0"), name)):
        cuts = [n for n, c in enumerate(whole) if c in "/." and n]
        parts = [*(whole[:n] for n in cuts), *(whole[n + 1 :] for n in cuts)]
        parts.sort(key=lambda part: (-len(re.split("[/.]", part)), not whole.endswith(part)))
        found += [whole, *parts]
    fitting = [form for form in found if len(form) <= width and any(c.isalpha() for c in form)]
    return [*fitting, *(_middle_out(name, width, part) for part in (3, 2))]


def _middle_out(name: str, width: int, part: int) -> str:
    """Return so many characters without the middle, one `part` of them from the beginning."""
    head = (width - 1) // part
    return f"{name[:head]}…{name[len(name) - (width - 1 - head) :]}"


def _common_folder(names: Sequence[str]) -> tuple[str, ...]:
    """Return the leading folders in which every tensor lies that lies in a folder at all."""
    paths = [tuple(_parts(name)[0].split("/")) for name in names if "/" in _parts(name)[0]]
    if len(paths) < 2:
        return ()
    depth = min(len(path) for path in paths) - 1
    shared = 0
    while shared < depth and len({path[shared] for path in paths}) == 1:
        shared += 1
    return paths[0][:shared]


def _parts(name: str) -> list[str]:
    """Return the merged names; the name itself where it has none."""
    return [part for part in name.split(";") if part] or [name]


def _without(part: str, folder: tuple[str, ...]) -> str:
    path = part.split("/")
    return "/".join(path[len(folder) :]) if tuple(path[: len(folder)]) == folder != () else part


def _unserved(name: str, folder: tuple[str, ...]) -> str:
    """Return the first of the merged names without what a signature adds to it."""
    first = _first_part(name, folder)
    plain = first.removeprefix("serving_default_")
    return first if plain == first else plain.removesuffix(":0") or first


def _first_part(name: str, folder: tuple[str, ...]) -> str:
    return _without(_parts(name)[0], folder) or name


def _two_parts(name: str, folder: tuple[str, ...]) -> str:
    first, *rest = _parts(name)
    return ";".join(_without(part, folder) for part in (first, *rest[-1:])) or name


def _every_part(name: str, folder: tuple[str, ...]) -> str:
    return ";".join(_without(part, folder) for part in _parts(name)) or name


_FORMS: tuple[Callable[[str, tuple[str, ...]], str], ...] = (
    _unserved,
    _first_part,
    _two_parts,
    _every_part,
    lambda name, _: name,
)


def _cut(name: str) -> str:
    """Return at most `LONGEST` characters without the middle: both ends tell names apart."""
    if len(name) <= LONGEST:
        return name
    return _middle_out(name, LONGEST, 3)


def _numbered(name: str, taken: set[str]) -> str:
    number = 2
    while (found := f"{name} ({number})") in taken:
        number += 1
    return found
