"""Files to start from, small and of every kind, made here: no binary lies in the repository."""

from __future__ import annotations

import io
import sys
from functools import cache
from pathlib import Path
from random import Random

for _room in ("check", "multi_dnn", "readers"):  # whose helpers import one another by their bare names
    if (_folder := str(Path(__file__).resolve().parents[1] / _room)) not in sys.path:
        sys.path.insert(0, _folder)  # before a package of the same name

__all__ = [
    "buffers",
    "built_in",
    "int8_files",
    "journals",
    "matrices",
    "networks",
    "onnx_files",
    "plans",
    "profiles",
    "pt2_files",
    "schedules",
    "specs",
    "tflite_files",
]

_Weights = dict[str, tuple[int, ...]]
_ONNX: tuple[tuple[str, _Weights], ...] = (
    ("(float[1,4] x) => (float[1,4] y) { y = Relu(x) }", {}),
    (
        """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
            c = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w, b) r = Relu(c)
            s = Sigmoid(r) y = Mul(r, s) }""",
        {"w": (4, 3, 3, 3), "b": (4,)},
    ),
    (
        """(float[N,3,8,8] x) => (float[N,10] y) {
            c = Conv<strides=[2,2], auto_pad="SAME_UPPER">(x, w) n = BatchNormalization(c, g, g, g, g)
            r = Clip(n) p = GlobalAveragePool(r) t = Flatten(p) y = Gemm<transB=1>(t, f) }""",
        {"w": (6, 3, 3, 3), "g": (6,), "f": (10, 6)},
    ),
    (
        """(float[1,4,6,6] x) => (float[1,8,3,3] y) {
            a = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)
            b = AveragePool<kernel_shape=[2,2], strides=[2,2]>(x) y = Concat<axis=1>(a, b) }""",
        {},
    ),
    (
        """(float[1,6,8] x) => (float[1,6,8] y) <int64[3] s = {8, 8, 8}, float[1] d = {2.8}> {
            q = MatMul(x, w) a, b, c = Split<axis=2>(q, s) t = Transpose<perm=[0,2,1]>(b) m = MatMul(a, t)
            n = Div(m, d) p = Softmax<axis=-1>(n) o = MatMul(p, c) y = Add(o, x) }""",
        {"w": (8, 24)},
    ),
    (
        """(float[2,12] x) => (float[2,6] y)
            <int64[3] s = {2, 3, 4}, int64[1] a = {0}, int64[1] e = {2}, int64[1] ax = {2},
             int64[2] z = {2, -1}> { r = Reshape(x, s) c = Slice(r, a, e, ax) y = Reshape(c, z) }""",
        {},
    ),
    (
        """(float[1,2,4,4] x) => (float[1,2,8,8] y) <float[4] sc = {1.0, 1.0, 2.0, 2.0}> {
            y = Resize<mode="nearest">(x, "", sc) }""".replace('""', ""),
        {},
    ),
    (
        """(float[1,4,5,5] x) => (float[1,4,9,9] y) <int64[8] p = {0,0,0,0,0,0,0,0}> {
            q = Pad(x, p) y = ConvTranspose<strides=[2,2], pads=[1,1,1,1]>(q, w) }""",
        {"w": (4, 4, 3, 3)},
    ),
    (
        """(float[1,5,4] x, float[1,5,4] z) => (float[1,5,4] y) {
            s = Shape(x) e = Expand(z, s) a = Add(x, e) n = LayerNormalization<axis=-1>(a, g, b) k = Gelu(n)
            m = ReduceMean<keepdims=1>(k) y = Sub(n, m) }""",
        {"g": (4,), "b": (4,)},
    ),
    (
        """(float[1,8] x) => (float[1,8] y, float[1,8] z) <uint8 zp = {128}, float sc = {0.05}> {
            q = QuantizeLinear(x, sc, zp) d = DequantizeLinear(q, sc, zp) y = HardSwish(d)
            c = Constant<value_float=2.0>() z = Mul(y, c) }""",
        {},
    ),
    (
        """(float[4,6] x) => (float[2,6] y) <int64[2] i = {3, 1}, int64[1] zero = {0}> {
            g = Gather<axis=0>(x, i) u = Unsqueeze(w, zero) h = Mul(g, u) y = Identity(h) }""",
        {"w": (6,)},
    ),
    (
        """(float[1,2,4,8] q, float[1,2,4,8] k, float[1,2,4,8] v) => (float[1,2,4,8] y) {
            y = Attention<is_causal=1>(q, k, v) }""",
        {},
    ),
)


