"""What `scripts/golden.py` runs: inputs, and commands by case."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

# ---------------------------------------------------------------------------------------------- inputs

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


# ----------------------------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """Commands that run one after the other in one folder.

    A call is a command's words, without `onchip`, or a Python program: then it begins with a line break.
    """

    name: str
    calls: tuple[str, ...]
    needs: tuple[str, ...] = ()
    """Programs and packages."""
    env: Mapping[str, str] = field(default_factory=dict)

    def inputs(self) -> list[str]:
        """The inputs that the calls name."""
        found = [name for name in INPUTS if any(name in call for call in self.calls)]
        if any("nets:" in call for call in self.calls):
            found.append("nets.py")
        if any("joint.toml" in call for call in self.calls):
            found += ["maps.json", "mine.toml"]
        if any("sweep.toml" in call for call in self.calls):
            found.append("net.json")
        return sorted({*found})

    def missing(self) -> list[str]:
        """What the case needs and is not there."""
        found = [name for name in self.inputs() if fixture(name) is None]
        for name in self.needs:
            package = importlib.util.find_spec(name) if re.fullmatch(r"\w+", name) else None
            if package is None and shutil.which(name) is None:
                found.append(name)
        return found


def case(name: str, *calls: str, needs: str = "", **env: str) -> Case:
    """A case; `needs` are words, `env` is added to the environment."""
    return Case(name, calls, tuple(needs.split()), env)


COMMANDS = (
    "plan", "fuse", "branches", "corun", "mcu", "compare", "sweep", "check", "run", "report", "export",
    "pack", "zoo", "chips",
)  # fmt: skip

GENERAL = (
    case("help", "--help", "", "--version"),
    *(case(f"help-{name}", f"{name} --help") for name in COMMANDS),
    case(
        "usage",
        "plan",
        "export diamond.txt",
        "plant zoo:alexnet",
        "plan zoo:alexnet --wrong",
        "plan zoo:alexnet",
        "plan zoo:alexnet --budget 0 --json",
        "plan zoo:alexnet --budget MR --chip typo.toml",
        "plan zoo:alexnet --budget MR --granularity coarse",
        "plan zoo:alexnet --budget MR -o same --report same",
        "zoo nope --json",
    ),
    case(
        "bad-models",
        "plan noise.onnx --budget MR",
        "plan noise.tflite --budget MR",
        "plan loop.onnx --budget MR",
        "fuse free.onnx --budget 1KiB",
        "branches cycle.json",
        "compare typo.json --budget MR --json",
        "mcu noise.tflite",
        needs="tflite",
    ),
    case(
        "infeasible",
        "plan zoo:vit_b_16 --chip mine.toml --budget 700KiB",
        "plan zoo:vit_b_16 --chip mine.toml --budget 700KiB --json",
        "plan zoo:alexnet --chip banks.toml",
        "plan maps.json --budget 1KiB --fuse",
        "fuse maps.json --budget 1KiB --json",
        "branches zoo:alexnet --budget 1KiB",
        "compare net.json --budget 50",
    ),
    case("zoo", "zoo alexnet squeezenet1_0 densenet121 zoo:transformer", "zoo resnet18 darts --json"),
    case("chips", "chips", "chips --json"),
    *(
        case(
            f"complete-{name}",
            "",
            _ONCHIP_COMPLETE="complete_bash",
            COMP_WORDS=words,
            COMP_CWORD=str(words.count(" ")),
        )
        for name, words in (
            ("commands", "onchip "),
            ("networks", "onchip plan zoo:res"),
            ("boards", "onchip mcu --board nuc"),
        )
    ),
)

PLANS = (
    case(
        "plan-exact",
        "plan zoo:squeezenet1_0 --budget MR -o plan.json --report plan.html",
        "check plan.json",
        "check plan.json --prove --json",
        "report plan.json -o again.html",
        "run plan.json",
        "run plan.json --seed 7 --no-check --json",
        needs="onnxruntime",
    ),
    case(
        "plan-spills",
        "plan zoo:densenet121 --chip mine.toml --budget MR -o plan.txt --report plan.html",
        "check plan.txt",
        "export plan.txt --to json -o plan.layout.json",
        "export plan.txt --to c -o plan.h",
        "export plan.txt --to minimalloc -o plan.csv",
        "export plan.txt --to trace -o plan.trace.json",
        "export plan.txt --to executorch -o plan.banks.json",
        "export plan.txt --to nothing -o plan.nothing",
        "report plan.txt -o what-if.html --what-if --chip mine.toml",
    ),
    case(
        "plan-json",
        "plan zoo:resnet18 --budget MP --json",
        "plan zoo:resnet18@96x128 --budget MR --batch 2 --granularity op --dtype int16 --json",
    ),
    case(
        "plan-strategies",
        "plan zoo:densenet121 --budget MR --strategy dnc --order given -o dnc.txt",
        "plan zoo:densenet121 --budget MR --strategy beam --beam-width 20 -o beam.txt",
        "plan zoo:densenet121 --budget MR --strategy greedy --seed 3 -o greedy.txt",
        "check greedy.txt",
        "report greedy.txt",
    ),
    case(
        "plan-ilp",
        "plan net.json --budget MR --strategy ilp -o cp-sat.json",
        "plan net.json --budget MR --strategy ilp --solver highs -o highs.json",
        "plan net.json --budget MR --strategy ilp --solver scip --inputs literal -o scip.json",
        "check highs.json --prove",
    ),
    case(
        "plan-in-place",
        "plan zoo:resnet18 --budget MR --in-place -o plan.json --report plan.html",
        "check plan.json --prove",
        "run plan.json",
        "export plan.json --to minimalloc -o plan.csv",
        needs="onnxruntime",
    ),
    case(
        "plan-resident",
        "plan zoo:squeezenet1_0 --chip mine.toml --weights resident --budget MR -o plan.json",
        "check plan.json",
        "report plan.json -o plan.html",
        "run plan.json",
        needs="onnxruntime",
    ),
    case(
        "plan-latency",
        "plan zoo:squeezenet1_0 --chip mine.toml --objective latency --weights resident -o plan.json",
        "check plan.json",
        "report plan.json -o plan.html",
        "plan zoo:densenet121 --chip mine.toml --objective energy --budget MR --json",
    ),
    case(
        "plan-peak",
        "plan zoo:densenet121 --objective peak -o plan.json --report plan.html",
        "check plan.json --prove",
    ),
    case(
        "plan-joint",
        "plan zoo:squeezenet1_0 --fuse --budget 128KiB -o plan.json --report plan.html",
        "check plan.json",
        "report plan.json",
        "export plan.json --to trace -o plan.trace.json",
        "run plan.json",
        needs="onnxruntime",
    ),
    case(
        "plan-joint-small",
        "plan maps.json --fuse --budget 3KiB -o plan.txt",
        "check plan.txt --prove",
        "plan free.onnx --dims N=1,H=16,W=16 --fuse --no-overlap --budget 2KiB --dtype int8 -o free.json",
        "run free.json",
        needs="onnxruntime",
    ),
    case(
        "plan-memories",
        "plan zoo:squeezenet1_0 --chip esp32-s3 -o plan.json --report plan.html",
        "check plan.json",
        "report plan.json",
        "export plan.json --to trace -o plan.trace.json",
        "run plan.json",
        "plan zoo:squeezenet1_0 --chip esp32-s3 --no-moves -o still.txt",
        "export still.txt --to executorch -o banks.json",
        needs="onnxruntime",
    ),
    case(
        "plan-memories-small",
        "plan maps.json --chip banks.toml -o plan.txt",
        "check plan.txt --prove",
        "plan maps.json --chip banks.toml --budget fast0=2KiB,store=8KiB --json",
        "plan maps.json --chip banks.toml --budget slow=2KiB",
    ),
    case(
        "plan-pins",
        "plan recurrent.onnx --budget MP --state h_in=h_out -o state.json",
        "run state.json",
        "report state.json -o state.html",
        "plan recurrent.onnx --budget 8KiB --state h_in=h_out@64 --pin weights:b@1024 --pin a -o pinned.txt",
        "check pinned.txt",
        "run pinned.txt",
        "plan recurrent.onnx --budget MR --pin weights:b",
        needs="onnxruntime",
    ),
    case(
        "plan-onnx",
        "plan small.onnx --budget MR -o small.json",
        "run small.json",
        "plan free.onnx --dims H=8,W=8 --batch 4 --budget MR --in-place -o batch.json",
        "run batch.json",
        "plan quantised.onnx --budget MR -o quantised.txt",
        "run quantised.txt",
        "plan attention.onnx --budget MR --attention parts -o parts.json",
        "run parts.json",
        needs="onnxruntime",
    ),
    case(
        "plan-modern",
        "plan mobilenetv4_s-ts.qdq.onnx --budget MR --json",
        "plan gpt2_decode.dyn.onnx --budget MR -o plan.txt",
    ),
    case(
        "plan-torch",
        "plan nets:small --budget MR --granularity op -o small.json",
        "run small.json --model nets:small",
        needs="torch onnxruntime",
    ),
    case(
        "plan-tflite",
        "plan vww_96_int8.tflite --chip tflm --budget MP -o plan.json",
        "run plan.json",
        "export plan.json --to tflm -o planned.tflite",
        "fuse pretrainedResnet_quant.tflite --chip optimus --budget 24KiB -o fused.json",
        "check fused.json",
        needs="tflite ai_edge_litert",
    ),
    case(
        "plan-network",
        "plan maps.json --budget MR -o maps.txt --report maps.html",
        "check maps.txt",
        "export maps.txt --to c -o maps.h",
        "run maps.txt",
        "plan densenet121.op.json --budget MR -o plan.json",
    ),
    case(
        "plan-by-hand",
        "check diamond.txt",
        "check diamond.txt --prove --json",
        "report diamond.txt -o diamond.html",
        "check illegal.txt",
        "check illegal.txt --json",
        "check wrong.txt",
        "check broken.txt",
        "export illegal.txt --to json -o illegal.json",
    ),
    case(
        "plan-refuted",
        "check chk_bcast_unsound.json",
        "check joint_zoo_squeezenet_128KiB_tc8_1446608.json",
        "check seg_ce_359_0_3.json --json",
        "report seg_band_over_input.json",
        "check joint_ce_nat_21607_claimed.json --prove -o better.json",
        "check joint_ce_box_51969_claimed.json --prove --json",
    ),
)

FUSIONS = (
    case(
        "fuse-exact",
        "fuse zoo:squeezenet1_0 --chip optimus -o plan.json --report plan.html",
        "check plan.json --prove",
        "report plan.json",
        "export plan.json --to trace -o plan.trace.json",
        "export plan.json --to json -o plan.layout.json",
        "run plan.json",
        needs="onnxruntime",
    ),
    case(
        "fuse-options",
        "fuse zoo:alexnet --chip shidiannao --json",
        "fuse zoo:squeezenet1_0 --chip optimus --online -o online.txt",
        "fuse zoo:squeezenet1_0 --chip optimus --isoa paper --batch-weights shared --no-weight-tile",
        "fuse zoo:alexnet --chip mine.toml --budget 96KiB --batch 4 --batch-weights held -o held.json",
        "check held.json",
    ),
    case(
        "fuse-small",
        "fuse maps.json --budget 3KiB -o maps.txt",
        "check maps.txt --prove",
        "fuse shuffled.onnx --budget 600 -o shuffled.json --report shuffled.html",
        "run shuffled.json",
        needs="onnxruntime",
    ),
)

BRANCHES = (
    case(
        "branches-modules",
        "branches zoo:inception_v3 -o plan.json --report plan.html",
        "check plan.json",
        "report plan.json",
        "export plan.json --to trace -o plan.trace.json",
    ),
    case("branches-map", "branches zoo:squeezenet1_0 --budget 400KiB --map --beside"),
    case(
        "branches-rules",
        "branches zoo:googlenet --rules ours --map --json",
        "branches zoo:resnet50 --rules ours -o plan.txt",
        "branches zoo:mobilenet_v2 --long-skip 2",
    ),
    case(
        "branches-run",
        "branches zoo:squeezenet1_0 --budget 400KiB -o plan.json",
        "run plan.json",
        needs="onnxruntime",
    ),
)

SCHEDULES = (
    case(
        "corun-two",
        "corun zoo:googlenet zoo:googlenet -o schedule.json --report schedule.html",
        "check schedule.json",
        "check schedule.json --json",
        "report schedule.json -o again.html",
        "export schedule.json --to trtexec -o build.sh",
        "export schedule.json --to tensorrt -o build.py",
        "export schedule.json --to order -o order.h",
        "export schedule.json --to json -o timeline.json",
        "export schedule.json --to trace -o trace.json",
        "export schedule.json --to c -o schedule.c",
        "run schedule.json",
    ),
    case(
        "corun-socs",
        "corun zoo:googlenet zoo:resnet18 --soc orin-agx --objective rates --json",
        "corun zoo:mobilenet_v2 zoo:squeezenet1_0 --soc snapdragon-865 --most-groups 6",
        "corun zoo:alexnet zoo:resnet18 --soc soc.toml -o own.json",
        "check own.json",
    ),
    case(
        "corun-options",
        "corun zoo:googlenet zoo:resnet18 zoo:alexnet --tries 500 --nodes 2000 --contention heavy",
        "corun zoo:googlenet zoo:googlenet --delays --most-groups 4 --profile synthetic",
        "corun zoo:googlenet zoo:resnet18 --switches 1 --no-prove --no-any-order --seed 5 --json",
    ),
    case(
        "corun-stream",
        "corun zoo:googlenet zoo:resnet18 --objective throughput --after 2:1 --frames 4 --tries 2000"
        " --nodes 2000 -o stream.json",
        "check stream.json",
        "report stream.json -o stream.html",
        "corun zoo:alexnet zoo:resnet18 --iterations 2:2 --no-pipelined --tries 500 --nodes 500 --json",
    ),
    case(
        "corun-profiles",
        "corun detector.json zoo:googlenet --profile detector.json=detector.csv -o schedule.json",
        "export schedule.json --to trtexec -o build.sh",
        "corun detector.csv detector.csv --json",
        "corun hasty.csv zoo:googlenet",
        "corun zoo:googlenet zoo:googlenet --after 1:2 --after 2:1",
        "corun zoo:googlenet zoo:googlenet --soc nope --json",
    ),
)

CROSS = "arm-none-eabi-gcc tflite flatbuffers"

CONTROLLERS = (
    case(
        "mcu-project",
        "mcu made:kws -o project -p plan.json",
        "check plan.json --prove",
        "report plan.json -o plan.html",
        "mcu made:kws --use plan.json --json",
        "export plan.json --to json -o plan.layout.json",
        needs=CROSS,
    ),
    case(
        "mcu-run",
        "mcu made:kws --run -p plan.txt",
        "run plan.txt",
        "mcu made:ad01 --run --json --kernels shared -o project",
        needs=f"{CROSS} qemu-system-arm",
    ),
    case(
        "mcu-objectives",
        "mcu made:resnet8 --objective once -p once.txt",
        "check once.txt",
        "mcu made:ad01 --objective least --json",
        "mcu made:kws --input once -o project",
        "mcu made:kws --input again --ram 6KiB -p again.json",
        needs=CROSS,
    ),
    case(
        "mcu-front",
        "mcu made:kws --front --json",
        "mcu made:kws --front --ram 5KiB -p plan.json",
        needs=CROSS,
    ),
    case("mcu-compare", "mcu made:kws --compare", needs=f"{CROSS} tflite_micro"),
    case(
        "mcu-boards",
        "mcu made:ad01 --board board.toml",
        "mcu made:kws --board teensy-4.1 --kernels shared",
        "mcu made:kws --board arduino-nano-33-ble --ram 2KiB",
        "mcu made:nope",
        "mcu made:kws --board nope --json",
        needs=CROSS,
    ),
    case(
        "mcu-files",
        "mcu pretrainedResnet_quant.tflite -o project -p plan.txt",
        "report plan.txt",
        "mcu ad01_int8.tflite --json",
        needs=CROSS,
    ),
)

OTHERS = (
    case(
        "compare",
        "compare zoo:squeezenet1_0 --budget MR",
        "compare zoo:alexnet --budget MR --json --planners none --strategies exact,greedy,dnc,exact:given",
        "compare maps.json --budget MP --weights resident",
    ),
    case(
        "sweep",
        "sweep sweep.toml -o swept --jobs 1",
        "sweep sweep.toml -o swept --jobs 1 --json",
        "sweep wrong.toml --jobs 1",
        needs="pyarrow",
    ),
    case("sweep-joint", "sweep joint.toml --jobs 1", needs="pyarrow"),
    case(
        "pack",
        "pack buffers.csv --capacity 12 -o placed.csv",
        "pack placed.csv --capacity 16 --json",
        "pack fixed.csv --minimise --alignment 64 -o fixed.placed.csv",
        "pack tight.csv --capacity 14",
        "pack tight.csv --capacity 14 --json",
        "pack damaged.csv --capacity 14",
    ),
    case(
        "pack-large",
        "pack A.1048576.csv --capacity 1MiB -o placed.csv",
        "pack E.1048576.csv --capacity 1048575 --json",
    ),
)

PYTHON = (
    case(
        "python-names",
        """
