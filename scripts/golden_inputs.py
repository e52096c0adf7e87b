"""Inputs of what `scripts/golden.py` runs: networks, plans, chips and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

NETWORK = {
    "format": "onchip.network/1",
    "name": "n",
    "outputs": ["c"],
    "tensors": [
        {"name": "x", "bytes": 10, "kind": "input"},
        {"name": "a", "bytes": 20, "kind": "activation"},
        {"name": "b", "bytes": 30, "kind": "activation"},
        {"name": "c", "bytes": 5, "kind": "activation"},
    ],
    "operators": [
        {"name": "A", "type": "Conv", "inputs": ["x"], "outputs": ["a"], "weight_bytes": 100},
        {"name": "B", "type": "Conv", "inputs": ["a"], "outputs": ["b"], "weight_bytes": 7},
        {"name": "C", "type": "Add", "inputs": ["a", "b"], "outputs": ["c"]},
    ],
}

MAPS = {
    "format": "onchip.network/1",
    "name": "maps <&> \u202eb",
    "outputs": ["y"],
    "tensors": [
        {"name": "x", "bytes": 512, "kind": "input"},
        {"name": "left", "bytes": 256, "kind": "activation"},
        {"name": "a", "bytes": 1024, "kind": "activation"},
        {"name": "b", "bytes": 1024, "kind": "activation"},
        {"name": "c", "bytes": 512, "kind": "activation"},
        {"name": "y", "bytes": 1536, "kind": "activation"},
    ],
    "views": [{"tensor": "left", "of": "x", "offset": 0}],
    "operators": [
        {
            "name": "conv", "type": "Conv", "inputs": ["x"], "outputs": ["a"], "weight_bytes": 1168,
            "geometry": {
                "kind": "conv", "input": [1, 8, 8, 8], "output": [1, 16, 8, 8], "kernel": [3, 3],
                "stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1],
            },
        },
        {"name": "relu", "type": "Relu", "inputs": ["a"], "outputs": ["b"]},
        {"name": "tap", "type": "Tap", "inputs": ["left"], "outputs": ["c"], "workspace": 64, "macs": 4096},
        {
            "name": "join", "type": "Concat", "inputs": ["b", "c"], "outputs": ["y"],
            "geometry": {"kind": "concat", "input": [1, 16, 8, 8], "output": [1, 24, 8, 8]},
        },
    ],
}  # fmt: skip

DIAMOND = """onchip.plan/1
network diamond
source "by hand"
tensor x 10 input
tensor a 6 activation
tensor b 4 activation
tensor y 3 activation
operator f Conv in x out a weights 100
operator g Conv in x out b workspace 5
operator h Concat in a b out y weights 7
output y
chip tiny 4
budget 24
option order "free"
result status feasible
result traffic_bytes 12
result spill_bytes 6
result reload_bytes 6
result compulsory_bytes 13
result weight_bytes 107
result dram_bytes 132
result lower_bound_bytes 0
result peak_bytes 24
result extent_bytes 24
result seconds 0.5
program
  load x @0
  alloc a @12
  run f
  store a
  free a
  alloc b @12
  scratch g @16
  run g
  free x
  load a @0
  alloc y @8
  run h
  store y
"""

DETECTOR = {
    "format": "onchip.network/1",
    "name": "detector",
    "outputs": ["boxes"],
    "tensors": [
        {"name": "image", "bytes": 602112, "kind": "input"},
        {"name": "boxes", "bytes": 8400, "kind": "activation"},
    ],
    "operators": [{"name": "all", "type": "Detector", "inputs": ["image"], "outputs": ["boxes"]}],
}

TEXTS: Mapping[str, str] = {
    "net.json": json.dumps(NETWORK),
    "maps.json": json.dumps(MAPS),
    "cycle.json": json.dumps(NETWORK).replace('"inputs": ["x"]', '"inputs": ["b"]'),
    "typo.json": json.dumps(NETWORK).replace('"weight_bytes"', '"weights_bytes"'),
    "detector.json": json.dumps(DETECTOR),
    "diamond.txt": DIAMOND,
    "illegal.txt": DIAMOND.replace("  free x\n", "").replace("alloc y @8", "alloc y @4"),
    "wrong.txt": DIAMOND.replace("result spill_bytes 6", "result spill_bytes 5"),
    "broken.txt": DIAMOND.replace("run g", "walk g"),
    "mine.toml": """name = "mine"
