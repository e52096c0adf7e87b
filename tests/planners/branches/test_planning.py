"""The simple method on random networks of modules: legal, never worse than naive, I only where it fits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Literal

import pytest
import two_modules
from hypothesis import example, given, settings
from hypothesis import strategies as st

import onchip
from module_networks import random_module_network
from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.check.interpreter import Figures, Machine
from onchip.machines.chip import Chip, PartialWeights, PatchSize, load_chip
from onchip.network import Geometry, Network, OperatorSpec, bits
from onchip.planners.branches.acts import DoesNotFit
from onchip.planners.branches.decide import Choice, _choice, decide
from onchip.planners.branches.detection import detect
from onchip.planners.branches.memory import Memory
from onchip.planners.branches.options import BranchOptions
from onchip.planners.branches.plan import BranchPlan, plan_branches
from onchip.planners.branches.process import Way, process
from onchip.planners.branches.reorder import layers, order_of
from onchip.planners.branches.sizes import Sizes
from onchip.planners.branches.stored import stored
from onchip.planners.modules.table import module_table
from onchip.plans import Alloc, Join, Load, Run, Store

NPU = load_chip("exynos-npu")


def some_chip(rng: Random) -> Chip:
    """The NPU, or one with other patches, alignments and staging."""
    chip = replace(NPU, alignment_bytes=rng.choice([1, 1, 16, 64]), stages_strided=rng.random() < 0.8)
    if rng.random() < 0.2:
        return replace(chip, patch=None)
    patch = PatchSize(rng.choice([4, 4, 2, 8]), 4)
    channels = rng.choice([16, 8, None])
    held = None if channels is None else PartialWeights(channels, 2)
    return replace(chip, patch=patch, partial_weights=held)


def some_budget(rng: Random, network: Network) -> int:
    return max(64, int(sum(t.bytes for t in network.tensors) * rng.choice([0.05, 0.1, 0.2, 0.4, 1, 2])))


def planned(seed: int, rules: str, **how: float) -> BranchPlan | None:
    """A random network's plan; None where some layer fits in no way."""
    rng = Random(seed)
    network = random_module_network(rng, **how).network()  # type: ignore[arg-type]
    options = BranchOptions(rules=rules, long_skip=rng.choice([8, 4, 2]))  # type: ignore[arg-type]
    try:
        return plan_branches(network, some_chip(rng), some_budget(rng, network), options)
    except Infeasible:
        return None


@pytest.mark.thorough
@pytest.mark.parametrize("rules", ["paper", "ours"])
@settings(max_examples=30)
@given(seed=st.integers(0, 10**9))
def test_plans_are_legal_and_never_worse_than_naive(rules: str, seed: int) -> None:
    found = planned(seed, rules, long_skips=0.3, leaks=0.1, extra_outputs=0.1)
    if found is None:
        return
    assert check(found.plan) == found.plan.result
    table = module_table(found.plan)
    assert table.network.fm_bytes <= table.network.naive_fm_bytes


@pytest.mark.thorough
@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_processing_one_keeps_every_map_on_chip(seed: int) -> None:
    found = planned(seed, "paper")
    if found is None:
        return
    for section in found.plan.sections:
        if section.processing != "I":
            continue
        inside = found.plan.program[section.first : section.end]
        moved = [i for i in inside if isinstance(i, Store | Join) or (isinstance(i, Run) and i.streaming)]
        outputs = {found.plan.network.tensors[t].name for t in found.plan.network.outputs}
        assert all(isinstance(i, Store) for i in moved)
        stored_there = {i.tensor for i in moved if isinstance(i, Store)}
        last = found.plan.network.operators[found.plan.network.operator_id[section.merge or ""]].outputs
        names = {found.plan.network.tensors[t].name for t in last}
        assert stored_there <= names | outputs | {section.start}  # what others want of it besides
        loads = [i.tensor for i in inside if isinstance(i, Load)]
        assert loads in ([], [section.start])
    for fit in found.layers:
        assert fit.required <= fit.available


