"""Price known nests by the law of time, and print the figures beside those that were found elsewhere.

    .venv/bin/python benchmarks/time_known_values.py NESTS [--walk-all] [--plan [TEXT ...]]

NESTS is a text of nests: for every network, chip and scratchpad a line `NETWORK CHIP SIZE KiB: ...`, then one
with `fastest found TIME ps, BYTES bytes`, then groups, `NAMES TIME ps BYTES bytes, scratch N`, each with its
nest in lines of `keep`, `for` and `run`. The networks are a layer of GPT-3 6.7B (2,048 tokens, 16 bit), of
BERT-base (512 tokens, int8) and of ViT-B/16 (197 tokens, int8); the chips `SERVER` and `EDGE` are below. Each
nest is judged and timed by the checker's own code, and the whole as one plan by `onchip.check`: where a
tensor is whole, it lies on chip between its groups. With `--walk-all` no period is skipped. With `--plan`
each network (those with a TEXT in `NETWORK SIZE`) is planned for latency by onchip itself instead, and its
time, by the checker, stands beside the time found elsewhere. *work* and *least bytes*, at the full rate,
bound every plan of nests, the second one in the space of the search for bytes. What the plan is *above both*,
in percent of the larger: the channel is busy with more *bytes* than the least, then with *pieces, starts* and
bursts of transfers; the rest of the time it is *waiting*. These three add up to the time less *least bytes*.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onchip.base.errors import IllegalPlan
from onchip.check import certify, check, layout_of
from onchip.check.nest_clock import nest_clock_of
from onchip.check.units import units_of
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import ArraySide, Channel, TileRates
from onchip.network import Network
from onchip.planners.joint.options import JointOptions
from onchip.planners.joint.planning import plan
from onchip.planners.joint.timed.bound import least_picoseconds
from onchip.planners.placement import PlacementOptions
from onchip.plans import Alloc, Free, Group, Leaf, Load, Loop, Nest, Plan, PlanChip, Run, Scratch, Store

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from nest_networks import Worded, nest_of, network_of

KIB = 1024

SERVER = TileRates(
    10**9,
    (Channel(32 * 10**9, 500_000, 2_000, 64),),
    128,
    (ArraySide("sum", 128), ArraySide("out", 128)),
    512 * 10**9,
)
EDGE = TileRates(
    10**9,
    (Channel(64 * 10**8, 100_000, 8_000, 64),),
    32,
    (ArraySide("out", 32), ArraySide("out", 32)),
    64 * 10**9,
)
CHIPS = {"SERVER": SERVER, "EDGE": EDGE}

GPT = network_of(
    "m=2048 p=2048 d=4096 h=32 u=128 v=128 z=4096 f=16384 y=4096",
    (
        "K MatMul: k(p,h,u) = I(p,d) WK(d,h,u)",
        "V MatMul: v(p,h,v) = I(p,d) WV(d,h,v)",
        "Q MatMul: q(m,h,u) = I(m,d) WQ(d,h,u)",
        "S MatMul+Softmax: s(h,m,p) = q(m,h,u) k(*p,h,u)",
        "AV MatMul: a(m,h,v) = s(h,m,p) v(p,h,v)",
        "Z MatMul: zz(m,z) = a(m,h,v) WZ(h,v,z)",
        "FFA MatMul: b(m,f) = zz(m,z) WA(z,f)",
        "FFB MatMul: c(m,y) = b(m,f) WB(f,y)",
    ),
    ["I"],
    ["c"],
    2,
)


def encoder(tokens: int, *, norm_first: bool) -> Worded:
    """One layer of 768 features and 12 heads; a norm before or behind each half."""
    x, attention = ("n", "x") if norm_first else ("x", "x")
    middle = (
        f"K MatMul+bias: k(p,h,u) = {x}(p,d) WK(d,h,u) bK(h,u)",
        f"V MatMul+bias: v(p,h,v) = {x}(p,d) WV(d,h,v) bV(h,v)",
        f"Q MatMul+bias: q(m,h,u) = {x}(m,d) WQ(d,h,u) bQ(h,u)",
        "S MatMul+Softmax: s_(h,m,p) = q(m,h,u) k(*p,h,u)",
        "AV MatMul: o(m,h,v) = s_(h,m,p) v(p,h,v)",
        "out MatMul+bias: w(m,d) = o(m,h,v) Wout(h,v,d) bout(d)",
        f"add Add: r(m,d) = w(m,d) {attention}(m,d)",
    )
    if norm_first:
        lines = (
            "ln1 LayerNorm: n(m,d) = x(m,*d) ln1g(d) ln1b(d)",
            *middle,
            "ln2 LayerNorm: b(m,d) = r(m,*d) ln2g(d) ln2b(d)",
            "up MatMul+bias+Gelu: u(m,f) = b(m,d) Wup(d,f) bup(f)",
            "dn MatMul+bias: t(m,d) = u(m,f) Wdn(f,d) bdn(d)",
            "add1 Add: y(m,d) = t(m,d) r(m,d)",
        )
    else:
        lines = (
            *middle,
            "ln1 LayerNorm: s(m,d) = r(m,*d) ln1g(d) ln1b(d)",
            "up MatMul+bias+Gelu: u(m,f) = s(m,d) Wup(d,f) bup(f)",
            "dn MatMul+bias: t(m,d) = u(m,f) Wdn(f,d) bdn(d)",
            "add1 Add: q1(m,d) = t(m,d) s(m,d)",
            "ln2 LayerNorm: z(m,d) = q1(m,*d) ln2g(d) ln2b(d)",
        )
    return network_of(
        f"m={tokens} p={tokens} d=768 h=12 u=64 v=64 f=3072", lines, ["x"], ["y" if norm_first else "z"]
    )


BLOCK = network_of(
    "Y=28 X=28 y=28 x=28 i=32 c=192 o=32 k=3 l=3",
    (
        "expand Conv: a(Y,X,c) = x0(Y,X,i) W1(i,c)",
        "depthwise Conv: b(y,x,c) = a(Y@y:1:1:3,X@x:1:1:3,c) W2(c,k,l)",
        "project Conv: z(y,x,o) = b(y,x,c) W3(c,o)",
    ),
    ["x0"],
    ["z"],
)

NETWORKS = {
    "gpt": GPT,
    "bert": encoder(512, norm_first=False),
    "vit": encoder(197, norm_first=True),
    "mobilenet": BLOCK,
}

TENSORS = {
    "gpt": {"K": "k", "V": "v", "Q": "q", "S": "s", "AV": "a", "Z": "zz", "FFA": "b", "FFB": "c"},
    "bert": {"K": "k", "V": "v", "Q": "q", "q": "q1"},
    "vit": {"K": "k", "V": "v", "Q": "q"},
}
"""The tensors that NESTS calls by other names: those of the networks are letters of no axis."""


@dataclass
class Case:
    """A network's fastest nests, with the figures that stand beside them."""

    network: str
    chip: str
    room: int
    time: int = 0
    bytes: int = 0
    least: int = 0
    groups: list[tuple[str, int, int, int | None, list[str]]] = None  # type: ignore[assignment]


