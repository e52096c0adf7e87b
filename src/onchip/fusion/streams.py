"""Which tensors of a group are held a few channels at a time (ISOA, `phi = 1` in Optimus).

Such a *streamed* tensor saves most of its buffer, but its overlapping rows are made anew, and not every set
of tensors can be streamed: `legal` says which, and docs/fusion-model.md proves that those can be executed.
Optimus chooses by a dynamic program over a tree (Algorithm 2), with bands of one row; on a graph the problem
is a minimum-weight independent set, and only where channels are summed do neighbours exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onchip.fusion.problem import FusedOperator, FusionProblem
from onchip.fusion.rows import Bands, buffer_rows, overlaps, rows_of
from onchip.network import bits

__all__ = ["buffer_bytes", "candidates", "legal", "smallest", "streams"]


def candidates(problem: FusionProblem, bands: Bands) -> int:
    """Bitset of the tensors that are smaller when streamed and that no operator needs whole (isoa's choice).

    A tensor of at most T_c channels is never worth streaming: its buffer has the same channels and no fewer
    rows, and what it is made from has to reach further back.
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
        for window in op.windows:
            if window.broadcast or op.form == "rowwise":
                result &= ~(1 << window.tensor)
    return result


def legal(problem: FusionProblem, bands: Bands, streamed: int) -> bool:
    """Whether passes over channel slices exist that make every streamed tensor exactly once."""
    parent = {x: x for x in bands.tensors}

    def root(x: int) -> int:
        while parent[x] != x:
            x = parent[x]
        return x

    ops = [problem.operators[v] for v in bits(bands.members)]
    for op in ops:
        held_needed = op.form == "rowwise"
        inputs = [w.tensor for w in op.windows if streamed >> w.tensor & 1]
        outputs = [y for y in op.outputs if streamed >> y & 1]
        if inputs and (held_needed or any(w.broadcast for w in op.windows if w.tensor in inputs)):
            return False
        if op.form == "reduce" and inputs and outputs:
            return False
        for a in _merged(op, inputs, outputs):
            parent[root(a)] = root((inputs + outputs)[0])
    edges: dict[int, set[int]] = {root(x): set() for x in bands.tensors}
    for op in ops:
        for window in op.windows:
            for y in op.outputs:
                if root(window.tensor) != root(y):
                    edges[root(window.tensor)].add(root(y))
    return _acyclic(edges)


def independent(bands: Bands, streamed: int) -> bool:
    """Whether no operator has an operand and an output streamed (Optimus, section 5.2)."""
    return not any(
        streamed >> y & 1 for x in bits(streamed) if x in bands.readers for _, y in bands.readers[x]
    )


def _merged(op: FusedOperator, inputs: list[int], outputs: list[int]) -> list[int]:
    """The streamed tensors of an operator that have to be in one pass."""
    if op.form in ("elementwise", "concat", "channelwise") and outputs:
        return inputs + outputs
    if op.form == "elementwise" and len(op.windows) >= 3:
        return inputs
    return []


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
    """Bytes of a tensor's buffer, rounded up to the chip's alignment."""
    shape = problem.maps[tensor]
    assert shape is not None
    channels = problem.channels_at_a_time(tensor) if streamed else shape.channels
    return problem.round_up(images * shape.row_bytes * rows * channels)


def streams(
    problem: FusionProblem, bands: Bands, allowed: int, t: int, images: int, below: Callable[[], int]
) -> Iterator[tuple[int, int]]:
    """All (buffer bytes, streamed set) of possible sets inside `allowed`, with fewer bytes than `below()`.

    A branch and bound from the outputs backwards: rows of a tensor depend on what is streamed after it only.
    Every subset of a legal (independent) set is one, so a branch ends at the first set that is not. `below`
    is asked at every node and may sink.
    """
    order = tuple(reversed(bands.tensors))
    rows = rows_of(problem, bands.tensors)
    single = bands.count(rows, t) == 1
    fewest = buffer_rows(problem, bands, overlaps(problem, bands, 0), t)
    rest = [0]
    for x in reversed(order):
        sizes = [buffer_bytes(problem, x, fewest[x], images, False)]
        if allowed >> x & 1:
            sizes.append(buffer_bytes(problem, x, fewest[x], images, True))
        rest.append(rest[-1] + min(sizes))
    rest.reverse()

    back: dict[int, int] = {}
    shared = problem.options.halo
    paper = problem.options.isoa == "paper"

    def height(x: int, streamed: int) -> int:
        f = bands.ahead[x]
        if f is None or single or shared == "paper":
            return fewest[x]
        begins = [f]
        for window, y in bands.readers[x]:
            fy = bands.ahead[y]
            assert fy is not None  # else f is None
            anew = shared == "recompute" or streamed >> y & 1
            begins.append(window.stride * (back[y] if anew else fy) - window.padding)
        back[x] = min(begins)
        return min(rows[x], bands.scale[x] * t + max(f, f - back[x]))

    def branch(i: int, taken: int, streamed: int) -> Iterator[tuple[int, int]]:
        if taken + rest[i] >= below():
            return
        if i == len(order):
            yield taken, streamed
            return
        x = order[i]
        count = height(x, streamed)
        kept = back.get(x)
        more = streamed | 1 << x
        if allowed >> x & 1 and (independent(bands, more) if paper else legal(problem, bands, more)):
            size = buffer_bytes(problem, x, count, images, True)
            yield from branch(i + 1, taken + size, more)
            if kept is not None:
                back[x] = kept
        yield from branch(i + 1, taken + buffer_bytes(problem, x, count, images, False), streamed)

    yield from branch(0, 0, 0)


def smallest(
    problem: FusionProblem, bands: Bands, allowed: int, t: int, images: int, most: int
) -> tuple[int, int] | None:
    """The legal streamed set inside `allowed` with the fewest buffer bytes, if any has at most `most`."""
    best: tuple[int, int] | None = None

    def below() -> int:
        return most + 1 if best is None else best[0]

    for found in streams(problem, bands, allowed, t, images, below):
        best = found
    return best
