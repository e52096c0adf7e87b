"""The rest of the instruction table, executed: overlap, streaming, scratch and groups."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from onnx import parser

from onchip.base.errors import IllegalPlan, InputError, Mismatch
from onchip.check import certify, check
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.plans import Alloc, Free, Group, Instruction, Load, Plan, Run, Scratch, Store
from onchip.readers import ReadOptions
from onchip.readers.source import Source
from onchip.run import run
from run.models import HEADER, read

TEXT = """chain (float[1,4,6,6] x) => (float[1,4,6,6] y) {
    a = Relu(x)
    b = Sigmoid(a)
    c = Tanh(b)
    y = Add(c, b)
}"""


@cache
def chain() -> Source:
    folder = Path(mkdtemp())
    return read(parser.parse_model(HEADER + TEXT), folder / "chain.onnx", ReadOptions("op", "int8"))


def plan(program: list[Instruction], network: Network | None = None, groups: tuple[Group, ...] = ()) -> Plan:
    """A certified plan, so that the checker and the executor agree on what is legal."""
    return certify(
        network or chain().network,
        Chip("test", 1),
        1000,
        program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
        groups=groups,
    )


N = 144


def operator(tensor: str) -> str:
    network = chain().network
    producer = network.producer[network.tensor_id[tensor]]
    assert producer is not None
    return network.operators[producer].name


def with_workspace(**sizes: int) -> Network:
    """The network with workspaces for the producers of some tensors."""
    by_name = {operator(tensor): size for tensor, size in sizes.items()}
    network = chain().network
    return replace(
        network,
        operators=tuple(replace(op, workspace=by_name.get(op.name, 0)) for op in network.operators),
    )


def test_in_place_and_overlapping_outputs() -> None:
    program = [
        Load("x", 0),
        Alloc("a", 0, "x", 0),
        Run(operator("a")),
        Alloc("b", 300),
        Run(operator("b")),
        Free("a"),
        Alloc("c", 0),
        Run(operator("c")),
        Alloc("y", 0, "c", 0),
        Run(operator("y")),
        Store("y"),
    ]
    assert run(plan(program), chain()).bit_exact
    late = [*program[:5], Alloc("c", 0), Run(operator("c")), *program[8:]]
    with pytest.raises(Mismatch, match=r"tensor a"):  # it is left resident, and its bytes are another's
        run(replace(plan(program), program=tuple(late)), chain(), checked=False)


def test_the_overlapped_tensor_is_gone() -> None:
    program = [Load("x", 0), Alloc("a", 0, "x", 0), Run(operator("a")), Free("x")]
    whole = plan(
        [
            Load("x", 0),
            Alloc("a", 0, "x", 0),
            Run(operator("a")),
            Alloc("b", 300),
            Run(operator("b")),
            Alloc("c", 450),
            Run(operator("c")),
            Alloc("y", 600),
            Run(operator("y")),
            Store("y"),
        ]
    )
    with pytest.raises(IllegalPlan, match="not-resident: x"):
        run(replace(whole, program=tuple(program)), chain(), checked=False)


def test_streamed_operands_cross_once_and_are_counted() -> None:
    network = with_workspace(a=2 * N, c=10)
    program = [
        Scratch(operator("a"), 0),
        Run(operator("a"), (("x", N), ("a", N))),
        Load("a", 0),
        Alloc("b", 300),
        Run(operator("b")),
        Scratch(operator("c"), 200),
        Store("b"),
        Run(operator("c"), (("b", N), ("c", N))),
        Load("c", 500),
        Alloc("y", 700),
        Run(operator("y")),
        Store("y"),
    ]
    report = run(plan(program, network), chain())
    assert report.bit_exact
    assert report.moved.compulsory == 2 * N  # x streamed in, y stored
    assert report.moved.spill == 3 * N  # a and c streamed out, b stored
    assert report.moved.reload == 3 * N  # a and c loaded, b streamed in


def test_a_halo_is_refused_by_name() -> None:
    network = with_workspace(a=2 * N)
    program = [Scratch(operator("a"), 0), Run(operator("a"), (("x", N + 12), ("a", N)))]
    wrong = replace(plan(GROUPED, groups=GROUPS), network=network, program=tuple(program), groups=())
    with pytest.raises(InputError, match=f"operator {operator('a')}: streams 156 bytes of x, which has 144"):
        run(wrong, chain(), checked=False)


GROUPS = (Group("all of it", (operator("a"), operator("c"), operator("b"), operator("y")), 3 * N),)
GROUPED = [
    Load("x", 0),
    Alloc("y", 150),
    Scratch("all of it", 300),
    Run("all of it"),
    Store("y"),
]


def test_a_group_keeps_its_inner_tensors_in_its_scratch() -> None:
    report = run(plan(GROUPED, groups=GROUPS), chain())
    assert report.bit_exact
    assert report.operators == 4
    assert report.moved.traffic == 0


def test_a_group_whose_scratch_is_too_small_is_refused_by_name() -> None:
    good = plan(GROUPED, groups=GROUPS)
    small = replace(good, groups=(replace(GROUPS[0], scratch_bytes=3 * N - 1),))
    with pytest.raises(InputError, match="group all of it: its inner tensors do not fit"):
        run(small, chain(), checked=False)
    with pytest.raises(IllegalPlan, match="group-scratch"):
        check(small)


def test_a_scratch_that_was_overwritten_is_named() -> None:
    program = [Load("x", 0), Scratch("all of it", 300), Alloc("y", 299), Run("all of it"), Store("y")]
    wrong = replace(plan(GROUPED, groups=GROUPS), program=tuple(program))
    with pytest.raises(Mismatch, match=r"the scratch of all of it, used by all of it .* taken by tensor y"):
        run(wrong, chain(), checked=False)
