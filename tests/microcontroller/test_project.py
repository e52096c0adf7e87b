"""A plan as C, built with every warning an error and every fault an abort: every byte is the reference's."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from native import differences, needs_compiler, outputs_of
from ring_plans import Shape, layer_by_layer, one_group, some_network, some_shape

from onchip.base.errors import IllegalPlan, PlanFormatError, UsageError
from onchip.check import certify
from onchip.check.rules import Broken
from onchip.machines.board import load_board
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.made import Builder
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.project.write import project_files, write_project
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments import plan as plan_segments
from onchip.plans import Alloc, Free, Load, PlanChip, Run, Store

ROOM = 1 << 22


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("mode", ["held", "once", "again"])
def test_a_planned_network_makes_the_reference_s_bytes(mode: Any, tmp_path: Path) -> None:
    model = int8_model("made:kws")
    plan = plan_segments(network_of(model), ROOM, SegmentOptions(input=mode))
    assert differences(*outputs_of(plan, model, tmp_path / "kws", inputs=1)) == 0


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("made:ad01", mode) for mode in ("held", "once", "again")),
        *(("made:resnet8", mode) for mode in ("held", "again")),
        pytest.param("made:resnet8", "once", marks=pytest.mark.campaign),
        ("made:vww_96", "again"),
    ],
)
def test_every_network_of_ours_makes_the_reference_s_bytes(name: str, mode: Any, tmp_path: Path) -> None:
    model = int8_model(name)
    plan = plan_segments(network_of(model), ROOM, SegmentOptions(input=mode))
    assert differences(*outputs_of(plan, model, tmp_path / "net", inputs=1)) == 0


def ring_plan_is_right(seed: int, folder: Path) -> bool:
    """Whether the network of this seed runs right in its way; False where no plan says that way."""
    model = some_network(seed)
    try:
        plan = one_group(model, some_shape(model, seed))
        sources_of(plan, model)
    except (Broken, IllegalPlan, PlanFormatError):
        return False
    assert differences(*outputs_of(plan, model, folder)) == 0
    return True


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize("seed", range(2))
def test_stages_bands_strips_and_directions_of_some_groups(seed: int, tmp_path: Path) -> None:
    ring_plan_is_right(seed, tmp_path / "net")


@needs_compiler
@pytest.mark.slow
def test_stages_bands_strips_and_directions_of_many_groups(tmp_path: Path) -> None:
    assert sum(ring_plan_is_right(seed, tmp_path / str(seed)) for seed in range(2, 12)) > 5


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(
    "shape",
    [
        Shape((1, 2), (1, 1, 1)),
        Shape((1,), (2, 3), strips=2, fetched="rows"),
        Shape((), (4,), strips=3, traversal="reverse", fetched="columns"),
    ],
)
def test_a_block_in_rings_bands_and_strips(shape: Shape, tmp_path: Path) -> None:
    b = Builder(3)
    x = b.conv(b.depthwise(b.conv(b.input((1, 9, 11, 4)), 10), 3), 7)
    model = model_of(b.file(x), name="block", where="test")
    assert differences(*outputs_of(one_group(model, shape), model, tmp_path / "block")) == 0


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(("cuts", "rows"), [((3,), (1, 1)), ((1,), (1, 2)), ((), (3,))])
@pytest.mark.parametrize("traversal", ["forward", "reverse"])
def test_a_pool_adds_up_rows_or_pixels_as_they_are_made(
    cuts: tuple[int, ...], rows: tuple[int, ...], traversal: Any, tmp_path: Path
) -> None:
    b = Builder(4)
    x = b.max_pool(b.conv(b.depthwise(b.conv(b.input((1, 8, 7, 4)), 6), 3), 5), (8, 7), padding="VALID")
    model = model_of(b.file(x), name="pooled", where="test")
    plan = one_group(model, Shape(cuts, rows, traversal=traversal))
    assert differences(*outputs_of(plan, model, tmp_path / "pooled")) == 0


@pytest.mark.thorough
@needs_compiler
def test_layers_that_move_bytes_and_constant_operands(tmp_path: Path) -> None:
    b = Builder(5)
    x = b.input((1, 5, 6, 4))
    x = b.pad(b.conv(x, 6, 3, activation="RELU"), (1, 0, 2, 1), (1, 2))
    x = b.concat(x, b.mul(x, b.constant(x.shape)), axis=1)
    x = b.concat(x, b.logistic(x), axis=2)
    x = b.resize(x, (9, 11), mode="bilinear")
    x = b.hard_swish(b.resize(x, (4, 5), mode="nearest"))
    x = b.softmax(b.fully_connected(b.prelu(b.concat(x, b.add(x, b.constant((x.shape[3],))))), 7))
    model = model_of(b.file(x), name="moves", where="test")
    assert differences(*outputs_of(layer_by_layer(model), model, tmp_path / "moves")) == 0


def test_a_plan_whose_overlap_counts_on_another_kernel_is_refused() -> None:
    b = Builder()
    model = model_of(b.file(b.conv(b.input((1, 6, 6, 8)), 8)), name="one", where="test")
    network = network_of(model)
    names = [t.name for t in model.tensors]
    program = [Load(names[0], 0), Alloc(names[1], 0, names[0], 0), Run(model.layers[0].name)]
    (op,) = network.operators
    assert op.geometry is not None
    lying = replace(op, geometry=replace(op.geometry, pixels=1, channels=0))
    plan = certify(
        replace(network, operators=(lying,)),
        PlanChip("mcu"),
        ROOM,
        [*program, Store(names[1]), Free(names[1])],
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
    )
    with pytest.raises(PlanFormatError, match="counts on steps of 1 pixels"):
        sources_of(plan, model)


@pytest.mark.thorough
def test_a_plan_of_another_network_is_refused() -> None:
    plan = plan_segments(network_of(int8_model("made:ad01")), ROOM)
    with pytest.raises(PlanFormatError, match="of another network"):
        sources_of(plan, int8_model("made:kws"))


def test_a_plan_that_hands_an_output_over_early_is_refused() -> None:
    """A program reads outputs when the network has run: they must lie there to the end."""
    b = Builder()
    x = b.conv(b.input((1, 4, 4, 2)), 3)
    model = model_of(b.file(x, b.conv(x, 2)), name="two", where="test")
    plan = planned_for(network_of(model), ROOM, SegmentOptions()).plan
    header = sources_of(plan, model).files["model.h"]
    assert "TWO_OUTPUT_0_BYTES 48" in header
    assert "const int8_t *two_output_1(void);" in header
    name = model.tensors[1].name
    [early] = [step for step in plan.program if isinstance(step, Store) and step.tensor == name]
    ran = next(i for i, step in enumerate(plan.program) if isinstance(step, Run)) + 1
    program = [step for step in plan.program if step is not early]
    with pytest.raises(PlanFormatError, match="runs on after an output is handed over"):
        sources_of(replace(plan, program=(*program[:ran], early, *program[ran:])), model)


@pytest.mark.thorough
def test_names_of_a_model_end_no_comment_and_are_names_in_c(tmp_path: Path) -> None:
    model = replace(int8_model("made:ad01"), name="no. 1 */ \\")
    sources = sources_of(plan_segments(network_of(model), ROOM), model)
    assert sources.name.isidentifier()
    assert "*/ \\" not in sources.files["model.h"]


HOSTILE = [
    "*/ int evil; /*",
    "a\nb",
    'x"; #define int',
    "",
    "\\",
    "??/",
    "%s%n",
    "\x1b[31m",
    "é漢",
    "x" * 3000,
]


@pytest.mark.thorough
@needs_compiler
def test_whatever_tensors_are_called_the_project_compiles_and_runs(tmp_path: Path) -> None:
    b = Builder(3)
    x = b.conv(b.input((1, 5, 5, 3)), 4, 3)
    y = b.softmax(b.fully_connected(b.mean(b.concat(b.max_pool(x, 3, 1, padding="SAME"), x)), 4))
    for i, name in enumerate(HOSTILE):
        b.tensors[i] = replace(b.tensors[i], name=name)
    model = model_of(b.file(y), name=HOSTILE[0], where="test")
    plan = plan_segments(network_of(model), ROOM)
    assert differences(*outputs_of(plan, model, tmp_path / "net", inputs=1)) == 0


@pytest.mark.thorough
def test_a_project_replaces_its_like_and_nothing_else(tmp_path: Path) -> None:
    model = int8_model("made:ad01")
    files = project_files(
        sources_of(plan_segments(network_of(model), ROOM), model), model, load_board("nucleo-f411re")
    )
    folder = tmp_path / "out"
    write_project(files, folder)
    (folder / "libad01.a").write_text("built")
    (folder / "model.o").write_text("built")
    write_project({**files, "Makefile": "x"}, folder)
    assert contents(folder) == {**files, "Makefile": "x"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="has not written"):
        write_project(files, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def contents(folder: Path) -> dict[str, str]:
    """The text of every file, by its path in the folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.mark.thorough
def test_a_project_to_which_the_user_added_files_is_left_alone(tmp_path: Path) -> None:
    model = int8_model("made:ad01")
    files = project_files(
        sources_of(plan_segments(network_of(model), ROOM), model), model, load_board("nucleo-f411re")
    )
    folder = tmp_path / "out"
    write_project(files, folder)
    assert contents(folder) == files
    for mine in ("application.c", "drivers/uart.c", ".git/config"):
        added = folder / mine
        added.parent.mkdir(exist_ok=True)
        added.write_text("mine")
        with pytest.raises(UsageError, match=mine.partition("/")[0]):
            write_project(files, folder)
        assert added.read_text() == "mine"
        shutil.rmtree(added.parent) if added.parent != folder else added.unlink()
    write_project(files, folder)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")
def test_the_makefile_builds_the_library_for_the_core(tmp_path: Path) -> None:
    model = int8_model("made:ad01")
    sources = sources_of(plan_segments(network_of(model), ROOM), model)
    write_project(project_files(sources, model, load_board("nucleo-f411re")), tmp_path / "out")
    done = subprocess.run(["make"], cwd=tmp_path / "out", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "libad01.a").stat().st_size > sources.constant_bytes["FULLY_CONNECTED.0"]