MOBILENET = [
    Case("mobilenet", "EDGE", room * KIB, time, moved, groups=[])
    for room, time, moved in ((16, 85_570_000, 215_000), (32, 59_680_000, 215_000), (64, 56_416_000, 64_000))
]
"""Times found elsewhere without nests: a block of MobileNetV2 at 28 x 28."""


def read(path: Path) -> Iterator[Case]:
    """Yield the cases of a file of nests."""
    case: Case | None = None
    for line in path.read_text().splitlines():
        if head := re.match(r"(\w+) (\w+) (\d+) KiB:", line):
            if case is not None:
                yield case
            case = Case(head[1], head[2], int(head[3]) * KIB, groups=[])
            if least := re.search(r"\(here (\d+)\)", line):
                case.least = int(least[1])
        assert case is not None
        if found := re.match(r"\s+fastest found (\d+) ps, (\d+) bytes", line):
            case.time, case.bytes = int(found[1]), int(found[2])
        elif group := re.match(r"\s+(\S+) (\d+) ps (\d+) bytes(?:, scratch (\d+))?", line):
            scratch = None if group[4] is None else int(group[4])
            case.groups.append((group[1], int(group[2]), int(group[3]), scratch, []))
        elif re.match(r"\s+(keep|for|run)\b", line):
            case.groups[-1][4].append(line)
    if case is not None:
        yield case


