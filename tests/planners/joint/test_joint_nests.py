"""Joint plans whose groups run as nests: proved by the checker, no dearer than without, executed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest

import onchip
from nest_networks import network_of
from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.network import Network, bits
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint import by_bytes
from onchip.planners.joint.candidates import MANY, candidates
from onchip.planners.joint.fitting import fitted
from onchip.planners.joint.layout import step_loads
from onchip.planners.joint.nests import NestWay, nests_of
from onchip.planners.joint.options import JointOptions, fusion_options
from onchip.planners.joint.planning import plan
from onchip.planners.joint.search import Found, JointSearch
from onchip.planners.limits import Limits
from onchip.plans import Nest, Plan
from oracles.nest_cases import groups_network

CHIP = Chip("test", 1)

ATTENTION = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,12,16] x) => (float[1,12,16] y)
    <float[16,16] a, float[16,16] b, float[16,16] c, float[16,16] d, int64[4] heads = {1, 12, 4, 4},
     int64[3] joined = {1, 12, 16}> {
    q0 = MatMul (x, a) q1 = Reshape (q0, heads) q = Transpose <perm = [0, 2, 1, 3]> (q1)
    k0 = MatMul (x, b) k1 = Reshape (k0, heads) k = Transpose <perm = [0, 2, 3, 1]> (k1)
    v0 = MatMul (x, c) v1 = Reshape (v0, heads) v = Transpose <perm = [0, 2, 1, 3]> (v1)
    s = MatMul (q, k) p = Softmax <axis = -1> (s) o = MatMul (p, v)
    o1 = Transpose <perm = [0, 2, 1, 3]> (o) o2 = Reshape (o1, joined)
    z = MatMul (o2, d) y = Add (z, x)
    }"""

HIDDEN = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,8,12] x) => (float[1,8,12] y) <float[12,48] a, float[48,12] b> {
    h = MatMul (x, a) r = Relu (h) z = MatMul (r, b) y = Add (z, x)
    }"""


def model(folder: Path, text: str) -> Path:
    made = onnx.parser.parse_model(text)
    rng, known = np.random.default_rng(1), {t.name for t in made.graph.initializer}
    for name, shape in {"a": None, "b": None, "c": None, "d": None}.items():
        if name in known or f"] {name}" not in text:
            continue
        at = text.index(f"] {name}")
        shape = tuple(int(n) for n in text[text.rindex("[", 0, at) + 1 : at].split(","))
        values = rng.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    path = folder / "net.onnx"
    onnx.save(made, path)
    return path


@pytest.mark.parametrize("links", [8, 70])
def test_in_a_large_network_the_order_as_needed_adds_groups_of_what_lies_apart(links: int) -> None:
    lines = ["first Relu: t0(m,d) = x(m,d)", "early Relu: u(m,d) = t0(m,d)"]
    for i in range(links):
        if i == 2:
            lines.append("near Relu: v(m,d) = t2(m,d)")
        lines.append(
            f"r{i} {'Add' if i == 5 else 'Relu'}: t{i + 1}(m,d) = t{i}(m,d){' v(m,d)' if i == 5 else ''}"
        )
    lines.append(f"last Add: y(m,d) = t{links}(m,d) u(m,d)")
    network = network_of("m=8 d=8", lines, ("x",), ("y",)).network
    problem = FusionProblem.of(network, CHIP, fusion_options(JointOptions()), 200)
    groups = [{network.operators[v].name for v in c.operators} for c in candidates(problem).candidates]
    assert {"early", "last"} in groups
    assert ({"near", "r5"} in groups) == (links <= MANY)


def test_a_large_product_is_proved_though_not_all_its_boxes_are_tried() -> None:
    """Nests have them, too."""
    network = network_of(
        "m=8192 d=8192 f=28672", ["up MatMul: y(m,f) = x(m,d) A(d,f)"], ("x",), ("y",)
    ).network
    budget = 1 << 20
    made = planned(network, budget)
    result = check(made)
    assert (made.result.status, result.dram_lower_bound_bytes) == ("optimal", result.dram_bytes)
    assert result.dram_bytes < 1.1 * 2 * 8192 * 8192 * 28672 / budget**0.5  # near what any schedule moves


def test_neighbours_with_bands_share_slices_where_no_windows_slide(tmp_path: Path) -> None:
    """A norm of rows and a sum share slices of one row, so that the product holds more rows at a time."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[64,64] x) => (float[64,64] y) <float[64,64] a> {
        t = Softmax <axis = -1> (x) s = Add (t, x) y = MatMul (s, a) }"""
    network = onchip.load(model(tmp_path, text), dtype="int8").network
    assert check(planned(network, 2130)).dram_bytes <= 16_384  # x and y once, the weights twice


def planned(network: Network, budget: int, **options: object) -> Plan:
    return plan(network, CHIP, budget, JointOptions(fuse=True, **options))  # type: ignore[arg-type]


def nests(made: Plan) -> int:
    return sum(isinstance(group.tiling, Nest) for group in made.groups)


@pytest.mark.parametrize(
    "text", [pytest.param(ATTENTION, marks=pytest.mark.thorough), HIDDEN], ids=["attention", "hidden"]
)
def test_nests_move_less_where_they_pay_and_never_more(tmp_path: Path, text: str) -> None:
    network = onchip.load(model(tmp_path, text)).network
    fewer = 0
    for budget in (600, 900, 1400, 2000, 3000, 5000, 20_000):
        with_nests, without = planned(network, budget), planned(network, budget, nests=False)
        assert check(with_nests).dram_bytes <= check(without).dram_bytes
        assert not nests(without)
        fewer += check(with_nests).dram_bytes < check(without).dram_bytes
        assert nests(with_nests) or check(with_nests).dram_bytes == check(without).dram_bytes
    assert fewer > 1


@pytest.mark.parametrize("text", [ATTENTION, HIDDEN], ids=["attention", "hidden"])
def test_plans_with_nests_execute_as_stated(tmp_path: Path, text: str) -> None:
    source = onchip.load(model(tmp_path, text))
    ran = 0
    for budget in (900, 2000):
        made = onchip.plan(source, budget=budget, chip=CHIP, fuse=True)
        report = made.run(source)
        moved = report.moved
        assert moved.compulsory + moved.traffic + moved.weights == made.result.dram_bytes
        ran += nests(made)
    assert ran


@pytest.mark.parametrize("budget", [pytest.param(1000, marks=pytest.mark.thorough), 1500, 2000])
def test_many_sets_of_operators_are_searched_with_nests_at_once(
    tmp_path: Path, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search without nests comes first where an exact bound makes it quick; both ways prove the same."""
    network = onchip.load(model(tmp_path, ATTENTION)).network
    nested: list[bool] = []
    best = JointSearch.best

    def counted(self: JointSearch, below: int | None = None, **others: Any) -> Found:
        nested.append(bool(self.nests.candidates))
        return best(self, below, **others)

    monkeypatch.setattr(JointSearch, "best", counted)
    few = planned(network, budget).result
    assert nested[0] is False
    nested.clear()
    monkeypatch.setattr("onchip.planners.joint.search.MOST_DOWNSETS", 1)
    many = planned(network, budget).result
    assert nested
    assert all(nested)
    assert few.status == many.status == "optimal"
    assert few.dram_bytes == many.dram_bytes


