"""Ways to break the rules about caches that stay on chip; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_plans import Broken, Site, breaks

from onchip.check.interpreter import interpret
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.plans import Alloc, Cache, Free, Instruction, Load, Plan, PlanChip, Result, Run, Store

SHAPES = {"past": (2, 3, 4), "new": (2, 1, 4), "now": (2, 4, 4), "y": (2, 4, 4), "x": (2, 1, 4)}
SIDES = (Side(2, 0), Side(3, 1), Side(4, 2))
READS = Reach((2, 4, 4), (SIDES, (Side(2, 0), Side(4, 2))))


def network(*, type_: str = "Concat", operands: tuple[str, ...] = ("past", "new")) -> Network:
    return Network.build(
        "grows",
        [
            (name, 2 * shape[1] * 4, "input" if name in ("past", "x") else "activation")
            for name, shape in SHAPES.items()
        ],
        [
            OperatorSpec("make", "Relu", ("x",), ("new",)),
            OperatorSpec("append", type_, operands, ("now",), reach=READS),
            OperatorSpec("use", "Relu", ("now",), ("y",)),
        ],
        ["now", "y"],
        shapes=SHAPES,
    )


CACHE = Cache("now", 0, 1, 6, "past")
PROGRAM: tuple[Instruction, ...] = (
    Load("x", 48),
    Alloc("new", 56),
    Run("make"),
    Alloc("now", 0, "past"),
    Run("append"),
    Alloc("y", 64),
    Run("use"),
    Store("y"),
)
RESULT = Result("feasible", 0, 0, 0, 40, 0, 40, 0, 96, 96, 0.0)
LEGAL = Plan(network(), PlanChip("c"), 96, PROGRAM, RESULT, caches=(CACHE,))


def changed(index: int, *instead: Instruction) -> Plan:
    return replace(LEGAL, program=(*PROGRAM[:index], *instead, *PROGRAM[index + 1 :]))


@breaks("cache")
def _(_: Site) -> Iterator[Broken]:
    for cache in (
        replace(CACHE, rows=3),
        replace(CACHE, axis=0),
        replace(CACHE, axis=3),
        replace(CACHE, input="x"),
        replace(CACHE, output="x", input=None),
        replace(CACHE, output="y"),
    ):
        yield Broken(replace(LEGAL, caches=(cache,)), None)
    yield Broken(replace(LEGAL, caches=(CACHE, replace(CACHE, address=48))), None)
    yield Broken(replace(LEGAL, network=network(type_="Max")), None)
    yield Broken(replace(LEGAL, network=network(operands=("new", "past"))), None)


@breaks("cache-not-kept")
def _(_: Site) -> Iterator[Broken]:
    anew = replace(LEGAL, budget=200, caches=(replace(CACHE, input=None),))
    before = (Load("past", 100), *PROGRAM[:3], Alloc("now", 128), *PROGRAM[4:])
    yield Broken(replace(anew, program=before), None)
    yield Broken(replace(anew, program=(*before, Store("now"), Free("now"))), None)
    legal = replace(anew, program=(*before, Store("now"), Free("now"), Load("now", 0)))
    assert interpret(legal).reload == 32


@breaks("cache-moved")
def _(_: Site) -> Iterator[Broken]:
    yield Broken(changed(3, Alloc("now", 0)), 3)
    yield Broken(changed(3, Alloc("now", 64, "past", -64)), 3)
    yield Broken(changed(3, Alloc("now", 0, "new", 56)), 3)
    yield Broken(changed(5, Free("now")), 5)
    yield Broken(changed(5, Alloc("y", 0, "now")), 5)
    yield Broken(changed(0, Free("past")), 0)
    yield Broken(changed(4, Run("append", (("past", 24),))), 4)
    yield Broken(changed(4, Run("append", (("now", 32),))), 4)
