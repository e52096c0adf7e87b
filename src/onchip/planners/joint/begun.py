"""Joint plans that begin caches (`--fuse --state =OUTPUT`): a prompt whose keys and values stay on chip.

The network is planned in the room above the buffers. An output that only operators on their own, whole, make
and read is then made in its buffer, and never crosses. One that a group makes or reads goes to DRAM as every
output does, and is loaded into its buffer at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from onchip.base.errors import Infeasible, UsageError
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import Network, bits
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.least import least_bytes
from onchip.planners.joint.options import JointOptions, fusion_options
from onchip.planners.joint.planning import solve
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions
from onchip.planners.placement.caches import Caches, read_caches
from onchip.plans import Alloc, Free, Instruction, Load, Plan, Run, Scratch, Store, bind

__all__ = ["plan_begun"]


def plan_begun(
    network: Network,
    chip: Chip,
    budget: int,
    options: JointOptions,
    placing: PlacementOptions,
    limits: Limits | None = None,
) -> Plan:
    """Return a joint plan that leaves the caches of `placing.state` in their buffers.

    `optimal` only if nothing crosses but what must in every plan. Raises `UsageError` for a state that does
    not begin a cache, `Infeasible` naming the caches where the rest does not fit beside them.
    """
    caches, rest = read_caches(network, placing.state, placing.capacity, chip.alignment_bytes)
    for text in (*rest, *(f"{c.input}={c.output}" for c in caches.plan if c.input is not None)):
        raise UsageError("goes with --fuse only as =OUTPUT, which begins a cache", item=f"--state {text}")
    for cache in caches.plan:
        if network.tensor_id[cache.output] not in network.outputs:
            raise UsageError(f"{cache.output} is no output", item=f"--state ={cache.output}")
    room = budget - caches.bytes
    if room <= 0:
        raise Infeasible(needs=caches.bytes + 1, has=budget, tensors=caches.names, at_least=True)
    try:
        made = solve(network, chip, room, options, replace(placing, state=(), capacity=None), limits).plan
    except Infeasible as no:
        raise caches.misfit(no, budget) from None
    dropped = network.output_roots & ~caches.outputs(network)
    least = least_bytes(FusionProblem.of(network, chip, fusion_options(options), budget))
    return _beside(made, budget, caches, least - sum(network.tensors[t].bytes for t in bits(dropped)))


def _beside(made: Plan, budget: int, caches: Caches, least: int) -> Plan:
    """Return a plan of the room above the caches as one of the whole, which leaves them in their buffers.

    `least` are the bytes that cross in every plan.
    """
    program: Sequence[Instruction] = [_raised(step, caches.bytes) for step in made.program]
    for cache in caches.plan:
        program = list(_kept(made, program, cache.output, cache.address))

    found = certify(
        made.network,
        made.chip,
        budget,
        program,
        status="feasible",
        lower_bound_bytes=0,
        dram_lower_bound_bytes=least,
        seconds=made.result.seconds,
        groups=made.groups,
        layouts=made.layouts,
        caches=caches.plan,
        options=made.options,
        space=f"{made.result.space}, each cache in a buffer of its own throughout",
    )
    if found.result.dram_bytes > least or made.options.get("objective") != "dram":
        return found
    return bind(replace(found, result=replace(found.result, status="optimal")))


def _raised(step: Instruction, by: int) -> Instruction:
    """Return an instruction with its address above the caches."""
    if isinstance(step, Load | Alloc | Scratch):
        return replace(step, address=step.address + by)
    return step


def _kept(made: Plan, program: Sequence[Instruction], name: str, address: int) -> Iterator[Instruction]:
    """Yield the program in which a tensor ends in its buffer."""
    if _alone(made, program, name):
        for step in program:
            if isinstance(step, Alloc) and step.tensor == name:
                yield replace(step, address=address)
            elif not (isinstance(step, Load | Store | Free) and step.tensor == name):
                yield step
        return
    resident = False
    for step in program:
        if isinstance(step, Load | Alloc | Free) and step.tensor == name:
            resident = not isinstance(step, Free)
        if isinstance(step, Alloc) and step.over == name:
            resident = False  # it ends with the run
        yield step
    if resident:
        yield Free(name)
    yield Load(name, address)


def _alone(made: Plan, program: Sequence[Instruction], name: str) -> bool:
    """Return whether only operators on their own, whole, touch a tensor, which shares no bytes."""
    network = made.network
    t = network.tensor_id[name]
    touching = {
        op.name for op in network.operators if t in map(network.root.__getitem__, (*op.inputs, *op.outputs))
    }
    whole = {step.operator for step in program if isinstance(step, Run) and not step.streaming}
    if not touching <= whole:
        return False
    return not any(
        isinstance(step, Alloc)
        and (step.over == name or name in step.parts or (step.tensor == name and (step.over or step.parts)))
        for step in program
    )
