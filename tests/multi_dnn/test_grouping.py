"""Layer groups: every operator once, in order, and units may change only where one tensor crosses."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import UsageError
from onchip.machines.soc import Unit
from onchip.multi_dnn.grouping import layer_groups, moved_bytes
from onchip.network import Network, OperatorSpec
from onchip.readers import ReadOptions, load
from strategies import network_of, networks

PAPER = ("caffenet", "densenet121", "googlenet", "inception_v4", "resnet18", "vgg19")


def crossing(network: Network, before: set[int]) -> set[int]:
    """The tensors that operators in `before` write and others read, one operand at a time."""
    return {
        network.root[t]
        for op in network.operators
        if op.id not in before
        for t in op.inputs
        if network.producer[t] in before
    }


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(networks(), st.integers(1, 9))
def test_groups_are_the_network_cut_where_one_tensor_crosses(network: Network, most: int) -> None:
    groups = layer_groups(network, most=most)
    assert [op for group in groups for op in group.operators] == [*network.order]
    assert len(groups) <= most
    before: set[int] = set()
    for group in groups:
        before |= {*group.operators}
        for op in before:
            for t in network.operators[op].inputs:
                assert network.producer[t] is None or network.producer[t] in before
        across = crossing(network, before)
        assert across == (set() if group.handed_on is None else {group.handed_on})
    assert groups[-1].handed_on is None
    assert sum(group.macs for group in groups) == sum(op.work for op in network.operators)
    assert sum(group.weight_bytes for group in groups) == network.weight_bytes


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(networks(elementwise=0.3))
def test_no_cut_is_missed_in_the_networks_order(network: Network) -> None:
    order, wanted = network.order, set()
    single = [n for n in range(1, len(order)) if len(crossing(network, {*order[:n]})) == 1]
    for position, after in pairwise([*single, len(order)]):
        (tensor,) = crossing(network, {*order[:position]})
        readers = [op.id for op in network.operators if network.readers[tensor] >> op.id & 1]
        fused = readers if len(readers) == 1 else order[position:after]
        if any(network.operators[op].geometry is None for op in fused):  # the only geometry is elementwise
            wanted.add(position)
    groups = layer_groups(network, most=len(network.operators))
    assert {sum(len(g.operators) for g in groups[: n + 1]) for n in range(len(groups) - 1)} == wanted


def test_what_is_fused_stays_together() -> None:
    for granularity in ("op", "fused"):
        network = load("zoo:resnet18", ReadOptions(granularity=granularity)).network  # type: ignore[arg-type]
        starts = [network.operators[g.operators[0]].type for g in layer_groups(network, most=99)]
        assert {word.split("+")[0] for word in starts} == {"Conv", "Gemm"}
    fused, op = (
        layer_groups(load("zoo:resnet18", ReadOptions(granularity=g)).network, most=99)  # type: ignore[arg-type]
        for g in ("fused", "op")
    )
    assert [g.handed_bytes for g in fused] == [g.handed_bytes for g in op]
    assert [g.macs for g in fused] == [g.macs for g in op]


def test_an_activation_of_several_operators_stays_with_what_it_follows() -> None:
    names = ("x", "a", "s", "m", "b", "r", "c", "y")
    tensors = [(name, 8, "activation" if n else "input") for n, name in enumerate(names)]
    rows = (
        ("Conv", "x", "a"), ("Sigmoid", "a", "s"), ("Mul", "a s", "m"),  # a * sigmoid(a)
        ("Conv", "m", "b"), ("Relu", "b", "r"), ("Conv", "r", "c"), ("Add", "b c", "y"),  # a residual
    )  # fmt: skip
    specs = [
        OperatorSpec(f"op{n}", type_, reads.split(), [out]) for n, (type_, reads, out) in enumerate(rows)
    ]
    network = Network.build("silu", tensors, specs, ["y"])  # type: ignore[arg-type]
    assert [g.operators for g in layer_groups(network)] == [(0, 1, 2), (3,), (4, 5, 6)]


def test_a_pooling_belongs_to_what_it_makes_smaller() -> None:
    network = load("zoo:vgg19").network
    groups = layer_groups(network, most=99)
    assert sum(g.types == {"maxpool"} for g in groups) == 0
    assert next(g.handed_bytes for g in groups if "maxpool" in g.types) == 64 * 112 * 112


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_networks_have_groups(name: str) -> None:
    network = load(f"zoo:{name}").network
    groups = layer_groups(network)
    assert 7 <= len(groups) <= 10
    assert all(g.activation_bytes > 0 for g in groups)
    assert len({g.name for g in groups}) == len(groups)
    assert max(g.macs for g in groups) < sum(op.work for op in network.operators) / 2


def chain(*types: str) -> Network:
    tensors: list[tuple[str, int, str]] = [("x", 8, "input")]
    tensors += [(f"t{n}", 8, "activation") for n in range(len(types))]
    specs = [
        OperatorSpec(f"op{n}", type_, [f"t{n - 1}" if n else "x"], [f"t{n}"], macs=10 - n)
        for n, type_ in enumerate(types)
    ]
    return Network.build("chain", tensors, specs, [f"t{len(types) - 1}"])  # type: ignore[arg-type]


def test_groups_keep_to_what_a_unit_supports() -> None:
    network = chain("Conv", "Conv", "Softmax", "Softmax", "Conv+Relu", "Conv")
    dla = Unit("dla", unsupported=("softmax",))
    groups = layer_groups(network, [Unit("gpu"), dla], most=3)
    assert [g.operators for g in groups] == [(0, 1), (2, 3), (4, 5)]
    assert [g.runs_on(dla) for g in groups] == [True, False, True]
    assert all(g.runs_on(Unit("gpu")) for g in groups)
    # with fewer groups, one holds operators of both sorts, and the unit runs none of it
    assert [g.runs_on(dla) for g in layer_groups(network, [Unit("gpu"), dla], most=1)] == [False]
    relu = Unit("old", unsupported=("Relu",))
    assert [g.runs_on(relu) for g in layer_groups(network, [relu], most=6)] == [True] * 4 + [False, True]


def test_two_branches_are_never_parted() -> None:
    network = network_of(
        {"x": 1, "a": 4, "b": 4, "c": 4, "d": 4, "y": 4},
        ["x -> a", "a -> b", "a -> c", "b c -> d", "d -> y"],
        "y",
    )
    assert [g.operators for g in layer_groups(network)] == [(0,), (1, 2, 3), (4,)]


def test_a_concat_moves_nothing() -> None:
    network = load("zoo:googlenet").network
    assert {moved_bytes(network, op) for op in network.operators if op.type == "Concat"} == {0}
    conv = network.operators[0]
    assert moved_bytes(network, conv) == 3 * 224 * 224 + 64 * 112 * 112


def test_groups_must_be_counted_from_one() -> None:
    with pytest.raises(UsageError, match="groups: 0 is no number"):
        layer_groups(chain("Conv"), most=0)
