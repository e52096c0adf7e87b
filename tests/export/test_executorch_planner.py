"""ExecuTorch's memory planning by onchip, on objects with the fields that ExecuTorch hands over.

Every plan is executed on bytes that know whose they are. Least arenas and least bytes of a slow memory are
held against all ways to choose.
"""

from __future__ import annotations

import itertools
from random import Random

import pytest
from executorch_stand_ins import Module, Spec, Target, random_module, replayed

from onchip.base.errors import IllegalPlan, Infeasible, InputError, UsageError
from onchip.executorch import Bank, planner
from onchip.executorch.one_memory import Placed
from onchip.executorch.proof import proved_plan
from onchip.executorch.specs import Graph, Item, read_graph
from onchip.planners.packing import Buffer, minimise, pack
from onchip.plans import Plan


def buffers(module: Module) -> list[Buffer]:
    return [Buffer(s.lifetime[0], s.lifetime[1] + 1, s.allocated_memory, 16) for s in module.specs()]


@pytest.mark.parametrize("seed", range(25))
def test_every_plan_computes_and_takes_no_more_than_any_way_to_write_in_place(seed: int) -> None:
    rng = Random(seed)
    module = random_module(rng, rng.randint(2, 7))
    plans: list[Plan] = []
    apart = planner(in_place=False, on_plan=plans.append)(16, module.specs(), module)
    assert replayed(module) == ""
    assert apart[1] == minimise(buffers(module), time_limit=None).bytes
    again = Module(module.nodes)
    for spec in again.specs():
        spec.mem_id = spec.mem_offset = None
    over = planner(on_plan=plans.append)(16, again.specs(), again)
    assert replayed(again) == ""
    assert over[1] == least_in_place(module) <= apart[1]
    assert [plan.result.extent_bytes for plan in plans] == [apart[1], over[1]]


