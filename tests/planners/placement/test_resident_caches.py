"""Caches that grow on chip: `state` of different sizes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onchip
from growing import HEADS, WIDTH, model, saved
from onchip.base.errors import Infeasible, UsageError
from onchip.check import check
from onchip.check.claims.standing import least_crossing
from onchip.machines.chip import Chip
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.planners.placement import PlacementOptions, Problem, plan
from onchip.plans import from_json, from_text, to_json, to_text
from onchip.results.proving import prove
from strategies import random_case

ROW = HEADS * WIDTH * 4
"""Bytes of one word's keys, or values."""


@pytest.fixture(name="decode", scope="module")
def _decode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("words"), "decode.onnx", model(words=1, past="past", layers=2))


def test_a_resident_cache_is_neither_read_nor_written(decode: Path) -> None:
    def crossing(**how: object) -> int:
        made = onchip.plan(decode, budget=4096, dims="past=7", **how)  # type: ignore[arg-type]
        assert (made.check().traffic_bytes, made.result.status) == (0, "optimal")
        assert least_crossing(made) <= made.result.dram_bytes
        return made.result.compulsory_bytes

    whole, grown = crossing(), crossing(cache="past.*=present.*")
    assert whole - grown == 4 * 7 * ROW  # what was there is not written again
    assert grown - crossing(state=("past.*=present.*",)) == 4 * 8 * ROW
    mixed = crossing(cache="past.*=present.*", state=("past.0.*=present.0.*",))
    assert grown - mixed == 2 * 8 * ROW


def test_the_buffer_has_the_size_of_its_capacity(decode: Path) -> None:
    made = onchip.plan(decode, budget=4096, dims="past=7", state=("past.*=present.*",), capacity=16)
    assert [(c.output, c.address, c.axis, c.rows, c.input) for c in made.caches] == [
        (f"present.{name}", 16 * ROW * i, 2, 16, f"past.{name}")
        for i, name in enumerate(("0.k", "0.v", "1.k", "1.v"))
    ]
    longest = onchip.plan(decode, budget=4096, dims="past=15", state=("past.*=present.*",), capacity=16)
    assert [c.address for c in longest.caches] == [c.address for c in made.caches]
    assert from_json(to_json(made)) == from_text(to_text(made)) == made


def test_traffic_with_little_room_is_proved(decode: Path) -> None:
    made = onchip.plan(
        decode, budget=4 * 16 * ROW + 152, dims="past=7", state=("past.*=present.*",), capacity=16
    )
    assert (made.result.status, made.check().traffic_bytes) == ("optimal", 96)
    assert prove(onchip.Plan.from_text(to_text(made))).outcome == "proved"


def test_a_cache_that_does_not_fit_is_named(decode: Path) -> None:
    with pytest.raises(Infeasible, match=r"cache present\.0\.k \(1,024 B\)") as no:
        onchip.plan(decode, budget=4096, dims="past=7", state=("past.*=present.*",), capacity=32)
    enough = no.value.needs
    assert onchip.plan(decode, budget=enough, dims="past=7", state=("past.*=present.*",), capacity=32).check()
    with pytest.raises(Infeasible, match="3 more caches"):
        plan(grows(7), Chip("c", 1), 8, PlacementOptions(state=tuple(f"p{i}=n{i}" for i in range(7))))


