"""Shapes of graphs that searches find hard. What is large is written when it is needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hostile.case import case, write
from hostile.networks import network, operator, tensor

Options = Sequence[tuple[float, tuple[str, ...]]]


def _json(made: Callable[[], tuple[list[Any], list[Any], list[str]]]) -> Callable[[Path], None]:
    return lambda path: path.write_text(json.dumps(network(*made()), separators=(",", ":"))) and None


def _tried(name: str, what: str, options: Options) -> None:
    for limit, more in options:
        label = " ".join(more) or "plan"
        budget = "64KiB" if "--fuse" in more else "MR"
        case(
            f"{name}: {label}, {limit} s",
            *("plan", name, "--budget", budget, "--time-limit", str(limit), *more),
            table="graphs",
            what=what,
            want=(0, 1, 2),
            limit=limit,
            dear=True,
        )


def _fan(n: int) -> tuple[list[Any], list[Any], list[str]]:
    tensors = [tensor("a", 10, "input"), *(tensor(f"t{i}", 10 + i % 7) for i in range(n)), tensor("c", 10)]
    readers = [operator(f"o{i}", ["a"], [f"t{i}"]) for i in range(n)]
    return tensors, [*readers, operator("j", [f"t{i}" for i in range(n)], ["c"])], ["c"]


def _dense(n: int) -> tuple[list[Any], list[Any], list[str]]:
    tensors = [tensor("t0", 10, "input"), *(tensor(f"t{i}", 10 + i % 7) for i in range(1, n + 1))]
    operators = [operator(f"o{i}", [f"t{j}" for j in range(i + 1)], [f"t{i + 1}"]) for i in range(n)]
    return tensors, operators, [f"t{n}"]


def _chain(n: int) -> tuple[list[Any], list[Any], list[str]]:
    tensors = [tensor("t0", 10, "input"), *(tensor(f"t{i}", 10) for i in range(1, n + 1))]
    return tensors, [operator(f"o{i}", [f"t{i}"], [f"t{i + 1}"]) for i in range(n)], [f"t{n}"]


both: Options = ((0.5, ()), (0.5, ("--fuse",)))
strategies: Options = tuple((2, ("--strategy", name)) for name in ("beam", "dnc", "greedy"))
write("fan_2000.json", _json(lambda: _fan(2_000)))
write("fan_20000.json", _json(lambda: _fan(20_000)))
write("dense_300.json", _json(lambda: _dense(300)))
write("dense_1400.json", _json(lambda: _dense(1_400)))
write("chain_49999.json", _json(lambda: _chain(49_999)))
write("chain_million.json", _json(lambda: _chain(1_000_000)))
fan = "{:,} readers of one tensor, and one operator that reads them all"
_tried("fan_2000.json", fan.format(2_000), (*both, *strategies))
_tried("fan_20000.json", fan.format(20_000), both)
dense = "{:,} operators, each of which reads all before it"
_tried("dense_300.json", dense.format(300), both)
_tried("dense_1400.json", dense.format(1_400), ((2, ()), (2, ("--fuse",))))
_tried("chain_49999.json", "49,999 operators in a row: as many as are read", ((2, ()), (2, ("--fuse",))))
million = ("plan", "chain_million.json", "--budget", "MR")
case("chain_million.json", *million, table="graphs", what="a million operators in a row: refused", dear=True)


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes of a protocol buffer."""
    length, size = b"", len(data)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def _relus(n: int) -> Callable[[Path], None]:
    """So many nodes, written byte by byte: protobuf's own objects would take gigabytes."""

    def made(path: Path) -> None:
        from onnx import helper

        from hostile.onnx_parts import X, Y

        names = [b"x", *(b"t%x" % i for i in range(1, n)), b"y"]
        nodes = b"".join(
            _field(1, _field(1, names[i]) + _field(2, names[i + 1]) + _field(4, b"Relu")) for i in range(n)
        )
        graph = (
            nodes
            + _field(2, b"g")
            + _field(11, X().SerializeToString())
            + _field(12, Y().SerializeToString())
        )
        opset = helper.make_opsetid("", 17).SerializeToString()
        path.write_bytes(b"\x08\x09" + _field(7, graph) + _field(8, opset))

    return made


for name, n, what, want in (
    ("relus_200000.onnx", 200_000, "200,000 nodes in a row: as many as are read", (0, 1, 2)),
    ("relus_million.onnx", 1_000_000, "a million nodes", (2,)),
):
    write(name, _relus(n))
    plan = ("plan", name, "--budget", "MR", "--time-limit", "5")
    case(name, *plan, table="graphs", what=what, want=want, limit=5, dear=True)
