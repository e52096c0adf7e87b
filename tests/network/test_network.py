"""Networks: what `Network.build` accepts, what it derives, and every way it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from onchip.base.errors import ModelError
from onchip.base.limits import Limits
from onchip.base.units import MAX_BYTES
from onchip.network import (
    Geometry,
    Network,
    OperatorSpec,
    Patches,
    TensorKind,
    bits,
    mask,
)
from strategies import Case, cases, hostile_names, hostile_networks, network_of

X: tuple[str, int, TensorKind] = ("x", 4, "input")
A: tuple[str, int, TensorKind] = ("a", 4, "activation")
B: tuple[str, int, TensorKind] = ("b", 2, "activation")


def op(name: str, inputs: list[str], outputs: list[str], **more: Any) -> OperatorSpec:
    return OperatorSpec(name, "Any", inputs, outputs, **more)


OK: dict[str, Any] = {
    "name": "n",
    "tensors": [X, A, B],
    "operators": [op("f", ["x"], ["a"]), op("g", ["a"], ["b"])],
    "outputs": ["b"],
}

WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "duplicate tensor": ({"tensors": [X, A, B, A]}, "tensor a", "declared twice"),
    "zero bytes": ({"tensors": [X, A, ("b", 0, "activation")]}, "tensor b", "zero bytes"),
    "negative bytes": ({"tensors": [X, A, ("b", -1, "activation")]}, "tensor b", "not between 1 and 1 TiB"),
    "10 TB": ({"tensors": [X, A, ("b", 10**13, "activation")]}, "tensor b", "not between 1 and 1 TiB"),
    "no operators": ({"operators": []}, "network n", "no operators"),
    "duplicate operator": (
        {"operators": [op("f", ["x"], ["a"]), op("f", ["a"], ["b"])]},
        "operator f",
        "declared twice",
    ),
    "unknown input": ({"operators": [op("f", ["q"], ["a", "b"])]}, "operator f", "unknown tensor q"),
    "unknown output": ({"operators": [op("f", ["x"], ["a", "b", "q"])]}, "operator f", "unknown tensor q"),
    "operator without outputs": (
        {"operators": [*OK["operators"], op("h", ["b"], [])]},
        "operator h",
        "no outputs",
    ),
    "no outputs": ({"outputs": []}, "network n", "no outputs"),
    "unknown network output": ({"outputs": ["q"]}, "outputs", "unknown tensor q"),
    "negative weights": (
        {"operators": [op("f", ["x"], ["a", "b"], weight_bytes=-1)]},
        "operator f",
        "weight_bytes -1",
    ),
    "huge workspace": (
        {"operators": [op("f", ["x"], ["a", "b"], workspace=MAX_BYTES + 1)]},
        "operator f",
        "workspace",
    ),
    "two producers": (
        {"operators": [op("f", ["x"], ["a", "b"]), op("g", ["a"], ["b"])]},
        "tensor b",
        "written by f and by g",
    ),
    "no producer": ({"operators": [op("f", ["x"], ["a"])]}, "tensor b", "no producer"),
    "writes an input": (
        {"operators": [op("f", ["a"], ["x", "b"]), op("g", ["b"], ["a"])]},
        "tensor x",
        "graph input",
    ),
    "self loop": ({"operators": [op("f", ["x", "a"], ["a", "b"])]}, "operator f", "cycle"),
    "cycle": ({"operators": [op("f", ["b"], ["a"]), op("g", ["a"], ["b"])]}, "operator f", "cycle"),
    "behind a cycle": (
        {
            "tensors": [X, A, B, ("c", 1, "activation")],
            "operators": [op("f", ["x", "c"], ["a"]), op("g", ["a"], ["b"]), op("h", ["b"], ["c"])],
        },
        "operator f",
        "cycle",
    ),
    "self loop through a view": (
        {
            "tensors": [X, A, ("v", 2, "activation"), B],
            "operators": [op("f", ["x", "v"], ["a"]), op("g", ["a"], ["b"])],
            "views": [("v", "a", 0)],
        },
        "operator f",
        "cycle",
    ),
    "cycle through a view": (
        {
            "tensors": [X, A, ("v", 2, "activation"), B],
            "operators": [op("f", ["b"], ["a"]), op("g", ["v"], ["b"])],
            "views": [("v", "a", 0)],
        },
        "operator f",
        "cycle",
    ),
    "view of nothing": ({"views": [("b", "q", 0)]}, "view b", "unknown tensor q"),
    "view that is nothing": ({"views": [("q", "a", 0)]}, "view q", "unknown tensor q"),
    "view leaves its parent": ({"views": [("b", "a", 3)]}, "view b", "[3, 5) leave a"),
    "view before its parent": ({"views": [("b", "a", -1)]}, "view b", "leave a"),
    "view twice": ({"views": [("b", "a", 0), ("b", "a", 1)]}, "view b", "declared twice"),
    "view of itself": ({"views": [("b", "b", 0)]}, "view b", "itself"),
    "views in a ring": (
        {"tensors": [X, A, ("b", 4, "activation")], "views": [("a", "b", 0), ("b", "a", 0)]},
        "view a",
        "itself",
    ),
    "an input as a view": ({"views": [("x", "a", 0)]}, "view x", "graph input"),
    "a view is written": (
        {"operators": [op("f", ["x"], ["a"]), op("g", ["x"], ["b"])], "views": [("b", "a", 0)]},
        "tensor b",
        "is a view, and g writes it",
    ),
    "huge geometry": (
        {"operators": [op("f", ["x"], ["a", "b"], geometry=Geometry("conv", kernel=(10**19,)))]},
        "operator f",
        "geometry",
    ),
    "a shape of no rows in patches": (
        {"patches": {"a": Patches(1, 2, 2, 2, 2)}, "shapes": {"a": (1, 0, 2, 2)}},
        "tensor a",
        "a shape with",
    ),
    "patches of nothing": ({"patches": {"q": Patches(1, 2, 2, 2, 2)}}, "patches of q", "unknown tensor"),
    "patches of another size": ({"patches": {"a": Patches(1, 3, 2, 2, 2)}}, "tensor a", "patches of 8"),
    "patches without height": ({"patches": {"a": Patches(1, 2, 2, 0, 2)}}, "tensor a", "patches with a size"),
    "patches of floats": (
        {"patches": {"a": Patches(1, 2, 2, 2.0, 2)}},  # type: ignore[arg-type]
        "tensor a",
        "patches with a size",
    ),
    "part of a channel": (
        {"views": [("b", "a", 0)], "patches": {"a": Patches(1, 2, 2, 2, 2)}},
        "view b",
        "no whole channels of a",
    ),
    "part of two channels": (
        {"views": [("b", "a", 1)], "patches": {"a": Patches(2, 1, 2, 1, 2), "b": Patches(1, 1, 2, 1, 2)}},
        "view b",
        "no whole channels of a",
    ),
    "a view that loses its patches": (
        {"views": [("b", "a", 2)], "patches": {"a": Patches(2, 1, 2, 1, 2)}},
        "view b",
        "does not lie in the patches of a",
    ),
    "a view in other patches": (
        {"views": [("b", "a", 2)], "patches": {"a": Patches(2, 1, 2, 1, 2), "b": Patches(1, 2, 1, 2, 1)}},
        "view b",
        "does not lie in the patches of a",
    ),
    "a view in patches of what has none": (
        {"views": [("b", "a", 2)], "patches": {"b": Patches(1, 1, 2, 1, 2)}},
        "view b",
        "lies in patches, and a does not",
    ),
    "lone surrogate": ({"tensors": [X, A, B, ("\ud800", 1, "input")]}, "tensor", "surrogate"),
}


def build(**changes: Any) -> Network:
    given_ = OK | changes
    views = given_.pop("views", ())
    return Network.build(**given_, views=views, where="file.json")


@pytest.mark.parametrize("why", WRONG)
def test_what_is_no_network_is_refused_by_name(why: str) -> None:
    changes, item, reason = WRONG[why]
    with pytest.raises(ModelError) as caught:
        build(**changes)
    message = str(caught.value)
    assert message.startswith(f"file.json: {item}"), message
    assert reason in message
    assert message.isprintable()


@given(hostile_names)
def test_a_hostile_name_is_quoted_in_one_line(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        build(tensors=[X, A, B, (name, 0, "activation")] if name not in "xab" else [X, X])
    assert str(caught.value).isprintable()


@pytest.mark.thorough
def test_huge_counts_are_refused_and_large_ones_accepted() -> None:
    chain = [op(f"f{i}", [f"t{i - 1}" if i else "x"], [f"t{i}"]) for i in range(Limits().operators + 1)]
    tensors = [X, *((f"t{i}", 1, "activation") for i in range(Limits().operators + 1))]
    with pytest.raises(ModelError, match="50,001 operators"):
        build(tensors=tensors, operators=chain, outputs=["t0"])
    short = 3000
    network = build(tensors=tensors[: short + 1], operators=chain[:short][::-1], outputs=[f"t{short - 1}"])
    assert network.order == tuple(range(short))[::-1]
    with pytest.raises(ModelError, match="more than 200,000 tensors"):
        build(tensors=((f"t{i}", 1, "input") for i in range(Limits().tensors + 5)))


def test_a_deep_chain_of_views_ends_at_the_root() -> None:
    depth = 2000
    views = [(f"v{i}", f"v{i - 1}" if i else "a", 0) for i in range(depth)]
    network = build(tensors=[X, A, B, *((f"v{i}", 4, "activation") for i in range(depth))], views=views[::-1])
    assert {view.of for view in network.views} == {network.tensor_id["a"]}


def test_an_operand_named_twice_counts_once() -> None:
    network = build(
        operators=[op("f", ["x", "x"], ["a"]), op("g", ["a", "x", "a"], ["b"])], outputs=["b", "b"]
    )
    assert [len(o.inputs) for o in network.operators] == [1, 2]
    assert network.outputs == (network.tensor_id["b"],)


def test_an_input_may_be_read_inside_and_be_an_output() -> None:
    network = network_of({"x": 1, "y": 1}, ["x -> y"], "x y")
    assert network.input_roots & network.output_roots == 1 << network.tensor_id["x"]


def test_views_stand_for_their_root() -> None:
    network = build(
        tensors=[X, A, ("half", 2, "activation"), ("quarter", 1, "activation"), B],
        operators=[op("f", ["x"], ["a"]), op("g", ["quarter"], ["b"])],
        outputs=["half"],
        views=[("quarter", "half", 1), ("half", "a", 2)],
    )
    a = network.tensor_id["a"]
    assert {(network.tensors[v.tensor].name, v.of, v.offset) for v in network.views} == {
        ("half", a, 2),
        ("quarter", a, 3),
    }
    assert network.reads[1] == 1 << a
    assert network.output_roots == 1 << a
    assert network.predecessors[1] == 1
    assert network.readers[a] == 2
    assert network.producer[network.tensor_id["quarter"]] == 0


def test_a_view_of_patches_is_some_of_its_channels() -> None:
    alike = {"a": Patches(2, 1, 2, 1, 2), "b": Patches(1, 1, 2, 1, 2)}
    for offset in (0, 2):
        network = build(operators=[op("f", ["x"], ["a"]), op("g", ["b"], ["c"])],
                        tensors=[X, A, B, ("c", 1, "activation")], views=[("b", "a", offset)],
                        outputs=["c"], patches=alike)  # fmt: skip
        assert network.tensors[2].patches == alike["b"]


def test_resident_weights_add_to_the_workspace() -> None:
    network = build(operators=[op("f", ["x"], ["a"], weight_bytes=7, workspace=2), op("g", ["a"], ["b"])])
    assert [o.workspace for o in network.with_resident_weights().operators] == [9, 0]
    assert network.weight_bytes == 7


def test_the_fingerprint_follows_the_structure() -> None:
    plain = build()
    assert plain.fingerprint == build().fingerprint
    for changes in (
        {"tensors": [X, A, ("b", 3, "activation")]},
        {"outputs": ["a"]},
        {"patches": {"a": Patches(1, 2, 2, 2, 2)}},
        {"operators": [op("f", ["x"], ["a"], workspace=1), op("g", ["a"], ["b"])]},
        {"tensors": [X, A, B, ("v", 1, "activation")], "views": [("v", "a", 0)]},
    ):
        assert build(**changes).fingerprint != plain.fingerprint


@pytest.mark.thorough
@settings(max_examples=50)
@given(cases())
def test_what_is_derived_is_consistent(case: Case) -> None:
    network = case.network
    assert list(bits(mask([3, 1, 4, 1]))) == [1, 3, 4]
    assert sorted(network.order) == list(range(len(network.operators)))
    done = 0
    for v in network.order:
        assert not network.predecessors[v] & ~done
        done |= 1 << v
    for v, (reads, writes) in enumerate(zip(network.reads, network.writes, strict=True)):
        assert not reads & writes
        assert (reads | writes) & ~network.roots == 0
        for t in bits(reads):
            assert network.readers[t] >> v & 1
        for t in bits(writes):
            assert network.producer[t] == v
    assert {t.name: t.id for t in network.tensors} == network.tensor_id
    assert all(network.operators[i].name == name for name, i in network.operator_id.items())


@settings(max_examples=30)
@given(hostile_networks())
def test_any_text_is_a_name(network: Network) -> None:
    assert len(network.tensor_id) == len(network.tensors)