import inspect
import onchip

for name in onchip.__all__:
    value = getattr(onchip, name)
    if inspect.isclass(value):
        print(name, [base.__name__ for base in value.__mro__])
        print("   ", [member for member in dir(value) if not member.startswith("_")])
    else:
        print(name, inspect.signature(value))
    print(inspect.getdoc(value))
""",
    ),
    case(
        "python-plan",
        """
import onchip

plan = onchip.plan("maps.json", budget="MR")
print(plan)
print(repr(plan))
print(plan.to_text())
print(plan.to_json())
print(onchip.read("diamond.txt").check())
plan.save("plan.json")
again = onchip.read("plan.json")
print(again == plan, again.check() == plan.result, type(again).from_text(plan.to_text()) == plan)
print(again.export("json").decode())
again.report("plan.html")
print(again._repr_html_())
try:
    print(onchip.read("illegal.txt").check())
except onchip.IllegalPlan as problem:
    print(repr(problem), problem, problem.data())
""",
    ),
    case(
        "python-plans",
        """
import onchip

squeezenet = onchip.load("zoo:squeezenet1_0")
densenet = onchip.load("zoo:densenet121")
mine = onchip.chip("mine.toml")
for source, on, options in (
    (densenet, mine, {"budget": "MR", "order": "given"}),
    (densenet, mine, {"budget": "MR", "order": "minpeak", "seed": 4}),
    (densenet, mine, {"budget": 1_705_984}),
    (densenet, mine, {"budget": "MP", "objective": "energy"}),
    (densenet, mine, {"budget": "MR", "strategy": "dnc", "weights": "resident"}),
    (squeezenet, mine, {"budget": "MR", "strategy": "beam", "in_place": True}),
    (squeezenet, mine, {"budget": "MH", "objective": "latency"}),
    (squeezenet, mine, {"objective": "peak", "in_place": True}),
    (squeezenet, "tflm", {"budget": "MP", "inputs": "literal"}),
    (squeezenet, mine, {"budget": "400KiB", "fuse": True, "overlap": False, "channel_tile": 8}),
    (onchip.load("zoo:vit_b_16"), "generic", {"budget": "800KiB"}),
    (onchip.load("zoo:transformer"), "generic", {"budget": "MR", "strategy": "greedy"}),
    (onchip.load("zoo:mobilenet_v2"), "banked-npu", {}),
    (onchip.load("attention.onnx"), "generic", {"budget": "MR"}),
    (onchip.load("small.onnx", granularity="op", dtype="int16"), "generic", {"budget": "MR"}),
    (onchip.load("shuffled.onnx", granularity="op"), "generic", {"budget": "MR"}),
):
    made = onchip.plan(source, on, **options)
    print(source.network.name, options)
    print(made.to_text())
    print(made.check() == made.result)
