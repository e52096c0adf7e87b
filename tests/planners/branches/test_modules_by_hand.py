"""What is a module, what is none and why: one small network for each rule."""

from __future__ import annotations

import pytest
from merging_networks import CONCAT, ONE, every

from onchip.base.errors import UsageError
from onchip.network import Geometry, Network, OperatorSpec
from onchip.planners.branches.detection import LONG_SKIP, detect
from onchip.planners.branches.modules import Branch, Detection, Module, Stretch

GEOMETRIES = {
    "Add": ONE, "Add+Relu": ONE, "Relu": ONE, "Mul": ONE, "Concat": CONCAT, "Concat+Relu": CONCAT, "Max": ONE,
    "Mul+Add": ONE, "Relu+Add": ONE, "Joined": Geometry("gathered concat"), "Conv+Add": Geometry("conv"),
}  # fmt: skip


def network(text: str, outputs: str, views: str = "") -> Network:
    """`c = Conv a b` a line; what no line makes is an input. A view is `part<whole`."""
    parts = dict(view.split("<") for view in views.split())
    rows, made, read = [], [], []
    for line in text.strip().splitlines():
        left, right = line.split("=")
        type_, *reads = right.split()
        writes = left.split()
        rows.append(OperatorSpec(writes[0], type_, reads, writes, geometry=GEOMETRIES.get(type_)))
        made += writes
        read += reads
    inputs = [t for t in dict.fromkeys([*read, *parts.values()]) if t not in made and t not in parts]
    return Network.build(
        "n",
        [(t, 2, "input") for t in inputs] + [(t, 2, "activation") for t in made]
        + [(t, 1, "activation") for t in parts],
        rows,
        outputs.split(),
        views=[(part, whole, 0) for part, whole in parts.items()],
    )  # fmt: skip


def shown(net: Network, item: Module | Stretch) -> str:
    """A stretch as its operators; a module as start(branch|branch)merge, an identity branch as nothing."""

    def steps(branch: Branch) -> str:
        return " ".join(
            shown(net, step) if isinstance(step, Module) else net.operators[step].name
            for step in branch.steps
        )

    if isinstance(item, Stretch):
        return " ".join(net.operators[v].name for v in item.operators)
    inside = "|".join(steps(branch) for branch in item.branches)
    return f"{net.tensors[item.start].name}({inside}){net.operators[item.merge].name}"


def found(text: str, outputs: str, views: str = "", long_skip: int = LONG_SKIP) -> list[str]:
    net = network(text, outputs, views)
    return [shown(net, item) for item in detect(net, long_skip=long_skip).items]


def why(text: str, outputs: str, views: str = "", long_skip: int = LONG_SKIP) -> str:
    """The reason why the one merge that closes no module does not."""
    [rejected] = detect(network(text, outputs, views), long_skip=long_skip).rejected
    return rejected.reason


def test_a_residual_block_with_what_is_before_and_after() -> None:
    text = "s = Conv x\n a = Conv s\n b = Conv a\n m = Add+Relu b s\n h = Conv m"
    assert found(text, "h") == ["s", "s(a b|)m", "h"]


def test_an_inception_module_with_two_modules_in_it() -> None:
    text = """a = Conv x
    b = Conv x
    c = Conv b
    d = Conv b
    m = Concat c d
    e = Conv x
    f = Conv e
    g = Conv e
    n = Concat f g
    o = Concat a m n"""
    assert found(text, "o") == ["x(a|b b(c|d)m|e e(f|g)n)o"]


def test_a_nested_module_may_begin_and_end_with_its_outer_one() -> None:
    text = "a = Conv x\n b = Conv x\n m = Concat a b\n c = Conv m\n s = Add x c"
    assert found(text, "s") == ["x(|x(a|b)m c)s"]
    assert found("a = Conv x\n b = Conv x\n m = Add a b\n c = Conv x\n s = Add m c", "s") == ["x(x(a|b)m|c)s"]


def test_a_gate_within_a_branch_is_no_merge() -> None:
    text = "a = Conv x\n p = Pool a\n g = Conv p\n q = Mul a g\n b = Conv q\n m = Add x b"
    assert found(text, "m") == ["x(|a p g q b)m"]


def test_a_branch_may_give_the_merge_several_tensors() -> None:
    net = network("a = Conv x\n b = Conv a\n c = Conv x\n m = Concat b a c", "m")
    [module] = detect(net).modules
    assert shown(net, module) == "x(a b|c)m"
    assert [[net.tensors[t].name for t in b.outputs] for b in module.branches] == [["b", "a"], ["c"]]


