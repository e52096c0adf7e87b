"""The time of nests: the worked example of docs/nest-times.md, random plans, files, and what has no times."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from nest_networks import nest_of, network_of
from onchip.base.errors import ChipError, IllegalPlan, PlanFormatError
from onchip.check import check, layout_of
from onchip.check.nest_clock import nest_times_of
from onchip.check.nest_times import NoTimes, Timeline
from onchip.machines.chip import parse_chip
from onchip.machines.tile_rates import ArraySide
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.plans import Group, Leaf, Loop, Plan, from_json, from_text, to_json, to_text
from oracles.nest_clock_trial import time_trial
from timed_plans import CHIP, EXAMPLE, SPILLED, TILES, WORDED, chained, example, timed_plan


def plan(text: str = EXAMPLE, **copies: int) -> Plan:
    return timed_plan(WORDED.network, [example(text, **copies)], [["up", "down"]])


@pytest.mark.parametrize(
    ("text", "copies", "nanoseconds", "moved", "scratch"),
    [
        (EXAMPLE, {"A": 2, "B": 2}, 113, 80, 72),
        (EXAMPLE, {}, 158, 80, 48),
        (EXAMPLE, {"A": 2}, 140, 80, 64),
        (EXAMPLE, {"B": 2}, 131, 80, 64),
        (EXAMPLE, {"A": 3, "B": 3}, 113, 80, 88),
        (SPILLED, {}, 371, 144, 36),
        (SPILLED, {"A": 2, "B": 2}, 350, 144, 56),
        (SPILLED, {"A": 2, "B": 2, "z": 2}, 314, 144, 64),
    ],
)
def test_the_worked_example(
    text: str, copies: dict[str, int], nanoseconds: int, moved: int, scratch: int
) -> None:
    found = plan(text, **copies)
    result = check(found)
    assert (result.latency_picoseconds, result.dram_bytes) == (nanoseconds * 1000, moved)
    assert layout_of(WORDED.network, found.groups[0]).need == scratch
    assert max(timed.end for timed in nest_times_of(found, walk_all=True)) == nanoseconds * 1000


def test_the_time_line_of_the_worked_example() -> None:
    line = Timeline()
    nest_times_of(plan(A=2, B=2), timeline=line)
    ns = [(name, start // 1000, end // 1000) for _, name, _, _, start, end, _ in line.transfers]
    assert ns == [
        ("A", 0, 11), ("x", 11, 30), ("B", 30, 41), ("A", 41, 52), ("B", 52, 63), ("A", 63, 74),
        ("B", 74, 85), ("z", 94, 113),
    ]  # fmt: skip
    assert [(name, start // 1000, end // 1000) for _, name, start, end in line.steps] == [
        ("up", 30, 39), ("down", 41, 50), ("up", 52, 61), ("down", 63, 72), ("up", 74, 83), ("down", 85, 94),
    ]  # fmt: skip


def test_every_block_of_outputs_takes_cycles_in_every_step_that_adds_to_it() -> None:
    """`up` makes 2 x 1 blocks in a turn; `down` goes on with the sums of the same 2 x 2 in all three."""
    line, chip = Timeline(), replace(CHIP, tiles=replace(TILES, block_cycles=2))
    made = timed_plan(WORDED.network, [example(A=2, B=2)], [["up", "down"]], chip)
    check(made)
    nest_times_of(made, timeline=line)
    assert [(end - start) // 1000 for _, _, start, end in line.steps] == [9 + 2 * 2, 9 + 4 * 2] * 3
    sums = (ArraySide("out", 2), ArraySide("sum", 2))
    chip = replace(CHIP, tiles=replace(TILES, block_cycles=2, sides=sums))
    [loop] = example().body
    assert isinstance(loop, Loop)
    leaves = [Leaf("up", array=((0,), (2,))), Leaf("down", array=((0,), (2,)))]
    nest = replace(example(), body=(replace(loop, body=tuple(leaves)),))
    made, line = timed_plan(WORDED.network, [nest], [["up", "down"]], chip), Timeline()
    nest_times_of(made, timeline=line)
    # up: 2 x 2 blocks of 2 slices of its sum; down: 2 x 4 of one
    assert [(end - start) // 1000 for _, _, start, end in line.steps] == [
        1 + 4 * (2 + 2),
        1 + 8 * (2 + 1),
    ] * 3


def test_an_operand_may_vary_along_two_sides_where_multipliers_have_their_own() -> None:
    """A depthwise product of 4 channels by 6 columns on 2 x 2: 2 x 3 blocks of 3 products."""
    net = network_of("c=4 x=6 d=3", ["deep MatMul: h(c,x) = a(c,x,d) W(c,d)"], ["a"], ["h"])
    nest, _ = nest_of(net, ["keep a W h", "run deep array c | x"])
    with pytest.raises(IllegalPlan, match="lays a along two sides for outputs"):
        check(timed_plan(net.network, [nest], [["deep"]]))
    chip = replace(CHIP, tiles=replace(TILES, own_operands=True))
    made, line = timed_plan(net.network, [nest], [["deep"]], chip), Timeline()
    check(made)
    nest_times_of(made, timeline=line)
    assert [(end - start) // 1000 for _, _, start, end in line.steps] == [1 + 2 * 3 * 3]
    assert from_text(to_text(made)) == from_json(to_json(made)) == made


def test_both_forms_give_a_timed_plan_back() -> None:
    """Copies, channels, sides, `beside`, the order of what is kept; and names that need quotes."""
    fast, slow = TILES.channels[0], replace(TILES.channels[0], stores=False, bytes_per_second=7)
    chip = replace(CHIP, tiles=replace(TILES, channels=(fast, slow), vector_operations_per_second=10**9))
    nest = example(A=2, B=3)
    (loop,) = nest.body
    loop = replace(loop, ways=replace(loop.ways, loads=(("A", 1), ("B", 1))))  # type: ignore[union-attr]
    plans = [
        timed_plan(WORDED.network, [replace(nest, body=(loop,))], [["up", "down"]], chip),
        plan(SPILLED, z=2, A=2),
        chained(),
        timed_plan(
            WORDED.network, [example()], [["up", "down"]], replace(CHIP, tiles=replace(TILES, block_cycles=3))
        ),
    ]
    for one in plans:
        assert from_text(to_text(one)) == one
        assert from_json(to_json(one)) == one
        check(from_text(to_text(one)))
    assert "keep A:2@1 B:3@1" in to_text(plans[0])
    assert "run up array 0 | 1" in to_text(plans[0])
    assert "nest beside" in to_text(plans[2])
    assert "step 1 block 3" in to_text(plans[3])


def test_names_of_buffers_with_copies_may_need_quotes() -> None:
    reach = Reach((4,), ((Side(4, 0),),))
    network = Network.build(
        "odd",
        [("a b", 4, "input"), ("ring", 4, "activation")],
        [OperatorSpec("array", "Relu", ["a b"], ["ring"], reach=reach)],
        ["ring"],
    )
    text = (
        '  nest\n    for 1 over array:0 keep "a b":2@0/0 "ring":2\n      run array array 0\n    end\n  end\n'
    )
    lines = to_text(plan()).splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if line.startswith("  nest"))
    last = next(n for n, line in enumerate(lines) if line.startswith("  end"))
    nest = from_text("".join([*lines[:first], text, *lines[last + 1 :]])).groups[0].tiling
    odd = Group("g", ("array",), 0, tiling=nest)
    assert layout_of(network, odd).need == 4
    group = replace(plan().groups[0], tiling=nest)
    again = from_text(to_text(replace(plan(), groups=(group,))))
    assert again.groups == (group,)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("A:2", "A:", "expected copies or channels"),
        ("A:2", "A:two", "no|not a whole number"),
        ("A:2", "A:2+x", "no|not a whole number"),
        ("A:2", "A:2+1@0", "no|not a whole number"),
        ("A:2", "A:2 A:2", "names a buffer twice"),
        ("array 0 | 1", "array 0 | one", "not a whole number"),
        ("channel 1000000000 ", "channel 0 ", "bytes_per_second of channel 1 is 0, not from 1"),
        ("side out 2", "side in 2", "not understood"),
        ("tiles clock 1000000000 step 1", "tiles step 1", "need a clock"),
        ("tiles clock 1000000000 step 1\n", "", "need its `tiles`"),
        (" loads stores", " loads", "no channel of the tiles stores"),
    ],
)
def test_a_bad_line_is_refused_in_one_line(old: str, new: str, reason: str) -> None:
    text = to_text(plan(A=2))
    assert old in text
    with pytest.raises((PlanFormatError, ValueError), match=reason) as refusal:
        from_text(text.replace(old, new, 1))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "change",
    [
        {"copies": {"A": "two"}}, {"copies": ["A"]}, {"copies": {"A": True}}, {"channel": {}},
        {"late": {"A": "1"}},
    ],
)  # fmt: skip
def test_bad_copies_in_json_are_refused_in_one_line(change: dict[str, object]) -> None:
    import json

    found = json.loads(to_json(plan(A=2)))
    found["groups"][0]["nest"]["body"][0][4].update(change)
    with pytest.raises(PlanFormatError) as refusal:
        from_json(json.dumps(found))
    assert "\n" not in str(refusal.value)


def test_a_wrong_time_is_refused() -> None:
    right = plan(A=2, B=2)
    wrong = replace(right, result=replace(right.result, latency_picoseconds=112_999, claim_sha256=""))
    with pytest.raises(IllegalPlan, match="latency_picoseconds is 113,000, not 112,999"):
        check(wrong)


def test_a_group_beside_another_saves_time_and_takes_both_scratches() -> None:
    apart, beside = chained(beside=(False, False)), chained()
    times = [check(one).latency_picoseconds for one in (apart, beside)]
    assert times[1] is not None
    assert times[0] is not None
    assert times[1] < times[0]
    scratches = [group.scratch_bytes for group in beside.groups]
    assert check(beside).peak_bytes >= scratches[0] + scratches[1]


def test_the_law_refuses_by_name_what_it_does_not_say() -> None:
    """An operator on its own runs on no sides: its plan has no times, and may claim none."""
    whole = plan()
    lone = replace(whole, groups=(replace(whole.groups[0], tiling=None),))
    with pytest.raises(NoTimes, match="runs g0, which is no nest"):
        nest_times_of(lone)


def test_tiles_in_a_chip_file() -> None:
    text = b"""name = "edge"
