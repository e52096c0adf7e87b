"""Feature maps in patches, executed: stored so, concatenated where they lie, joined in DRAM, streamed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from onchip.base.errors import IllegalPlan, InputError, Mismatch, ModelError
from onchip.check import check
from onchip.network import Patches, Tensor
from onchip.plans import Alloc, Plan
from onchip.readers import load
from onchip.readers.source import Source
from onchip.run import run
from onchip.run.arena import POISON
from onchip.run.layout import layout_of
from readers.tflite_build import Op, T, model
from run.patched import certified, in_patches, module, onnx_source, planned, steps

ON_CHIP = """
    load x @2000
    alloc s @1500
    run s
    free x
    alloc a @0
    run a
    alloc p @512
    run p
    alloc b @192
    run b
    free s
    alloc c @0 of a b p
    run c
    alloc d @768
    run d
    alloc e @768 over d by 0
    run e
    free c
    alloc f @0
    run f
    alloc g @128
    run g
    alloc h @2000
    run h
    alloc i @128 of g
    run i
    free h
    alloc k @0 of f i
    run k
    free e
    alloc l @500
    run l
    free k
    alloc m @0
    run m
    alloc y @7
    run y
    store y
    free y
    free l
    free m
"""
"""Every concat around operands in place, but for h; sums over an operand."""


def on_chip(folder: Path, dtype: str = "int8") -> tuple[Plan, Source]:
    """That program; with float32 elements everything is four times as large."""
    source = module(folder, dtype)
    width = 4 if dtype == "file" else 1
    text = re.sub(r"@(\d+)", lambda at: f"@{int(at[1]) * width}", ON_CHIP)
    return planned(in_patches(source), steps(text), compulsory=(432 + 5) * width), source


@pytest.mark.parametrize("dtype", ["int8", "file"])
def test_concats_lie_in_place_and_nothing_of_them_moves(dtype: str, tmp_path: Path) -> None:
    plan, source = on_chip(tmp_path, dtype)
    report = run(certified(plan), source)
    assert report.bit_exact
    assert report.tensors == 16
    assert report.scale == (4 if dtype == "int8" else 1)
    assert report.in_place_bytes == (768 + 192 + 448) * (1 if dtype == "int8" else 4)
    assert any("concats" in line for line in report.lines())


def test_the_model_is_read_again_and_its_structure_compared(tmp_path: Path) -> None:
    plan, source = on_chip(tmp_path)
    plan = replace(plan, options={"granularity": "op", "dtype": "int8"})
    assert run(plan, checked=False).bit_exact
    tensors = list(plan.network.tensors)
    p = tensors[1].patches
    assert p is not None
    tensors[1] = replace(tensors[1], patches=replace(p, rows=5))
    network = replace(plan.network, tensors=tuple(tensors))
    with pytest.raises(InputError, match="changed since it was planned"):
        run(replace(plan, network=network), source, checked=False)
    operators = (replace(plan.network.operators[0], type="Relu"), *plan.network.operators[1:])
    with pytest.raises(InputError, match="changed since it was planned"):
        run(replace(plan, network=replace(plan.network, operators=operators)), source, checked=False)


def test_patches_of_another_shape_are_refused(tmp_path: Path) -> None:
    plan, source = on_chip(tmp_path)
    tensors = list(plan.network.tensors)
    # As many elements and bytes, but other rows and columns than the model's.
    tensors[1] = replace(tensors[1], patches=Patches(4, 5, 6, 4, 4))
    with pytest.raises(ModelError, match="tensor s: has patches of 4 x 5 x 6"):
        run(replace(plan, network=replace(plan.network, tensors=tuple(tensors))), source, checked=False)


DRAM = """
    scratch s @0
    run s streaming x:432 s:256
    load s @0
    alloc a @300
    run a
    store a
    free a
    alloc p @300
    run p
    store p
    free p
    scratch b @2000
    run b streaming b:320
    free s
    join c
    scratch d @0
    run d streaming c:768 d:768
    load c @0
    load d @800
    alloc e @800 over d by 0
    run e
    alloc f @2000
    run f
    store f
    alloc g @2200
    run g
    store g
    free g
    alloc h @2200
    run h
    store h
    free h
    free f
    join i
    join k
    free c
    load k @0
    alloc l @3000
    run l
    alloc m @3500
    run m
    scratch y @3600
    run y streaming y:5
