"""Operators of which only a reach says what they read: in bands with others they make what they made."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import onnx
import onnx.parser
import pytest

import onchip
from onchip.planners.fusion import FusionOptions, FusionProblem

MAPS = "g (float[1,8,16,16] x) => (float y)"
MATRICES = "g (float[1,24,16] x) => (float y)"


def saved(folder: Path, head: str, body: str) -> Path:
    """A model with weights for everything that the bodies here read."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {head} {{ {body} }}')
    random = np.random.default_rng(0)
    arrays: dict[str, object] = {
        "w": random.standard_normal((8, 8, 3, 3)) / 8,
        "m": random.standard_normal((16, 16)) / 4,
        "s": random.standard_normal(16),
        "b": random.standard_normal(16),
        "around": np.array([0, 0, 1, 2, 0, 0, 2, 1]),
        "rows": np.array([0, 0, 2, 0, 0, 0, 1, 0]),
        "five": np.array([1, 2, 4, 16, 16]),
        "four": np.array([1, 8, 16, 16]),
        "small": np.array([1, 4, 8, 16]),
        "two": np.array([2]),
        "last": np.array([1_000]),
        "axis": np.array([2]),
        "minus": np.array([-1]),
        "minus_rows": np.array([-2]),
        "half": np.array([1, 12, 32]),
        "double": np.array([1, 24, 16]),
    }
    read = set(body.replace("(", " ").replace(")", " ").replace(",", " ").split())
    for name, value in arrays.items():
        if name in read:
            array = np.asarray(value)
            array = array.astype(np.float32) if array.dtype == np.float64 else array.astype(np.int64)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    path = folder / "net.onnx"
    onnx.save(model, path)
    return path


