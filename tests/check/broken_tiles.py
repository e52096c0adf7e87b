"""Ways to break the rules about groups in tiles, in tiled plans of their own; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from broken_plans import Broken, Site, breaks
from tiled_plans import blocked_plan, operands_of, tiled_plan

from onchip.plans import Blocks, Group, Plan, Run, Tiling


def tiled(rng: Random) -> tuple[Plan, Group, Tiling]:
    """A legal plan, its tiled group and tiling."""
    plan = tiled_plan(rng)
    (group,) = plan.groups
    assert isinstance(group.tiling, Tiling)
    return plan, group, group.tiling


def blocked(rng: Random) -> tuple[Plan, Group, Blocks]:
    """A legal plan, its group in blocks and the blocks."""
    plan = blocked_plan(rng)
    (group,) = plan.groups
    assert isinstance(group.tiling, Blocks)
    return plan, group, group.tiling


def regrouped(plan: Plan, group: Group) -> Broken:
    return Broken(replace(plan, groups=(group,)), None)


@breaks("tiling-sizes")
def _(s: Site) -> Iterator[Broken]:
    plan, group, tiling = tiled(s.rng)
    for field in ("rows", "channels", "images"):
        for wrong in (0, -1):
            yield regrouped(plan, replace(group, tiling=replace(tiling, **{field: wrong})))
    for many in (4, 10**17):  # three images at most
        yield regrouped(plan, replace(group, tiling=replace(tiling, images=many)))
    plan, group, blocks = blocked(s.rng)
    for field in ("rows", "columns", "channels", "output_channels"):
        yield regrouped(plan, replace(group, tiling=replace(blocks, **{field: s.rng.choice((0, -1))})))


@breaks("tiling-streamed")
def _(s: Site) -> Iterator[Broken]:
    plan, group, tiling = tiled(s.rng)
    network = plan.network
    ids = [network.operator_id[name] for name in group.operators]
    touched = {t for i in ids for t in (*network.operators[i].inputs, *network.operators[i].outputs)}
    others = [t.name for t in network.tensors if t.id not in touched]
    for name in ("nobody", group.operators[0], *others[:1]):
        yield regrouped(plan, replace(group, tiling=replace(tiling, streamed=(*tiling.streamed, name))))


@breaks("tiling-passes")
def _(s: Site) -> Iterator[Broken]:
    # Both sides of an operator that sums over channels.
    plan, group, tiling = tiled(s.rng)
    (run,) = (x for x in plan.program if isinstance(x, Run) and x.operator == group.name)
    whole = operands_of(plan.network, group) - {t for t, _ in run.streaming}
    for name in group.operators:
        op = plan.network.operators[plan.network.operator_id[name]]
        if op.geometry is not None and op.geometry.kind in ("conv", "fully_connected"):
            both = [plan.network.tensors[t].name for t in (*op.inputs, *op.outputs)]
            streamed = tuple(dict.fromkeys((*tiling.streamed, *both)))
            if whole.intersection(both):
                continue
            yield regrouped(plan, replace(group, tiling=replace(tiling, streamed=streamed)))


@breaks("tiling-subgroups")
def _(s: Site) -> Iterator[Broken]:
    for plan, group, _ in (tiled(s.rng), blocked(s.rng)):
        for wrong in (group.subgroups + 1, group.subgroups - 1 or 3, 10**17):
            yield regrouped(plan, replace(group, subgroups=wrong))


@breaks("tiling-refills")
def _(s: Site) -> Iterator[Broken]:
    for plan, group, _ in (tiled(s.rng), blocked(s.rng)):
        for i, (name, times) in enumerate(group.refills):
            wrong = (name, s.rng.choice((times + 1, 2 * times)))
            yield regrouped(
                plan, replace(group, refills=(*group.refills[:i], wrong, *group.refills[i + 1 :]))
            )
            if times > 1:  # not stated, it is one
                yield regrouped(plan, replace(group, refills=group.refills[:i] + group.refills[i + 1 :]))


@breaks("tiling-blocks")
def _(s: Site) -> Iterator[Broken]:
    plan, group, _ = blocked(s.rng)
    roomy = replace(group, scratch_bytes=1 << 30, refills=())
    yield regrouped(plan, replace(roomy, resident_weights=group.operators))
    plan, group, _ = tiled(s.rng)  # type: ignore[assignment]
    if len(group.operators) > 1:
        yield regrouped(plan, replace(group, tiling=Blocks(1, 1, 1, 1)))


@breaks("tiling-operands")
def _(s: Site) -> Iterator[Broken]:
    # What is not streamed any more is whole: then it is not there, unless it is streamed by channel.
    plan, group, tiling = tiled(s.rng)
    for i, step in enumerate(plan.program):
        if isinstance(step, Run) and step.operator == group.name:
            for k, (t, _) in enumerate(step.streaming):
                if t in tiling.streamed:
                    less = Run(group.name, step.streaming[:k] + step.streaming[k + 1 :])
                    program = (*plan.program[:i], less, *plan.program[i + 1 :])
                    yield Broken(replace(plan, program=program), None)
    whole = operands_of(plan.network, group)
    for step in plan.program:
        if isinstance(step, Run) and step.operator == group.name:
            for t in whole - {t for t, _ in step.streaming}:
                sliced = replace(tiling, streamed=(*tiling.streamed, t))
                yield regrouped(plan, replace(group, tiling=sliced))