def renamed(case: Case, lines: Sequence[str]) -> list[str]:
    """Return the lines of a nest with the tensors' names of the network."""
    table, found = TENSORS[case.network], []
    for line in lines:
        head = line[: len(line) - len(line.lstrip())]
        words = line.split()
        if words[0] == "keep":
            parts = [word.partition(":") for word in words[1:]]
            words[1:] = [table.get(name, name) + colon + n for name, colon, n in parts]
        found.append(head + " ".join(words))
    return found


def in_place(network: Network, group: Group, streamed: Sequence[str], whole: set[str]) -> Group:
    """Return the group with every norm and element-wise operator in the place of an inner operand, where
    the checker lets it and its output has a home in the group.
    """
    ids = [network.operator_id[name] for name in group.operators]
    known = [network.tensor_id[name] for name in streamed]

    def put(item: Loop | Leaf, leaf: str, operand: str) -> Loop | Leaf:
        if isinstance(item, Loop):
            return replace(item, body=tuple(put(inner, leaf, operand) for inner in item.body))
        return replace(item, over=operand) if item.operator == leaf else item

    for op in [network.operators[v] for v in reversed(ids) if not network.operators[v].work]:
        if network.tensors[op.outputs[0]].name in whole:
            continue
        for name in [network.tensors[t].name for t in op.inputs]:
            assert isinstance(group.tiling, Nest)
            body = tuple(put(item, op.name, name) for item in group.tiling.body)
            tried = replace(group, tiling=replace(group.tiling, body=body))
            try:
                layout_of(network, tried, streamed=known)
            except IllegalPlan:
                continue
            group = tried
            break
    return group


def plan_of(case: Case) -> tuple[Plan, list[tuple[str, int, int, int | None]]]:
    """Return the case as a plan, certified by the checker, and the figures of its groups."""
    worded = NETWORKS[case.network]
    network = worded.network
    chip = PlanChip(f"{case.chip.lower()}", 64, tiles=CHIPS[case.chip])
    groups, streams, wholes = [], [], []
    for n, (_, _, _, _, lines) in enumerate(case.groups):
        lines = renamed(case, lines)
        nest, ops = nest_of(worded, lines)
        kept = {word.partition(":")[0] for line in lines if "keep" in line for word in line.split()[1:]}
        made = {network.tensors[network.operators[network.operator_id[op]].outputs[0]].name for op in ops}
        names = {name for op in ops for name in worded.outside[op]} & set(network.tensor_id)
        after = {
            network.tensors[t].name for op in network.operators if op.name not in ops for t in op.inputs
        } | {network.tensors[t].name for t in network.outputs}
        outside = {name for name in names if name not in made or name in after}
        streams.append(sorted(outside & kept))
        groups.append(in_place(network, Group(f"g{n}", ops, 0, tiling=nest), streams[-1], outside - kept))
        wholes.append(sorted(outside - kept))
    program, sized = program_of(network, groups, streams, wholes, chip)
    plan = certify(
        network, chip, 1 << 34, program, groups=sized, status="feasible", lower_bound_bytes=0, seconds=0.0
    )
    return plan, [case_group[:4] for case_group in case.groups]


def program_of(
    network: Network,
    groups: Sequence[Group],
    streams: Sequence[Sequence[str]],
    wholes: Sequence[Sequence[str]],
    chip: PlanChip,
) -> tuple[list[Load | Alloc | Scratch | Run | Store | Free], list[Group]]:
    """Return a program that runs the groups, and these with the scratch that they need.

    Whole tensors lie side by side, each from its first to its last group, and the scratch behind them.
    """
    units = units_of(
        network,
        [replace(group, scratch_bytes=1 << 33) for group in groups],
        alignment=chip.alignment_bytes,
        weights_resident=False,
        streamed={group.name: stream for group, stream in zip(groups, streams, strict=True)},
    )
    size = {t.name: chip.round_up(t.bytes) for t in network.tensors}
    place, end = {}, 0
    for name in sorted({name for whole in wholes for name in whole}):
        place[name] = end
        end += size[name]
    last = {name: n for n, whole in enumerate(wholes) for name in whole}
    program: list[Load | Alloc | Scratch | Run | Store | Free] = []
    here: set[str] = set()
    sized = []
    outputs = {network.tensors[t].name for t in network.outputs}
    for n, (group, stream, whole) in enumerate(zip(groups, streams, wholes, strict=True)):
        unit = units[group.name]
        made = {network.tensors[t].name for t in unit.writes}
        for name in whole:
            if name not in here:
                program.append((Alloc if name in made else Load)(name, place[name]))
                here.add(name)
        assert unit.crossing is not None
        assert unit.nest is not None
        program.append(Scratch(group.name, end))
        crosses = {network.tensors[t].name: moved for t, moved in unit.crossing.items()}
        program.append(Run(group.name, tuple((name, crosses[name]) for name in stream)))
        sized.append(replace(group, scratch_bytes=unit.nest.extent))
        for name in whole:
            program += [Store(name)] if name in outputs and name in made else []
            program += [Free(name)] if last[name] == n else []
    return program, sized