def test_every_candidate_costs_what_the_checker_derives(tmp_path: Path) -> None:
    """The bytes that the compiled search says, group by group, for patterns of whole operands and rooms."""
    network = onchip.load(model(tmp_path, ATTENTION)).network
    problem = FusionProblem.of(network, CHIP, fusion_options(JointOptions(fuse=True)), 4000)
    rng, seen = Random(2), 0
    known = nests_of(problem)
    for nest in known.candidates:
        operands = [t for t in nest.buffers if rng.random() < 0.3]
        whole = sum(1 << t for t in operands)
        room = max(known.least_room(nest), rng.randint(100, 4000))
        way = known.way(nest, whole, room)
        assert way is not None
        least = sum(network.tensors[t].bytes for t in nest.buffers if not whole >> t & 1)
        assert way.scratch_bytes >= 1 or not way.crossing
        assert sum(way.crossing.values()) + way.weight_bytes >= min(least, known.floor(nest))
        assert not whole & sum(1 << t for t in way.crossing)
        seen += len(list(bits(nest.members))) > 1
    assert seen > 10


def test_windows_of_maps_slide_in_nests(tmp_path: Path) -> None:
    """Two convolutions over maps of three dimensions: in one nest less crosses than in any other plan."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,2,6,6,6] x) => (float[1,4,6,6,6] y) <float[4,2,3,3,3] a, float[4,4,3,3,3] b> {
        h = Conv <pads = [1, 1, 1, 1, 1, 1]> (x, a)
        r = Relu (h)
        y = Conv <pads = [1, 1, 1, 1, 1, 1]> (r, b) }"""
    source = onchip.load(model(tmp_path, text))
    made = planned(source.network, 2000)
    assert check(made).dram_bytes < check(planned(source.network, 2000, nests=False)).dram_bytes
    assert any(len(group.operators) > 1 and isinstance(group.tiling, Nest) for group in made.groups)
    onchip.plan(source, budget=2000, chip=CHIP, fuse=True).run(source)


