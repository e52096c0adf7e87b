"""Cases of `scripts/golden.py` that call the library from Python."""

from __future__ import annotations

from golden_case import CROSS, case

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