""",
    ),
    case(
        "python-network",
        """
import onchip
from onchip import Geometry, OperatorSpec

print(repr(onchip.chip()), repr(onchip.chip("banks.toml")), onchip.chip("optimus").tile)
source = onchip.load("small.onnx", granularity="op")
print(repr(source.network), source.options)
network = onchip.Network.build(
    "mine",
    [("x", 28 * 28 * 16, "input"), ("a", 28 * 28 * 32, "activation"), ("b", 28 * 28 * 32, "activation")],
    [
        OperatorSpec("c1", "MyConv", ["x"], ["a"], weight_bytes=3 * 3 * 16 * 32,
                     geometry=Geometry("conv", (1, 16, 28, 28), (1, 32, 28, 28), (3, 3), (1, 1),
                                       (1, 1, 1, 1), (1, 1))),
        OperatorSpec("act", "MyLookupTable", ["a"], ["b"], workspace=256,
                     geometry=Geometry("elementwise", (1, 32, 28, 28), (1, 32, 28, 28))),
    ],
    ["b"],
)
for in_place in (False, True):
    plan = onchip.plan(network, budget="MR", in_place=in_place)
    print(plan.budget, repr(plan.result))
made = onchip.fuse(network, budget="16KiB")
print(made, repr(made.groups), made.data())
""",
    ),
    case(
        "python-errors",
        """
