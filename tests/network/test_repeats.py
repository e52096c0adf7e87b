"""Networks in which operators run again: made, folded, refused."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import ModelError
from onchip.network import Network, OperatorSpec, bits
from onchip.network.repeats import folded, has_repeats, repeated, why_no_repeat


def _random(rng: Random) -> Network:
    count = rng.randint(2, 7)
    tensors: list[tuple[str, int, str]] = [("x", 4, "input"), ("z", 6, "input")]
    operators = []
    for n in range(count):
        reads = rng.sample([t[0] for t in tensors], rng.randint(1, min(3, len(tensors))))
        operators.append(OperatorSpec(f"o{n}", rng.choice("ABC"), reads, [f"t{n}"], rng.randint(0, 3)))
        tensors.append((f"t{n}", rng.randint(1, 9), "activation"))
    read = {t for op in operators for t in op.inputs}
    outputs = [t for t, _, kind in tensors if kind == "activation" and t not in read]
    return Network.build("random", tensors, operators, outputs)  # type: ignore[arg-type]


@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_a_network_with_repeats_folds_to_the_one_it_was_made_of(rng: Random) -> None:
    base = network = _random(rng)
    for _ in range(rng.randint(1, 4)):
        readers = [
            op.name for op in network.operators if any(network.producer[t] is not None for t in op.inputs)
        ]
        if not readers:
            return
        reader = network.operators[network.operator_id[rng.choice(readers)]]
        before: set[int] = set()
        todo = [reader.id]
        while todo:
            more = set(bits(network.predecessors[todo.pop()])) - before
            todo += more
            before |= more
        some = {network.operators[v].name for v in before if rng.random() < 0.6}
        network = repeated(network, some, [reader.name])
    assert why_no_repeat(network) is None
    assert len(network.order) == len(network.operators)
    meant = folded(network)
    assert meant.network.fingerprint == base.fingerprint
    for op in network.operators:
        original = base.operators[meant.operators[op.id]]
        assert (op.name.partition(".again")[0], op.type) == (original.name, original.type)
        assert tuple(meant.tensors[t] for t in op.inputs) == original.inputs
        assert tuple(meant.tensors[t] for t in op.outputs) == original.outputs


def test_a_network_without_repeats_is_its_own_meaning() -> None:
    network = _random(Random(1))
    assert folded(network).network is network
    assert not has_repeats(network)


def test_a_repeat_of_a_part_of_another_tensor_is_refused() -> None:
    network = Network.build(
        "views",
        [("x", 4, "input"), ("a", 4, "activation"), ("half", 2, "activation"), ("y", 2, "activation")],
        [OperatorSpec("f", "F", ["x"], ["a"]), OperatorSpec("g", "G", ["half"], ["y"])],
        ["y"],
        views=[("half", "a", 0)],
    )
    with pytest.raises(ValueError, match="a is, or holds, a view"):
        repeated(network, ["f"], ["g"])


def test_what_is_repeated_exists_and_repeats_nothing() -> None:
    def build(first: str | None, second: str) -> Network:
        return Network.build(
            "n",
            [("x", 1, "input"), *((t, 1, "activation") for t in ("a", "b", "c"))],  # type: ignore[list-item]
            [
                OperatorSpec("f", "F", ["x"], ["a"]),
                OperatorSpec("g", "F", ["x"], ["b"], repeats=first),
                OperatorSpec("h", "F", ["x"], ["c"], repeats=second),
            ],
            ["a"],
        )

    assert has_repeats(build("f", "f"))
    with pytest.raises(ModelError, match="operator h: repeats an unknown operator i"):
        build(None, "i")
    with pytest.raises(ModelError, match="operator h: repeats g, which itself repeats an operator"):
        build("f", "g")
