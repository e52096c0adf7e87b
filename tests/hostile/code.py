"""Files that are code, hold code or name code."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence

from hostile.archives import FREE, archive, program, with_value
from hostile.case import case, touch, write

__all__: list[str] = []

BUDGET = ("--budget", "MR")


class Touch:
    """Pickled, it makes the marker when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (touch("pickled"),)


def _archive(name: str, content: bytes, what: str, *, want: Sequence[int] = (2,)) -> None:
    write(name, content)
    honest = 0 in want  # what is refused is refused before torch is imported
    case(name, "plan", name, *BUDGET, table="code", what=what, want=want, torch=honest, dear=honest)


guarded = program(FREE)
guarded["guards_code"] = [touch("guards") + " is None"]
pickled = pickle.dumps(((Touch(),), {}), 2)
as_expr = archive(with_value("sizes", "as_expr"))
second = archive(program(), with_value("sizes", "second_model"), models_as=("model", "other"))
twice = archive(program(), with_value("sizes", "twice"), models_as=("model", "model"))
climbs = archive(program(), extra=(("extra/../../../climbed", "x"),))

_archive("honest.pt2", archive(program()), "control: relu of a fixed size", want=(0,))
_archive("honest_free.pt2", archive(program(FREE)), "control: the same with a free batch", want=(0,))
_archive("as_expr.pt2", as_expr, "a size is an expression that is Python")
_archive("as_expr_stride.pt2", archive(with_value("strides", "as_expr_stride")), "the same in a stride")
_archive("guards.pt2", archive(guarded), "`guards_code` is Python")
_archive("second_model.pt2", second, "a harmless program, and another beside it with code: torch reads both")
_archive("twice.pt2", twice, "`models/model.json` twice, the first harmless: torch reads the last")
_archive("pickled.pt2", archive(program(), sample=pickled), "example inputs whose pickle calls a function")
_archive("climbs.pt2", climbs, "an entry whose name climbs out of the folder", want=(0, 2))

# Plans and specs that only name such a model. The plan is legal, so that nothing else stops it.
RESULT = {
    "status": "optimal",
    "traffic_bytes": 0,
    "spill_bytes": 0,
    "reload_bytes": 0,
    "compulsory_bytes": 3072,
    "weight_bytes": 0,
    "dram_bytes": 3072,
    "lower_bound_bytes": 0,
    "peak_bytes": 3072,
    "extent_bytes": 3072,
    "seconds": 0.001,
    "macs": 0,
}


def _plan(source: str) -> str:
    network = {
        "name": "n",
        "outputs": ["relu"],
        "tensors": [
            {"name": "x", "bytes": 1536, "kind": "input"},
            {"name": "relu", "bytes": 1536, "kind": "activation"},
        ],
        "operators": [{"name": "relu", "type": "Relu", "inputs": ["x"], "outputs": ["relu"]}],
        "source": source,
        "sha256": "0" * 64,
        "element": "float32",
    }
    steps = [
        ["load", "x", 0],
        ["alloc", "relu", 1536],
        ["run", "relu"],
        ["store", "relu"],
        ["free", "x"],
        ["free", "relu"],
    ]
    plan = {
        "format": "onchip.plan/1",
        "network": network,
        "chip": {"name": "generic", "alignment_bytes": 1},
        "budget": 3072,
        "program": steps,
        "result": RESULT,
        "groups": [],
        "options": {"planner": "placement"},
    }
    return json.dumps(plan)


MODELS = ("as_expr.pt2", "planted_model.py")
write(
    "planted_model.py",
    f"{touch('planted_model')}\nimport torch\n"
    "def make():\n    return torch.nn.ReLU(), (torch.zeros(2, 3, 8, 8),)\n",
)
for name, source in (
    ("plan_names_pt2.json", "as_expr.pt2"),
    ("plan_names_function.json", "planted_model:make"),
):
    write(name, _plan(source))
    what = f"a plan whose `source` is {source}"
    case(f"{name}: run", "run", name, table="code", what=what, needs=MODELS)
    what_if = ("report", name, "--what-if", "-o", "OUT/page.html")
    case(f"{name}: what-if", *what_if, table="code", what=what, needs=MODELS, pages=("page.html",))
name = "plan_names_pt2.json"
what = "the same plan, `check`: legal; the model is not read"
case(f"{name}: check", "check", name, table="code", what=what, needs=MODELS, want=(0,))
for name, source in (
    ("spec_names_pt2.toml", "as_expr.pt2"),
    ("spec_names_function.toml", "planted_model:make"),
):
    write(name, f'networks = ["{source}"]\nchips = ["generic"]\nbudgets = [4096]\n')
    sweep = ("sweep", name, "-o", "OUT/sweep", "--jobs", "1")
    case(name, *sweep, table="code", what=f"a sweep's spec whose network is {source}", needs=MODELS)
write("exits.py", "import sys\n\n\ndef make():\n    sys.exit(0)\n")
what = "the user's own function ends with `sys.exit(0)`: no plan is no success"
exits = ("plan", "exits:make", *BUDGET, "-o", "OUT/plan.json")
case("exits.py", *exits, table="code", what=what, needs=("exits.py",), torch=True, dear=True)

# Modules that lie in the current folder.
PLANTED = """# Whoever imports this from the current folder leaves a marker, then gets the real module.
import os, sys
with open(os.path.join(os.environ["ONCHIP_MARKER"], "planted_" + __name__), "w"):
    pass
here = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [p for p in sys.path if p and os.path.realpath(p) != here]
name = __name__
del sys.modules[name]
__import__(name)
"""
for name in ("types.py", "msgspec.py"):
    write(f"planted/{name}", PLANTED)
operators = [
    {"name": f"o{i}", "type": "Conv", "inputs": [f"t{i}"] + [f"t{i - 2}"] * (i > 1), "outputs": [f"t{i + 1}"]}
    for i in range(6)
]
tensors = [
    {"name": f"t{i}", "bytes": 64 + 37 * i % 97, "kind": "activation" if i else "input"} for i in range(7)
]
chain = {"format": "onchip.network/1", "name": "n", "outputs": ["t6"]}
write("planted/n.json", json.dumps({**chain, "tensors": tensors, "operators": operators}))
write("planted/spec.toml", 'networks = ["n.json"]\nchips = ["generic"]\nbudgets = ["MR"]\n')
beside = "`types.py` and `msgspec.py` beside the network"
local = ("corun", "zoo:squeezenet1_0", "--soc", "local", "--most-groups", "2", "--time-limit", "2")
for name, argv, what, dear in (
    ("plan", ("plan", "n.json", *BUDGET), f"control: {beside}", False),
    ("sweep", ("sweep", "spec.toml", "-o", "OUT/sweep", "--jobs", "1"), "the sweep starts a worker", True),
    (
        "ilp",
        ("plan", "n.json", *BUDGET, "--strategy", "ilp", "--solver", "highs"),
        "a solver in a child",
        True,
    ),
    ("local", (*local, "-o", "OUT/schedule.json"), "the units of this machine run in children", True),
):
    case(
        f"planted/: {name}",
        *argv,
        table="code",
        what=what if what.endswith("network") else f"{beside}: {what}",
        cwd="planted",
        needs=("planted/",),
        want=(0,),
        dear=dear,
    )