import onchip

network = onchip.load("maps.json").network
for wrong in (
    lambda: onchip.plan(network, budget=1),
    lambda: onchip.plan(network, budget="MR", orders="free"),
    lambda: onchip.plan(network, budget="MR", chip="nope"),
    lambda: onchip.plan(network, budget="MR", seed=-1),
    lambda: onchip.plan(network, budget="MR", time_limit=-1),
    lambda: onchip.plan(network, budget="MR", pin=("nothing",)),
    lambda: onchip.plan(network, budget="MR", objective="latency"),
    lambda: onchip.plan(network, budget=2048, strategy="greedy"),
    lambda: onchip.plan(network, chip="banks.toml", objective="latency"),
    lambda: onchip.plan(3),
    lambda: onchip.load("zoo:nope"),
    lambda: onchip.load("cycle.json"),
    lambda: onchip.load("typo.json"),
    lambda: onchip.load("loop.onnx"),
    lambda: onchip.load("noise.onnx"),
    lambda: onchip.load("free.onnx", dims="N=0"),
    lambda: onchip.load("missing.onnx"),
    lambda: onchip.chip("typo.toml"),
    lambda: onchip.read("broken.txt"),
    lambda: onchip.read("wrong.txt").check(),
    lambda: onchip.read("diamond.txt").export("nothing"),
    lambda: onchip.fuse("zoo:alexnet", "banked-npu"),
    lambda: onchip.fuse(network, budget="3KiB", isoa="none"),
    lambda: onchip.corun([]),
    lambda: onchip.corun(["zoo:googlenet"], objective="speed"),
    lambda: onchip.corun(["zoo:googlenet"], contention="extreme"),
    lambda: onchip.corun(["hasty.csv"]),
    lambda: onchip.mcu("made:nope"),
    lambda: onchip.mcu("made:kws", runs=0),
    lambda: onchip.mcu("made:kws", ram="1MiB"),
    lambda: onchip.compare(network, budget="MR", schemes="nope"),
    lambda: onchip.sweep({"networks": "maps.json"}, "swept"),
):
    try:
        print(wrong())
    except onchip.OnchipError as problem:
        print(type(problem).__name__, problem.exit_code, problem, problem.data())
