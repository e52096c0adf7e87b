"""The figures of modules: what they draw is what the program does, layer by layer and byte by byte."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations

import pytest
from greedy import greedy
from module_plans import KIB, module_plan, skip_plan, wide_plan
from test_page import chain

from onchip.network import Geometry, Network, OperatorSpec, TensorKind, bits
from onchip.planners.modules.regions import regions_of
from onchip.planners.modules.table import module_table
from onchip.plans import Alloc, Load, Plan, PlanChip, Run, Store
from onchip.report import timeline
from onchip.report.modules.anatomy import Part, parts
from onchip.report.modules.drawing import drawing
from onchip.report.modules.overview import addresses, layer_sizes, sizes
from onchip.report.modules.regions import regions
from onchip.report.modules.required import wishes
from onchip.report.modules.roles import Layer, layers, present
from onchip.report.modules.traffic import free_concats, moves


class Drawn(HTMLParser):
    """Every element of a picture as (tag, attributes), and all of its words."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def rectangles(self, kind: str) -> Iterator[tuple[float, float, float, float]]:
        for tag, attrs in self.elements:
            if tag == "rect" and kind in attrs.get("class", "").split():
                x, y, w, h = (float(attrs[key]) for key in ("x", "y", "width", "height"))
                yield x, y, x + w, y + h


def modules(plan: Plan) -> dict[str, Part]:
    return {p.section.name: p for p in parts(plan, timeline(plan)) if p.is_module}


def by_name(plan: Plan, module: str) -> dict[str, Layer]:
    net, part = plan.network, modules(plan)[module]
    free = [op.id for op in net.operators if op.type == "Concat"]
    return {net.operators[r.operator].name: r for r in layers(part, timeline(plan), free)}


def test_sections_cover_the_steps_and_know_their_branches() -> None:
    plan = module_plan()
    line = timeline(plan)
    found = parts(plan, line)
    assert [p.first for p in found[1:]] == [p.end for p in found[:-1]]
    assert (found[0].first, found[-1].end) == (0, len(line.steps))
    assert [p.is_module for p in found] == [False, True, True, True, False]
    names = [op.name for op in plan.network.operators]
    a = modules(plan)["net.a"]
    assert [[names[v] for v in b] for b in a.branches] == [list(b) for b in a.section.branches]


def test_a_module_inside_a_module_is_found_with_its_branches() -> None:
    plan = module_plan()
    (inner,) = modules(plan)["net.a"].nested
    names = [op.name for op in plan.network.operators]
    assert names[inner.merge] == "net.a.three.cat"
    assert plan.network.tensors[inner.start].name == "net.a.three.1"
    assert sorted(names[v] for b in inner.branches for v in bits(b)) == [
        "net.a.three.left",
        "net.a.three.right",
    ]
    assert inner.depth == 2
    assert modules(plan)["net.e"].nested == ()


def test_the_map_of_a_plan_says_the_same_of_its_tensors() -> None:
    plan = module_plan()
    kinds = set()
    for part, held in zip(parts(plan, timeline(plan)), regions_of(plan), strict=True):
        said = {plan.network.tensors[t].name: role for t, role in part.roles.items()}
        for region in held:
            if region.kind != "working":
                assert region.kind == said.get(region.name, "feature map")
                kinds.add(region.kind)
    assert kinds == {"MIFM", "nested MIFM", "MOFM", "feature map"}


def test_a_layer_needs_its_own_and_has_what_the_modules_leave() -> None:
    rows = by_name(module_plan(), "net.a")
    assert list(rows) == [
        "net.a.two.1", "net.a.two.2", "net.a.three.1", "net.a.three.left", "net.a.three.right",
        "net.a.pool.1", "net.a.pool.2", "net.a.one",
    ]  # fmt: skip
    first = rows["net.a.two.1"]
    assert (first.read, first.written, first.held, first.occupied) == (0, 24 * KIB, (64 * KIB,), 0)
    second = rows["net.a.two.2"]
    assert (second.read, second.written, second.occupied) == (24 * KIB, 16 * KIB, 0)
    left = rows["net.a.three.left"]
    assert (left.read, left.written, left.held, left.occupied) == (0, 8 * KIB, (64 * KIB, 32 * KIB), 16 * KIB)
    assert rows["net.a.three.right"].occupied == 24 * KIB
    assert rows["net.a.one"].occupied == 48 * KIB
    assert rows["net.a.one"].available(256 * KIB) == (256 - 64 - 48) * KIB
    assert all(r.other == 0 for r in rows.values())
    assert [r.branch for r in rows.values()] == [0, 0, 1, 1, 1, 2, 2, 3]