def least_in_place(module: Module) -> int:
    """Try every set of results over operands: same bytes, read there for the last time, no graph input."""
    specs = module.specs()
    given = [n.meta["spec"] for n in module.nodes if n.op in ("placeholder", "output")]
    pairs = [
        (x, node.meta["spec"])
        for at, node in enumerate(module.nodes)
        if isinstance(node.target, Target) and node.target._schema.name != "aten::convolution"
        for x in dict.fromkeys(a.meta["spec"] for a in node.args)
        if x.lifetime[1] == at and x not in given and x.size == node.meta["spec"].size
    ]
    best = 1 << 40
    for count in range(len(pairs) + 1):
        for chosen in itertools.combinations(pairs, count):
            if len({id(x) for x, _ in chosen}) < count or len({id(y) for _, y in chosen}) < count:
                continue
            root = {s: s for s in specs}
            for x, y in chosen:
                root[y] = x

            def top(s: Spec, root: dict[Spec, Spec] = root) -> Spec:
                return s if root[s] is s else top(root[s])

            rows = [
                Buffer(
                    min(s.lifetime[0] for s in group),
                    max(s.lifetime[1] for s in group) + 1,
                    r.allocated_memory,
                    16,
                )
                for r in dict.fromkeys(map(top, specs))
                if (group := [s for s in specs if top(s) is r])
            ]
            best = min(best, minimise(rows, time_limit=None).bytes)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_slow_memory_holds_the_fewest_bytes_of_all_assignments(seed: int) -> None:
    rng = Random(100 + seed)
    module = random_module(rng, rng.randint(3, 6))
    rows = buffers(module)
    fast = max(16, minimise(rows, time_limit=None).bytes * rng.randint(3, 9) // 160 * 16)
    least = 1 << 40
    for bits in itertools.product((0, 1), repeat=len(rows)):
        quick = [b for b, bit in zip(rows, bits, strict=True) if not bit]
        slow = [b for b, bit in zip(rows, bits, strict=True) if bit]
        if pack(quick, fast, time_limit=None).status == "packed":
            least = min(least, minimise(slow, time_limit=None).bytes if slow else 0)
    plans: list[Plan] = []
    banks = [Bank("fast", fast, 1), Bank("slow", 1 << 20, 2)]
    sizes = planner(banks, in_place=False, on_plan=plans.append)(16, module.specs(), module)
    assert replayed(module) == ""
    assert sizes[1] <= fast
    assert (sizes[2] if len(sizes) > 2 else 0) == least


def chain(*sizes: int) -> Module:
    """One tensor after the other, made by operators that do not go element by element."""
    module = Module()
    node = module.add("placeholder", "x", (), Spec(sizes[0]))
    for size in sizes[1:]:
        node = module.call("convolution", (node,), Spec(size))
    module.add("output", "output", (node,), node.meta["spec"])
    return module


def test_what_does_not_fit_is_said_with_numbers() -> None:
    module = chain(64, 160, 64)
    with pytest.raises(Infeasible, match=r"memory slow has 96 .*because of n2") as found:
        planner([Bank("fast", 128, 1), Bank("slow", 96, 2)])(16, module.specs(), module)
    assert (found.value.needs, found.value.has, found.value.memory) == (160, 96, "slow")
    assert all(s.mem_offset is None for s in module.specs())


def test_pins_padding_and_alignments_of_banks_hold() -> None:
    module = chain(64, 40, 40, 64)
    a, b, c, d = module.specs()
    b.mem_id, c.mem_id = 2, 7
    sizes = planner([Bank("fast", 512, 1), Bank("slow", 512, 2, 64)])(16, module.specs(), module, None, 64)
    assert (b.mem_id, c.mem_id, c.mem_offset) == (2, 7, 0)
    assert b.mem_offset is not None
    assert b.mem_offset % 64 == 0
    assert (sizes[2], sizes[7]) == (64 + 64, 48 + 64)
    assert {a.mem_id, d.mem_id} == {1}
    assert replayed(module) == ""
    b.mem_id = 2
    with pytest.raises(Infeasible, match="memory slow has 64"):
        planner([Bank("fast", 512, 1), Bank("slow", 64, 2)])(16, module.specs(), module, None, 64)


def test_three_banks_empty_the_slowest_first() -> None:
    module = chain(64, 160, 64, 160, 32)
    sizes = planner([Bank("a", 64, 3), Bank("b", 160, 1), Bank("c", 400, 2)])(16, module.specs(), module)
    assert len(sizes) == 3 or sizes[2] == 0
    assert replayed(module) == ""


def test_what_lies_in_the_storage_of_another_goes_along_and_empty_tensors_take_nothing() -> None:
    module = chain(64, 96, 64)
    _, b, _ = module.specs()
    inner = Spec(32, list(b.lifetime), storage_base=b, storage_base_offset=48)
    deeper = Spec(16, list(b.lifetime), storage_base=inner, storage_base_offset=16)
    empty = Spec(0, [1, 2])
    sizes = planner()(16, [*module.specs(), deeper, inner, empty], module)
    assert b.mem_offset is not None
    assert (inner.mem_offset, deeper.mem_offset) == (b.mem_offset + 48, b.mem_offset + 64)
    assert (empty.mem_id, empty.mem_offset) == (1, 0)
    assert sizes == [0, 160]


def test_what_submodules_take_at_the_bottom_is_nobody_else_s() -> None:
    module = chain(64, 32, 32, 64)
    module.input_mem_buffer_sizes = [0, 96]
    assert planner()(16, module.specs(), module) == [0, 96 + 96]
    assert min(s.mem_offset for s in module.specs() if s.mem_offset is not None) == 96
    banks = [Bank("fast", 128, 1), Bank("slow", 512, 2)]
    for spec in module.specs():
        spec.mem_id = None
    assert planner(banks)(16, module.specs(), module)[1] <= 128
    assert all(s.mem_id == 2 or (s.mem_offset or 0) >= 96 for s in module.specs())
    for spec in module.specs():
        spec.mem_id = None
    assert planner([Bank("fast", 96, 1), Bank("slow", 512, 2)])(16, module.specs(), module) == [0, 96, 96]


def test_operands_that_are_kept_broadcast_or_laid_out_otherwise_are_not_written_over() -> None:
    for change in ("read again", "broadcast", "type", "layout", "given", "not element-wise", "none"):
        module = Module()
        x = module.add("placeholder", "x", (), Spec(64))
        a = x if change == "given" else module.call("convolution", (x,), Spec(64))
        y = module.call("convolution" if change == "not element-wise" else "add", (a, a), Spec(64))
        if change == "broadcast":
            a.meta["spec"].shape = [1, 64]
        if change == "type":
            a.meta["spec"].dtype = "int32"
        if change == "layout":
            a.meta["spec"].dim_order = (1, 0)
        z = module.call("convolution", (y, a) if change == "read again" else (y,), Spec(16))
        module.add("output", "output", (z,), z.meta["spec"])
        planner()(16, module.specs(), module)
        same = a.meta["spec"].mem_offset == y.meta["spec"].mem_offset
        assert same == (change == "none"), change


def test_a_wrong_placement_is_refused_by_the_checker() -> None:
    module = chain(64, 64, 64)
    graph = read_graph(16, module.specs(), module, 0)
    right = Placed({0: (1, 0), 1: (1, 64), 2: (1, 0)}, {}, {1: 128}, {1: 128})
    plan = proved_plan(graph, right, (), 0.0)
    assert plan is not None
    assert plan.result.status == "optimal"
    for wrong in (
        Placed({0: (1, 0), 1: (1, 48), 2: (1, 0)}, {}, {1: 112}, {}),
        Placed({0: (1, 0), 1: (1, 0), 2: (1, 64)}, {1: 0}, {1: 128}, {}),
    ):
        with pytest.raises(IllegalPlan):
            proved_plan(graph, wrong, (), 0.0)
    beyond = Placed({0: (1, 0), 1: (2, 0), 2: (1, 0)}, {}, {1: 64, 2: 64}, {})
    with pytest.raises(IllegalPlan):
        proved_plan(graph, beyond, (Bank("one", 64, 1), Bank("two", 48, 2)), 0.0)
    assert isinstance(graph, Graph)
    assert isinstance(graph.items[0], Item)


def test_tensors_that_cannot_be_placed_are_named() -> None:
    module = chain(64, 64)
    b = module.specs()[1]
    b.storage_base = Spec(64, [0, 3])
    with pytest.raises(InputError, match="n2: lies in the storage of a tensor that is not planned"):
        planner()(16, module.specs(), module)
    b.storage_base = None
    b.lifetime = [None, None]
    with pytest.raises(InputError, match="has no live range"):
        planner()(16, module.specs(), module)
    with pytest.raises(UsageError, match="two banks have the mem_id 1"):
        planner([Bank("a", 16, 1), Bank("b", 16, 1)])
    with pytest.raises(UsageError, match="alignment 24, no multiple"):
        planner([Bank("a", 16, 1, 24)])(16, [], Module())


def test_the_older_name_of_a_base_is_read() -> None:
    module = chain(64, 96, 64)
    _, b, _ = module.specs()
    older = Older(64, [b.lifetime[0], b.lifetime[1] + 1], b)
    assert planner()(16, [*module.specs(), older], module) == [0, 96 + 64 + 0]
    assert older.mem_offset == b.mem_offset


class Older:
    """A tensor of ExecuTorch 1.4, whose base is its `inplace_base`."""

    def __init__(self, size: int, lifetime: list[int], base: Spec) -> None:
        self.allocated_memory, self.lifetime, self.inplace_base = size, lifetime, base
        self.mem_id: int | None = None
        self.mem_obj_id: int | None = None
        self.mem_offset: int | None = None

    def realign(self, alignment: int) -> int:
        return self.allocated_memory
