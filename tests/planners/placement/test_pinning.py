"""What the user keeps on chip: pinned tensors and weights, state, a scratchpad for weights."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import Infeasible, NegativeAnswer, UsageError
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, Operator
from onchip.planners.placement import PlacementOptions, Problem, minimum_traffic, plan
from onchip.planners.placement.pinning import hold, read_pinning
from onchip.plans import PinnedTensor, PinnedWeights, State, from_json, from_text, to_json, to_text
from oracles.held import least_traffic_held
from strategies import network_of, random_case

GENERIC = Chip("generic", 1)


def with_weights(rng: Random, network: Network) -> Network:
    operators = tuple(replace(op, weight_bytes=rng.choice((0, 3, 5, 8))) for op in network.operators)
    return replace(network, operators=operators)


def with_elementwise(network: Network) -> Network:
    """Every operator whose sizes allow it reads and writes element by element."""

    def geometry(op: Operator) -> Geometry | None:
        sizes = {network.tensors[t].bytes for t in (*op.inputs, *op.outputs)}
        if len(op.outputs) != 1 or len(sizes) != 1 or not op.inputs:
            return None
        return Geometry("elementwise", (*sizes,), (*sizes,))

    return replace(network, operators=tuple(replace(op, geometry=geometry(op)) for op in network.operators))


def some_wishes(rng: Random, network: Network) -> tuple[list[str], list[str]]:
    """Pins and states that make sense in the network, without addresses."""
    roots = [t for t in network.tensors if network.root[t.id] == t.id]
    pairs = [
        (a.name, b.name)
        for a in roots
        for b in roots
        if a.kind == "input" and b.kind != "input" and a.bytes == b.bytes
        if not network.output_roots >> a.id & 1
    ]
    states = [f"{a}={b}" for a, b in rng.sample(pairs, min(len(pairs), rng.choice((0, 1, 1))))]
    taken = {name for text in states for name in text.split("=")}
    free = [t.name for t in roots if t.name not in taken]
    pins = rng.sample(free, min(len(free), rng.choice((0, 1, 2))))
    heavy = [op.name for op in network.operators if op.weight_bytes]
    pins += [f"weights:{name}" for name in rng.sample(heavy, min(len(heavy), rng.choice((0, 0, 1, 2))))]
    return pins, states


@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=60, deadline=None)
def test_the_least_traffic_is_that_of_exact_states(rng: Random) -> None:
    case = random_case(rng, 5)
    network = with_weights(rng, case.network)
    wishes = read_pinning(network, *some_wishes(rng, network))
    if not wishes:
        return
    problem = hold(
        network, Problem.of(network, case.alignment), wishes, weights_apart=False, alignment=case.alignment
    )
    assert problem.kept is not None
    budget = case.budget + rng.choice((0, 0, 5, 20))
    expected = least_traffic_held(
        network,
        budget,
        case.alignment,
        pinned=[t for t, _ in wishes.tensors],
        weights=[v for v, _ in wishes.weights],
        state={first: last for first, last, _ in wishes.state},
    )
    if budget < problem.minimum_budget:
        assert expected is None
        return
    found = minimum_traffic(problem, budget)
    assert (found.value if found.value < problem.kept.forbidden else None) == expected


@given(rng=st.randoms(use_true_random=True))
@settings(max_examples=40, deadline=None)
def test_plans_keep_what_they_are_asked_to(rng: Random) -> None:
    case = random_case(rng, 6)
    network = with_weights(rng, case.network)
    pins, states = some_wishes(rng, network)
    options = PlacementOptions(
        pin=tuple(pins),
        state=tuple(states),
        order=rng.choice(("free", "given")),
        time_limit=5.0,
        weights=rng.choice(("streamed", "resident")),
        strategy=rng.choice(("exact", "exact", "dnc", "beam", "greedy")),
    )
    if options.strategy != "greedy" and rng.random() < 0.5:
        network, options = with_elementwise(network), replace(options, in_place=True)  # fmt: skip
    try:
        made = plan(network, case.chip, case.budget + rng.choice((0, 10, 40, 200)), options)
    except NegativeAnswer:
        return
    check(made)
    assert {p.tensor for p in made.pins if isinstance(p, PinnedTensor)} == {
        p for p in pins if not p.startswith("weights:")
    }
    assert {f"weights:{p.operator}" for p in made.pins if isinstance(p, PinnedWeights)} == {
        p for p in pins if p.startswith("weights:")
    }
    assert {f"{s.input}={s.output}" for s in made.state} == set(states)
    assert from_json(to_json(made)) == made
    assert from_text(to_text(made)) == made
    kept = {network.operator_id[p.operator] for p in made.pins if isinstance(p, PinnedWeights)}
    assert made.result.weight_bytes == sum(op.weight_bytes for op in network.operators if op.id not in kept)


RECURRENT = network_of(
    {"x": 4, "h": 6, "a": 6, "b": 6, "hn": 6, "y": 2},
    ["x h -> a", "a -> b", "b -> hn", "hn -> y"],
    "y hn",
)


def test_a_state_costs_no_traffic_and_ends_where_it_began() -> None:
    made = plan(RECURRENT, GENERIC, 18, PlacementOptions(state=("h=hn",)))
    result = check(made)
    assert (result.status, result.traffic_bytes) == ("optimal", 0)
    assert result.compulsory_bytes == 4 + 2  # x and y; h and hn never cross
    (state,) = made.state
    assert (state.input, state.output) == ("h", "hn")


def test_a_state_that_is_read_while_the_next_is_made_moves_through_dram() -> None:
    network = network_of({"h": 6, "hn": 6}, ["h -> hn"], "hn")
    made = plan(network, GENERIC, 12, PlacementOptions(state=("h=hn",)))
    assert check(made).traffic_bytes == 12  # written where there is room, and loaded where it must end


def test_a_state_that_is_written_over_the_one_before_moves_nowhere() -> None:
    network = with_elementwise(network_of({"h": 6, "x": 6, "hn": 6}, ["h x -> hn"], "hn"))
    made = plan(network, GENERIC, 12, PlacementOptions(state=("h=hn@6",), in_place=True))
    result = check(made)
    assert (result.status, result.traffic_bytes, result.peak_bytes) == ("optimal", 0, 12)
    with pytest.raises(Infeasible):
        plan(network, GENERIC, 12, PlacementOptions(state=("h=hn@6",)))


def test_addresses_that_are_given_are_kept() -> None:
    made = plan(
        RECURRENT, GENERIC, 64, PlacementOptions(pin=("a@40", "y@7"), state=("h=hn@20",), order="given")
    )
    check(made)
    assert made.state == (State("h", "hn", 20),)
    assert set(made.pins) == {PinnedTensor("a", 40), PinnedTensor("y", 7)}


WEIGHTS = (5, 9, 4, 3)
HEAVY = replace(
    RECURRENT, operators=tuple(replace(op, weight_bytes=WEIGHTS[op.id]) for op in RECURRENT.operators)
)


def test_pinned_weights_are_fetched_never_and_take_room_always() -> None:
    free = check(plan(HEAVY, GENERIC, 40, PlacementOptions(weights="resident")))
    made = plan(HEAVY, GENERIC, 40, PlacementOptions(weights="resident", pin=("weights:op1",)))
    result = check(made)
    assert free.weight_bytes - result.weight_bytes == 9
    assert min(result.peak_bytes, result.extent_bytes) >= 9 + 16  # op0: x, h, a
    with pytest.raises(Infeasible, match=r"weights of op1 \(9 B\)") as refusal:
        plan(HEAVY, GENERIC, 24, PlacementOptions(pin=("weights:op1",)))
    least = refusal.value.needs
    assert check(plan(HEAVY, GENERIC, least, PlacementOptions(pin=("weights:op1",)))).status == "optimal"
    with pytest.raises(Infeasible):
        plan(HEAVY, GENERIC, least - 1, PlacementOptions(pin=("weights:op1",)))


def test_a_scratchpad_of_their_own_leaves_the_budget_to_tensors() -> None:
    apart = Chip("apart", 1, weight_scratchpad_bytes=20)
    together = plan(HEAVY, GENERIC, 40, PlacementOptions(weights="resident"))
    made = plan(HEAVY, apart, 16, PlacementOptions(weights="resident", pin=("weights:op1", "weights:op2@16")))
    assert check(made).peak_bytes == 16 < check(together).peak_bytes
    assert made.chip.weight_scratchpad_bytes == 20
    assert set(made.pins) == {PinnedWeights("op1", 0), PinnedWeights("op2", 16)}
    assert from_text(to_text(made)) == made
    with pytest.raises(NegativeAnswer, match="weight scratchpad"):
        plan(HEAVY, replace(apart, weight_scratchpad_bytes=8), 16, PlacementOptions(weights="resident"))


@pytest.mark.parametrize(
    ("pin", "state", "said"),
    [
        (("nobody",), (), "no such tensor"),
        (("weights:nobody",), (), "no such operator"),
        (("weights:op0",), (), "no weights"),
        (("a", "a@3"), (), "twice"),
        ((), ("h",), "INPUT=OUTPUT"),
        ((), ("h=y",), "6 bytes"),
        ((), ("a=hn",), "no graph input"),
        ((), ("h=hn", "h=a"), "two states"),
        (("a@0x10",), (), "no address"),
    ],
)
def test_wishes_that_make_no_sense_are_refused(
    pin: tuple[str, ...], state: tuple[str, ...], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        plan(RECURRENT, GENERIC, 64, PlacementOptions(pin=pin, state=state))


def test_names_may_look_like_wishes() -> None:
    network = network_of({"a=b": 4, "a": 4, "b@3": 4, "c": 4}, ["a=b a -> b@3", "b@3 -> c"], "c")
    wishes = read_pinning(network, ["b@3", "a=b@8"], ["a=c@4"])
    name = [t.name for t in network.tensors]
    assert {(name[t], at) for t, at in wishes.tensors} == {("b@3", None), ("a=b", 8)}
    assert [(name[a], name[b], at) for a, b, at in wishes.state] == [("a", "c", 4)]


def test_an_open_state_keeps_clear_of_addresses_that_are_given() -> None:
    made = plan(HEAVY, GENERIC, 64, PlacementOptions(state=("h=hn",), pin=("weights:op1@0", "weights:op2")))
    assert check(made).status == "optimal"
    assert made.state[0].address >= 9


def test_a_state_is_read_before_the_next_is_made_where_the_order_is_free() -> None:
    network = with_elementwise(
        replace(
            network_of({"x": 4, "a": 4, "b": 4}, ["x -> a", "x -> b + 2"], "a b"),
            granularity="op",
        )
    )
    made = plan(network, GENERIC, 10, PlacementOptions(in_place=True, pin=("a",), state=("x=b",)))
    result = check(made)
    assert (result.status, result.traffic_bytes) == ("optimal", 0)


@pytest.mark.parametrize("wish", [{"pin": ("a@60",)}, {"state": ("h=hn@59",)}, {"pin": ("weights:op1@56",)}])
def test_an_address_beyond_the_budget_is_refused(wish: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(UsageError, match="leave the budget of 64 bytes"):
        plan(HEAVY, GENERIC, 64, PlacementOptions(**wish))


def test_a_pinned_output_stays_to_the_end() -> None:
    network = network_of({"x": 4, "a": 5, "b": 6}, ["x -> a", "x -> b"], "a b")
    made = plan(network, GENERIC, 15, PlacementOptions(pin=("a",)))
    check(made)
    with pytest.raises(Infeasible):
        plan(network, GENERIC, 14, PlacementOptions(pin=("a",), order="given"))