def test_required_and_available_are_what_lies_in_the_scratchpad() -> None:
    for plan in (module_plan(), wide_plan(8)):
        line = timeline(plan)
        for part in modules(plan).values():
            for row in layers(part, line, ()):
                step = line.steps[row.step]
                taken = row.required + sum(row.held) + row.occupied + row.other
                assert taken == step.occupancy_bytes
                assert row.required <= row.available(plan.budget)


def test_a_sum_in_place_needs_its_operand_once() -> None:
    add = by_name(module_plan(), "net.e")["net.e.add"]
    assert (add.read, add.written, add.held) == (0, 32 * KIB, (32 * KIB,))
    assert add.branch is None


def test_processing_two_says_what_processing_one_would_have_needed() -> None:
    plan = module_plan()
    line, part = timeline(plan), modules(plan)["net.r"]
    rows = layers(part, line, ())
    conv, pool = wishes(part, line, rows)
    assert conv.required == rows[1].required + 16 * KIB
    assert (conv.available, pool.available) == ((256 - 64) * KIB, (256 - 64 - 16) * KIB)
    assert wishes(modules(plan)["net.a"], line, layers(modules(plan)["net.a"], line, ())) == ()


def test_roles_follow_the_section() -> None:
    plan = module_plan()
    line, found = timeline(plan), modules(plan)

    def role_of(module: str, tensor: str) -> str:
        (only,) = {
            p.role
            for p in present(found[module], line)
            if p.stay.name == tensor and p.stay.tensor is not None
        }
        return only

    assert role_of("net.a", "net.stem.2") == "mifm"
    assert role_of("net.a", "net.a.cat") == "mofm"
    assert role_of("net.r", "net.a.cat") == "mifm"  # handed over
    assert role_of("net.a", "net.a.three.1") == "mifm-in"
    assert role_of("net.a", "net.a.three.left") == "mofm"  # its cat is part of the module's
    assert role_of("net.a", "net.a.pool.1") == "map"
    assert role_of("net.e", "net.e.2") == "mofm"


@pytest.mark.parametrize("count", [0, 8])
def test_regions_in_a_picture_do_not_overlap(count: int) -> None:
    plan = wide_plan(count) if count else module_plan()
    line = timeline(plan)
    pictures = [regions(p, line) for p in modules(plan).values()] + [addresses(parts(plan, line), line)]
    for picture in pictures:
        boxes = list(Drawn(picture).rectangles("box"))
        assert boxes
        for a, b in combinations(boxes, 2):
            across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert across < 0.25 or down < 0.6, (a, b)


def test_a_picture_of_regions_has_every_layer_branch_and_move() -> None:
    plan = module_plan()
    line = timeline(plan)
    for part in modules(plan).values():
        seen = Drawn(regions(part, line))
        steps = {int(a["data-step"]) for _, a in seen.elements if "data-step" in a}
        assert steps >= set(range(part.first, part.end))
        words = " ".join(seen.words)
        for b in range(len([b for b in part.branches if b])):
            assert f"branch {b + 1}" in words
    words = " ".join(Drawn(regions(modules(plan)["net.r"], line)).words)
    assert words.count("\N{UPWARDS ARROW} 16 KiB") == 2
    words = " ".join(Drawn(regions(modules(plan)["net.e"], line)).words)
    assert "\N{DOWNWARDS ARROW} 32 KiB" in words


def test_what_moves_by_step_adds_up_to_the_table() -> None:
    for plan in (module_plan(), wide_plan(8), skip_plan()):
        rows = module_table(plan).rows
        for part, row in zip(parts(plan, timeline(plan)), rows, strict=True):
            found = moves(part, plan)
            assert set(found) == set(range(part.first, part.end))
            assert sum(into for into, _ in found.values()) == row.read_bytes
            assert sum(out for _, out in found.values()) == row.written_bytes


