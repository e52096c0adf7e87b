"""Networks in which operators run again: made, folded, refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import InputError, ModelError, PlanFormatError
from onchip.network import Network, OperatorSpec, bits
from onchip.network.json import read_network, wire_network
from onchip.network.repeats import folded, has_repeats, repeated, why_no_repeat
from onchip.plans import from_json, from_text, to_json
from repeated_plans import PLAN, TEXT


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


@pytest.mark.parametrize(
    ("was", "now", "reason"),
    [
        ("onchip.plan/2", "onchip.plan/1", "repeats needs a file of format onchip.plan/2"),
        ("repeats wide.again wide", "repeats nobody wide", "repeats nobody: is of no operator"),
        ("repeats wide.again wide", "repeats wide.again nobody", "repeats an unknown operator nobody"),
        ("repeats wide.again wide", "repeats wide.again wide wide", "not understood: repeats"),
        ("repeats wide.again wide", "repeats wide.again wide\nrepeats wide.again wide", "given twice"),
    ],
)
def test_files_that_say_it_wrong_are_refused_in_a_line(was: str, now: str, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)) as refusal:
        from_text(TEXT.replace(was, now))
    assert "\n" not in str(refusal.value)


def test_a_file_of_the_first_format_and_a_model_have_no_repeats(tmp_path: Path) -> None:
    with pytest.raises(PlanFormatError, match=r"operator wide\.again: repeats another operator: that needs"):
        from_json(to_json(PLAN).replace("onchip.plan/2", "onchip.plan/1"))
    path = tmp_path / "network.json"
    path.write_text(json.dumps(wire_network(PLAN.network)))
    with pytest.raises(ModelError, match=r"operator wide\.again: repeats another operator: plans let"):
        read_network(path)
