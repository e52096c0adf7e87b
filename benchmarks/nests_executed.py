"""A whole transformer in hand-made nests, judged and executed.

    .venv/bin/python benchmarks/nests_executed.py MODEL [--slice N] [--rows N] [--attention as-is|parts]

The operators between two norms are a group: a loop over heads or hidden features, with an operator that sums
over them at its end, then what follows, row by row. Every other operator runs whole. Prints the bytes that
cross, the scratch and the seconds of each kind of group, and the largest difference from onnxruntime of the
whole network. `--slice` are the hidden features of a turn, `--rows` the rows that a leaf takes at a time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from onchip.base.errors import OnchipError
from onchip.check import certify
from onchip.check.nests import nested
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.axes import GroupAxes, axes_of
from onchip.plans import Alloc, Free, Group, Instruction, Leaf, Load, Loop, Nest, Plan, Run, Scratch, Store
from onchip.readers import ReadOptions, load
from onchip.run import run


def followed(axes: GroupAxes, first: int, axis: int, stop: int) -> dict[int, int]:
    """The axis of each operator up to `stop` that an axis of the first one becomes along the tensors."""
    found = {first: axis}
    for o in range(first, stop):
        if o not in found:  # an operand from outside may share the axis of its reader
            continue
        made = axes.operators[o].writes
        for reader in range(o + 1, stop):
            for use in axes.operators[reader].reads:
                if use.buffer == made.buffer and found[o] in made.axes:
                    found.setdefault(reader, use.axes[made.axes.index(found[o])])
    return found


def backed(axes: GroupAxes, found: dict[int, int], stop: int) -> dict[int, int]:
    """The same for the makers of what those operators read."""
    for o in range(stop - 1, -1, -1):
        made = axes.operators[o].writes
        for reader in range(o + 1, stop):
            for use in axes.operators[reader].reads:
                if (
                    o not in found
                    and reader in found
                    and use.buffer == made.buffer
                    and found[reader] in use.axes
                ):
                    found[o] = made.axes[use.axes.index(found[reader])]
    return found


def looped(axes: GroupAxes) -> tuple[dict[int, int], int] | None:
    """The longest beginning of a group in one loop that ends with the sum over it, and where it ends."""
    for stop in range(len(axes.operators), 1, -1):
        for axis in range(axes.operators[0].outputs):
            if axes.operators[0].axes[axis] == 1:
                continue
            found = backed(axes, followed(axes, 0, axis, stop), stop)
            if (
                len(found) == stop
                and -1 not in found.values()
                and found[stop - 1] in axes.operators[stop - 1].sums
            ):
                if any(found[o] in axes.operators[o].sums for o in range(stop - 1)):
                    continue
                return found, stop
    return None


def nest_of(axes: GroupAxes, tile: int, rows: int) -> Nest | None:
    """The group's nest: one loop over heads, or `tile` hidden features, and `rows` at a time of each leaf."""
    answer = looped(axes)
    if answer is None:
        return None
    found, stop = answer
    size = axes.operators[0].axes[found[0]]

    def leaf(o: int) -> Leaf:
        cut = axes.operators[o]
        row = next(
            a for a in range(cut.outputs) if cut.axes[a] > 1 and a not in cut.together and a != found.get(o)
        )
        return Leaf(cut.name, ((row, rows),) if rows else ())

    over = tuple((axes.operators[o].name, axis) for o, axis in sorted(found.items()))
    loop = Loop(over, min(tile, size) if size > 64 else 1, tuple(leaf(o) for o in range(stop)))
    outside = {u.buffer for cut in axes.operators[:stop] for u in cut.reads} - {
        cut.writes.buffer for cut in axes.operators
    }
    shared = {axes.buffers[axes.operators[0].reads[0].buffer].name} & {axes.buffers[b].name for b in outside}
    return Nest((loop, *(leaf(o) for o in range(stop, len(axes.operators)))), keep=tuple(shared))


def groups_of(network: Network, tile: int, rows: int) -> list[tuple[list[int], Nest | None]]:
    """Cut the operators behind every norm; with their nests, or None for an operator that runs whole."""
    order, found = list(network.order), list[tuple[list[int], Nest | None]]()
    ends = [i for i, v in enumerate(order) if "LayerNorm" in network.operators[v].type]
    at = 0
    for end in (*ends, len(order) - 1):
        ids = order[at : end + 1]
        at = end + 1
        axes = axes_of(network, ids) if len(ids) > 1 else ""
        nest = None if isinstance(axes, str) else nest_of(axes, tile, rows)
        found += [(ids, nest)] if nest is not None else [([v], None) for v in ids]
    return found


def plan_of(network: Network, pieces: Sequence[tuple[list[int], Nest | None]]) -> Plan:
    """The plan: a group is fed from DRAM, and so is any other operator, whole."""
    program: list[Instruction] = []
    groups: list[Group] = []
    budget = 0
    for ids, nest in pieces:
        if nest is not None:
            name, members = f"g{len(groups)}", tuple(network.operators[v].name for v in ids)
            said = nested(network, Group(name, members, 0, tiling=nest), ids, None, 1)
            scratch = said.layout.extent
            groups.append(Group(name, members, scratch, tiling=nest))
            streaming = tuple((network.tensors[t].name, n) for t, n in said.crossing.items())
            program += [Scratch(name, 0), Run(name, streaming)]
            budget = max(budget, scratch)
            continue
        op = network.operators[ids[0]]
        address = op.workspace
        program += [Scratch(op.name, 0)] if op.workspace else []
        reads, writes = ({network.root[t] for t in some} for some in (op.inputs, op.outputs))
        for t in sorted(reads | writes):
            tensor = network.tensors[t]
            program.append((Load if t in reads else Alloc)(tensor.name, address))
            address += tensor.bytes
        program.append(Run(op.name))
        program += [Store(network.tensors[t].name) for t in sorted(writes)]
        program += [Free(network.tensors[t].name) for t in sorted(reads | writes)]
        budget = max(budget, address + op.weight_bytes)
    return certify(
        network, Chip("test", 1), budget, program, status="feasible", lower_bound_bytes=0, seconds=0.0,
        groups=groups, options={},
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--slice", type=int, default=256)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--attention", default="as-is", choices=("as-is", "parts"))
    args = parser.parse_args()
    options = {} if args.attention == "as-is" else {"attention": "parts"}
    source = load(args.model, ReadOptions(granularity="fused", **options))  # type: ignore[arg-type]
    plan = plan_of(source.network, groups_of(source.network, args.slice, args.rows))
    try:
        report = run(plan, source, seed=1)
    except OnchipError as problem:
        print(problem)
        return 1
    print("| operators | groups | scratch | bytes that cross, counted |")
    print("|--:|--:|--:|--:|")
    kinds: dict[tuple[int, int, int], int] = {}
    for group, moved in zip(plan.groups, report.tiled, strict=True):
        key = (len(group.operators), group.scratch_bytes, moved.counted_bytes)
        kinds[key] = kinds.get(key, 0) + 1
    for (operators, scratch, crossed), count in kinds.items():
        print(f"| {operators} | {count} | {scratch:,} | {crossed:,} |")
    print(
        f"{len(plan.network.operators)} operators, {plan.result.dram_bytes:,} bytes of DRAM in"
        f" {report.seconds:.1f} s, largest difference {report.relative_difference:.1e}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
