"""Whole programs of tiled groups: what the ledger and the clock say, beside those of the byte machine."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import byte_clock
import pytest
from byte_machine import ByteMachine
from cell_machine import Lack
from hypothesis import given, settings
from hypothesis import strategies as st
from tiled_plans import drawn_group, operands_of, up

from map_networks import random_map_network
from onchip.base.errors import IllegalPlan
from onchip.check import certify, check
from onchip.machines.chip import RATES, Chip, Rates
from onchip.network import Geometry, Network, OperatorSpec
from onchip.plans import Alloc, Free, Group, Instruction, Load, Plan, Run, Scratch, Store, Tiling


def random_partition(rng: Random) -> Plan:
    """A network cut into stretches of its order, each a tiled group; some of their operands are whole.

    What is loaded or made whole stays, or is stored and freed. No address is used twice.
    """
    drawn = random_map_network(rng, 6, opaque=0)
    network = drawn.network
    names = [network.operators[i].name for i in network.order]
    alignment = rng.choice((1, 4))
    spec = {op.name: op for op in network.operators}
    groups: list[Group] = []
    program: list[Instruction] = []
    on_chip, top, budget = set[str](), 0, 0
    while names:
        members = tuple(names[: rng.randint(1, 3)])
        ids = [network.operator_id[name] for name in members]
        touched = {t for i in ids for t in (*network.operators[i].inputs, *network.operators[i].outputs)}
        some = [network.tensors[t].name for t in sorted(touched) if rng.random() < 0.3]
        images = rng.randint(1, drawn.images)
        resident = tuple(name for name in members if rng.random() < 0.3)
        part = rng.choice((0.0, 0.4, 1.0))
        for streamed, kept in ((some[:3], members), ([], members), ([], members[:1])):
            tiling = Tiling(rng.randint(1, 2), tuple(streamed), rng.randint(1, 2), images)
            operands = sorted(operands_of(network, Group("", kept, 0)) - set(streamed))
            whole = {t for t in operands if rng.random() < part}
            weights = tuple(set(resident) & set(kept))
            try:
                found = drawn_group(drawn, kept, tiling, alignment, weights, whole)
            except Lack:
                continue
            break
        group = replace(found.group, name=f"g{len(groups)}")
        groups.append(group)
        made = {network.tensors[t].name for name in kept for t in spec[name].outputs}
        for t in sorted(whole - on_chip):
            program.append((Alloc if t in made else Load)(t, top))
            top += up(network.tensors[network.tensor_id[t]].bytes, alignment)
            on_chip.add(t)
        scratch = up(group.scratch_bytes, alignment)
        program += [Scratch(group.name, top), Run(group.name, found.streaming)]
        budget = max(budget, top + scratch)
        program += [Store(t) for t in sorted(whole & made)]
        for t in sorted(on_chip):
            if rng.random() < 0.5:
                program.append(Free(t))
                on_chip.remove(t)
        names = names[len(group.operators) :]
    keep = rng.choice(((), ("dram_bytes_per_second", "macs_per_second"), RATES))
    rates = Rates(**{key: rng.choice((0.5, 1e3, 7.7e9)) for key in keep})
    chip = Chip("test", alignment, rates=rates)
    return certify(
        network, chip, budget, program, status="feasible", lower_bound_bytes=0, seconds=0, groups=groups,
        options={"weights": "streamed"},
    )  # fmt: skip


@given(st.randoms(use_true_random=True))
@settings(max_examples=40)
def test_figures_and_times_are_those_of_the_cells(rng: Random) -> None:
    plan = random_partition(rng)
    result = check(plan)
    counts = ByteMachine(plan).execute()
    assert (result.compulsory_bytes, result.reload_bytes, result.spill_bytes, result.weight_bytes) == tuple(
        counts[key] for key in ("compulsory", "reload", "spill", "weights")
    )
    assert (result.peak_bytes, result.extent_bytes) == (counts["peak"], counts["extent"])
    if plan.chip.dram_bytes_per_second is None:
        assert plan.timing == ()
    else:
        assert [(t.index, t.start, t.end, t.fetched) for t in plan.timing] == byte_clock.times(plan)
    if plan.chip.dram_picojoules_per_byte is not None:
        assert result.energy_picojoules is not None


def convolutions(rows: int, *, images: int = 1) -> Network:
    """Two 3x3 convolutions of one input, one channel each, and weights of 9 bytes."""
    shape = (images, 1, rows, 4)
    same = Geometry("conv", shape, shape, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1))
    size = images * rows * 4
    return Network.build(
        "two",
        [("x", size, "input"), ("a", size, "activation"), ("b", size, "activation")],
        [OperatorSpec(name, "Conv", ["x"], [made], 9, 0, same) for name, made in ("fa", "gb")],
        ["a", "b"],
    )  # fmt: skip


def test_an_input_that_two_groups_stream_is_compulsory_once_and_its_halo_is_reload() -> None:
    # Bands of two rows: but for the first, each reads two rows of x again.
    network, size, halo = convolutions(8), 32, 3 * 2 * 4
    tiling = Tiling(2, ("x",), 1, 1)
    groups = [Group(f"{n}s", (n,), 4 * 4 + 2 * 4 + 9, 4, ((n, 4),), (), tiling) for n in "fg"]
    program: list[Instruction] = []
    for group, made in zip(groups, "ab", strict=True):
        program += [Scratch(group.name, 0), Run(group.name, (("x", size + halo), (made, size)))]
    plan = certify(
        network, Chip("c", 1), 33, program, status="feasible", lower_bound_bytes=0, seconds=0, groups=groups
    )
    result = plan.result
    assert (result.compulsory_bytes, result.reload_bytes) == (3 * size, halo + size + halo)
    assert (result.spill_bytes, result.weight_bytes, result.peak_bytes) == (0, 8 * 9, 33)


def banded(network: Network, rows: int, subgroups: int, scratch: int) -> Plan:
    group = Group("fs", ("f",), scratch, subgroups, (), ("f",), Tiling(rows, (), 1, 1))
    size = network.tensors[0].bytes
    alone = Group("gs", ("g",), 2 * size + 9, 1, (), ("g",), Tiling(size, (), 1, 1))
    program = [
        Scratch("fs", 0), Run("fs", (("x", size), ("a", size))),
        Scratch("gs", 0), Run("gs", (("x", size), ("b", size))),
    ]  # fmt: skip
    return certify(
        network, Chip("c", 1), 1 << 30, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[group, alone],
    )  # fmt: skip


def test_thousands_of_bands_are_judged_and_absurdly_many_are_not() -> None:
    banded(convolutions(20_000), 1, 20_000, 3 * 4 + 4 + 9)
    with pytest.raises(IllegalPlan, match=r"group-unproved.*absurd"):
        banded(convolutions(1 << 24), 1, 1 << 24, 3 * 4 + 4 + 9)