@pytest.mark.thorough
@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_processing_two_where_and_only_where_one_does_not_fit(seed: int) -> None:
    """By sizes alone, as printed; a plan takes II where regions find no addresses, too."""
    rng = Random(seed)
    network = random_module_network(rng).network()
    chip, budget = replace(some_chip(rng), alignment_bytes=1), some_budget(rng, network)
    kept = stored(network, chip)
    sizes, found = Sizes(kept, chip), detect(kept)
    skips = [(skip.tensor, skip.reader) for skip in found.long_skips]
    try:
        items = decide(Memory(kept, sizes, budget, skips), found, BranchOptions(), placed=False)
    except Infeasible:
        return
    taken = {item.module: item.processing for item in items if item.module is not None}
    for module in found.modules:
        most = peak_of_one(kept, sizes, module, order_of(module, sizes))
        assert taken[module.merge] == ("I" if most <= budget else "II")


def peak_of_one(network: Network, sizes: Sizes, module: object, order: dict[int, tuple[int, ...]]) -> int:
    """Most bytes at any layer with processing I, by Algorithms 4 to 6, written down anew.

    The input of every module around stays, so do the outputs of the branches before; besides them a layer has
    its input, output, weights and working memory, and whatever else a branch still needs.
    """
    most = 0

    def visit(module: object, held: dict[int, None]) -> None:
        nonlocal most
        around = {**held, module.start: None}  # type: ignore[attr-defined]
        for number in order[module.merge]:  # type: ignore[attr-defined]
            branch = module.branches[number]  # type: ignore[attr-defined]
            inside = list(layers(branch))
            ran: set[int] = set()
            alive: dict[int, None] = {}
            for step in branch.steps:
                if isinstance(step, int):
                    at_once = {*around, *alive, *bits(network.reads[step]), *network.operators[step].outputs}
                    most = max(most, sum(map(sizes.tensor, at_once)) + sizes.resident(step))
                    ran.add(step)
                    alive.update(dict.fromkeys(network.operators[step].outputs))
                else:
                    visit(step, {**around, **alive})
                    ran |= set(bits(step.operators))
                    alive[step.output] = None
                for t in tuple(alive):
                    wanted = any(v not in ran for v in bits(network.readers[t]) if v in inside)
                    if not wanted and t not in branch.outputs:
                        del alive[t]
            around.update(alive)

    visit(module, {})
    return most


@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_what_was_tried_leaves_nothing_behind(seed: int) -> None:
    rng = Random(seed)
    network = stored(random_module_network(rng, long_skips=0.3).network(), NPU)
    sizes = Sizes(network, NPU)
    found = detect(network)
    skips = [(skip.tensor, skip.reader) for skip in found.long_skips]
    memory = Memory(network, sizes, some_budget(rng, network), skips)
    if not found.modules:
        return
    module = found.modules[0]
    if not network.input_roots >> module.start & 1:
        memory._store(module.start)  # as if something before had left it in DRAM

    def state() -> tuple[object, ...]:
        return (
            list(memory.acts),
            dict(memory.resident),
            list(memory.pinned),
            list(memory.left),
            list(memory.near),
            set(memory._dram),
            set(memory._joined),
        )

    before, mark = state(), memory.mark()
    kinds: tuple[Literal["I", "II"], ...] = ("I", "II")
    for processing in kinds:
        for hold in (True, False):
            with suppress(DoesNotFit):
                process(memory, module, Way(processing, hold, order_of(module, sizes)))
            memory.undo(mark)
            assert state() == before


@pytest.mark.thorough
@settings(max_examples=25)
@given(seed=st.integers(0, 10**9))
@example(seed=16344520)  # four free clusters and more, one of them without a base beside what is given
@example(seed=10502226)  # what one rule spills is an output of the network, stored in any case
def test_our_rules_move_no_more_than_the_papers(seed: int) -> None:
    network = random_module_network(Random(seed)).network()
    for share in (0.1, 0.3):
        budget = max(64, int(sum(t.bytes for t in network.tensors) * share))
        try:
            paper = plan_branches(network, NPU, budget)
        except Infeasible:
            continue
        ours = plan_branches(network, NPU, budget, BranchOptions(rules="ours"))
        moved = [made.plan.result.dram_bytes for made in (ours, paper)]
        assert moved[0] <= moved[1]