def test_concats_laid_over_their_operands_or_joined_are_free() -> None:
    plan = module_plan()
    concats = {op.id for op in plan.network.operators if op.type == "Concat"}
    assert free_concats(plan) == concats
    tensors: list[tuple[str, int, TensorKind]] = [("x", 4, "input"), ("l", 4, "activation")]
    tensors += [("r", 4, "activation"), ("y", 8, "activation")]
    concat = Geometry("concat", (1, 4, 1, 1), (1, 8, 1, 1))
    layers = [OperatorSpec(name, "Any", ["x"], [name]) for name in "lr"]
    layers.append(OperatorSpec("cat", "Concat", ["l", "r"], ["y"], geometry=concat))
    network = Network.build("copies one", tensors, layers, ["y"])
    for place, parts_ in ((12, ("l",)), (8, ("l", "r"))):
        program = [
            Load("x", 0), Alloc("l", 4), Run("l"), Alloc("r", place), Run("r"),
            Alloc("y", 4, parts=parts_), Run("cat"), Store("y"),
        ]  # fmt: skip
        made = Plan(network, PlanChip("c"), 16, tuple(program), plan.result)
        assert free_concats(made) == ({2} if len(parts_) == 2 else set())


def test_sizes_are_those_of_the_stored_network_and_concats_store_nothing() -> None:
    plan = module_plan()
    net, line = plan.network, timeline(plan)
    free = {op.id for op in net.operators if op.type == "Concat"}
    rows = layer_sizes(line, free)
    assert sum(w for _, _, w in rows) == net.weight_bytes
    made = sum(net.tensors[t].bytes for op in net.operators if op.id not in free for t in op.outputs)
    assert sum(m for _, m, _ in rows) == made
    assert "memory 256 KiB" in "".join(Drawn(sizes(parts(plan, line), line, free)).words)


@pytest.mark.parametrize("count", [0, 12])
def test_the_drawing_has_every_layer_once_and_modules_around_theirs(count: int) -> None:
    plan = wide_plan(count) if count else module_plan()
    line = timeline(plan)
    found = parts(plan, line)
    picture = drawing(found, line)
    assert picture is not None
    groups = re.findall(
        r'<g class="(op|frame[^"]*)"[^>]*?(?:data-(?:step|module)="(\d+)")?>'
        r"(?:<title>.*?</title>)?(<rect[^>]*>)",
        picture,
    )

    def rect(text: str) -> tuple[float, float, float, float]:
        x, y, w, h = (float(re.search(rf' {k}="([-\d.]+)"', text)[1]) for k in ("x", "y", "width", "height"))  # type: ignore[index]
        return x, y, x + w, y + h

    operators = {int(step): rect(text) for kind, step, text in groups if kind == "op"}
    frames = {int(key): rect(text) for kind, key, text in groups if kind.startswith("frame") and key}
    assert set(operators) == {s.index for s in line.steps if s.operators}
    assert set(frames) == {p.index for p in found if p.is_module}
    for part in found:
        for step, (left, top, right, bottom) in operators.items():
            if part.is_module:
                x0, y0, x1, y1 = frames[part.index]
                within = x0 <= left and right <= x1 and y0 <= top and bottom <= y1
                apart = right <= x0 or x1 <= left or bottom <= y0 or y1 <= top
                assert within if part.first <= step < part.end else apart
    for a, b in combinations(operators.values(), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_branches_are_numbered_in_the_order_of_processing() -> None:
    plan = module_plan()
    line = timeline(plan)
    picture = drawing(parts(plan, line), line)
    assert picture is not None
    numbers = re.findall(r"branch (\d) of (\d)", picture)
    assert sorted(numbers) == sorted(
        [("1", "4"), ("2", "4"), ("3", "4"), ("4", "4"), *[("1", "2"), ("2", "2")] * 3]
    )


def test_ways_through_dram_and_around_modules_are_told_apart() -> None:
    plan = module_plan()
    line = timeline(plan)
    picture = drawing(parts(plan, line), line)
    assert picture is not None
    ways = re.findall(r'class="(way[^"]*)"><title>(.*?):', picture) + re.findall(
        r'<path d="[^"]*" class="(way[^"]*)"><title>(.*?):', picture
    )
    outer = {name: kind for kind, name in ways if "outer" in kind}
    assert "dram" in outer["net.stem.2"]
    assert "dram" in outer["net.r.cat"]
    assert "dram" not in outer["net.a.cat"]
    assert not any("long" in kind for kind, _ in ways)
    plan = skip_plan()
    picture = drawing(parts(plan, timeline(plan)), timeline(plan))
    assert picture is not None
    assert re.findall(r'class="way[^"]*long"><title>(.*?):', picture) == ["net.stem"]


def test_a_plan_without_modules_has_no_parts_that_are() -> None:
    plan = greedy(chain(5))
    assert parts(plan, timeline(plan)) == ()
    odd = replace(
        module_plan(),
        sections=tuple(replace(s, merge="nobody") if s.merge else s for s in module_plan().sections),
    )
    assert not any(p.is_module for p in parts(odd, timeline(module_plan())))