def test_parts_of_the_start_are_the_start() -> None:
    text = "a = Conv p\n m = Joined q a"
    assert found(text, "m", "p<x q<x") == ["x(|a)m"]


def test_consecutive_modules_follow_each_other_whatever_else_could_run() -> None:
    text = """aux = Conv x
    a = Conv x
    m = Add x a
    late = Conv aux
    b = Conv m
    n = Add m b"""
    items = found(text, "n late")
    assert items.index("m(|b)n") == items.index("x(|a)m") + 1


@pytest.mark.parametrize(
    "type_", ["Conv+Add", "Relu+Add", "ADD", "add_", "Sum", "CONCATENATION", "cat", "Joined"]
)
def test_merges_go_by_several_names(type_: str) -> None:
    assert found(f"a = Conv x\n m = {type_} a x", "m") == ["x(a|)m"]


@pytest.mark.parametrize("type_", ["Mul", "Max", "Mul+Add", "MatMul+Add", "Attention", "Conv"])
def test_other_operators_of_two_tensors_are_no_merges(type_: str) -> None:
    net = network(f"a = Conv x\n m = {type_} a x", "m")
    assert detect(net) == Detection((Stretch((0, 1)),), (), ())


def test_a_sum_with_a_constant_is_no_merge() -> None:
    assert found("a = Conv x\n m = Add a", "m") == ["a m"]


# -- long skips ----------------------------------------------------------------------------------------------


def beside(count: int, more: str = "") -> str:
    """A sum of x with what `count` convolutions in a row make of it."""
    rows = [f"c{i + 1} = Conv c{i}" for i in range(1, count)]
    return "\n".join(["c1 = Conv x", *rows, more or f"m = Add x c{count}"])


def test_a_skip_over_just_so_many_layers_is_not_long() -> None:
    assert found(beside(8), "m") == ["x(|c1 c2 c3 c4 c5 c6 c7 c8)m"]
    assert found(beside(3), "m", long_skip=3) == ["x(|c1 c2 c3)m"]


def test_a_skip_over_one_layer_more_is_long() -> None:
    net = network(beside(9), "m")
    seen = detect(net)
    [skip] = seen.long_skips
    assert (net.tensors[skip.tensor].name, net.operators[skip.reader].name, skip.span) == ("x", "m", 9)
    assert not seen.modules
    assert why(beside(9), "m") == "its operand x comes over a long skip, which leaves one way to it"


def test_activations_and_plain_concats_are_no_layers_and_other_merges_are() -> None:
    text = """a = Conv x
    r = Relu a
    b = Conv r
    m = Concat r b
    n = Add x m"""
    assert not detect(network(text, "n"), long_skip=2).long_skips
    assert detect(network(text, "n"), long_skip=1).long_skips[0].span == 2
    text = text.replace("= Concat", "= Concat+Relu")
    assert detect(network(text, "n"), long_skip=2).long_skips[0].span == 3


def test_without_its_long_skip_a_module_has_its_other_branches() -> None:
    text = """s = Conv x
    a = Conv s
    b = Conv a
    c = Conv b
    d = Conv b
    m = Concat s c d"""
    assert found(text, "m") == ["s", "s(|a b c d)m"]
    assert found(text, "m", long_skip=2) == ["s a b", "b(c|d)m"]


def test_what_leaves_a_module_over_a_long_skip_does_not_break_it() -> None:
    text = """a = Conv x
    b = Conv a
    m = Add x b
    c = Conv m
    d = Conv c
    e = Conv d
    n = Add e a"""
    assert found(text, "n", long_skip=3) == ["x(|a b)m", "c d e n"]
    net = network(text, "n")
    reasons = [rejected.reason for rejected in detect(net, long_skip=5).rejected]
    assert reasons[0] == "a, on a way to it, is also read by n, outside"


def test_only_the_innermost_joint_of_a_unet_is_a_module() -> None:
    text = """d1 = Conv x
    p1 = Pool d1
    d2 = Conv p1
    e2 = Conv d2
    p2 = Pool e2
    d3 = Conv p2
    u3 = Up d3
    j2 = Concat e2 u3
    f2 = Conv j2
    g2 = Conv f2
    u2 = Up g2
    j1 = Concat d1 u2
    h = Conv j1"""
    net = network(text, "h")
    seen = detect(net)
    assert [shown(net, item) for item in seen.items] == ["d1 p1 d2 e2", "e2(|p2 d3 u3)j2", "f2 g2 u2 j1 h"]
    assert [(net.tensors[s.tensor].name, s.span) for s in seen.long_skips] == [("d1", 9)]


