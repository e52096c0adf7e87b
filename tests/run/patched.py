"""Networks stored in patches and plans of them for tests, with figures stated by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from onnx import TensorProto, parser

from onchip.check import certify
from onchip.network import Network, Patches
from onchip.plans import (
    Alloc,
    Free,
    Instruction,
    Join,
    Load,
    Plan,
    PlanChip,
    Result,
    Run,
    Scratch,
    Section,
    Store,
    bind,
)
from onchip.readers import ReadOptions
from onchip.readers.source import Executable, Source, TfliteExecutable
from run.models import HEADER, read

MODULE = """module (float[1,3,11,9] x) => (float[1,5] y) {
    s = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, ws)
    a = Conv<kernel_shape=[1,1]>(s, wa)
    b = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(s, wb)
    p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(s)
    c = Concat<axis=1>(a, b, p)
    d = Conv<kernel_shape=[1,1]>(c, wd)
    e = Add(d, c)
    f = Conv<kernel_shape=[1,1]>(e, wf)
    g = Conv<kernel_shape=[1,3], pads=[0,1,0,1]>(f, wg)
    h = Conv<kernel_shape=[3,1], pads=[1,0,1,0]>(f, wh)
    i = Concat<axis=1>(g, h)
    k = Concat<axis=1>(f, i)
    l = AveragePool<kernel_shape=[3,3], strides=[2,2]>(k)
    m = GlobalAveragePool(l)
    n = Flatten(m)
    y = Gemm<transB=1>(n, wy)
}"""
"""A stem, a module of three branches, a sum, a module nested in another, a head; odd extents."""

WEIGHTS = {
    "ws": (4, 3, 3, 3), "wa": (3, 4, 1, 1), "wb": (5, 4, 3, 3), "wd": (12, 12, 1, 1), "wf": (2, 12, 1, 1),
    "wg": (3, 2, 1, 3), "wh": (2, 2, 3, 1), "wy": (5, 7),
}  # fmt: skip


def onnx_source(
    folder: Path, text: str, weights: Mapping[str, tuple[int, ...]], dtype: str, granularity: str = "op"
) -> Source:
    """A model in ONNX' text form, read operator by operator unless told otherwise."""
    proto = parser.parse_model(HEADER + text)
    for name, shape in weights.items():
        proto.graph.initializer.append(TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT))
    return read(proto, folder / "model.onnx", ReadOptions(granularity, dtype))  # type: ignore[arg-type]


def module(folder: Path, dtype: str = "int8") -> Source:
    """The network above."""
    return onnx_source(folder, MODULE, WEIGHTS, dtype)


def in_patches(
    source: Source, workspaces: Mapping[str, int] | None = None, height: int = 4, width: int = 4
) -> Network:
    """The source's network with every map of more than a pixel in patches, and these workspaces."""
    network, executable = source.network, source.executable
    assert isinstance(executable, Executable | TfliteExecutable)
    tensors = []
    planes = {}
    for t in network.tensors:
        shape = executable.shape[t.id]
        if isinstance(executable, TfliteExecutable) and len(shape) == 4:
            shape = (shape[0], shape[3], *shape[1:3])
        if len(shape) != 4 or shape[2] * shape[3] == 1:
            tensors.append(t)
            continue
        p = Patches(shape[0] * shape[1], shape[2], shape[3], height, width)
        element = t.bytes // (p.channels * p.rows * p.columns)
        planes[t.id] = (p.rows * p.columns, p.plane)
        tensors.append(replace(t, bytes=p.elements * element, patches=p))
    views = [
        replace(v, offset=v.offset // planes[v.of][0] * planes[v.of][1]) if v.of in planes else v
        for v in network.views
    ]
    operators = [replace(op, workspace=(workspaces or {}).get(op.name, 0)) for op in network.operators]
    return replace(network, tensors=tuple(tensors), operators=tuple(operators), views=tuple(views))


def planned(
    network: Network,
    program: Iterable[Instruction],
    budget: int = 1 << 16,
    *,
    compulsory: int,
    reload: int = 0,
    spill: int = 0,
    sections: tuple[Section, ...] = (),
) -> Plan:
    """A plan that states these figures."""
    weights, moved = network.weight_bytes, reload + spill
    return Plan(
        network,
        PlanChip("test", 1),
        budget,
        tuple(program),
        Result(
            "feasible", moved, spill, reload, compulsory, weights, compulsory + moved + weights, 0, 0, 0, 0.0
        ),
        options={"granularity": network.granularity},
        sections=sections,
    )


def steps(text: str, **places: int) -> tuple[Instruction, ...]:
    """Instructions, one a line; `{name}` stands for what `places` says."""
    found: list[Instruction] = []
    for line in text.format(**places).strip().splitlines():
        verb, name, *rest = line.split()
        match verb, rest:
            case "load", [at]:
                found.append(Load(name, int(at[1:])))
            case "alloc", [at]:
                found.append(Alloc(name, int(at[1:])))
            case "alloc", [at, "of", *parts]:
                found.append(Alloc(name, int(at[1:]), parts=tuple(parts)))
            case "alloc", [at, "over", x, "by", by]:
                found.append(Alloc(name, int(at[1:]), x, int(by)))
            case "scratch", [at]:
                found.append(Scratch(name, int(at[1:])))
            case "run", []:
                found.append(Run(name))
            case "run", ["streaming", *streams]:
                pairs = (s.split(":") for s in streams)
                found.append(Run(name, tuple((t, int(n)) for t, n in pairs)))
            case "store", []:
                found.append(Store(name))
            case "free", []:
                found.append(Free(name))
            case "join", []:
                found.append(Join(name))
            case _:
                raise ValueError(line)
    return tuple(found)


def certified(plan: Plan) -> Plan:
    """The same with all figures as the checker derives them, those stated among them."""
    made = certify(
        plan.network,
        plan.chip,
        plan.budget,
        plan.program,
        status="feasible",
        lower_bound_bytes=0,
        seconds=0.0,
    )
    for figure in ("compulsory_bytes", "reload_bytes", "spill_bytes", "weight_bytes"):
        assert getattr(made.result, figure) == getattr(plan.result, figure), figure
    return bind(replace(made, options=plan.options))