@cache
def onnx_files() -> list[bytes]:
    """Small models that together have most of what the reader knows, as bytes."""
    from build import graph, weighted

    from onchip import zoo

    made = [weighted(graph(text, opset=23, ir=10), **shapes).SerializeToString() for text, shapes in _ONNX]
    return [*made, zoo.model_bytes("squeezenet1_0"), zoo.model_bytes("mobilenet_v1")]


@cache
def tflite_files() -> list[bytes]:
    """Small float and int8 files."""
    from tflite_build import CONV, Op, T, branching, model

    floats = model(
        [
            T((1, 6, 6, 2)), T((3, 1, 1, 2), data=[[[[1, 2]]]] * 3), T((3,), data=[0, 1, 2]), T((1, 6, 6, 3)),
            T((1, 3, 3, 3)), T((1, 3, 3, 6)), T((4, 2), "int32", [[0, 0], [1, 1], [1, 1], [0, 0]]),
            T((1, 5, 5, 6)), T((2,), "int32", [1, 2]), T((1, 6)), T((1, 6)),
        ],
        [
            Op("CONV_2D", [0, 1, 2], [3], CONV),
            Op("MAX_POOL_2D", [3], [4], (
                "Pool2DOptions", {"StrideH": 2, "StrideW": 2, "FilterWidth": 2, "FilterHeight": 2})
            ),
            Op("CONCATENATION", [4, 4], [5], ("ConcatenationOptions", {"Axis": 3})),
            Op("PAD", [5, 6], [7], ("PadOptions", {})),
            Op("MEAN", [7, 8], [9], ("ReducerOptions", {})),
            Op("SOFTMAX", [9], [10], ("SoftmaxOptions", {})),
        ],
        [0],
        [10],
    )  # fmt: skip
    return [branching(), floats, *int8_files()]


@cache
def int8_files() -> list[bytes]:
    """Int8 networks that become C, one of each kind of layer."""
    from onchip.microcontroller.made import Builder

    b = Builder(seed=1)
    x = b.input((1, 8, 8, 3), 2 / 255, floats=True)
    x = b.conv(x, 4, 3, 2, activation="RELU6")
    y = b.conv(b.depthwise(x, 3, activation="RELU6"), 4)
    x = b.add(x, y)
    x = b.max_pool(b.pad(x, (0, 1, 0, 1)), 2)
    y = b.concat(x, b.hard_swish(x))
    return [b.file(b.softmax(b.fully_connected(b.mean(y), 5)), floats=True)]


@cache
def networks() -> list[bytes]:
    """`onchip.network/1` files: at random, of tflite's and the plans' own."""
    import msgspec

    from onchip.network.json import wire_network
    from strategies import random_network

    made = [random_network(Random(seed), 6) for seed in range(6)]
    return [msgspec.json.encode(wire_network(network)) for network in made]


@cache
def plans(form: str) -> list[bytes]:
    """Plans of every kind, legal but for the first, as JSON or as text."""
    from broken_rings import ringed
    from broken_tiles import blocked, tiled
    from legal_plans import legal_plan

    from onchip.plans import to_json, to_text
    from sample_plan import PLAN

    write = to_json if form == "json" else to_text
    made = [PLAN, *(legal_plan(Random(seed), 4) for seed in range(8))]
    made += [make(Random(seed))[0] for make in (ringed, tiled, blocked) for seed in range(3)]
    return [write(plan).encode() for plan in made]