def least_budget(path: Path, *, nests: bool = True) -> int:
    """A budget in which everything fits, by bands of one row or boxes."""
    try:
        onchip.plan(path, budget=64, fuse=True, nests=nests)
    except onchip.Infeasible as refusal:
        return refusal.needs
    return 64


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("head", "body", "name"),
    [
        (MAPS, 'c = Conv<pads=[1,1,1,1]>(x, w)  p = Pad<mode="reflect">(c, around)  y = Conv(p, w)', "p"),
        (MAPS, 'c = Conv<pads=[1,1,1,1]>(x, w)  p = Pad<mode="edge">(c, rows)  y = Conv(p, w)', "p"),
        (MAPS, "c = Conv<pads=[1,1,1,1]>(x, w)  t = ConvTranspose(c, w)  y = Conv(t, w)", "t"),
        (  # channels shuffled where they lie, which the convolution behind reads so
            MAPS,
            "c = Conv<pads=[1,1,1,1]>(x, w)  r = Reshape(c, five)  t = Transpose<perm=[0,2,1,3,4]>(r)"
            "  q = Reshape(t, four)  d = Conv<pads=[1,1,1,1]>(q, w)  y = Conv(d, w)",
            "d",
        ),
        (MAPS, "c = Conv<pads=[1,1,1,1]>(x, w)  s1 = Slice(c, two, last, axis)  y = Conv(s1, w)", "y"),
        (MAPS, "c = Conv<pads=[1,1,1,1]>(x, w)  n = Softmax<axis=3>(c)  y = Conv(n, w)", "n"),
        (MATRICES, "c = MatMul(x, m)  n = LayerNormalization<axis=-1>(c, s, b)  y = MatMul(n, m)", "n"),
        (MATRICES, "c = MatMul(x, m)  n = ReduceMean(c, minus)  d = Sub(c, n)  y = MatMul(d, m)", "d"),
    ],
)
def test_it_runs_in_bands_with_others(tmp_path: Path, head: str, body: str, name: str) -> None:
    path = saved(tmp_path, head, body)
    network = onchip.load(path).network
    op = network.operators[network.operator_id[name]] if name in network.operator_id else None
    op = op or next(o for o in network.operators if network.tensor_id[name] in o.outputs)
    assert op.geometry is None or not op.geometry.promises
    assert op.reach is not None
    least, together = least_budget(path, nests=False), False
    most = sum(t.bytes for t in network.tensors) + sum(o.weight_bytes for o in network.operators)
    for budget in sorted({least, *(least + (most - least) * n // 8 for n in range(1, 8))}):
        made = onchip.plan(path, budget=budget, fuse=True, nests=False)
        together = together or any(
            op.name in g.operators and len(g.operators) > 1 and g.subgroups > 1 for g in made.groups
        )
        report = made.run()
        assert report.max_difference < 1e-4
    assert together


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (MAPS, "q = MatMul(x, m)  n = LRN<size=3, alpha=0.5>(q)  y = Conv<pads=[1,1,1,1]>(n, w)"),
        (  # a matrix that is repeated over rows and columns, not over channels
            "g (float[1,8,16,16] x, float[1,16,16] z) => (float y)",
            "e = Relu(z)  c = Conv<pads=[1,1,1,1]>(x, w)  a = Add(c, e)  y = Conv<pads=[1,1,1,1]>(a, w)",
        ),
        ("g (float[1,16,16] x) => (float y)", "c = MatMul(x, m)  y = Add(c, x)"),
        (  # an input with three dimensions that is read as a map
            "g (float[1,32,16] x) => (float y)",
            "r = Reshape(x, small)  y = MaxPool<kernel_shape=[2,1]>(r)",
        ),
    ],
)
def test_matrices_and_maps_go_together(tmp_path: Path, head: str, body: str) -> None:
    path = saved(tmp_path, head, body)
    least = least_budget(path)
    for budget in (least, least + 200, 2 * least, 4 * least):
        assert onchip.plan(path, budget=budget, fuse=True).run().max_difference < 1e-4


def test_an_element_wise_operator_runs_in_boxes_smaller_than_a_row(tmp_path: Path) -> None:
    path = saved(tmp_path, "g (float[1,16,16] x) => (float y)", "a = Relu(x)  y = Softmax<axis=1>(a)")
    assert least_budget(path) < 2 * 16 * 4  # a row before and after


MENU = {
    "maps": (
        "{o} = Conv<pads=[1,1,1,1]>({i}, w)", "{o} = Relu({i})", '{o} = Pad<mode="reflect">({i}, around)',
        '{o} = Pad<mode="edge">({i}, rows)', "{o} = ConvTranspose({i}, w)", "{o} = Softmax<axis=3>({i})",
        "{o} = ConvTranspose<strides=[2,2]>({i}, w)", "{o} = Slice({i}, two, last, axis)",
        "{o} = Transpose<perm=[0,1,3,2]>({i})", "{o} = LRN<size=3, alpha=0.5>({i})",
        "{o} = ReduceMean({i}, axis)", "{o} = MaxPool<kernel_shape=[2,2], strides=[2,2]>({i})",
        "{o} = Concat<axis=2>({i}, {j})", "{o} = Add({i}, {j})", "{o} = Concat<axis=3>({i}, {j})",
    ),
    "matrices": (
        "{o} = MatMul({i}, m)", "{o} = LayerNormalization<axis=-1>({i}, s, b)", "{o} = Tanh({i})",
        "{o} = Softmax<axis=-1>({i})", "{o} = Softmax<axis=1>({i})", "{o} = Add({i}, {j})",
        "{o} = Mul({i}, s)",
        "{o} = Slice({i}, two, last, minus_rows)", "{o} = Concat<axis=1>({i}, {j})",
        "{o} = ReduceMean({i}, minus)", "{o} = Sub({j}, {i})", "{o} = Reshape({i}, half)",
        "{o} = Reshape({i}, double)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_random_mixtures_run_as_they_do_alone(tmp_path: Path, seed: int) -> None:
    compare(tmp_path, Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_020))
def test_many_random_mixtures_run_as_they_do_alone(tmp_path: Path, seed: int) -> None:
    compare(tmp_path, Random(seed))


def compare(folder: Path, rng: Random) -> None:
    """Plan a random model at several budgets, and run the plans. What onnx refuses is drawn again."""
    for _ in range(40):
        kind = rng.choice(list(MENU))
        steps, values = [], ["x"]
        for n in range(rng.randint(2, 6)):
            i, j = rng.choice(values[-2:]), rng.choice(values)
            steps.append(rng.choice(MENU[kind]).format(i=i, j=j, o=f"t{n}"))
            values.append(f"t{n}")
        read = " ".join(line.partition("=")[2] for line in steps)
        ends = [
            v for v in values[1:] if f"({v}," not in read and f"({v})" not in read and f", {v})" not in read
        ]
        head = (MAPS if kind == "maps" else MATRICES).replace(
            "float y", ", ".join(f"float {e}" for e in ends)
        )
        try:
            path = saved(folder, head, text := "  ".join(steps))
            network = onchip.load(path).network
            onchip.plan(path, budget="MR").run()  # onnxruntime refuses some that onnx does not
        except (onchip.ModelError, onnx.checker.ValidationError):
            continue
        break
    else:
        pytest.skip("nothing that onnx accepts")
    least = least_budget(path)
    most = max(least + 1, sum(t.bytes for t in network.tensors))
    for budget in (least, rng.randint(least, most), rng.randint(least, most)):
        made = onchip.plan(path, budget=budget, fuse=True)
        assert made.run().max_difference < 1e-4, (text, budget)


def test_boxes_and_bands_are_both_looked_at(tmp_path: Path) -> None:
    """An operator too wide for a band of one row still runs in boxes of some columns."""
    path = saved(tmp_path, MAPS, 'c = Conv<pads=[1,1,1,1]>(x, w)  y = Pad<mode="edge">(c, around)')
    network = onchip.load(path).network
    problem = FusionProblem.of(network, onchip.chip("generic"), FusionOptions(), 1 << 20)
    [_, pad] = problem.operators
    assert pad.access is not None
    assert pad.boxes
    assert pad.boxes[0].scratch_bytes < 19 * 8  # one row of the result


@pytest.mark.parametrize("budget", [36, 50, 60, 200])
def test_a_pad_alone_runs_in_blocks(tmp_path: Path, budget: int) -> None:
    head = "g (float[2,8,8,8] x) => (float[2,16,11,11] y)"
    made = onchip.plan(
        saved(tmp_path, head, "t0 = Pad(x, around)  y = Concat<axis=1>(t0, t0)"), budget=budget, fuse=True
    )
    assert made.run().max_difference == 0
