"""The generators reach what they are for: a property test proves nothing about cases that never come."""

from collections import Counter
from random import Random

from hypothesis import given, settings

from onchip.network import Network, bits
from strategies import careful_peak, hostile_networks, minimum_requirement, random_case


def test_random_cases_reach_every_hard_feature() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        case = random_case(Random(seed))
        net = case.network
        low = minimum_requirement(net, case.alignment)
        assert case.budget >= low
        activations = list(bits(net.roots & ~net.input_roots))
        seen["budget is MR"] += case.budget == low
        seen["budget below a peak"] += case.budget < careful_peak(net, case.alignment)
        seen["alignment"] += case.alignment > 1
        seen["views"] += bool(net.views)
        seen["view is an output"] += any(net.root[t] != t for t in net.outputs)
        seen["view of an input"] += any(net.tensors[v.of].kind == "input" for v in net.views)
        seen["input is an output"] += bool(net.input_roots & net.output_roots)
        seen["output read inside"] += any(net.readers[t] for t in bits(net.output_roots))
        seen["unused output"] += any(
            not net.readers[t] and not net.output_roots >> t & 1 for t in activations
        )
        seen["unused input"] += any(not net.readers[t] for t in bits(net.input_roots))
        seen["several outputs"] += any(len(op.outputs) > 1 for op in net.operators)
        seen["no inputs"] += any(not op.inputs for op in net.operators)
        seen["workspace"] += any(op.workspace for op in net.operators)
        seen["input read often"] += any(net.readers[t].bit_count() > 1 for t in bits(net.input_roots))
        seen["fan-out"] += any(net.readers[t].bit_count() > 2 for t in activations)
        seen["listed out of order"] += net.order != tuple(range(len(net.operators)))
        seen["eight operators"] += len(net.operators) == 8
        seen["one operator"] += len(net.operators) == 1
    assert min(seen.values()) >= 4, seen
    assert seen["budget is MR"] >= 100
    assert seen["budget below a peak"] >= 150


@settings(max_examples=20)
@given(hostile_networks())
def test_hostile_networks_are_networks(network: Network) -> None:
    assert len(network.order) == len(network.operators)