@cache
def schedules() -> list[bytes]:
    """Schedule files with rivals, frames and pauses."""
    from made import rival
    from workloads import random_schedule, random_workload

    from onchip.multi_dnn.schedule_json import Claim, schedule_json
    from onchip.multi_dnn.simulate import simulate

    made = []
    for seed in range(6):
        rng = Random(seed)
        work = random_workload(rng)
        schedule = random_schedule(rng, work, idle=True)
        claim = Claim("best found", seconds=1.0, rivals=(rival(work, "r", random_schedule(rng, work)),))
        made.append(schedule_json(schedule, simulate(work, schedule), claim=claim).encode())
    return made


@cache
def profiles() -> list[bytes]:
    """Profiles of layer groups: JSON and CSV."""
    from onchip.multi_dnn.profile_file import profile_json
    from onchip.multi_dnn.published import googlenet

    csv = b"group,gpu_ms,dla_ms,gpu_gb_per_second,dla_emc_percent,gpu_emc_percent,dla_out_ms\n"
    return [profile_json(googlenet()).encode(), csv + b"a,1,2,30,20,10,0.1\nb,0.5,,20,,,\nc,2,1.5,,1,1,0.3\n"]


@cache
def built_in(room: str) -> list[bytes]:
    """The TOML files of the built-in chips, boards or SoCs."""
    from importlib.resources import files

    return [
        file.read_bytes()
        for file in sorted(files("onchip.machines").joinpath(room).iterdir(), key=lambda f: f.name)
    ]


@cache
def specs() -> list[bytes]:
    """Specs of sweeps that have every section."""
    return [
        b'networks = "zoo:vgg16"\nbudgets = ["MR", 65536, {from = "16KiB", to = "1MiB", factor = 4}]\n',
        b"""title = "t"
networks = ["zoo:squeezenet1_0", {model = "a.onnx", dtype = "int8", batch = [1, 2]}, "b.json"]
chips = ["optimus", "exynos-npu"]
planners = ["plan", "fuse", "joint"]
budgets = ["chip", {from = 1024, to = 4096, steps = 3}]
[read]
granularity = ["op", "fused"]
[chip]
array = ["8x8", "16x32"]
clock_hertz = 1000000
[plan]
weights = ["resident", "streamed"]
[fuse]
halo = "paper"
[limits]
seconds_per_point = 1.5
[page]
within = 0.2
""",
    ]


@cache
def journals() -> list[bytes]:
    """Journals of sweeps: SQLite files with an answer of each kind."""
    from tempfile import TemporaryDirectory

    from onchip.sweeps.journal import Journal
    from onchip.sweeps.points import Done

    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        with Journal(path) as journal:
            journal.add([Done("a" * 64, {"status": "optimal", "dram_bytes": 5, "gap": 0.0})], None)
            journal.add([Done("b" * 64, {"status": "infeasible", "needs_bytes": 7, "reason": "r"})], 2.0)
        return [path.read_bytes()]


@cache
def buffers() -> list[bytes]:
    """CSV files of live ranges."""
    return [
        b"id,lower,upper,size\na,0,3,4\nb,1,5,8\nc,3,9,4\n",
        b"id,lower,upper,size,alignment,hint,gaps\na,0,9,4,2,-1,3-4 6-7\nb,1,5,8,1,8,\n",
    ]


@cache
def matrices() -> list[bytes]:
    """Measured slowdowns as CSV."""
    return [b"x,10,20,30\n10,99,98,97\n50,90,80,75\n90,80,60,50\n"]


@cache
def pt2_files() -> list[bytes]:
    """Files of `torch.export.save`; needs torch."""
    import torch

    made = []
    for module, given in (
        (
            torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU()),
            (1, 2, 6, 6),
        ),
        (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8, 4), torch.nn.Softmax(1)), (2, 2, 4)),
        (torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (1, 3, 8)),
    ):
        file = io.BytesIO()
        torch.export.save(torch.export.export(module.eval(), (torch.randn(given),)), file)
        made.append(file.getvalue())
    return made
