"""Ways to break the rule about operators that run again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_plans import Broken, Site, breaks

from onchip.network import Geometry, Operator
from onchip.plans import Plan
from repeated_plans import PLAN


def _changed(plan: Plan, name: str, **changes: object) -> Broken:
    network = plan.network
    operators: list[Operator] = [
        replace(op, **changes) if op.name == name else op  # type: ignore[arg-type]
        for op in network.operators
    ]
    return Broken(replace(plan, network=replace(network, operators=tuple(operators))), None)


@breaks("repeat")
def _(s: Site) -> Iterator[Broken]:
    network = s.plan.network
    if len(network.operators) > 1:  # one reads, or writes, what the other does not
        first, other = s.rng.sample(network.operators, 2)
        if first.inputs != other.inputs:
            yield _changed(s.plan, first.name, repeats=other.id)
    plan = PLAN
    tensor, operator = plan.network.tensor_id, plan.network.operator_id
    again = "wide.again"
    yield _changed(plan, again, weight_bytes=s.rng.randint(0, 4))
    yield _changed(plan, again, type="Other")
    yield _changed(plan, again, workspace=1)
    yield _changed(plan, again, macs=s.rng.randint(1, 9))
    yield _changed(plan, again, geometry=Geometry("elementwise", (1, 12), (1, 12)))
    yield _changed(plan, again, inputs=(tensor["z"],))
    yield _changed(plan, again, inputs=(tensor["x"], tensor["z"]))
    yield _changed(plan, again, repeats=operator["narrow"])
    # The last operator reads the tensor, and its repeat as another operand.
    yield _changed(plan, "last", inputs=tuple(tensor[t] for t in ("a", "a.again", "c")))
    larger = replace(plan.network.tensors[tensor["a.again"]], bytes=13)
    tensors = tuple(larger if t.name == "a.again" else t for t in plan.network.tensors)
    yield Broken(replace(plan, network=replace(plan.network, tensors=tensors)), None)
    outputs = (*plan.network.outputs, tensor["a.again"])
    yield Broken(replace(plan, network=replace(plan.network, outputs=outputs)), None)