description = "an NPU on the drawing board"
alignment_bytes = 64
element = "int8"
scratchpad_bytes = 2_097_152
dram_bytes_per_second = 8.5e9
dram_picojoules_per_byte = 160.0
macs_per_second = 1e12
mac_picojoules = 0.2
scratchpad_bytes_per_second = 64e9
scratchpad_picojoules_per_byte = 1.0
pe_rows = 8
pe_columns = 16
dataflow = "cin-cout"
""",
    "apart.toml": """name = "apart"
alignment_bytes = 16
element = "int16"
scratchpad_bytes = 65_536
weight_scratchpad_bytes = 131_072
""",
    "banks.toml": """name = "banks"
alignment_bytes = 32
element = "int8"
dram_bytes_per_second = 1e9
macs_per_second = 1e11
dram_picojoules_per_byte = 100.0

[[memory]]
name = "fast"
bytes = 4_096
banks = 2
bytes_per_second = 4e9
picojoules_per_byte = 1.0

[[memory]]
name = "store"
bytes = 65_536
bytes_per_second = 5e8
picojoules_per_byte = 8.0
operands = false
""",
    "typo.toml": 'name = "typo"\nalignment_bytes = 1\nelement = "int8"\nscratchpad_size = 4096\n',
    "board.toml": """name = "mine"
core = "cortex-m7"
ram_bytes = 65_536
flash_bytes = 262_144
description = "a board on the drawing board"
""",
    "soc.toml": """name = "two"
description = "two units of our own"
nominal_gb_per_second = 50.0
peak_gb_per_second = 45.0
default_contention = "ours"

[[units]]
name = "big"
macs_per_second = 4e12
gb_per_second = 40.0
out_ms = 0.01
out_gb_per_second = 10.0
in_ms = 0.02
in_gb_per_second = 10.0

[[units]]
name = "small"
macs_per_second = 1e12
gb_per_second = 20.0
out_ms = 0.02
out_gb_per_second = 5.0
in_ms = 0.01
in_gb_per_second = 5.0

[contention.ours.big]
normal_bw_gb_per_second = 15.0
intensive_bw_gb_per_second = 25.0
mrmc_percent = 3.0
tbwdc_gb_per_second = 28.0
cbp_gb_per_second = 16.0
rate_percent_per_gb_per_second = 0.8

[contention.ours.small]
normal_bw_gb_per_second = 0
intensive_bw_gb_per_second = 12.0
mrmc_percent = 5.0
tbwdc_gb_per_second = 25.0
cbp_gb_per_second = 20.0
rate_percent_per_gb_per_second = 0.5
""",
    "detector.csv": """\
group,gpu_ms,dla_ms,gpu_gb_per_second,dla_gb_per_second,gpu_out_ms,gpu_in_ms,dla_out_ms,dla_in_ms
stem,0.52,0.95,62.0,34.0,0.03,0.03,0.03,0.03
stage1,0.80,1.20,55.0,36.0,0.02,0.02,0.02,0.02
stage2,0.75,1.05,48.0,34.0,0.02,0.02,0.02,0.02
stage3,0.60,0.92,40.0,26.0,0.01,0.01,0.01,0.01
head,0.35,,38.0,,0.01,0.01,0.01,0.01
""",
    "hasty.csv": "group,gpu_ms,dla_ms,gpu_gb_per_second,dla_gb_per_second\nall,0.5,0.9,620.0,34.0\n",
    "buffers.csv": "id,lower,upper,size\na,0,3,4\nb,1,5,8\nc,3,9,4\n=d,5,9,2\n",
    "fixed.csv": """id,lower,upper,size,alignment,gaps,offset
