"""Ways to break the rules about patches, joined concats and sections; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_plans import Broken, Site, breaks, specs_of, under
from byte_machine import Snapshot
from legal_plans import rebuilt

from onchip.network import Geometry
from onchip.plans import Alloc, Free, Join, Load, Plan, Run, Scratch, Section, Store


@breaks("patches")
def _(s: Site) -> Iterator[Broken]:
    network = s.plan.network
    for op in network.operators:
        for t in (*op.inputs, *op.outputs) if op.geometry is not None else ():
            stored = network.tensors[t].patches
            if stored is None:
                continue
            # As many patches, of a map with another row or column.
            for other in (
                replace(stored, rows=stored.grid[0] * stored.height),
                replace(stored, columns=(stored.grid[1] - 1) * stored.width + 1),
            ):
                repeated = 1 in (other.rows, other.columns) and t in op.inputs
                if other != stored and not repeated:
                    tensors = list(network.tensors)
                    tensors[t] = replace(tensors[t], patches=other)
                    yield Broken(replace(s.plan, network=replace(network, tensors=tuple(tensors))), None)


# -- on chip -----------------------------------------------------------------------------------------------


def concats(s: Site) -> Iterator[tuple[int, Alloc, Snapshot]]:
    for i, step, state in s.steps(Alloc):
        if isinstance(step, Alloc) and step.parts:
            yield i, step, state


def joined(s: Site) -> Iterator[tuple[int, Join, Snapshot]]:
    for i, step, state in s.steps(Join):
        assert isinstance(step, Join)
        yield i, step, state


@breaks("join-not-concat")
def _(s: Site) -> Iterator[Broken]:
    sites = [(i, s.producer[step.tensor]) for i, step, _ in concats(s)]
    sites += [(i, step.operator) for i, step, _ in joined(s)]
    for i, name in sites:
        # The same program, and an operator of which something else is known.
        for changes in (
            {"geometry": None},
            {"geometry": Geometry("rowwise")},
            {"weight_bytes": 3},
            {"macs": 7},
            {"type": "Concat+Relu"},
        ):
            specs = [
                replace(spec, **changes) if spec.name == name else spec  # type: ignore[arg-type]
                for spec in specs_of(s.plan.network)
            ]
            yield Broken(replace(s.plan, network=rebuilt(s.plan.network, specs)), i)
    for i, step, _ in joined(s):
        specs = [
            replace(spec, workspace=1) if spec.name == step.operator else spec
            for spec in specs_of(s.plan.network)
        ]
        if Scratch not in {type(x) for x in s.plan.program[:i]}:
            yield Broken(replace(s.plan, network=rebuilt(s.plan.network, specs)), i)
    for i, run, state in s.steps(Run):  # what is no concat is not joined
        assert isinstance(run, Run)
        geometry = next((x.geometry for x in specs_of(s.plan.network) if x.name == run.operator), None)
        if geometry is None or geometry.kind != "concat":
            yield Broken(s.put(i, Join(run.operator)), i)
            for t in s.pieces[run.operator].writes:
                for x in s.pieces[run.operator].reads:
                    if t not in state.address and x in state.address and x not in state.over:
                        yield Broken(s.insert(i, Alloc(t, s.top(state), parts=(x,))), i)


@breaks("join-place")
def _(s: Site) -> Iterator[Broken]:
    for i, step, state in concats(s):
        yield Broken(s.put(i, replace(step, address=s.top(state))), i)
        yield Broken(s.put(i, replace(step, address=step.address - 10**20)), i)
        x = step.parts[-1]
        elsewhere = s.top(state) + s.align
        moved = (Store(x), Free(x), Load(x, elsewhere))
        yield Broken(s.insert(i, *moved), i + 3)


# -- in DRAM -----------------------------------------------------------------------------------------------


@breaks("join-graph-input")
def _(s: Site) -> Iterator[Broken]:
    inputs = {t.name for t in s.plan.network.tensors if t.kind == "input"}
    for i, run, state in s.steps(Run):
        assert isinstance(run, Run)
        spec = next((x for x in specs_of(s.plan.network) if x.name == run.operator), None)
        piece = s.pieces[run.operator]
        if spec is None or spec.geometry is None or spec.geometry.kind != "concat" or piece.workspace:
            continue
        if set(piece.reads) & inputs and not set(piece.writes) & set(state.address):
            yield Broken(s.put(i, Join(run.operator)), i)
        # Only a run that streams its output has no range for it: else the range is taken away.
        if set(piece.reads) & inputs and set(piece.writes) & set(state.address):
            reserved = next(
                j for j, x in enumerate(s.plan.program) if isinstance(x, Alloc) and x.tensor in piece.writes
            )
            if reserved < i:
                program = list(s.put(i, Join(run.operator)).program)
                del program[reserved]
                if not any(isinstance(x, Free) for x in s.plan.program[reserved:i]):
                    yield Broken(s.with_program(tuple(program)), i - 1)


@breaks("join-no-dram-copy")
def _(s: Site) -> Iterator[Broken]:
    for i, step, _ in joined(s):
        for x in s.pieces[step.operator].reads:
            stores = [j for j, other in enumerate(s.plan.program[:i]) if other == Store(x)]
            kept = not any(other == Free(x) for other in s.plan.program[:i])
            if stores and kept and s.states[stores[0]].copies.isdisjoint({x}):
                yield Broken(s.without(*stores), i - len(stores))


@breaks("join-twice")
def _(s: Site) -> Iterator[Broken]:
    # Another concat of the same tensor, joined at the end.
    network = s.plan.network
    for _, step, _ in joined(s):
        operands = network.operators[network.operator_id[step.operator]].inputs
        x = network.tensors[operands[-1]].name  # it begins nothing, if it is not alone
        if len(operands) == 1:
            continue
        tensor = network.tensors[network.tensor_id[x]]
        one = replace(specs_of(network)[0], name="again", type="Concat", inputs=[x], outputs=["twice"],
                      weight_bytes=0, workspace=0, macs=0)  # fmt: skip
        made = network.operators[network.operator_id[step.operator]].geometry
        assert made is not None
        stored = tensor.patches
        shape = (1, tensor.bytes, 1, 1)
        if stored is not None:
            shape = (1, stored.channels, stored.rows, stored.columns)
        wider = network.build(
            network.name,
            [*((t.name, t.bytes, t.kind) for t in network.tensors), ("twice", tensor.bytes, "activation")],
            [*specs_of(network), replace(one, geometry=Geometry("concat", shape, shape))],
            [network.tensors[t].name for t in network.outputs],
            views=[
                (network.tensors[v.tensor].name, network.tensors[v.of].name, v.offset) for v in network.views
            ],
            patches={t.name: t.patches for t in network.tensors if t.patches is not None}
            | ({} if stored is None else {"twice": stored}),
        )
        if not any(x in under(other) for other in s.plan.program):  # it has another reader now
            plan = replace(s.plan, network=wider, program=(*s.plan.program, Join("again")))
            yield Broken(plan, len(s.plan.program))


@breaks("join-reserved")
def _(s: Site) -> Iterator[Broken]:
    for i, step, state in joined(s):
        (t,) = s.pieces[step.operator].writes
        yield Broken(s.insert(i, Alloc(t, s.top(state))), i + 1)


# -- sections ----------------------------------------------------------------------------------------------


@breaks("section")
def _(s: Site) -> Iterator[Broken]:
    end = len(s.plan.program)
    whole = Section("all", 0, end)

    def only(*sections: Section) -> Plan:
        return replace(s.plan, sections=sections)

    half = s.rng.randint(0, end)
    for first, last in ((1, end), (0, end + 1), (0, end - 1), (-1, end), (0, -1), (0, 10**30)):
        yield Broken(only(replace(whole, first=first, end=last)), None)
    yield Broken(only(replace(whole, end=half), replace(whole, first=half + 1)), None)
    yield Broken(only(whole, whole) if end else only(replace(whole, first=1, end=1)), None)
    yield Broken(only(replace(whole, end=half), replace(whole, first=half)), None)  # one name
    if end:
        yield Broken(only(replace(whole, first=half), replace(whole, end=half)), None)
    for part in ({"start": s.tensors[0]}, {"branches": ((),)}, {"processing": "I"}):
        yield Broken(only(replace(whole, **part)), None)  # type: ignore[arg-type]
    name = s.rng.choice(s.plan.network.operators).name
    module = replace(whole, start=s.tensors[0], merge=name)
    for part in (
        {"start": None}, {"start": "nobody"}, {"merge": "nobody"}, {"branches": ((name,),)},
        {"branches": (("nobody",),)}, {"processing": "III"}, *({"start": view} for view in s.views),
    ):  # fmt: skip
        yield Broken(only(replace(module, **part)), None)  # type: ignore[arg-type]
    unit = next((g.name for g in s.plan.groups if name in g.operators), name)
    at = next(i for i, x in enumerate(s.plan.program) if isinstance(x, Run | Join) and x.operator == unit)
    yield Broken(only(replace(module, end=at), replace(whole, first=at)), None)
    yield Broken(only(replace(whole, end=at + 1), replace(module, first=at + 1)), None)
