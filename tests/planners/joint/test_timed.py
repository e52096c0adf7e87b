"""Joint plans for the shortest time: copies against brute force, bounds, refusals, legal plans."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import pytest

import onchip
from nest_networks import network_of
from onchip.base.errors import IllegalPlan, NegativeAnswer, UsageError
from onchip.check import check, plan_chip_of
from onchip.check.figures import times_of
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.network import Constant, Network, OperatorSpec, Reach, Side, bits, mask
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.options import DEFAULTS, fusion_options
from onchip.planners.joint.timed.aim import Goal
from onchip.planners.joint.timed.answer import quickest, starts_of
from onchip.planners.joint.timed.bound import least_picoseconds, least_work
from onchip.planners.joint.timed.compiled import compiled_for
from onchip.planners.joint.timed.copies import best_copies
from onchip.planners.joint.timed.hasten import Fastest
from onchip.planners.joint.timed.joined import joined, seamed
from onchip.planners.joint.timed.partition import Efforts, partitioned_plan, streamed_of
from onchip.planners.joint.timed.pricing import Opened, TimedGroup
from onchip.planners.joint.timed.spelled import spelled
from onchip.planners.joint.timed.starts import Sliced, slices
from onchip.planners.limits import NO_LIMITS
from onchip.plans import Leaf, Loop, Nest, Plan, Ways
from oracles.copies_trial import copies_trial
from timed_plans import EXAMPLE, SPILLED, TILES, WORDED, example, few_looks


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of two operators need few."""
    few_looks(monkeypatch)


CHIP = Chip("example", 1, "int8", tiles=TILES)


def opened(text: str = EXAMPLE) -> Opened:
    """The nest of the worked example, ready to be priced."""
    network = WORDED.network
    streamed = frozenset(bits(network.input_roots | network.output_roots))
    found = TimedGroup(network, (0, 1), streamed, TILES).opened(example(text))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "room", "time"),
    [
        (EXAMPLE, 72, 113_000),
        (EXAMPLE, 71, 131_000),
        (EXAMPLE, 63, 158_000),
        (SPILLED, 56, 350_000),
        (SPILLED, 64, 314_000),
    ],
)
def test_the_worked_example_gets_its_best_copies(text: str, room: int, time: int) -> None:
    """docs/nest-times.md has these times; the copies of `x` and `z` at the root are free to choose, too."""
    found = best_copies(opened(text), room)
    assert found is not None
    assert found.complete
    assert found.priced.time <= time
    assert found.priced.scratch <= room


@pytest.mark.parametrize("seed", range(16))
def test_copies_are_those_of_brute_force(seed: int) -> None:
    copies_trial(seed)


def test_a_nest_spelled_out_moves_as_much_and_names_all_that_moves() -> None:
    network = WORDED.network
    lines = ["for f 2", "  run up", "  run down"]
    from nest_networks import nest_of

    nest, _ = nest_of(WORDED, lines)
    (loop,) = nest.body
    sliced = Nest((replace(loop, body=tuple(replace(leaf, slices=((0, 2),)) for leaf in loop.body)),))  # type: ignore[union-attr,type-var,call-arg]
    group = TimedGroup(network, (0, 1), frozenset(bits(network.input_roots | network.output_roots)), TILES)
    plain = group.opened(sliced)
    assert plain is not None
    out = group.opened(spelled(plain.nest, plain.law.layout))
    assert out is not None
    assert (out.bytes, out.law.layout.need) == (plain.bytes, plain.law.layout.need)
    assert {unit.name for unit in out.units} == {"A", "B", "x", "z"}
    assert not plain.units


@cache
def planned(network: Network, budget: int, chip: Chip = CHIP) -> Plan:
    """The plan for latency, which the checker takes."""
    made = onchip.plan(network, chip, budget, fuse=True, objective="latency")
    check(made)
    return made