alignment_bytes = 64
element = "int8"
[tiles]
clock_hertz = 1000000000
step_cycles = 32
block_cycles = 4
vector_operations_per_second = 64000000000
[[tiles.channel]]
bytes_per_second = 6400000000
transfer_picoseconds = 100000
piece_picoseconds = 8000
burst_bytes = 64
[[tiles.side]]
kind = "out"
size = 32
"""
    tiles = parse_chip(text, "edge.toml").tiles
    assert tiles is not None
    assert (tiles.step_cycles, tiles.block_cycles) == (32, 4)
    assert (tiles.channels[0].burst_bytes, tiles.sides[0].size) == (64, 32)
    for old, new, item in (
        (b"clock_hertz", b"clock", "tiles clock"),
        (b"= 32\nblock", b"= 3.5\nblock", "tiles step_cycles"),
        (b'"out"', b'"in"', "tiles side 1 kind"),
        (b"6400000000\ntransfer", b"0\ntransfer", "tiles"),
        (b"burst_bytes", b"bursts", "tiles channel 1 bursts"),
    ):
        with pytest.raises(ChipError, match=item) as refusal:
            parse_chip(text.replace(old, new, 1), "edge.toml")
        assert "\n" not in str(refusal.value)


@pytest.mark.thorough
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_the_law_agrees_with_the_simulation(first: int) -> None:
    for seed in range(first, first + 20):
        time_trial(seed, most=4)


def test_a_late_constant_in_a_ring_comes_in_the_last_turn_of_a_sum_around_it() -> None:
    """The one plan of 50,000 on which law and simulation differed."""
    time_trial(47_626)


def test_random_plans_are_not_all_refused() -> None:
    found = sum((time_trial(seed, most=2) for seed in Random(1).sample(range(1000), 8)), start=time_trial(3))
    assert found["no legal group"] < 8


def test_the_order_of_what_is_kept_orders_fetches() -> None:
    """With B before A the first product waits for both."""
    nest = example(A=2, B=2)
    (loop,) = nest.body
    turned = replace(nest, body=(replace(loop, keep=("B", "A")),))  # type: ignore[arg-type]
    line = Timeline()
    nest_times_of(timed_plan(WORDED.network, [turned], [["up", "down"]]), timeline=line)
    # `up` is the first step, so A stands in its line and B in the next one: the order is within a line
    assert [name for _, name, *_ in line.transfers][:3] == ["A", "x", "B"]
    both = nest_of(WORDED, ["for f 2", "  keep x h", "  keep A", "  run up"])[0]
    other = nest_of(WORDED, ["for f 2", "  keep A", "  keep x h", "  run up"])[0]
    for one, first in ((both, ["x", "A"]), (other, ["A", "x"])):
        line = Timeline()
        alone = timed_plan(ONE.network, [one], [["up"]])
        nest_times_of(alone, timeline=line)
        assert [name for _, name, *_ in line.transfers][:2] == first


def test_a_step_waits_for_a_slot_that_is_still_stored() -> None:
    """Steps of 5 ns, stores of 4 bytes: 7 ns on one channel, 4,002,000 on a slow one. Two slots of h."""
    slow = replace(TILES, channels=(TILES.channels[0], replace(TILES.channels[0], bytes_per_second=10**6)))
    chip = replace(CHIP, tiles=slow)
    nest, _ = nest_of(ONE, ["keep x A", "for m 1", "  keep h:2@/1", "  run up"])
    found = timed_plan(ONE.network, [nest], [["up"]], chip)
    line = Timeline()
    nest_times_of(found, timeline=line, walk_all=True)
    stores = [(start, end) for _, name, stored, _, start, end, _ in line.transfers if stored]
    steps = [(start, end) for _, _, start, end in line.steps]
    # step 2 writes where step 0 did, whose store ends late; step 3 waits for that of step 1
    assert steps[2][0] == stores[0][1]
    assert steps[3][0] == stores[1][1]
    assert [end - start for start, end in stores] == [stores[0][1] - stores[0][0]] * 4


def test_partial_sums_come_back_once_they_are_stored() -> None:
    """Three slots for two boxes: no slot is waited for, and the store of the same box is still under way."""
    slow = replace(TILES, channels=(TILES.channels[0], replace(TILES.channels[0], bytes_per_second=10**6)))
    nest, _ = nest_of(WORDED, SPILLED.format(A=":2", B=":2", z=":3@/1").splitlines())
    line = Timeline()
    found = timed_plan(WORDED.network, [nest], [["up", "down"]], replace(CHIP, tiles=slow))
    nest_times_of(found, timeline=line)
    z = [(stored, start, end) for _, name, stored, _, start, end, _ in line.transfers if name == "z"]
    stores = [end for stored, _, end in z if stored]
    comes = [start for stored, start, _ in z if not stored]
    assert len(stores) == 6
    assert all(start >= stores[n] for n, start in enumerate(comes))
    assert comes[0] == stores[1]  # both stand earlier: `up` is between


@pytest.mark.parametrize(
    ("ways", "end"), [(":2", 107), (":2+1", 107), (":3", 107), (":3+1", 105), (":3+9", 105)], ids=str
)
def test_a_late_store_lets_the_fetches_of_further_steps_pass(ways: str, end: int) -> None:
    """Rows of x and of h take 7 ns each, A 19 ns, a step 9 ns.

    Without late stores every fetch from that for step 2 on stands behind the store of the step before last,
    which waits for its end. With one step more the fetch comes first, and the channel never waits. A store
    stands in front of the fetches for the step that needs its slot at the latest: so two slots are too few.
    """
    network = network_of("m=6 d=4 f=4", ["up MatMul: h(m,f) = x(m,d) A(d,f)"], ["x"], ["h"])
    nest, _ = nest_of(network, ["keep A", "for m 1", f"  keep x:2 h{ways}", "  run up array m | f"])
    made = timed_plan(network.network, [nest], [["up"]])
    assert made.result.latency_picoseconds == end * 1000
    again = from_text(to_text(made))
    assert (again, from_json(to_json(made))) == (made, made)
    check(again)


def test_turns_are_not_skipped_while_a_late_store_from_before_their_loop_waits() -> None:
    """h is stored once nine steps have passed: in the midst of a loop over y, whose stores need most of the
    channel's time, and not behind it.
    """
    network = network_of(
        "m=4 d=4 f=4 y=24",
        ["one MatMul: h(m,f) = x(m,d) A(d,f)", "two MatMul: z(m,y) = x(m,d) B(d,y)"],
        ["x"],
        ["h", "z"],
    )
    lines = ["keep A x B", "for m 2", "  keep h:2+9", "  run one array m | f", "  for y 1", "    keep z:2"]
    nest, _ = nest_of(network, [*lines, "    run two array m | y"])
    chip = replace(CHIP, tiles=replace(TILES, step_cycles=20))
    made = timed_plan(network.network, [nest], [["one", "two"]], chip)
    assert nest_times_of(made) == nest_times_of(made, walk_all=True)
    assert made.result.latency_picoseconds == 1_357_000


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [65, 68, 196, 670, 845])
def test_plans_in_which_slots_and_gates_bind(seed: int) -> None:
    """Plans that show what the first ones do not: `benchmarks/time_mutants.py` found them."""
    time_trial(seed, most=4)


ONE = network_of("m=4 d=4 f=6", ["up MatMul: h(m,f) = x(m,d) A(d,f)"], ["x"], ["h"])