"""
"""The same network with its concats joined, one of them inside another, and layers streamed."""


def through_dram(folder: Path) -> tuple[Plan, Source]:
    source = module(folder)
    network = in_patches(source, {"s": 700, "b": 100, "d": 12 * 32 + 144 + 16, "y": 5})
    reload = 256 + 768 + 768 + 768 + 448
    spill = 256 + 192 + 256 + 320 + 768 + 128 + 192 + 128
    return planned(network, steps(DRAM), compulsory=432 + 5, reload=reload, spill=spill), source


def test_joined_concats_move_nothing_and_are_read_from_dram(tmp_path: Path) -> None:
    plan, source = through_dram(tmp_path)
    report = run(certified(plan), source)
    assert report.max_difference < 1e-4
    assert report.tensors == 16
    assert report.moved.spill == plan.result.spill_bytes
    assert report.joined == 3
    assert report.in_parts == ("d",)  # s and y fit their scratch whole, b has its input on chip
    assert not report.streamed_whole
    assert any("3 in DRAM" in line for line in report.lines())


class TestWrongPlans:
    """What is not where it belongs is found, by the machine alone."""

    def without(self, plan: Plan, line: str, *instead: str) -> Plan:
        [old] = steps(line)
        at = plan.program.index(old)
        new = steps("\n".join(instead)) if instead else ()
        return replace(plan, program=(*plan.program[:at], *new, *plan.program[at + 1 :]))

    @pytest.mark.parametrize("part", ["a @0", "p @512", "b @192", "g @128", "f @0"])
    def test_a_part_moved_by_a_byte(self, part: str, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        name, at = part.split(" @")
        wrong = self.without(plan, f"alloc {part}", f"alloc {name} @{int(at) + 1}")
        with pytest.raises((IllegalPlan, Mismatch), match=rf"join-place|tensor [{name}b-p], "):
            run(wrong, source, checked=False)

    @pytest.mark.parametrize("of", ["c @0", "c @2", "k @1", "i @130"])
    def test_an_output_that_is_not_around_its_parts(self, of: str, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        name = of[0]
        [old] = [i for i in plan.program if isinstance(i, Alloc) and i.tensor == name]
        moved = replace(old, address=old.address + 1)
        wrong = replace(plan, program=tuple(moved if i == old else i for i in plan.program))
        with pytest.raises(IllegalPlan, match="join-place"):
            run(wrong, source, checked=False)

    def test_a_part_that_is_no_operand(self, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        wrong = self.without(plan, "alloc i @128 of g", "alloc i @128 of f")
        with pytest.raises(IllegalPlan, match="overlap-not-input"):
            run(wrong, source, checked=False)

    def test_parts_of_what_is_no_concat(self, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        wrong = self.without(plan, "alloc e @768 over d by 0", "alloc e @0 of c")
        with pytest.raises(IllegalPlan, match="join-not-concat"):
            run(wrong, source, checked=False)

    def test_a_part_that_is_not_written_yet(self, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        wrong = self.without(plan, "run b")
        with pytest.raises(IllegalPlan, match="not-produced"):
            run(wrong, source, checked=False)

    def test_a_part_freed_before_the_concat(self, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        for line in ("free a", "store a\nfree a\nload a @3000"):
            wrong = self.without(plan, "run c", *line.splitlines(), "run c")
            with pytest.raises((IllegalPlan, Mismatch), match=r"not-resident|were given back"):
                run(wrong, source, checked=False)

    def test_a_part_whose_byte_was_taken(self, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        wrong = self.without(plan, "alloc d @768", "alloc d @767")
        with pytest.raises(Mismatch, match="tensor c, "):
            run(
                self.without(wrong, "alloc e @768 over d by 0", "alloc e @767 over d by 0"),
                source,
                checked=False,
            )

    def test_a_part_ends_with_the_concat(self, tmp_path: Path) -> None:
        plan, source = on_chip(tmp_path)
        wrong = self.without(plan, "alloc d @768", "store a", "alloc d @768")
        with pytest.raises(IllegalPlan, match="not-resident"):
            run(wrong, source, checked=False)

    def test_a_join_without_all_its_copies(self, tmp_path: Path) -> None:
        plan, source = through_dram(tmp_path)
        wrong = self.without(plan, "store p")
        with pytest.raises(IllegalPlan, match="join-no-dram-copy: p"):
            run(wrong, source, checked=False)

    def test_a_join_of_what_is_no_concat(self, tmp_path: Path) -> None:
        plan, source = through_dram(tmp_path)
        wrong = self.without(plan, "run e", "store d", "join e")
        with pytest.raises(IllegalPlan, match="join-not-concat"):
            run(wrong, source, checked=False)

    def test_a_join_of_a_tensor_that_has_a_range(self, tmp_path: Path) -> None:
        plan, source = through_dram(tmp_path)
        wrong = self.without(plan, "join c", "alloc c @0", "join c")
        with pytest.raises(IllegalPlan, match="join-reserved"):
            run(wrong, source, checked=False)

    def test_a_join_twice(self, tmp_path: Path) -> None:
        plan, source = through_dram(tmp_path)
        wrong = self.without(plan, "join c", "join c", "join c")
        with pytest.raises(IllegalPlan, match="already-run"):
            run(wrong, source, checked=False)

    def test_a_join_that_was_not_counted_is_no_traffic(self, tmp_path: Path) -> None:
        plan, source = through_dram(tmp_path)
        result = replace(plan.result, spill_bytes=plan.result.spill_bytes + 768)
        with pytest.raises(Mismatch, match="spill_bytes"):
            run(replace(plan, result=result), source, checked=False)


BOTH = """both (float[1,3,6,6] x) => (float[1,4,6,6] y, float[1,4,6,6] z) {
    a = Relu(x)
    b = Conv<kernel_shape=[1,1]>(a, w)
    c = Concat<axis=1>(a, b)
    d = Concat<axis=1>(b, a)
    y = Tanh(c)
    z = Sigmoid(d)
}"""


def test_one_tensor_in_two_joins_is_refused(tmp_path: Path) -> None:
    source = onnx_source(tmp_path, BOTH, {"w": (1, 3, 1, 1)}, "int8")
    program = """
        load x @0
        alloc a @200
        run a
        alloc b @400
        run b
        store a
        store b
        join c
        join d
    """
    plan = planned(in_patches(source), steps(program), compulsory=0)
    with pytest.raises(IllegalPlan, match="join-twice") as refusal:
        run(plan, source, checked=False)
    assert refusal.value.index == 8


DENSE = """dense (float[1,3,6,6] x) => (float[1,4,6,6] y, float[1,5,6,6] z) {
    a = Relu(x)
    b = Conv<kernel_shape=[1,1]>(a, w)
    c = Concat<axis=1>(a, b)
    e = Tanh(b)
    d = Concat<axis=1>(a, b, e)
    y = Tanh(c)
    z = Sigmoid(d)
}"""


@pytest.mark.parametrize("first", ["c", "d"])
def test_joined_concats_of_which_one_begins_the_other(tmp_path: Path, first: str) -> None:
    source = onnx_source(tmp_path, DENSE, {"w": (1, 3, 1, 1)}, "int8")
    second = "d" if first == "c" else "c"
    program = f"""
        load x @0
        alloc a @1024
        run a
        store a
        alloc b @2048
        run b
        store b
        alloc e @3072
        run e
        store e
        free x
        free a
        free b
        free e
        join {first}
        join {second}
        load c @0
        alloc y @2048
        run y
        store y
        free c
        free y
        load d @0
        alloc z @2048
        run z
        store z
        free d
        free z
    """
    plane = 64  # in patches of 4 by 4
    y, z = 4 * plane, 5 * plane
    whole = in_patches(source)
    plan = planned(whole, steps(program), compulsory=3 * plane + y + z, reload=y + z, spill=5 * plane)
    report = run(certified(plan), source)
    assert report.moved.spill == 5 * plane


BEGINS = """begins (float[1,3,6,6] x) => (float[1,5,6,6] y, float[1,5,6,6] z) {
    a = Relu(x)
    b = Conv<kernel_shape=[1,1]>(a, w)
    c = Concat<axis=1>(a, b)
    e = Tanh(b)
    g = Sigmoid(b)
    d = Concat<axis=1>(a, b, e)
    f = Concat<axis=1>(c, g)
    y = Tanh(d)
    z = Sigmoid(f)
}"""


@pytest.mark.parametrize("order", [("c", "d", "f"), ("c", "f", "d"), ("d", "c", "f")])
def test_an_output_begins_one_other_output_at_most(tmp_path: Path, order: tuple[str, ...]) -> None:
    source = onnx_source(tmp_path, BEGINS, {"w": (1, 3, 1, 1)}, "int8")
    made = [f"alloc {t} @{1024 * i}\nrun {t}\nstore {t}" for i, t in enumerate("abge", 1)]
    text = "\n".join(["load x @0", *made, *(f"join {t}" for t in order)])
    plan = planned(in_patches(source), steps(text), compulsory=0)
    for judge in (lambda: check(plan), lambda: run(plan, source, checked=False)):
        with pytest.raises(IllegalPlan, match="join-twice"):
            judge()


def test_a_graph_input_is_part_of_no_join(tmp_path: Path) -> None:
    text = "g (float[1,3,6,6] x) => (float[1,6,6,6] y) { a = Relu(x) c = Concat<axis=1>(x, a) y = Tanh(c) }"
    source = onnx_source(tmp_path, text, {}, "int8")
    program = "load x @0\nalloc a @200\nrun a\nstore a\njoin c"
    plan = planned(in_patches(source), steps(program), compulsory=0)
    with pytest.raises(IllegalPlan, match="join-graph-input"):
        run(plan, source, checked=False)


def test_a_concat_that_does_not_lay_its_operands_one_after_another_is_found_out(tmp_path: Path) -> None:
    """Along columns sizes may add up, and the bytes are others."""
    text = """g (float[1,3,4,4] x) => (float[1,3,4,8] y) {
        a = Relu(x)
        b = Neg(x)
        c = Concat<axis=3>(a, b)
        y = Tanh(c)
    }"""
    source = onnx_source(tmp_path, text, {}, "int8")
    before = "load x @0\nalloc a @100\nrun a\nalloc b @148\nrun b\n"
    for program in (before + "alloc c @100 of a b\nrun c", before + "store a\nstore b\njoin c"):
        plan = planned(in_patches(source), steps(program), compulsory=0)
        with pytest.raises(Mismatch, match=r"tensor c, .*is not what the operator makes"):
            run(plan, source, checked=False)


def test_elements_narrower_than_their_slots_keep_their_places(tmp_path: Path) -> None:
    """With an 8-byte tensor planned at one byte, 4-byte elements have slots of 8: parts must still fit."""
    text = """mixed (float[1,3,6,6] x, double[2,3] j) => (float[1,4,6,6] y, double[2,3] k) {
        a = Relu(x)
        b = Conv<kernel_shape=[1,1]>(a, w)
        c = Concat<axis=1>(a, b)
        y = Tanh(c)
        k = Add(j, j)
    }"""
    source = onnx_source(tmp_path, text, {"w": (1, 3, 1, 1)}, "int8")
    network = in_patches(source)
    program = """
        load x @500
        alloc a @0
        run a
        alloc b @192
        run b
        alloc c @0 of a b
        run c
        alloc y @0 over c by 0
        run y
        store y
        load j @800
        alloc k @900
        run k
        store k
    """
    planned_j = network.tensors[network.tensor_id["j"]].bytes
    figures = 192 + planned_j + 256 + network.tensors[network.tensor_id["k"]].bytes
    report = run(certified(planned(network, steps(program), compulsory=figures)), source)
    assert report.bit_exact
    assert report.scale == 8
    assert report.in_place_bytes == 256


VIEWS = """views (float[1,4,5,3] x) => (float[1,4,5,3] y)
<int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] one = {1}> {
    a = Tanh(x)
    low = Slice(a, zero, two, one)
    high = Slice(a, two, four, one)
    b = Relu(low)
    c = Neg(high)
    y = Concat<axis=1>(b, c)
}"""


def test_views_of_whole_channels(tmp_path: Path) -> None:
    source = onnx_source(tmp_path, VIEWS, {}, "int8")
    network = in_patches(source)
    assert len(network.views) == 2
    program = """
        load x @0
        alloc a @200
        run a
        alloc b @400
        run b
        alloc c @464
        run c
        alloc y @400 of b c
        run y
        store y
    """
    assert run(certified(planned(network, steps(program), compulsory=256)), source).bit_exact
    broken = replace(network, views=tuple(replace(v, offset=v.offset // 2) for v in network.views))
    with pytest.raises((InputError, Mismatch)):
        run(planned(broken, steps(program), compulsory=256), source, checked=False)


def tflite() -> bytes:
    """Two branches of a float map [1, 5, 6, 3], concatenated along channels and joined again."""
    maps = [T((1, 5, 6, 3), name=n) for n in ("x", "a", "b")]
    wide, out = T((1, 5, 6, 6), name="c"), T((1, 5, 6, 6), name="y")
    return model(
        [*maps, wide, out],
        [
            Op("TANH", [0], [1]),
            Op("EXP", [0], [2]),
            Op("CONCATENATION", [1, 2], [3], ("ConcatenationOptions", {"Axis": 3})),
            Op("NEG", [3], [4]),
        ],
        [0],
        [4],
    )


@pytest.mark.thorough
@pytest.mark.parametrize("joined", [False, True])
def test_channels_come_first_in_patches_of_a_model_that_has_them_last(joined: bool, tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(tflite())
    source = load(path)
    network = in_patches(source)
    names = [op.name for op in network.operators]
    run_a, run_b, run_c, run_y = names
    size = network.tensors[network.tensor_id["x"]].bytes
    middle = (
        f"store a\nstore b\njoin {run_c}\nload c @{3 * size}"
        if joined
        else f"alloc c @{size} of a b\nrun {run_c}"
    )
    program = f"""load x @0
        alloc a @{size}
        run {run_a}
        alloc b @{2 * size}
        run {run_b}
        {middle}
        alloc y @{5 * size}
        run {run_y}
        store y
    """
    plan = planned(
        network,
        steps("\n".join(line.strip() for line in program.splitlines())),
        compulsory=3 * size,
        reload=2 * size if joined else 0,
        spill=2 * size if joined else 0,
    )
    assert run(certified(plan), source).bit_exact


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("pitch", [4, 8])
def test_a_map_in_patches_reads_as_it_was_written(last: bool, pitch: int) -> None:
    patches = Patches(6, 5, 7, 4, 2)
    planes = np.arange(6 * 5 * 7, dtype=np.float32).reshape(2, 3, 5, 7)
    value = np.ascontiguousarray(planes.transpose(0, 2, 3, 1)) if last else planes
    tensor = Tensor(0, "t", patches.elements, "activation", patches)
    layout = layout_of(tensor, pitch, value.dtype, value.shape, last=last)
    slot = layout.pack(value)
    assert slot.size == pitch * 6 * 2 * 4 * 4 * 2
    assert np.array_equal(layout.unpack(slot), value)
    # By the definition: channel, patch row, patch column, row and column in the patch.
    lies = slot.reshape(6, 2, 4, 4, 2, pitch)
    for c, i, j in ((0, 0, 0), (5, 4, 6), (3, 3, 5), (2, 4, 1)):
        there = lies[c, i // 4, j // 2, i % 4, j % 2]
        assert np.frombuffer(there[:4].tobytes(), np.float32)[0] == planes[c // 3, c % 3, i, j]
        assert (there[4:] == POISON).all()
    assert (lies[0, 1, 0, 1] == POISON).all()
    assert (lies[0, 0, 3, :, 1] == POISON).all()
