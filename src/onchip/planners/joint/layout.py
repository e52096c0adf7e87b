"""From the steps of a search to residencies with addresses: the places of tensors over the steps.

A residency begins with the load or creation for the first step that uses it there, and ends right after the
last use before it leaves; a step's scratch is one of a single step. If an output takes the place of a dying
input, both are one rectangle, and the output begins at the address where the input ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onchip.network import bits
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.search import Step
from onchip.planners.placement.addresses import place
from onchip.planners.placement.rectangles import Rectangle

__all__ = ["Layout", "Placed", "lay_out", "step_loads"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Tensor `tensor` at `address` during steps [start, end)."""

    tensor: int
    start: int
    end: int
    address: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Addresses of every residency and every step's scratch (by step)."""

    placed: tuple[Placed, ...]
    scratch: dict[int, int]


def scratch_bytes(problem: FusionProblem, step: Step) -> int:
    """Return the bytes of scratch that a step reserves."""
    if step.way is not None:
        return step.way.scratch_bytes
    return problem.network.operators[step.members.bit_length() - 1].workspace


def residencies(problem: FusionProblem, steps: Sequence[Step]) -> list[tuple[int, tuple[int, ...]]]:
    """Return every residency as its tensor and the steps that use it, ascending."""
    uses: dict[int, list[int]] = {}
    result: list[tuple[int, tuple[int, ...]]] = []
    for i, step in enumerate(steps):
        for t in step.evicted:
            if t in uses:
                result.append((t, tuple(uses.pop(t))))
        for t in bits(step.whole):
            uses.setdefault(t, []).append(i)
    result += [(t, tuple(touched)) for t, touched in uses.items()]
    return sorted(result, key=lambda r: (r[1][0], r[0]))


def step_loads(problem: FusionProblem, steps: Sequence[Step]) -> list[int]:
    """Return the bytes that lie on chip at every step: scratch, and tensors from their first to their last
    use."""
    return _loads(_rectangles(problem, steps)[1], len(steps))


def lay_out(
    problem: FusionProblem,
    steps: Sequence[Step],
    *,
    relocate: bool,
    time_limit: float | None,
    seed: int = 0,
) -> Layout | None:
    """Return addresses within the budget; None if none were found, or a step needs more than that.

    With `relocate` there are some else: tensors that do not pack are moved, at the least cost found.
    """
    (lives, chains, working), rectangles = _rectangles(problem, steps)
    if any(load > problem.budget for load in _loads(rectangles, len(steps))):
        return None  # places inside a nest may need more than what is alive
    found = place(
        rectangles,
        problem.budget,
        alignment=problem.alignment,
        time_limit=time_limit,
        relocate=relocate,
        seed=seed,
    )
    if found.status == "unknown":
        return None
    placed, scratch = [], {}
    for piece in found.pieces:
        if piece.rectangle >= len(chains):
            scratch[working[piece.rectangle - len(chains)]] = piece.address
            continue
        for i in chains[piece.rectangle]:
            tensor, uses = lives[i]
            start, end = max(uses[0], piece.start), min(uses[-1] + 1, piece.end)
            if start < end:
                placed.append(Placed(tensor, start, end, piece.address))
    return Layout(tuple(placed), scratch)


def _rectangles(
    problem: FusionProblem, steps: Sequence[Step]
) -> tuple[tuple[list[tuple[int, tuple[int, ...]]], list[list[int]], list[int]], list[Rectangle]]:
    """Return what to pack: a rectangle for every chain of residencies and then for every step with scratch.

    Beside them the residencies, their chains, and those steps.
    """
    network = problem.network
    lives = residencies(problem, steps)
    chains = _chains(steps, lives)
    in_dram = network.input_roots | network.output_roots
    for step in steps:
        for t in step.evicted:
            in_dram |= 1 << t
        in_dram |= problem.external(step.members) & ~step.whole
    rectangles = []
    for chain in chains:
        tensor, uses = lives[chain[0]]
        every = tuple(sorted({use for i in chain for use in lives[i][1]}))
        rectangles.append(
            Rectangle(
                tensor,
                uses[0],
                every[-1] + 1,
                problem.round_up(network.tensors[tensor].bytes),
                every,
                bool(in_dram >> tensor & 1),
                cost=network.tensors[tensor].bytes,
                heirs=tuple(
                    (lives[i][1][0], lives[i][0], bool(in_dram >> lives[i][0] & 1)) for i in chain[1:]
                ),
            )
        )
    working = [i for i, step in enumerate(steps) if scratch_bytes(problem, step)]
    for i in working:
        size = problem.round_up(scratch_bytes(problem, steps[i]))
        rectangles.append(Rectangle(len(network.tensors) + i, i, i + 1, size, movable=False))
    return (lives, chains, working), rectangles


def _loads(rectangles: Sequence[Rectangle], steps: int) -> list[int]:
    """Return the bytes that lie on chip at every step."""
    loads = [0] * steps
    for r in rectangles:
        for step in range(r.start, r.end):
            loads[step] += r.size
    return loads


def _chains(steps: Sequence[Step], lives: Sequence[tuple[int, tuple[int, ...]]]) -> list[list[int]]:
    """Return residencies (indices) that take each other's place, one after the other."""
    begins = {(t, uses[0]): i for i, (t, uses) in enumerate(lives)}
    ends = {(t, uses[-1]): i for i, (t, uses) in enumerate(lives)}
    heir: dict[int, int] = {}
    for at, step in enumerate(steps):
        if step.over is not None:
            assert step.made is not None
            heir[ends[step.over, at]] = begins[step.made, at]
    heirs = set(heir.values())
    chains = []
    for i in range(len(lives)):
        if i in heirs:
            continue
        chain = [i]
        while chain[-1] in heir:
            chain.append(heir[chain[-1]])
        chains.append(chain)
    return chains