weights,0,20,4096,64,,0
image,0,9,3072,64,,
state,2,18,512,1,5-7 9-12,
tail,9,20,700,32,,
""",
    "tight.csv": "id,lower,upper,size\na,0,4,6\nb,2,6,6\nc,5,8,6\nd,0,8,3\n",
    "damaged.csv": "id,lower,upper,size\na,3,1,4\n",
    "sweep.toml": """title = "Two small networks, two arrays"
networks = ["zoo:squeezenet1_0", "net.json"]
chips = ["optimus"]
planners = ["plan", "fuse", "branches"]
budgets = ["MR", "64KiB", { from = "256KiB", to = "2MiB", factor = 2 }]
chip.array = ["8x8", "16x16"]

[limits]
seconds_per_point = 120
""",
    "joint.toml": """networks = "maps.json"
chips = "mine.toml"
planners = ["plan", "joint"]
budgets = ["MR", { from = 1024, to = 4096, steps = 3 }]
plan.strategy = ["exact", "greedy"]
""",
    "wrong.toml": 'networks = ["zoo:alexnet"]\nbudgets = ["64KiB"]\nplanner = "plan"\n',
    "nets.py": """import torch


def small():
    module = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.BatchNorm2d(16),
        torch.nn.SiLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(16, 10),
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 8)
    return module, (torch.zeros(1, 3, 32, 32),)
""",
    "noise.onnx": "this is no model\n",
    "noise.tflite": "this is no model, either\n",
}
"""Inputs that are text."""

GRAPHS: Mapping[str, tuple[str, Mapping[str, tuple[int, ...]]]] = {
    "small.onnx": (
        """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
            c = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w) s = Sigmoid(c) y = Mul(c, s) }""",
        {"w": (4, 3, 3, 3)},
    ),
    "free.onnx": (
        """(float[N,3,H,W] x) => (float[N,10] y) {
            a = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w1) b = Relu(a)
            p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)
            l = Conv<kernel_shape=[1,1]>(p, w2) r = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(p, w3)
            j = Concat<axis=1>(l, r) k = Relu(j) g = GlobalAveragePool(k)
            f = Flatten(g) y = Gemm(f, w4) }""",
        {"w1": (8, 3, 3, 3), "w2": (8, 8, 1, 1), "w3": (8, 8, 3, 3), "w4": (16, 10)},
    ),
    "recurrent.onnx": (
        """(float[1,16] x, float[1,32] h_in) => (float[1,8] y, float[1,32] h_out) {
            a = MatMul(x, w) b = MatMul(h_in, u) s = Add(a, b) h_out = Tanh(s) y = MatMul(h_out, v) }""",
        {"w": (16, 32), "u": (32, 32), "v": (32, 8)},
    ),
    "attention.onnx": (
        """(float[1,12,64] x) => (float[1,12,64] y) {
            q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)
            a = Attention<q_num_heads=4, kv_num_heads=4>(q, k, v)
            o = MatMul(a, wo) y = Add(o, x) }""",
        {"wq": (64, 64), "wk": (64, 64), "wv": (64, 64), "wo": (64, 64)},
    ),
    "shuffled.onnx": (
        """(float[1,8,6,6] x) => (float[1,8,12,12] y) <float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
            a, b = Split<axis=1, num_outputs=2>(x) c = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(b, w)
            j = Concat<axis=1>(c, a) t = Transpose<perm=[0,1,3,2]>(j) s = Softmax<axis=1>(t)
            y = Resize<mode="nearest">(s, , scales) }""",
        {"w": (4, 4, 3, 3)},
    ),
    "quantised.onnx": (
        """(float[1,4,6,6] x) => (float[1,4,6,6] y)
        <float sx = {0.05}, uint8 zx = {128}, float sw = {0.02}, int8 zw = {0}> {
            xq = QuantizeLinear(x, sx, zx) xd = DequantizeLinear(xq, sx, zx)
            wq = QuantizeLinear(w, sw, zw) wd = DequantizeLinear(wq, sw, zw)
            c = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(xd, wd) r = Relu(c)
            rq = QuantizeLinear(r, sx, zx) y = DequantizeLinear(rq, sx, zx) }""",
        {"w": (4, 4, 3, 3)},
    ),
    "loop.onnx": (
        """(float[1,4] x) => (float[1,4] y) <int64 times = {3}, bool go = {1}> {
            y = Loop<body = body (int64 i, bool c, float[1,4] s) => (bool d, float[1,4] t) {
                d = Identity(c) t = Add(s, s) }>(times, go, x) }""",
        {},
    ),
}
"""Inputs that are ONNX models: the body of each in ONNX's text, and the shapes of its weights."""