def test_a_nest_found_by_a_deeper_search_takes_the_place_of_the_first(tmp_path: Path) -> None:
    """The plan holds the nest that was priced last, not what a quick search found in the same room."""
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,8,16,16] x) => (float[1,8,7,7] y) <float[8,8,3,3] a, int64[5] s = {1, 2, 4, 16, 16},
            int64[4] u = {1, 8, 16, 16}> {
        c = Conv <pads = [1, 1, 1, 1]> (x, a)
        p = Reshape (c, s)
        t = Transpose <perm = [0, 2, 1, 3, 4]> (p)
        q = Reshape (t, u)
        y = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (q) }"""
    source = onchip.load(model(tmp_path, text))
    made = planned(source.network, 3000)
    assert check(made).dram_bytes == made.result.dram_bytes
    assert made.result.status == "optimal"


HALVES = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,4,8,8] x) => (float[1,4,8,8] y)
    <float[8,4,1,1] a, float[4,4,3,3] b, float[4,12,1,1] c, int64[2] two = {4, 4}> {
    s = Conv (x, a) t = Relu (s) h, k = Split <axis = 1> (t, two)
    m = Conv <pads = [1, 1, 1, 1]> (k, b) r = Relu (m)
    j = Concat <axis = 1> (h, k, r) y = Conv (j, c) }"""


@pytest.mark.parametrize("budget", [300, 700, 1200])
def test_halves_of_a_map_stay_inside(tmp_path: Path, budget: int) -> None:
    source = onchip.load(model(tmp_path, HALVES))
    made = planned(source.network, budget, concat_views=False)
    without = planned(source.network, budget, nests=False, concat_views=False)
    assert check(made).dram_bytes <= check(without).dram_bytes
    assert any(len(group.operators) > 1 and isinstance(group.tiling, Nest) for group in made.groups)
    onchip.plan(source, budget=budget, chip=CHIP, fuse=True).run(source)


@pytest.mark.thorough
def test_steps_are_fitted_where_places_need_more_than_is_alive() -> None:
    """In less room than a plan takes: every step within it, at the bytes that its nests then move."""
    assert sum(refitted(groups_network(Random(seed), 4)) for seed in range(12)) > 10


def refitted(network: Network) -> int:
    changed = 0
    problem = FusionProblem.of(network, CHIP, fusion_options(JointOptions(fuse=True)), 160)
    search = JointSearch(problem, nests=nests_of(problem))
    found = None if search.misfits else search.best()
    if found is None or found.dram_bytes is None:
        return 0
    most = max(step_loads(problem, found.steps))
    for budget in range(max(1, most - 30), most + 1):
        steps = fitted(problem, search.nests, found.steps, budget)
        if steps is None:
            continue
        assert max(step_loads(problem, steps)) <= budget
        pairs = [(a.way, b.way) for a, b in zip(steps, found.steps, strict=True) if a is not b]
        assert all(isinstance(a, NestWay) and isinstance(b, NestWay) for a, b in pairs)
        assert budget < most or not pairs
        changed += bool(pairs)
    return changed


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1757, 3, 40, 77])
def test_what_is_needed_is_enough_and_no_less_is(seed: int) -> None:
    """An operator may fit in a nest with others, and nowhere else."""
    network = groups_network(Random(seed), 4)
    with pytest.raises(Infeasible) as no:
        planned(network, 1)
    needs = no.value.needs
    assert planned(network, needs).result.dram_bytes > 0
    with pytest.raises(Infeasible) as still:
        planned(network, needs - 1)
    assert still.value.needs == needs


def test_without_time_for_all_nests_nothing_is_claimed_of_them(tmp_path: Path) -> None:
    """What they may move bounds no plan then, and a plan is optimal only if it moves what every plan must."""
    network = onchip.load(model(tmp_path, HIDDEN), dtype="int8").network
    problem = FusionProblem.of(network, CHIP, fusion_options(JointOptions(fuse=True)), 400)
    every = nests_of(problem)
    some = nests_of(problem, limits=Limits(time_limit=0.0))
    assert every.complete
    assert every.candidates
    assert (some.complete, some.candidates) == (False, ())
    exact = plan(network, CHIP, 400).result
    hasty = plan(network, CHIP, 400, limits=Limits(time_limit=0.0)).result
    assert hasty.dram_bytes >= exact.dram_bytes
    assert hasty.dram_lower_bound_bytes is not None
    assert hasty.dram_lower_bound_bytes <= exact.dram_bytes
    assert hasty.status == ("optimal" if hasty.dram_lower_bound_bytes == hasty.dram_bytes else "feasible")


def test_a_plan_that_moves_the_least_asks_for_no_nest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no nest can move less, none is looked for."""
    convolutions = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,4,8,8] x) => (float[1,4,8,8] y) <float[4,4,3,3] a> {
        y = Conv <pads = [1, 1, 1, 1]> (x, a) }"""
    network = onchip.load(model(tmp_path, convolutions), dtype="int8").network
    monkeypatch.setattr(by_bytes, "nests_of", None)
    made = plan(network, CHIP, 4096).result
    assert made.status == "optimal"
    assert made.dram_bytes == 2 * 256 + 144
