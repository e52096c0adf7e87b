"""The tensors of a group that are held a few channels at a time (ISOA, `phi = 1` in Optimus).

Such a *streamed* tensor saves most of its buffer, but its overlapping rows are made again, and not every set
of tensors can be streamed: `legal` decides, and docs/fusion-model.md proves that legal sets can be executed.
Optimus chooses by a dynamic program over a tree (Algorithm 2), with bands of one row; on a graph the problem
is a minimum-weight independent set, and only where channels are summed do neighbours exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from onchip.network import bits
from onchip.planners.fusion.problem import FusedOperator, FusionProblem
from onchip.planners.fusion.rows import Bands, walked_rows

__all__ = ["buffer_bytes", "candidates", "legal", "smallest", "streams"]


def candidates(problem: FusionProblem, bands: Bands) -> int:
    """Return the bitset of tensors that are smaller when streamed and that no operator needs whole (isoa).

    A tensor of at most T_c channels is never worth streaming: its buffer has the same channels and no fewer
    rows, and its inputs have to reach further back.
    """
    result = 0
    for x in bands.tensors:
        shape = problem.maps[x]
        if shape is not None and shape.channels > problem.channel_tile:
            result |= 1 << x
    if problem.options.isoa == "off":
        return 0
    if problem.options.isoa == "paper":
        return result
    for v in bits(bands.members):
        op = problem.operators[v]
        for operand in op.operands:
            if operand.broadcast or op.form == "rowwise":
                result &= ~(1 << operand.tensor)
    return result


def legal(problem: FusionProblem, bands: Bands, streamed: int) -> bool:
    """Return whether passes over channel slices exist that make every streamed tensor exactly once.

    Tensors whose slices are needed at the same time form one pass. Held tensors and passes must follow one
    another.
    """
    ops = [problem.operators[v] for v in bits(bands.members)]
    if not _in_slices(ops, streamed):
        return False
    passes = _passes(problem, ops, streamed)
    if passes is None:
        return False
    edges: dict[int, set[int]] = {passes.get(x, x): set() for x in bands.tensors}
    for op in ops:
        links = [(x.tensor, y) for x in op.operands for y in op.outputs]
        together = _together(op, streamed)
        if together and op.form == "elementwise" and not streamed >> op.outputs[0] & 1:
            links += [
                (x.tensor, together[0][0]) for x in op.operands
            ]  # held operands must be complete before
        for x, y in links:
            if passes.get(x, x) != passes.get(y, y):
                edges[passes.get(x, x)].add(passes.get(y, y))
    return _acyclic(edges)


def _in_slices(ops: Sequence[FusedOperator], streamed: int) -> bool:
    """Return whether every operator by itself can take and make slices of the streamed tensors."""
    for op in ops:
        inputs = [x for x in op.operands if streamed >> x.tensor & 1]
        outputs = [y for y in op.outputs if streamed >> y & 1]
        if inputs and (op.form == "rowwise" or any(x.broadcast for x in inputs)):
            return False
        if op.form == "reduce" and inputs and outputs:
            return False
    return True


def _passes(problem: FusionProblem, ops: Sequence[FusedOperator], streamed: int) -> dict[int, int] | None:
    """Return the pass of each streamed tensor, named by one of its tensors; None if one is needed twice.

    Concats shift channels: two ways between the same tensors must shift them alike.
    """
    beside: dict[int, list[tuple[int, int]]] = {x: [] for x in bits(streamed)}
    for op in ops:
        for x, y, shift in _together(op, streamed):
            beside[x].append((y, shift))
            beside[y].append((x, -shift))
    passes: dict[int, int] = {}
    for start in beside:
        if start in passes:
            continue
        place, waiting = {start: 0}, [start]
        while waiting:
            x = waiting.pop()
            for y, shift in beside[x]:
                if y not in place:
                    place[y] = place[x] + shift
                    waiting.append(y)
                elif place[y] != place[x] + shift:
                    return None
        passes |= dict.fromkeys(place, start)
    return passes


def _together(op: FusedOperator, streamed: int) -> list[tuple[int, int, int]]:
    """Return (x, y, shift): while channel c of x is present, channel c + shift of y must be.

    An operator that does not sum over channels passes slices on. With three operands or more, two slices
    would have to wait for the others, and only one has a place to wait: the output's.
    """
    if op.form not in ("elementwise", "concat", "channelwise"):
        return []
    y = op.outputs[0]
    inputs = [x for x in op.operands if streamed >> x.tensor & 1]
    if streamed >> y & 1:
        return [(x.tensor, y, x.channel) for x in inputs]
    if op.form == "elementwise" and len(op.operands) >= 3:
        return [(inputs[0].tensor, x.tensor, 0) for x in inputs[1:]]
    return []


def independent(bands: Bands, streamed: int) -> bool:
    """Return whether no operator has both an operand and an output streamed (Optimus, section 5.2)."""
    return not any(
        streamed >> y & 1 for x in bits(streamed) if x in bands.readers for _, y in bands.readers[x]
    )


def _acyclic(edges: Mapping[int, set[int]]) -> bool:
    waiting = dict.fromkeys(edges, 0)
    for after in edges.values():
        for y in after:
            waiting[y] += 1
    ready = [x for x, n in waiting.items() if not n]
    done = 0
    while ready:
        x = ready.pop()
        done += 1
        for y in edges[x]:
            waiting[y] -= 1
            if not waiting[y]:
                ready.append(y)
    return done == len(edges)


def buffer_bytes(problem: FusionProblem, tensor: int, rows: int, images: int, streamed: bool) -> int:
    """Return the bytes of a tensor's buffer, rounded up to the chip's alignment."""
    shape = problem.maps[tensor]
    assert shape is not None
    channels = problem.channels_at_a_time(tensor) if streamed else shape.channels
    return problem.round_up(images * shape.row_bytes * rows * channels)


def streams(
    problem: FusionProblem, bands: Bands, allowed: int, t: int, images: int, below: Callable[[], int]
) -> Iterator[tuple[int, int]]:
    """Yield (buffer bytes, streamed set) of possible sets inside `allowed`, with fewer bytes than `below()`.

    A branch and bound from the outputs backwards. A buffer has the fewest rows when nothing after it streams.
    A set that is not legal (independent) does not become so by tensors made earlier, so a branch ends there.
    `below` is called at every node, and its value may decrease.
    """
    order = tuple(reversed(bands.tensors))
    fewest = walked_rows(problem, bands, 0, t)
    ops = [problem.operators[v] for v in bits(bands.members)]

    def possible(more: int) -> bool:
        match problem.options.isoa:
            case "paper":
                return independent(bands, more)
            case "sums":
                return _in_slices(ops, more)
        return legal(problem, bands, more)

    def total(rows: Mapping[int, int], streamed: int) -> int:
        return sum(buffer_bytes(problem, x, rows[x], images, bool(streamed >> x & 1)) for x in order)

    def branch(i: int, streamed: int) -> Iterator[tuple[int, int]]:
        rest = sum(1 << x for x in order[i:]) & allowed
        if total(fewest, streamed | rest) >= below():
            return
        if i == len(order):
            taken = total(walked_rows(problem, bands, streamed, t), streamed)
            if taken < below():
                yield taken, streamed
            return
        more = streamed | 1 << order[i]
        if allowed >> order[i] & 1 and possible(more):
            yield from branch(i + 1, more)
        yield from branch(i + 1, streamed)

    yield from branch(0, 0)


def smallest(
    problem: FusionProblem, bands: Bands, allowed: int, t: int, images: int, most: int
) -> tuple[int, int] | None:
    """Return the legal streamed set inside `allowed` with the fewest buffer bytes, if within `most`."""
    best: tuple[int, int] | None = None

    def below() -> int:
        return most + 1 if best is None else best[0]

    for found in streams(problem, bands, allowed, t, images, below):
        best = found
    return best
