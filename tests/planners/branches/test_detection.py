"""Detection finds the modules of the definition, and takes the network apart without losing an operator."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from merging_networks import every, random_merging_network, run_of

from module_networks import ModuleNetwork, module_networks, random_module_network
from onchip.network import Network, bits, mask
from onchip.planners.branches import longskips
from onchip.planners.branches.detection import detect
from onchip.planners.branches.dominators import immediate_dominators
from onchip.planners.branches.merges import is_concat, is_layer, is_sum
from onchip.planners.branches.modules import Detection, Module
from oracles import modules as oracle

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
@settings(max_examples=300)
def test_immediate_dominators_are_the_last_nodes_that_every_way_passes(seed: int) -> None:
    rng = Random(seed)
    recent = rng.random() < 0.5
    predecessors: list[list[int]] = [[]]
    for n in range(1, rng.randint(2, 16)):
        near = [
            rng.randint(max(0, n - 3), n - 1) if recent else rng.randrange(n)
            for _ in range(rng.randint(1, 3))
        ]
        predecessors.append(near)
    above = immediate_dominators(predecessors)
    for n in range(1, len(above)):
        strict = [d for d in range(n) if oracle.dominates(predecessors, d, n)]
        assert above[n] == strict[-1]


@pytest.mark.thorough
@given(seeds, st.integers(0, 4))
@settings(max_examples=300)
def test_on_any_network_it_finds_what_the_definition_says(seed: int, limit: int) -> None:
    network, merges, layers = random_merging_network(Random(seed))
    with patch.object(longskips, "_AT_ONCE", seed % 3 + 1):
        found = detect(network, long_skip=limit)
    check_against_the_definition(network, found, merges, layers, limit)
    check_structure(network, found, Random(seed))


@pytest.mark.thorough
@given(module_networks(long_skips=0.4, leaks=0.03, extra_outputs=0.2), st.integers(0, 9))
@settings(max_examples=25)
def test_on_networks_of_modules_it_finds_what_the_definition_says(made: ModuleNetwork, limit: int) -> None:
    network = made.network()
    merges = mask(op.id for op in network.operators if op.type.split("+")[0] in ("Add", "Sum", "Concat"))
    layers = frozenset(op.id for op in network.operators if op.type != "Concat")
    found = detect(network, long_skip=limit)
    check_against_the_definition(network, found, frozenset(bits(merges)), layers, limit)


@given(seeds)
@settings(max_examples=100)
def test_it_finds_the_modules_that_a_network_was_made_of(seed: int) -> None:
    made = random_module_network(Random(seed))
    network = made.network()
    found = detect(network, long_skip=1000)
    assert not found.rejected
    assert not found.long_skips
    tensor, operator = network.tensors, network.operators
    around = {inner.merge: outer for outer in every(found.modules) for inner in directly_in(outer)}
    assert {
        (m.name, tensor[m.start].name, operator[m.merge].name, around[m.merge].name if m.depth > 1 else None)
        for m in every(found.modules)
    } == {(m.name, m.start, m.merge, m.around) for m in made.modules}


@given(seeds, st.integers(0, 12))
@settings(max_examples=100)
def test_a_network_of_modules_is_taken_apart_whole(seed: int, limit: int) -> None:
    made = random_module_network(Random(seed), long_skips=0.4, leaks=0.03, extra_outputs=0.2)
    network = made.network()
    check_structure(network, detect(network, long_skip=limit), Random(seed))


def check_against_the_definition(
    network: Network, found: Detection, merges: frozenset[int], layers: frozenset[int], limit: int
) -> None:
    assert {op.id for op in network.operators if is_layer(op)} == layers
    spans = {(s.tensor, s.reader): s.span for s in found.long_skips}
    assert spans == oracle.longs(network, layers, limit)
    expected = oracle.modules(network, merges, layers, limit)
    assert {(m.start, m.merge): m.operators for m in every(found.modules)} == expected
    assert {r.merge for r in found.rejected} == merges - {merge for _, merge in expected}


def check_structure(network: Network, found: Detection, rng: Random) -> None:
    """Every operator once, in orders that are legal however branches are permuted; modules as they say."""
    order: list[int] = []
    for item in found.items:
        order += run_of(item, rng) if isinstance(item, Module) else item.operators
    assert sorted(order) == list(range(len(network.operators)))
    done = 0
    for v in order:
        assert not network.predecessors[v] & ~done
        done |= 1 << v
    modules = list(every(found.modules))
    assert len({m.name for m in modules}) == len(modules)
    assert [m.depth for m in found.modules] == [1] * len(found.modules)
    far = {(s.tensor, s.reader) for s in found.long_skips}
    for m in modules:
        assert m.operators == mask(run_of(m, rng))
        assert network.writes[m.merge] == 1 << m.output
        assert is_concat(network.operators[m.merge]) or is_sum(network.operators[m.merge])
        assert len(m.branches) >= 2
        assert sum(not branch.steps for branch in m.branches) <= 1
        near = list(dict.fromkeys(network.root[t] for t in network.operators[m.merge].inputs))
        near = [t for t in near if (t, m.merge) not in far]
        assert sorted(t for branch in m.branches for t in branch.outputs) == sorted(near)
        assert [b.outputs[0] for b in m.branches] == sorted(
            (b.outputs[0] for b in m.branches), key=near.index
        )
        for branch in m.branches:
            made = 0
            for step in branch.steps:
                if isinstance(step, Module):
                    assert step.depth == m.depth + 1
                    reads, writes = 1 << step.start, 1 << step.output
                else:
                    reads = mask(t for t in bits(network.reads[step]) if (t, step) not in far)
                    writes = network.writes[step]
                assert not reads & ~(made | 1 << m.start)  # a branch reads nothing of another
                made |= writes
            assert not mask(branch.outputs) & ~(made if branch.steps else 1 << m.start)


def directly_in(module: Module) -> list[Module]:
    return [step for branch in module.branches for step in branch.steps if isinstance(step, Module)]


@pytest.mark.slow
@given(seeds, st.integers(0, 5))
@settings(max_examples=600)
def test_on_many_networks_it_finds_what_the_definition_says(seed: int, limit: int) -> None:
    network, merges, layers = random_merging_network(Random(seed), most=14)
    found = detect(network, long_skip=limit)
    check_against_the_definition(network, found, merges, layers, limit)
    check_structure(network, found, Random(seed))