""",
        needs="tflite flatbuffers",
    ),
    case(
        "python-run",
        """
import onchip

plan = onchip.plan("free.onnx", budget="MR", dims="N=1,H=8,W=8")
report = plan.run(seed=2)
print(repr(report), *report.lines(), sep="\\n")
try:
    plan.run("small.onnx")
except onchip.OnchipError as problem:
    print(type(problem).__name__, problem)
""",
        needs="onnxruntime",
    ),
    case(
        "python-fuse",
        """
import onchip

made = onchip.fuse("zoo:alexnet", "optimus")
print(made)
print(made.status, made.dram_bytes, made.baselines, made.rows)
print(made.plan.check())
source = onchip.load("zoo:squeezenet1_0", dtype="int16")
for chip, options in (
    ("optimus", {"search": "online"}),
    ("optimus", {"search": "algorithm1"}),
    ("optimus", {"search": "algorithm1-top-down"}),
    ("optimus", {"space": "dnnvm"}),
    ("optimus", {"space": "efficient-s"}),
    ("eyeriss", {"isoa": "off", "halo": "recompute", "residency": "all"}),
    ("lower-bound", {"isoa": "sums", "residency": "none", "blocks": "fallback"}),
    ("shidiannao", {"channel_tile": 4}),
):
    made = onchip.fuse(source, chip, **options)
    print(chip, options, made.data())