# -- reasons -------------------------------------------------------------------------------------------------


def test_a_module_with_too_many_layers_inside_is_none_even_without_a_skip() -> None:
    text = beside(9, "l = Conv x\n m = Add l c9")
    assert why(text, "m") == "its branches begin at x, 9 layers before it: more than 8"
    assert found(text, "m", long_skip=9) == ["x(l|c1 c2 c3 c4 c5 c6 c7 c8 c9)m"]


def test_what_is_read_outside_too_keeps_a_merge_from_closing_a_module() -> None:
    text = "a = Conv x\n b = Conv a\n m = Add x b\n h = Conv a"
    assert why(text, "m h") == "a, on a way to it, is also read by h, outside"


def test_an_output_of_the_network_keeps_a_merge_from_closing_a_module() -> None:
    assert (
        why("a = Conv x\n b = Conv a\n m = Add x b", "m a")
        == "a, on a way to it, is an output of the network"
    )
    assert found("s = Conv x\n a = Conv s\n m = Add s a\n h = Conv m", "h m s") == ["s", "s(|a)m", "h"]


def test_ways_from_several_inputs_make_no_module() -> None:
    reason = "no one tensor is passed by all ways to it: they begin at several inputs"
    assert why("a = Conv x\n b = Conv y\n m = Add a b", "m") == reason


def test_ways_from_several_outputs_of_one_operator_make_no_module() -> None:
    text = "p q = Split x\n a = Conv p\n m = Concat a q"
    assert why(text, "m") == "its branches begin at several outputs of p"


def test_ways_that_are_tied_together_make_no_module() -> None:
    text = "a = Conv x\n b = Conv x\n c = Mul a b\n d = Mul b a\n m = Add c d"
    assert why(text, "m") == "the ways to it from x are tied together before they reach it"


def test_a_merge_with_several_outputs_closes_none() -> None:
    assert why("a = Conv x\n m k = Concat a x", "m k") == "it has several outputs"


@pytest.mark.parametrize("many", [False, True])
def test_what_no_real_network_has_is_refused_in_good_time(many: bool) -> None:
    """Modules within modules without end; and one with thousands of branches."""
    count = 1000
    if many:
        text = "\n".join(f"c{i} = Conv x" for i in range(count))
        assert "too much lies between it and x" in why(
            f"{text}\n m = Concat {' '.join(f'c{i}' for i in range(count))}", "m"
        )
        return
    rows = ["m0 = Conv x"]
    for i in range(1, count):
        rows += [f"c{i} = Conv x", f"m{i} = Concat m{i - 1} c{i}"]
    net = network("\n".join(rows), f"m{count - 1}")
    seen = detect(net)
    assert [m.depth for m in every(seen.modules)] == list(range(1, 17))
    assert len(seen.rejected) == count - 17
    assert "too much lies between it and x" in seen.rejected[-1].reason


@pytest.mark.parametrize("wrong", [-1, True])
def test_a_long_skip_is_a_number_of_layers(wrong: int) -> None:
    with pytest.raises(UsageError, match="long-skip"):
        detect(network("a = Conv x", "a"), long_skip=wrong)


# -- names ---------------------------------------------------------------------------------------------------


def test_modules_are_called_by_what_their_operators_names_share() -> None:
    text = """l.0.a = Conv x
    l.0.b = Conv x
    l.0.m = Add l.0.a l.0.b
    r/1/a = Conv l.0.m
    r/1/add = Add r/1/a l.0.m
    u = Conv r/1/add
    v = Add u r/1/add"""
    assert [m.name for m in detect(network(text, "v")).modules] == ["l.0", "r/1", "v"]


def test_of_modules_that_would_be_called_the_same_only_an_outermost_one_is() -> None:
    text = """b.a = Conv x
    b.m = Add x b.a
    b.c = Conv b.m
    b.d = Conv b.m
    b.n = Add b.c b.d"""
    assert [m.name for m in detect(network(text, "b.n")).modules] == ["b.m", "b.n"]
    text += "\n b.e = Conv x\n b.o = Concat b.n b.e"
    assert [m.name for m in every(detect(network(text, "b.o")).modules)] == ["b", "b.m", "b.n"]


def test_no_two_modules_have_one_name() -> None:
    text = "b.a = Conv x\n b.m = Add x b.a\n c = Conv b.m\n b = Add b.m c"
    assert [m.name for m in detect(network(text, "b")).modules] == ["b", "b~2"]
