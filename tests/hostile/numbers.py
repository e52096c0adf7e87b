"""Networks, chips and specs with numbers, names and nesting that no honest file has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hostile.case import case, write
from hostile.networks import operator, plain

LIMIT = ("--time-limit", "2")
TEXT = json.dumps(plain())


def _network(
    name: str,
    content: str,
    what: str,
    *,
    want: Sequence[int] = (2,),
    flags: Sequence[str] = ("--budget", "MR"),
) -> None:
    write(name, content)
    case(name, "plan", name, *flags, *LIMIT, table="numbers", what=what, want=want, limit=2)


def _short(number: str) -> str:
    return number if len(number) < 20 else number[:12] + "..."


_network("honest.json", TEXT, "control: two operators", want=(0,))
for name, number in (
    ("nan", "NaN"),
    ("infinite", "1e999"),
    ("negative", "-1"),
    ("fraction", "1.5"),
    ("beyond_63_bits", str(2**63)),
    ("digits_5000", "9" * 5000),
    ("digits_200000", "9" * 200_000),
):
    _network(f"size_{name}.json", TEXT.replace("10", number, 1), f"a tensor of {_short(number)} bytes")
_network("size_all_of_memory.json", TEXT.replace("10", str(10**18), 3), "three tensors of 10^18 bytes")
_network(
    "key_twice.json",
    TEXT.replace('"bytes": 10', '"bytes": 10, "bytes": 99', 1),
    "a key twice, with two values: which holds depends on the reader",
)
_network("tensor_twice.json", TEXT.replace('"name": "b"', '"name": "a"', 1), "two tensors of one name")
_network("deep.json", '{"a":' * 100_000 + "1" + "}" * 100_000, "objects, 100,000 deep")
_network("deep_list.json", "[" * 5_000_000, "5,000,000 open brackets")
_network(
    "long_name.json",
    TEXT.replace('"n"', '"' + "\\u0000" * 1_000_000 + '"', 1),
    "a name of a million escaped zeros",
    want=(0, 2),
)
side = [1, 2**31, 2**31, 2**31]
geometry: dict[str, Any] = {
    "kind": "conv",
    "input": side,
    "output": side,
    "kernel": [3, 3],
    "stride": [1, 1],
    "padding": [1, 1, 1, 1],
    "dilation": [1, 1],
}
_network(
    "geometry_huge.json",
    json.dumps(
        plain(operators=[operator("o1", ["a"], ["b"], geometry=geometry), operator("o2", ["b"], ["c"])])
    ),
    "a convolution of 2^31 x 2^31 x 2^31, whose tensors have 10 bytes",
    want=(0, 1, 2),
    flags=("--fuse", "--budget", "1MiB"),
)
_network(
    "input_repeated.json",
    json.dumps(plain(operators=[operator("o1", ["a"] * 300_000, ["b"]), operator("o2", ["b"], ["c"])])),
    "an operator that reads one tensor 300,000 times",
    want=(0, 2),
)

SWEEP = ("-o", "OUT/sweep", "--jobs", "1", *LIMIT)
write(
    "spec_points.toml",
    'networks = ["honest.json"]\nchips = ["generic"]\nbudgets = [{from = 1, to = 1000000000000, step = 1}]\n',
)
points = ("sweep", "spec_points.toml", *SWEEP)
case(
    "spec_points.toml",
    *points,
    table="numbers",
    what="a sweep of 10^12 points",
    limit=2,
    needs=("honest.json",),
)
for name, text, what in (
    ("dotted.toml", ".".join(["a"] * 150_000) + " = 1\n", "a key of 150,000 dotted parts"),
    ("deep.toml", "x = " + "[" * 100_000 + "\n", "lists 100,000 deep"),
    (
        "tables.toml",
        "".join(f"[{'a.' * 100}b{i}]\n" for i in range(20_000)),
        "20,000 tables, each 100 deep",
    ),
    (
        "infinite.toml",
        'name = "x"\nscratchpad_bytes = inf\nalignment_bytes = nan\n',
        "sizes that are inf and nan",
    ),
):
    write(name, text)
    plan = ("plan", "honest.json", "--budget", "MR", "--chip", f"./{name}", *LIMIT)
    case(f"{name}: chip", *plan, table="numbers", what=f"a chip's file: {what}", limit=2)
dotted = ("sweep", "dotted.toml", *SWEEP)
case("dotted.toml: spec", *dotted, table="numbers", what="the same as a sweep's spec", limit=2)
