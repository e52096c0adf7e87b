"""Whether a plan's sections say what its program does, name by name."""

from __future__ import annotations

from mutants.walks import Foul
from onchip.plans import Alloc, Free, Join, Load, Plan, Run, Section

__all__ = ["sections_hold"]


def require(truth: object, what: str) -> None:
    if not truth:
        raise Foul(what)


def sections_hold(plan: Plan) -> None:
    """Raises `Foul` unless the sections cover the program in turn and modules are what they say."""
    if not plan.sections:
        return
    cuts = [0, *(s.end for s in plan.sections)]
    require([s.first for s in plan.sections] == cuts[:-1], "sections leave something out")
    require(cuts[-1] == len(plan.program) and cuts == sorted(cuts), "sections end elsewhere")
    require(len({s.name for s in plan.sections}) == len(plan.sections), "two sections of one name")
    for s in plan.sections:
        if s.merge is None:
            require(s.start is None and not s.branches and s.processing is None, "half a module")
        else:
            _module(plan, s, s.merge)


def _module(plan: Plan, s: Section, merge: str) -> None:
    net = plan.network
    names = [t.name for t in net.tensors]
    views = {names[v.tensor]: names[v.of] for v in net.views}
    reads = {op.name: {views.get(names[t], names[t]) for t in op.inputs} for op in net.operators}
    writes = {op.name: {names[t] for t in op.outputs} for op in net.operators}
    groups = {g.name: g.operators for g in plan.groups}
    body = plan.program[s.first : s.end]
    ran = [groups.get(x.operator, (x.operator,)) for x in body if isinstance(x, Run | Join)]
    named = [*(op for branch in s.branches for op in branch), merge]
    require(all(op in reads for op in named) and len(set(named)) == len(named), "no operators, or twice")
    require(s.start in names and s.start not in views, "no start")
    assert s.start is not None
    # What runs inside are the named, in their order; a group's all at once.
    require({op for unit in ran for op in unit} == set(named), "other operators run inside")
    turn = {op: i for i, unit in enumerate(ran) for op in unit}
    require([turn[op] for op in named] == sorted(turn[op] for op in named), "in another order")
    require(len(s.branches) >= 2, "fewer than two branches")
    own = {t: i for i, branch in enumerate(s.branches) for op in branch for t in writes[op]}
    made_inside = set(own) | writes[merge]
    require(s.start not in made_inside, "the start is made inside")
    whole = sum(1 for branch in s.branches if not branch)
    require(whole == (s.start in reads[merge]), "branches without operators")
    maker = {t: op for op, made in writes.items() for t in made}

    def behind(t: str) -> set[str]:
        found, waiting = set[str](), [t]
        while waiting:
            op = maker.get(waiting.pop())
            for x in reads[op] if op else ():
                if x not in found:
                    found.add(x)
                    waiting.append(x)
        return found

    outside_in = {x.tensor for x in body if isinstance(x, Load)}
    outside_in |= {t for x in body if isinstance(x, Run) for t, _ in x.streaming}
    joined = {x.operator for x in body if isinstance(x, Join)}
    for i, branch in enumerate(s.branches):
        for op in branch:
            for t in reads[op]:
                require(t not in writes[merge], "a branch reads of the merge")
                require(own.get(t, i) == i, "a branch reads of another")
        if branch:
            require(any(s.start in reads[op] for op in branch), "a branch does not read the start")
            require(any(own.get(t) == i for t in reads[merge]), "the merge reads nothing of a branch")
            together, grown = {branch[0]}, True
            while grown:
                more = {
                    op for op in branch for other in together
                    if reads[op] & writes[other] or reads[other] & writes[op]
                } - together  # fmt: skip
                together |= more
                grown = bool(more)
            require(together == set(branch), "a branch in pieces")
    for op in named:
        for t in reads[op] - set(own) - {s.start}:
            require(op == merge or t not in writes[merge], "reads the merge")
            require(t in outside_in or op in joined, "enters on chip")
            require(s.start not in behind(t), "comes from the start")
    there: set[str] = set()
    for x in body:
        if isinstance(x, Load | Alloc):
            there.add(x.tensor)
        if isinstance(x, Alloc):
            there -= {x.over or "", *x.parts}
        if isinstance(x, Free):
            there.discard(x.tensor)
    for t in own:
        strangers = [op for op, read in reads.items() if t in read and op not in named]
        require(not (t in there and strangers), "leaves on chip")
    passes = any(isinstance(x, Join) for x in body)
    passes |= any(
        t in made_inside or t == s.start for x in body if isinstance(x, Run) for t, _ in x.streaming
    )
    passes |= any(isinstance(x, Load) and x.tensor in made_inside for x in body)
    passes |= sum(isinstance(x, Load) and x.tensor == s.start for x in body) > 1
    require(s.processing in (None, "II" if passes else "I"), "processed otherwise")
