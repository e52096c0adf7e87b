"""Random changes of a JSON document, and the same with the form of plans and schedules in view."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

__all__ = ["changed"]

Path = tuple[Any, ...]

ODD: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    3,
    7,
    64,
    10**6,
    10**17,
    0.5,
    -0.5,
    1e-12,
    1e300,
    float("nan"),
    float("inf"),
    None,
    True,
    "",
    [],
    {},
)


def leaves(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every number, word and nothing in a document, with the keys that lead there."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*at, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*at, i))
    else:
        yield at, value


def holders(value: Any, at: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every list and object."""
    if isinstance(value, dict | list):
        yield at, value
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from holders(inner, (*at, key))


def found(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def changed(
    rng: Random, document: dict[str, Any], weights: dict[str, float], most: int = 3
) -> dict[str, Any]:
    """A copy with one to `most` changes, each in one of the top keys, drawn by their `weights`."""
    made: dict[str, Any] = copy.deepcopy(document)
    for _ in range(rng.randint(1, most)):
        keys = [key for key in weights if made.get(key) not in (None, [], {})]
        if not keys:
            break
        top = rng.choices(keys, [weights[key] for key in keys])[0]
        if top == "program" and rng.random() < 0.35:
            with suppress(AttributeError, IndexError, KeyError, TypeError):  # broken by a change before
                _in_program(rng, made)
            continue
        if isinstance(made[top], list) and rng.random() < 0.5:
            _in_list(rng, made[top])
        else:
            _anywhere(rng, made, top)
    return made


def _in_program(rng: Random, made: dict[str, Any]) -> None:
    """Say something that could be meant: a new instruction, or an output that is laid over another tensor."""
    program, names = made["program"], [t["name"] for t in made["network"]["tensors"]]
    runs = [step[1] for step in program if step[0] == "run"] or [""]
    i, t = rng.randrange(len(program) + 1), rng.choice(names)
    at = {step[1]: step[2] for step in program[:i] if len(step) > 2 and type(step[2]) is int}
    where = [{"in": m["name"]} for m in made["chip"].get("memories", [])]
    memory = [rng.choice(where)] if where else []
    address = rng.choice([*at.values(), 0, 16])
    match rng.randrange(7):
        case 0:
            program.insert(i, ["free", t])
        case 1:
            program.insert(i, ["store", t])
        case 2:
            program.insert(i, ["load", t, address, *memory])
        case 3 if where:
            program.insert(i, ["move", t, address, *memory])
        case 4:
            program.insert(i, ["scratch", rng.choice(runs), address, *memory])
        case 5:  # spilled, or moved through DRAM
            program[i:i] = [["store", t], ["free", t], ["load", t, address, *memory]]
        case _:
            _over(rng, made, program)


def _over(rng: Random, made: dict[str, Any], program: list[Any]) -> None:
    """Lay an output over an input of its operator, which is then not freed."""
    read = {t: op["inputs"] for op in made["network"]["operators"] for t in op["outputs"]}
    there: dict[str, Any] = {}
    some = []
    for n, step in enumerate(program):
        if step[0] == "alloc":
            some += [(n, x) for x in read.get(step[1], ()) if type(there.get(x)) is int]
        if step[0] in ("load", "alloc"):
            there[step[1]] = step[2]
        elif step[0] == "free":
            there.pop(step[1], None)
    if not some or any(type(program[n][2]) is not int for n, _ in some):
        return
    n, x = rng.choice(some)
    step = program[n]
    here = next(other[2] for other in program[n - 1 :: -1] if other[0] in ("load", "alloc") and other[1] == x)
    if rng.random() < 0.7:  # at the same place, or near it
        step[2] = max(0, here + rng.choice((0, 0, 0, 1, -1, 4, -4, 8)))
    kept = {k: v for k, v in (step[3] if len(step) > 3 else {}).items() if k == "in"}
    program[n] = [*step[:3], {**kept, "over": x, "by": here - step[2]}]
    gone = next((m for m in range(n, len(program)) if program[m] == ["free", x]), None)
    if gone is not None:
        del program[gone]


def _in_list(rng: Random, rows: list[Any]) -> None:
    """Drop, double, swap or move a row."""
    i, j = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(4):
        case 0:
            del rows[i]
        case 1:
            rows.insert(j, copy.deepcopy(rows[i]))
        case 2:
            rows[i], rows[j] = rows[j], rows[i]
        case 3:
            rows.insert(j, rows.pop(i))


def _anywhere(rng: Random, made: dict[str, Any], top: str) -> None:
    """Change one leaf below a key, or one list or object."""
    if rng.random() < 0.2:
        some = [(path, value) for path, value in holders(made[top], (top,)) if value]
        if some:
            _, value = rng.choice(some)
            if isinstance(value, list):
                _in_list(rng, value)
            elif rng.random() < 0.6:
                del value[rng.choice(list(value))]
            else:
                one, other = rng.choice(list(value)), rng.choice(list(value))
                value[one], value[other] = value[other], value[one]
            return
    all_leaves = list(leaves(made[top], (top,)))
    if not all_leaves:
        return
    path, value = rng.choice(all_leaves)
    alike = [other for _, other in leaves(made) if type(other) is type(value)]
    found(made, path[:-1])[path[-1]] = _other(rng, value, alike)


def _other(rng: Random, value: Any, alike: list[Any]) -> Any:
    """Something else of the same type, mostly."""
    if rng.random() < 0.04:
        return rng.choice(ODD)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        step = rng.choice((1, 1, -1, -1, 2, -2, 4, -4, 8, -8, value, -2 * value, 1000))
        return rng.choice((value + step, value + step, value + step, value // 2, 0, rng.choice(alike)))
    if isinstance(value, float):
        factor = rng.choice((0.0, -1.0, 0.5, 2.0, 1.01, 1 + 1e-5, 1 - 1e-5, 1e6))
        return rng.choice((value * factor, value + rng.choice((-1.0, 0.1, 1e-3)), rng.choice(alike)))
    return rng.choice(alike)  # a name, or nothing