def planned(case: Case) -> str:
    """Return a row of onchip's own plan for latency beside the fastest found elsewhere."""
    began = time.process_time()
    chip = Chip(case.chip.lower(), 64, "int8", tiles=CHIPS[case.chip])
    network = NETWORKS[case.network].network
    made = plan(network, chip, case.room, JointOptions(fuse=True), PlacementOptions(objective="latency"))
    result = check(made)
    ours, work = result.latency_picoseconds, least_picoseconds(network, CHIPS[case.chip], 0)
    assert ours is not None
    least = case.least or plan(network, chip, case.room, JointOptions(fuse=True)).result.dram_bytes
    [channel] = CHIPS[case.chip].channels
    at_rate = [10**12 * moved // channel.bytes_per_second for moved in (least, result.dram_bytes)]
    clock = nest_clock_of(made)
    copies = [one for one in clock.times() if isinstance(made.program[one.index], Load | Store)]
    busy = sum(sum(totals.busy) for totals in clock.nests.totals) + sum(one.end - one.start for one in copies)
    bound = max(work, at_rate[0])
    seconds = time.process_time() - began
    parts = (ours - bound, at_rate[1] - at_rate[0], busy - at_rate[1], ours - busy)
    shown = " | ".join(f"{100 * part / bound:.1f} %" for part in parts)
    return (
        f"| {case.network}, {case.chip.lower()}, {case.room // KIB} KiB | {ours:,} | {case.time:,} |"
        f" {100 * (ours / case.time - 1):+.1f} % | {work / 1e9:.3f} | {at_rate[0] / 1e9:.3f} | {shown} |"
        f" {result.dram_bytes:,} | {len(made.groups)} | {seconds:.0f} |"
    )


def main() -> None:
    """Print every case beside its figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nests", type=Path)
    parser.add_argument("--walk-all", action="store_true")
    parser.add_argument("--plan", nargs="*", metavar="TEXT")
    asked = parser.parse_args()
    if asked.plan is not None:
        print(
            "| network, chip, scratchpad | ours, ps | theirs | | work, ms | least bytes, ms | above both"
            " | bytes | pieces, starts | waiting | bytes | groups | CPU s |"
        )
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
        for case in (*read(asked.nests), *MOBILENET):
            name = f"{case.network} {case.room // KIB}"
            if not asked.plan or any(text in name for text in asked.plan):
                print(planned(case), flush=True)
        return
    print("| network, chip, scratchpad | time, ps | theirs | bytes | theirs | scratch | theirs | seconds |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    equal = 0
    for case in read(asked.nests):
        began = time.process_time()
        priced, theirs = plan_of(case)
        check(priced)
        clock = nest_clock_of(priced, walk_all=asked.walk_all)
        times = clock.times()
        took = time.process_time() - began
        ours = max(timed.end for timed in times)
        assert ours == priced.result.latency_picoseconds
        moved = priced.result.dram_bytes
        name = f"{case.network}, {case.chip.lower()}, {case.room // KIB} KiB"
        print(f"| **{name}** | {ours:,} | {case.time:,} | {moved:,} | {case.bytes:,} | | | {took:.1f} |")
        before = 0
        for totals, (names, picoseconds, bytes_, scratch), group in zip(
            clock.nests.totals, theirs, priced.groups, strict=True
        ):
            nest = clock.units[group.name].nest
            assert nest is not None
            crossed, own = totals.fetched + totals.stored, totals.end - before
            before = totals.end
            equal += (own, crossed) == (picoseconds, bytes_)
            print(
                f"| {names} | {own:,} | {picoseconds:,} | {crossed:,} | {bytes_:,} | {nest.need:,} |"
                f" {'' if scratch is None else f'{scratch:,}'} | |"
            )
    print(f"\n{equal} groups with equal time and bytes")


if __name__ == "__main__":
    main()
