"""The packer finds addresses or proves that there are none, and no rule changes which."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from onchip.planners.packing import (
    ALL_RULES,
    Buffer,
    Packing,
    Rules,
    fault,
    irreducible,
    max_load,
    minimise,
    pack,
    read_buffers,
)
from onchip.planners.packing.cpsat import pack_with_cpsat
from planners.packing.instances import exact_tiling, exhaustive, small_instances, tight_instance

NAMES = [f.name for f in fields(Rules)]
NONE = Rules(**dict.fromkeys(NAMES, False))
SWITCHED = [replace(Rules(), **{n: False}) for n in NAMES] + [replace(NONE, **{n: True}) for n in NAMES]

MISFITS = [1578, 6671, 7209, 7589, 12542, 17113, 22858]
"""Seeds of `tight_instance` whose load fits everywhere and whose buffers do not."""


def search(buffers: list[Buffer], capacity: int, rules: Rules = ALL_RULES, **more: int) -> Packing:
    return pack(buffers, capacity, rules=rules, engines=("search",), **more)


def legal(buffers: list[Buffer], offsets: tuple[int, ...], capacity: int) -> bool:
    """Pair by pair, as one would check it by hand."""
    boxes = list(zip(buffers, offsets, strict=True))
    return all(at >= 0 and at + b.size <= capacity for b, at in boxes) and all(
        b.upper <= c.lower or c.upper <= b.lower or at + b.size <= other or other + c.size <= at
        for i, (b, at) in enumerate(boxes)
        for c, other in boxes[:i]
    )


@pytest.mark.thorough
@given(small_instances())
@settings(max_examples=150, deadline=None)
def test_agrees_with_trying_every_offset(instance: tuple[list[Buffer], int]) -> None:
    buffers, capacity = instance
    fits = exhaustive(buffers, capacity)
    for rules in (Rules(), NONE):
        answer = search(buffers, capacity, rules)
        assert answer.status == ("packed" if fits else "infeasible")
        assert not fits or legal(buffers, answer.offsets, capacity)


@pytest.mark.parametrize("seed", MISFITS)
def test_what_does_not_fit_is_proved_by_every_rule_set(seed: int) -> None:
    buffers, capacity = tight_instance(seed)
    assert max_load(buffers) <= capacity
    assert pack_with_cpsat(buffers, capacity, workers=1)[0] == "infeasible"
    for rules in SWITCHED:
        assert search(buffers, capacity, rules).status == "infeasible"


@pytest.mark.parametrize("seed", range(40))
def test_rules_change_no_answer(seed: int) -> None:
    buffers, capacity = tight_instance(seed)
    answers = [search(buffers, capacity, rules, node_limit=20_000) for rules in [Rules(), *SWITCHED]]
    decided = {a.status for a in answers} - {"unknown"}
    assert len(decided) == 1
    assert all(legal(buffers, a.offsets, capacity) for a in answers if a.status == "packed")


@pytest.mark.slow
def test_agrees_with_cpsat() -> None:
    for seed in range(1000, 1150):
        buffers, capacity = tight_instance(seed)
        status, offsets = pack_with_cpsat(buffers, capacity, workers=1)
        assert status == search(buffers, capacity).status
        assert status != "packed" or legal(buffers, offsets, capacity)


@pytest.mark.parametrize("seed", MISFITS)
def test_irreducible_is_infeasible_and_minimal(seed: int) -> None:
    buffers, capacity = tight_instance(seed)
    which = irreducible(buffers, capacity)
    subset = [buffers[i] for i in which]
    assert not exhaustive(subset, capacity)
    for i in range(len(subset)):
        assert search(subset[:i] + subset[i + 1 :], capacity).status == "packed"


def test_irreducible_of_an_overloaded_step_is_that_step() -> None:
    buffers = [Buffer(0, 9, 4), Buffer(1, 2, 4), Buffer(5, 6, 4), Buffer(5, 7, 4)]
    assert irreducible(buffers, 10) == (0, 2, 3)


@pytest.mark.parametrize("name", ["A", "B", "C", "D", "E"])
def test_the_challenging_instances_pack(shared: Path, name: str) -> None:
    capacity = 1_048_576
    buffers = list(read_buffers(shared / "bench" / "minimalloc" / f"{name}.{capacity}.csv").buffers)
    assert legal(buffers, search(buffers, capacity).offsets, capacity)


@pytest.mark.parametrize("n", [20, 60])
def test_exact_tilings_pack(n: int) -> None:
    buffers = exact_tiling(n, seed=n)
    answer = search(buffers, 1000)
    assert legal(buffers, answer.offsets, 1000)


@pytest.mark.parametrize("alignment", [1, 2, 16, 64])
def test_alignment_rounds_sizes_and_offsets(alignment: int) -> None:
    buffers = [Buffer(0, 2, 3), Buffer(0, 2, 65), Buffer(1, 3, 1)]
    need = max_load(buffers, alignment=alignment)
    answer = pack(buffers, need, alignment=alignment)
    assert fault(buffers, answer.offsets, need, alignment=alignment) is None
    assert pack(buffers, need - 1, alignment=alignment).status == "infeasible"


@pytest.mark.thorough
@given(small_instances())
@settings(max_examples=100, deadline=None)
def test_minimise_finds_the_smallest_capacity(instance: tuple[list[Buffer], int]) -> None:
    buffers, _ = instance
    extent = minimise(buffers)
    assert extent.optimal
    assert legal(buffers, extent.offsets, extent.bytes)
    assert not exhaustive(buffers, extent.bytes - 1)


def test_minimise_proves_a_bound_above_the_load() -> None:
    buffers, capacity = tight_instance(MISFITS[0])
    extent = minimise(buffers)
    assert extent.optimal
    assert extent.bytes > capacity == max_load(buffers)


@given(small_instances())
@settings(max_examples=100, deadline=None)
def test_the_validator_agrees_with_the_definition(instance: tuple[list[Buffer], int]) -> None:
    buffers, capacity = instance
    for shift in range(4):
        offsets = tuple((i * (shift + 1)) % capacity for i in range(len(buffers)))
        assert (fault(buffers, offsets, capacity) is None) == legal(buffers, offsets, capacity)


def test_limits_end_in_unknown() -> None:
    buffers = exact_tiling(300, seed=1)
    assert search(buffers, 1000, node_limit=1).status == "unknown"
    assert pack(buffers, 1000, time_limit=0.0).status == "unknown"


def test_the_second_engine_decides_what_the_search_leaves() -> None:
    buffers, capacity = tight_instance(MISFITS[0])
    answer = pack(buffers, capacity, node_limit=1, engines=("search", "cp-sat"))
    assert (answer.status, answer.engine) == ("infeasible", "cp-sat")


def test_repair_packs_where_the_search_would_get_lost() -> None:
    """Large buffers with slack above them, and small ones in between."""
    rnd = random.Random(0)
    buffers = [Buffer(t, t + rnd.randint(1, 6), rnd.choice([1, 2, 3, 400, 800, 1600])) for t in range(60)]
    capacity = max_load(buffers)
    answer = pack(buffers, capacity, engines=("repair",))
    assert answer.status == "packed"
    assert legal(buffers, answer.offsets, capacity)


def interrupt(done: int) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_passes_through_pack_and_leaves_minimise_its_best() -> None:
    buffers = exact_tiling(300, seed=1)
    for engine in ("search", "repair"):
        with pytest.raises(KeyboardInterrupt):
            pack(buffers, 1000, engines=(engine,), progress=interrupt)
    extent = minimise(buffers, progress=interrupt)
    assert extent.lower_bound == 1000 < extent.bytes
    assert legal(buffers, extent.offsets, extent.bytes)


def test_nothing_packs_and_too_large_does_not() -> None:
    assert pack([], 0).status == "packed"
    assert pack([Buffer(0, 1, 5)], 4).status == "infeasible"


@pytest.mark.parametrize(
    "wrong", [(1, 1, 4), (2, 1, 4), (0, 1, 0), (0, 1, -3), (0, 1, 1 << 41), (0, 1 << 63, 1)]
)
def test_what_is_no_buffer_is_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError):
        Buffer(*wrong)
