"""Ways to break the rules about what a plan keeps on chip; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_plans import Broken, Site, breaks, under

from onchip.network import Network, OperatorSpec
from onchip.plans import Alloc, Free, Join, Load, PinnedTensor, PinnedWeights, Plan, Run, State


@breaks("pin")
def _(s: Site) -> Iterator[Broken]:
    for t in s.tensors:
        yield Broken(replace(s.plan, pins=(PinnedTensor(t), PinnedTensor(t, 0))), None)
    top = s.plan.budget + s.align
    roomy = replace(s.plan, budget=top * 8)
    for op in s.plan.network.operators:
        grouped = any(op.name in group.operators for group in s.plan.groups)
        if grouped or not op.weight_bytes:
            yield Broken(replace(roomy, pins=(PinnedWeights(op.name, 0),)), None)
        else:
            yield Broken(replace(roomy, pins=(PinnedWeights(op.name, 0), PinnedWeights(op.name, top))), None)


@breaks("pin-moved")
def _(s: Site) -> Iterator[Broken]:
    streamed = {t for x in s.plan.program if isinstance(x, Run) for t, _ in x.streaming}
    joined = {s.pieces[x.operator].writes[0]: i for i, x in enumerate(s.plan.program) if isinstance(x, Join)}
    for t, i in joined.items():
        yield Broken(replace(s.plan, pins=(PinnedTensor(t),)), i)
    for t in set(s.tensors) - streamed - set(joined):
        pinned = replace(s.plan, pins=(PinnedTensor(t),))
        for i, x in enumerate(s.plan.program):
            if t in under(x) and t in s.outputs:
                yield Broken(pinned, i)
                break
            if isinstance(x, Free) and x.tensor == t:
                if s.still_read(t, s.states[i]) or t in s.outputs:
                    yield Broken(pinned, i)
                break
        for i, x in enumerate(s.plan.program):
            if isinstance(x, Load | Alloc) and x.tensor == t:
                elsewhere = x.address + s.align * s.rng.choice((1, 7))
                yield Broken(replace(s.plan, pins=(PinnedTensor(t, elsewhere),)), i)
                break
    for t in streamed - set(joined):
        for i, x in enumerate(s.plan.program):
            if getattr(x, "tensor", None) == t:
                break  # it may be moved before it is streamed
            if isinstance(x, Run) and t in dict(x.streaming):
                yield Broken(replace(s.plan, pins=(PinnedTensor(t),)), i)
                break


@breaks("weights-do-not-fit")
def _(s: Site) -> Iterator[Broken]:
    heavy = [op.weight_bytes for op in s.plan.network.operators if op.weight_bytes]
    if s.plan.groups or not heavy:
        return
    most = -(-max(heavy) // s.align) * s.align
    chip = replace(s.plan.chip, weight_scratchpad_bytes=s.rng.randint(0, most - 1))
    yield Broken(replace(s.plan, chip=chip), None)
    for op in s.plan.network.operators:
        if op.weight_bytes:
            too_low = replace(s.plan.chip, weight_scratchpad_bytes=most * 8)
            yield Broken(replace(s.plan, chip=too_low, pins=(PinnedWeights(op.name, -s.align),)), None)


def with_state(s: Site, shift: int) -> Plan:
    """The plan and after it an operator that makes the next state; it lies `shift` bytes from the old one."""
    network, names = s.plan.network, [t.name for t in s.plan.network.tensors]
    specs = [
        OperatorSpec(
            op.name,
            op.type,
            [names[t] for t in op.inputs],
            [names[t] for t in op.outputs],
            op.weight_bytes,
            op.workspace,
            op.geometry,
        )
        for op in network.operators
    ]
    wider = Network.build(
        network.name,
        [
            *((t.name, t.bytes, t.kind) for t in network.tensors),
            ("old", 5, "input"),
            ("new", 5, "activation"),
        ],
        [*specs, OperatorSpec("renew", "Op", [], ["new"])],
        [names[t] for t in network.outputs],
        views=[(names[v.tensor], names[v.of], v.offset) for v in network.views],
        patches={t.name: t.patches for t in network.tensors if t.patches is not None},
    )
    at = -(-s.plan.budget // s.align) * s.align
    end = (Free("old"), Alloc("new", at + shift), Run("renew"))
    return replace(
        s.plan,
        network=wider,
        budget=at + shift + 16 * s.align + 16,
        state=(State("old", "new", at),),
        program=(*s.plan.program, *end),
    )


@breaks("state-not-kept")
def _(s: Site) -> Iterator[Broken]:
    yield Broken(with_state(s, s.align * s.rng.randint(1, 3)), None)


@breaks("state")
def _(s: Site) -> Iterator[Broken]:
    plan = with_state(s, 0)
    (pair,) = plan.state
    yield Broken(replace(plan, state=(pair, pair)), None)
    yield Broken(replace(plan, state=(State("new", "old", pair.address),)), None)
    for t in s.tensors:
        tensor = plan.network.tensors[plan.network.tensor_id[t]]
        if tensor.bytes != 5:
            yield Broken(replace(plan, state=(State("old", t, pair.address),)), None)