""",
    ),
    case(
        "python-others",
        """
import onchip

made = onchip.branches("zoo:squeezenet1_0", budget="400KiB")
print(made)
print(made.rows, made.total, made.processing, made.modules[0])
for name in ("mobilenet_v1", "resnet18", "vit_b_16"):
    print(onchip.branches(f"zoo:{name}", "mine.toml", rules="ours").data())
rows = onchip.compare("maps.json", budget="MR", schemes="given-belady")
print(rows)
print(rows.data(), rows["exact"].plan.result)
""",
    ),
    case(
        "python-corun",
        """
import onchip

made = onchip.corun(["zoo:googlenet", "zoo:resnet18"], contention="medium")
print(made)
print(made.status, made.makespan_ms, made.class_, made.baselines, made.solver, made.warnings, made.note)
print(made.to_json())
print(made.export("json").decode())
print(repr(made.schedule), repr(made.timeline))
""",
    ),
    case(
        "python-mcu",
        """
import onchip

made = onchip.mcu("made:ad01", "nucleo-l4r5zi", objective="once", input="once")
print(made.data())
print(made.status, made.arena_bytes, made.constant_bytes, made.bottleneck, made.kernels, made.board)
print(made.plan.to_text())
made.save("project")
""",
        needs=CROSS,
    ),
    case(
        "python-sweep",
        """