@pytest.mark.parametrize("rules", ["paper", "ours"])
def test_a_concat_of_a_module_s_own_input_costs_no_more_than_streaming_everything(rules: str) -> None:
    """The input is in DRAM already: to keep the concat of it and a branch, and store both, would be worse."""
    rows, channels = 120, 64
    window = Geometry(
        "conv", (1, channels, rows, rows), (1, channels, rows, rows), (1, 1), (1, 1), (0,) * 4, (1, 1)
    )
    joined = (1, 2 * channels, rows, rows)
    made = (1, channels, rows // 2, rows // 2)
    halved = Geometry("conv", joined, made, (2, 2), (2, 2), (0,) * 4, (1, 1))
    size = channels * rows * rows
    network = Network.build(
        "n",
        [
            ("x", size, "input"),
            ("s", size, "activation"),
            ("b", size, "activation"),
            ("m", 2 * size, "activation"),
            ("y", size // 4, "activation"),
        ],
        [
            OperatorSpec("stem", "Conv", ["x"], ["s"], channels**2, geometry=window),
            OperatorSpec("branch", "Conv", ["s"], ["b"], channels**2, geometry=window),
            OperatorSpec(
                "cat", "Concat", ["s", "b"], ["m"], geometry=Geometry("concat", window.output, joined)
            ),
            OperatorSpec("head", "Conv", ["m"], ["y"], 8 * channels**2, geometry=halved),
        ],
        ["y"],
    )
    for budget in (1 << 20, 2 << 20, 3 << 20, 1 << 23):
        found = plan_branches(network, NPU, budget, BranchOptions(rules=rules))  # type: ignore[arg-type]
        table = module_table(found.plan)
        assert [row.is_module for row in table.rows].count(True) == 1
        assert table.network.fm_bytes <= table.network.naive_fm_bytes
    assert table.modules[0].fm_bytes == 0


@pytest.mark.thorough
def test_the_paper_s_rules_keep_a_module_s_input_to_its_end() -> None:
    overwritten = 0
    for seed in range(30):
        for rules in ("paper", "ours"):
            found = planned(seed, rules)
            for section in () if found is None else found.plan.sections:
                inside = () if found is None else found.plan.program[section.first : section.end]
                over = [i for i in inside if isinstance(i, Alloc) and i.over == section.start is not None]
                overwritten += len(over)
                assert not over or rules == "ours"
    assert overwritten  # by our rules a sum may


@pytest.mark.thorough
def test_a_long_skip_is_stored_once_and_fetched_once() -> None:
    seen = 0
    for seed in range(40):
        found = planned(seed, "paper", long_skips=1.0)
        if found is None:
            continue
        names = [t.name for t in found.plan.network.tensors]
        for skip in found.detection.long_skips:
            name = names[skip.tensor]
            reader = found.plan.network.operators[skip.reader].name
            runs = [i for i in found.plan.program if isinstance(i, Run) and i.operator == reader]
            joins = [i for i in found.plan.program if isinstance(i, Join) and i.operator == reader]
            loads = [i for i in found.plan.program if isinstance(i, Load) and i.tensor == name]
            streamed = any(name in dict(run.streaming) for run in runs)
            seen += streamed or bool(joins) or bool(loads)
    assert seen > 5


@pytest.mark.parametrize(
    ("way", "budget", "after", "choice"),
    [
        # Everything through DRAM: a and p, a and q, q and r; the concat is joined there.
        (Way("II", False, {}, forward=False), 100, "head", Choice(64 + 32 + 64 + 48 + 48 + 64, 6)),
        (Way("II", False, {}, forward=False), 100, None, Choice(320, 6)),
        # What comes next begins with m, which is not on chip.
        (Way("II", False, {}, forward=False), 100, "c4", Choice(320 + 96, 7)),
        # a comes in once, and m stays.
        (Way("I", True, {}), 4096, "c4", Choice(64, 1)),
    ],
)
def test_a_way_is_priced_with_what_its_output_costs_the_next(
    way: Way, budget: int, after: str | None, choice: Choice
) -> None:
    network = two_modules.network()
    sizes = Sizes(network, replace(two_modules.CHIP, partial_weights=None))
    memory = Memory(network, sizes, 4096)
    module = detect(network).modules[0]
    memory.merge(network.operator_id["stem"], (), want=False, strict=False, over=(), in_place=False)
    begin = len(memory.acts)
    process(memory, module, replace(way, order=order_of(module, sizes)))
    assert _choice(memory, begin, module, None if after is None else network.operator_id[after]) == choice


def test_the_answer_interprets_its_program_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One replay gives the certificate, the table and the regions."""
    ended, end = list[Machine](), Machine.end

    def counted(machine: Machine) -> Figures:
        ended.append(machine)
        return end(machine)

    monkeypatch.setattr(Machine, "end", counted)
    made = onchip.branches("zoo:googlenet")
    assert str(made)
    assert made.data()
    assert len(ended) == 1