def test_a_plan_for_latency_is_fast_and_says_how_far_it_is_from_its_bound() -> None:
    made = planned(WORDED.network, 80)
    result = made.result
    assert result.latency_picoseconds is not None
    assert result.latency_picoseconds < 158_000  # the example with one copy of everything
    bound = least_picoseconds(WORDED.network, TILES, 80)
    assert result.latency_lower_bound_picoseconds == bound
    assert (result.status == "optimal") == (result.latency_picoseconds == bound)
    assert made.options["objective"] == "latency"
    assert all(isinstance(group.tiling, Nest) for group in made.groups)


def without_copies(nest: Nest) -> Nest:
    from oracles.nest_clock_trial import without_copies as without

    return without(nest)


@pytest.mark.parametrize("budget", [40, 72])
def test_no_plan_is_slower_than_with_one_copy(budget: int) -> None:
    made = planned(WORDED.network, budget)
    plain = replace(
        made,
        groups=tuple(replace(group, tiling=without_copies(group.tiling)) for group in made.groups),  # type: ignore[arg-type]
    )
    from onchip.check.nest_clock import nest_times_of

    one = max(timed.end for timed in nest_times_of(plain))
    assert made.result.latency_picoseconds is not None
    assert made.result.latency_picoseconds <= one


CHAINS = {
    "a product with a large weight, then two small ones": (
        "m=6 d=8 f=32 y=8 z=4",
        [
            "one MatMul: a(m,f) = x(m,d) A(d,f)",
            "two MatMul: b(m,y) = a(m,f) B(f,y)",
            "three MatMul: c(m,z) = b(m,y) C(y,z)",
        ],
        ["x"],
        ["c"],
    ),
    "two readers of one tensor": (
        "m=4 d=8 f=12 y=6",
        [
            "one MatMul: a(m,f) = x(m,d) A(d,f)",
            "two MatMul: b(m,y) = a(m,f) B(f,y)",
            "three MatMul: c(m,d) = a(m,f) C(f,d)",
        ],
        ["x"],
        ["b", "c"],
    ),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("part", [0.3, 1.2])
@pytest.mark.parametrize("channels", [1, 2])
def test_no_plan_is_slower_than_one_without_a_search(
    name: str, part: float, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the search finds nothing better than it begins with."""
    monkeypatch.setattr("onchip.planners.joint.timed.answer.EFFORTS", Efforts(1, 1, 1, 1, 1, 1))
    network = network_of(*CHAINS[name]).network
    tiles = replace(TILES, channels=TILES.channels * channels)
    chip = replace(CHIP, tiles=tiles)
    budget = int(part * sum(t.bytes for t in network.tensors))
    options = replace(DEFAULTS, overlap=False, concat_views=False)
    least = onchip.plan(network, chip, budget, fuse=True, overlap=False, concat_views=False)
    problem = FusionProblem.of(network, chip, fusion_options(options), budget)
    starts = starts_of(least, problem, 0.0, NO_LIMITS, "latency")
    made = quickest(least, problem, 0.0, NO_LIMITS, starts=starts)
    check(made)
    assert starts.fewest_bytes is not None
    assert (starts.whole_operators is not None) == (part > 1)
    assert made.result.latency_picoseconds is not None
    for start in starts.plans():
        check(start)
        assert start.result.latency_picoseconds is not None
        assert made.result.latency_picoseconds <= start.result.latency_picoseconds


def test_slices_of_weights_are_the_best_of_their_axis() -> None:
    """A product whose operands lie on chip: the weight comes in slices along either axis, in two copies."""
    network = network_of("m=4 d=8 f=12", ["one MatMul: a(m,f) = x(m,d) A(d,f)"], ["x"], ["a"]).network
    problem = FusionProblem.of(network, CHIP, fusion_options(DEFAULTS), 1_000)
    fastest = Sliced(problem, onchip.plan(network, CHIP, 1_000, fuse=True), NO_LIMITS, 0)
    axes = axes_of(network, (0,))
    assert isinstance(axes, GroupAxes)
    for room in (16, 40, 96):
        found = fastest.of((0,), frozenset(), room)
        assert found is not None
        assert found.scratch <= room
        group = fastest.group((0,), frozenset())
        for nest in slices(axes, {2}):
            judged = group.priced(nest, room)
            assert judged is None or judged.time >= found.time


def test_nests_of_two_groups_in_one_keep_inside_what_lies_between() -> None:
    network = WORDED.network
    groups = {
        ids: TimedGroup(network, ids, frozenset(bits(mask(range(len(network.tensors))))), TILES)
        for ids in ((0,), (1,), (0, 1))
    }
    axes = {ids: axes_of(network, ids) for ids in groups}
    assert all(isinstance(one, GroupAxes) for one in axes.values())
    loop = Loop((("up", 1),), 2, (Leaf("up"),), ("A", "h"), ways=Ways((("A", 2), ("h", 2))))
    first, second = Nest((loop,), ("x",)), Nest((Leaf("down"),), ("h", "B", "z"), Ways((("B", 2),)))
    alone = [groups[0,].priced(first, 1_000), groups[1,].priced(second, 1_000)]
    made = joined(first, second, axes[0, 1], [axes[0,], axes[1,]])  # type: ignore[arg-type,list-item]
    assert made is not None
    both = groups[0, 1].priced(made, 1_000)
    assert both is not None
    h = network.tensors[network.tensor_id["h"]].bytes
    assert both.bytes == sum(one.bytes for one in alone if one is not None) - 2 * h
    assert joined(first, second, axes[0, 1], [axes[0,], axes[0,]]) is None  # type: ignore[arg-type,list-item]
    other = axes[1,]
    assert isinstance(other, GroupAxes)
    views = replace(other, buffers=tuple(replace(b, name=f"{b.name} seen alone") for b in other.buffers))
    assert joined(first, second, axes[0, 1], [axes[0,], views]) is None  # type: ignore[arg-type,list-item]


def test_a_loop_of_each_part_may_become_one_loop() -> None:
    """It stands where either stood, in the tile of either; as many bytes cross."""
    network = WORDED.network
    ids = (0, 1)
    group = TimedGroup(network, ids, frozenset(bits(mask(range(len(network.tensors))))), TILES)
    first = Loop((("up", 1),), 2, (Leaf("up"),), ("A",), ways=Ways((("A", 2),)))
    second = Loop((("down", 2),), 3, (Leaf("down"),), ("B",))
    apart = Nest((first, second), ("x", "z"))
    found = list(seamed(apart, 1))
    assert {(one.body[0].tile, len(one.body)) for one in found if isinstance(one.body[0], Loop)} == {
        (2, 1),
        (3, 1),
    }
    before = group.priced(apart, 1_000)
    assert before is not None
    for nest in found:
        after = group.priced(nest, 1_000)
        assert after is not None
        assert after.bytes == before.bytes


def test_tensors_between_groups_lie_in_tiles_unless_that_is_forbidden() -> None:
    """Two products, each in a group, in boxes that are not whole rows: in tiles they are fewer pieces."""
    network = network_of(
        "m=16 d=16 f=16 y=16",
        ["one MatMul: a(m,f) = x(m,d) A(d,f)", "two MatMul: b(m,y) = a(m,f) B(f,y)"],
        ["x"],
        ["b"],
    ).network
    made = onchip.plan(network, CHIP, 128, fuse=True, objective="latency")
    rows = onchip.plan(network, CHIP, 128, fuse=True, objective="latency", dram_tiles=False)
    check(made)
    check(rows)
    assert (made.options["dram_tiles"], rows.options["dram_tiles"]) == (True, False)
    assert [one.tensor for one in made.layouts] == ["a"]
    assert not rows.layouts
    without = times_of(replace(made, layouts=()))
    assert without is not None
    assert made.result.latency_picoseconds is not None
    assert made.result.latency_picoseconds < max(t.end for t in without)
    unbound = replace(made.result, claim_sha256="")
    denied = replace(made, options={**made.options, "dram_tiles": False}, result=unbound)
    with pytest.raises(IllegalPlan, match="dram_tiles"):
        check(denied)


def layered(layers: int) -> Network:
    """Equal layers of two products, one behind the other."""
    lines = []
    for n in range(layers):
        lines.append(f"up{n} MatMul: u{n}(m,f) = t{n}(m,d) A{n}(d,f)")
        lines.append(f"down{n} MatMul: t{n + 1}(m,d) = u{n}(m,f) B{n}(f,d)")
    return network_of("m=4 d=8 f=16", lines, ["t0"], [f"t{layers}"]).network


def test_equal_layers_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many layers: each kind of group is searched once in each room, and once for longer."""
    monkeypatch.setattr("onchip.planners.joint.timed.partition.LARGEST", 3)
    kinds = []
    for layers in (3, 5):
        network = layered(layers)
        problem = FusionProblem.of(network, CHIP, fusion_options(DEFAULTS), 200)
        least = onchip.plan(network, replace(CHIP, tiles=None), 200)
        least = replace(least, chip=plan_chip_of(CHIP))
        fastest = Fastest(problem, least, NO_LIMITS, 1_000)
        efforts = Efforts(1_000, 1_000, 1_000, 10**7, 10**7, 10**8)
        assert partitioned_plan(least, problem, fastest, efforts) is not None
        assert fastest.searches <= 2 * len(fastest.known)
        one_streams = [network.order[n : n + 3] for n in range(2 * layers - 2)]
        kinds.append({fastest.key(ops, streamed_of(problem, ops))[1] for ops in one_streams})  # type: ignore[index]
    assert kinds[0] == kinds[1]
    assert len(kinds[0]) == 2


def test_operators_that_need_nothing_of_each_other_run_beside_each_other() -> None:
    """Two chains: the second one's first loads come while the first one's last results go."""
    worded = network_of(
        "m=8 d=8 f=8 y=8",
        ["one MatMul: a(m,f) = x(m,d) A(d,f)", "two MatMul: b(m,y) = w(m,d) B(d,y)"],
        ["x", "w"],
        ["a", "b"],
    )
    made = planned(worded.network, 2_000)
    assert len(made.groups) == 2
    assert any(isinstance(group.tiling, Nest) and group.tiling.beside for group in made.groups)


def test_equal_groups_are_searched_once() -> None:
    lines = [f"op{n} MatMul: t{n + 1}(m,e) = t{n}(m,d) W{n}(d,e)" for n in range(1)]
    worded = network_of(
        "m=8 d=8 e=8 f=8",
        [*lines, "other MatMul: u1(m,f) = u0(m,d) V(d,f)"],
        ["t0", "u0"],
        ["t1", "u1"],
    )
    problem = FusionProblem.of(worded.network, CHIP, fusion_options(DEFAULTS), 100)
    fastest = Fastest(problem, onchip.plan(worded.network, CHIP, 400, fuse=True), NO_LIMITS, 20_000)
    first, second = (fastest.of((v,), streamed_of(problem, (v,)), 100) for v in (0, 1))
    assert first is not None
    assert second is not None
    assert len(fastest.known) == 1
    assert (first.time, first.bytes) == (second.time, second.bytes)
    assert first.nest != second.nest


def test_bounds_hold_for_random_plans() -> None:
    """Whatever the nests, copies and channels, a plan takes no less than its bound."""
    from oracles.copies_trial import bound_trial

    assert sum(bound_trial(seed) for seed in range(20)) > 8


def stepping(rows: int, stride: int, span: int, before: int) -> Network:
    """A product whose rows are read by windows that step over some: a 1 x 1 window of stride 2 reads every
    other one."""
    read = rows // stride
    first = Reach(
        (rows, 3), ((Side(rows, 0), Side(2, 2)),), (Constant("A", 6, (Side(2, 2), Side(3, 1))),), (2,)
    )
    window = Side(rows, 0, stride=stride, before=before, span=span)
    other = Constant("B", 6, (Side(3, 2), Side(2, 1)))
    second = Reach((read, 2), ((window, Side(3, 2)),), (other,), (3,))
    return Network.build(
        "steps over rows",
        [("x", rows * 2, "input"), ("h", rows * 3, "activation"), ("y", read * 2, "activation")],
        [
            OperatorSpec("a", "Conv", ["x"], ["h"], 6, macs=rows * 6, reach=first),
            OperatorSpec("b", "Conv", ["h"], ["y"], 6, macs=read * 6, reach=second),
        ],
        ["y"],
    )


def test_the_bound_counts_no_rows_that_nobody_reads() -> None:
    """A nest that makes each row anew leaves out those between the windows."""
    network, tiles = stepping(8, 2, 1, 0), TileRates(10**9, (Channel(10**12),))
    compiled = compiled_for(network, (0, 1), {0, 2}, tiles)
    assert compiled is not None
    band = Loop((("a", 0), ("b", 0)), 1, (Leaf("a"), Leaf("b")), ("x",))
    found = compiled.price(Nest((band,), ("A", "B")))
    assert found is not None
    assert least_work(network, tiles) == [24_000, 24_000]
    assert found.work == 24_000 + 24_000
    assert found.time >= least_picoseconds(network, tiles, 0) == 48_000


@pytest.mark.parametrize(
    ("stride", "side"),
    [
        *((1, 1), (2, 1), (3, 1), (2, 4)),
        *(pytest.param(stride, 4, marks=pytest.mark.campaign) for stride in (1, 3)),
    ],
)
@pytest.mark.parametrize("span", [1, 2])
@pytest.mark.parametrize("before", [0, 1])
def test_no_nest_of_windows_that_step_over_rows_is_below_the_bound(
    stride: int, span: int, before: int, side: int
) -> None:
    network = stepping(12, stride, span, before)
    tiles = TileRates(10**9, (Channel(10**12),), sides=(ArraySide("out", side),))
    compiled = compiled_for(network, (0, 1), {0, 2}, tiles)
    assert compiled is not None
    front = compiled.front(2)
    assert front.complete
    assert front.found
    bound = least_picoseconds(network, tiles, 0)
    assert all(bound <= one.work <= one.time for one in front.found)


@pytest.mark.parametrize(
    "channel", [Channel(10**9, 10**18 - 1), Channel(10**9, 0, 10**18 - 1), Channel(1, burst_bytes=10**18 - 1)]
)
@pytest.mark.parametrize("objective", ["latency", "edp"])
def test_times_too_long_to_state_are_no_plan(channel: Channel, objective: Goal) -> None:
    rates = replace(CHIP.rates, dram_picojoules_per_byte=1.0)
    chip = replace(CHIP, tiles=replace(TILES, channels=(channel,)), rates=rates)
    with pytest.raises(NegativeAnswer, match=r"10\^18 picoseconds|none was found"):
        onchip.plan(WORDED.network, chip, 80, fuse=True, objective=objective)


def refused(chip: Chip, **options: object) -> str:
    with pytest.raises(UsageError) as refusal:
        onchip.plan(WORDED.network, chip, 100, fuse=True, objective="latency", **options)
    return str(refusal.value)


def test_a_chip_without_rates_of_tiles_and_plans_without_nests_are_refused() -> None:
    assert "example states none" in refused(replace(CHIP, tiles=None))
    assert "--no-nests" in refused(CHIP, nests=False)


def test_a_plan_for_latency_is_made_again_by_its_planner() -> None:
    from onchip.planners.joint.planner import PLANNER

    options = PLANNER.options_of(planned(WORDED.network, 80))
    assert options.objective == "latency"
    assert not options.overlap


def test_rates_do_not_matter_to_which_copies_are_legal() -> None:
    slow = TileRates(10**9, (replace(TILES.channels[0], bytes_per_second=1),), 1, TILES.sides)
    group = replace(opened().group, tiles=slow)
    other = group.opened(example(EXAMPLE))
    assert other is not None
    for copies in product((1, 2), repeat=len(other.units)):
        assert other.scratch(copies) == opened().scratch(copies)