import onchip

asked = {"networks": ["zoo:squeezenet1_0", "maps.json"], "planners": "fuse", "chips": "optimus",
         "budgets": [{"from": "32KiB", "to": "512KiB", "factor": 2}]}
made = onchip.sweep(asked, "swept", jobs=1)
print(made)
print(made.sentence(), made.complete, made.failed, made.columns)
for curve in made.curves:
    print(curve)
""",
        needs="pyarrow",
    ),
    case(
        "python-modules",
        """
from onchip import report
from onchip.machines.chip import load_chip
from onchip.export import FORMATS, SCHEDULE_FORMATS
from onchip.planners.packing import Buffer, irreducible, minimise, pack
from onchip.planners.placement import PlacementOptions, budgets, plan
from onchip.plans import from_json, from_text, read_plan, to_json, to_text
from onchip.readers import ReadOptions, load

chip = load_chip("generic")
network = load("zoo:densenet121", ReadOptions(granularity="op")).network
sizes = budgets(network, chip)
print(sizes)
made = plan(network, chip, sizes.mp, PlacementOptions(weights="resident"))
print(made.result)
print(report.timeline(read_plan("diamond.txt")))
print(from_text(to_text(made)) == made, from_json(to_json(made)) == made)
buffers = [Buffer(0, 3, 4), Buffer(2, 5, 4), Buffer(4, 6, 8)]
print(pack(buffers, 12), minimise(buffers), irreducible(buffers, 11), sep="\\n")
print(*FORMATS, *SCHEDULE_FORMATS)
""",
    ),
)

CASES = (*GENERAL, *PLANS, *FUSIONS, *BRANCHES, *SCHEDULES, *CONTROLLERS, *OTHERS, *PYTHON)