@pytest.mark.parametrize(
    ("state", "how", "message"),
    [
        ("past.0.k=present.0.v", {}, "no Concat makes it so"),
        ("past.0.k=y.1", {}, "no Concat makes it so"),
        ("past.*=now.*", {}, r"there is an input past\.0\.k, and nothing makes now\.0\.k"),
        ("old.*=present.*", {}, "names no tensors"),
        ("past.0.k=present.0.k", {"capacity": 7}, "7 rows are fewer than the 8"),
        ("past.0.k=present.0.k@64", {}, "no address is taken"),
        ("=x", {}, "no operator writes x"),
        ("past.0.k=present.0.k", {"strategy": "ilp"}, "keeps no caches"),
        ("past.0.k=present.0.k", {"pin": ("x@8",)}, "the caches lie below 256"),
        ("past.0.k=present.0.k", {"capacity": 0}, "no number of rows"),
    ],
)
def test_states_that_are_no_caches(decode: Path, state: str, how: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        onchip.plan(decode, budget=4096, dims="past=7", state=(state,), **how)  # type: ignore[arg-type]


def test_a_capacity_is_for_caches(decode: Path) -> None:
    with pytest.raises(UsageError, match="is for a --state that grows"):
        onchip.plan(decode, budget=4096, dims="past=7", capacity=9)


def test_a_tensor_is_in_one_cache(decode: Path) -> None:
    with pytest.raises(UsageError, match="in two states"):
        onchip.plan(
            decode, budget=4096, dims="past=7", state=("past.0.k=present.0.k", "past.0.*=present.0.*")
        )


def grows(caches: int, *, late: bool = False) -> Network:
    """`caches` caches of two words, to each of which one is appended; `late`: the first is read later."""
    tensors = [("x", 4, "input"), ("y", 4, "activation")]
    shapes = {"x": (1, 4), "y": (1, 4)}
    operators = []
    for i in range(caches):
        tensors += [(f"p{i}", 8, "input"), (f"n{i}", 12, "activation")]
        shapes |= {f"p{i}": (2, 4), f"n{i}": (3, 4)}
        reads = Reach((3, 4), ((Side(2, 0), Side(4, 1)), (Side(4, 1),)))
        operators.append(OperatorSpec(f"append{i}", "Concat", (f"p{i}", "x"), (f"n{i}",), reach=reads))
    first = ("p0",) if late else ()
    operators.append(OperatorSpec("use", "F", (*first, *(f"n{i}" for i in range(caches))), ("y",)))
    return Network.build("grows", tensors, operators, ["y"], shapes=shapes)  # type: ignore[arg-type]


def test_what_is_read_after_it_has_grown_is_refused() -> None:
    with pytest.raises(UsageError, match="p0 is read after new rows are behind it"):
        plan(grows(2, late=True), Chip("c", 1), 100, PlacementOptions(state=("p0=n0",)))


@pytest.mark.thorough
@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=40, deadline=None)
def test_the_rest_is_planned_as_well_as_alone(rng: Random) -> None:
    """A random network whose operators also read caches costs what it costs alone in the room beside."""
    case = random_case(rng, 6)
    rest = case.network
    shapes = {}
    tensors = [(t.name, t.bytes, t.kind) for t in rest.tensors]
    names = [t.name for t in rest.tensors]
    specs, caches = [], []
    for op in rest.operators:
        reads = [names[t] for t in op.inputs]
        rows = rng.randint(1, 3)
        words = [rest.tensors[t] for t in op.inputs if rest.root[t] == t and t not in rest.outputs]
        if words and rng.random() < 0.4:
            word = words[0]
            old, now = f"old{op.id}", f"now{op.id}"
            shapes |= {word.name: (1, word.bytes), old: (rows, word.bytes), now: (rows + 1, word.bytes)}
            tensors += [(old, rows * word.bytes, "input"), (now, (rows + 1) * word.bytes, "activation")]
            mine = [Side(n, k) for k, n in enumerate((rows, word.bytes)) if n > 1]
            reach = Reach((rows + 1, word.bytes), (tuple(mine), (Side(word.bytes, 1),)))
            if word.bytes == 1:
                reach = Reach((rows + 1,), (tuple(Side(rows, 0) for _ in range(rows > 1)), ()))
            specs.append(OperatorSpec(f"append{op.id}", "Concat", (old, word.name), (now,), reach=reach))
            caches.append((f"{old}={now}", (rows + 1) * word.bytes))
            reads.append(now)
        specs.append(
            OperatorSpec(
                op.name,
                op.type,
                reads,
                [names[t] for t in op.outputs],
                op.weight_bytes,
                op.workspace,
                op.geometry,
            )
        )
    views = [(names[v.tensor], names[v.of], v.offset) for v in rest.views]
    outputs = [names[t] for t in rest.outputs]
    network = Network.build("with caches", tensors, specs, outputs, views=views, shapes=shapes)
    room = sum(case.chip.round_up(size) for _, size in caches)
    budget, options = case.budget, PlacementOptions(state=tuple(text for text, _ in caches))
    if budget < Problem.of(rest, case.alignment).minimum_budget:
        with pytest.raises(Infeasible) as alone:
            plan(rest, case.chip, budget)
        with pytest.raises(Infeasible) as also:
            plan(network, case.chip, budget + room, options)
        assert also.value.needs == alone.value.needs + room
        return
    least, made = plan(rest, case.chip, budget), plan(network, case.chip, budget + room, options)
    assert check(made).traffic_bytes == least.result.traffic_bytes
    assert made.result.lower_bound_bytes == least.result.lower_bound_bytes
    assert from_text(to_text(made)) == made