GRAPHS_OF = {"attention.onnx": 23}
"""The operator set, where it is not 18."""

REFUTED = (
    "chk_bcast_unsound.json",
    "chk_weight_tile_inplace_1.json",
    "joint_ce_blocks_claimed.json",
    "joint_ce_box_51969_claimed.json",
    "joint_ce_nat_21607_claimed.json",
    "joint_zoo_squeezenet_128KiB_tc8_1446608.json",
    "seg_band_over_input.json",
    "seg_ce_198_claimed.json",
    "seg_ce_359_0_3.json",
)
"""Plans that lie somewhere below tests/."""

ELSEWHERE = {
    **{
        name: f"models/{name}"
        for name in (
            "ad01_int8.tflite",
            "kws_ref_model.tflite",
            "mcunet_5fps_vww.tflite",
            "pretrainedResnet_quant.tflite",
            "vww_96_int8.tflite",
        )
    },
    "A.1048576.csv": "bench/minimalloc/A.1048576.csv",
    "E.1048576.csv": "bench/minimalloc/E.1048576.csv",
    "densenet121.op.json": "bench/networks/densenet121.op.json",
    "gpt2_decode.dyn.onnx": "bench/modern/gpt2_decode.dyn.onnx",
    "mobilenetv4_s-ts.qdq.onnx": "bench/modern/mobilenetv4_s-ts.qdq.onnx",
    "yolov8n.dyn.onnx": "bench/modern/yolov8n.dyn.onnx",
}
"""Inputs in `shared/`, by the names that cases have for them."""


def fixture(name: str) -> bytes | None:
    """The input of this name, or None where it is not there."""
    if name in TEXTS:
        return TEXTS[name].encode()
    if name in GRAPHS:
        return onnx_model(name)
    if name in REFUTED:
        found = sorted((ROOT / "tests").rglob(name))
        return found[0].read_bytes() if found else None
    path = SHARED / ELSEWHERE[name]
    return path.read_bytes() if path.is_file() else None


def onnx_model(name: str) -> bytes:
    """An ONNX model with weights 0.01, 0.02, ... going round."""
    import numpy as np
    import onnx
    import onnx.parser

    text, weights = GRAPHS[name]
    opset = GRAPHS_OF.get(name, 18)
    head = f'<ir_version: {10 if opset > 18 else 8}, opset_import: ["" : {opset}]>\n'
    model = onnx.parser.parse_model(f"{head}{name.removesuffix('.onnx')} {text}")
    for weight, shape in weights.items():
        size = int(np.prod(shape))
        values = (np.arange(size, dtype=np.float32) % 17 + 1).reshape(shape) / 100
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, weight))
    written: bytes = model.SerializeToString()
    return written


INPUTS = (*TEXTS, *GRAPHS, *REFUTED, *ELSEWHERE)
