"""The contest by brute force: every schedule of a small problem, priced by the verifier.

Operators may run in any connected sets, any number of times, with any outputs; at every tile and k; in every
order of at most four tiles, and of more line by line. Dijkstra's algorithm finds a path through what is in
slow memory and what is resident. A resident tensor that the next step does not read would only take room.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations, pairwise, permutations, product
from math import fsum, inf

from onchip.base.errors import IllegalSchedule
from onchip.contest import Law, Problem, Step
from onchip.contest.verify import NOTHING, Left, Walk, walk_of
from oracles.contest_cases import problem

Tensors = frozenset[int]


def optimum(given: Problem, law: Law, below: float = inf) -> float:
    """The least latency of any schedule; infinity if there is none.

    With `below`, a latency that is known, it is exact if it is at most that: a step is not priced if what it
    must load, store and compute, and all that is still to load and store, is more.
    """
    prices = cache(lambda *key: least_price(given, law, *key))
    start: tuple[Tensors, Tensors] = (frozenset(), frozenset())
    least, ahead = {start: 0.0}, [(0.0, 0, start)]
    count = 0
    while ahead:
        spent, _, state = heapq.heappop(ahead)
        if spent > least[state]:
            continue
        slow, resident = state
        if slow.issuperset(given.results):
            return spent
        for operators, made, outside in _sets(given):
            if not (outside <= slow | resident and resident <= outside):
                continue
            ends = {t for t in made if not any(t in given.inputs[op] for op in operators)}
            for retained in _subsets(made - set(given.results)):
                following = (slow | (ends - retained), retained)
                floor = spent + _floor(given, law, operators, resident, ends - retained)
                if floor >= least.get(following, inf) or floor + _rest(given, following[0]) > below:
                    continue
                cost = spent + prices(operators, resident, retained)
                if cost < least.get(following, inf):
                    least[following] = cost
                    count += 1
                    heapq.heappush(ahead, (cost, count, following))
    return inf


def _floor(given: Problem, law: Law, operators: tuple[int, ...], resident: Tensors, stored: Tensors) -> float:
    """No step is faster: it loads what it reads once, stores what it stores, makes all tiles of that."""
    made = {given.outputs[op] for op in operators}
    read = {t for op in operators for t in given.inputs[op]} - made - resident
    work = 0.0
    for op in operators:
        output = given.outputs[op]
        if output in stored:
            tiles = -(-given.widths[output] // given.native[0]) * -(-given.heights[output] // given.native[1])
            native = given.is_matmul[op] and law.product_step == "native"
            work += given.base[op] * tiles * (given.reduction(op) / given.native[2] if native else 1.0)
    return max(work, sum(map(given.size, read | stored)) / given.bandwidth)


def _rest(given: Problem, slow: Tensors) -> float:
    """The time of the graph's inputs and results that are still to load and to store, once each."""
    left = [t for t in given.results if t not in slow]
    read = {t for tensor in left for t in given.inputs[given.maker[tensor]] if t not in given.maker}
    return sum(map(given.size, {*left, *read})) / given.bandwidth


@cache
def _sets(given: Problem) -> list[tuple[tuple[int, ...], Tensors, Tensors]]:
    """Sets of operators in order, what they make, what they read that others make."""
    found = []
    for count in range(1, len(given.outputs) + 1):
        for operators in combinations(given.order, count):
            made = frozenset(given.outputs[op] for op in operators)
            read = {t for op in operators for t in given.inputs[op] if t in given.maker}
            found.append((operators, made, frozenset(read - made)))
    return found


def _subsets(tensors: Tensors) -> Iterator[Tensors]:
    for count in range(len(tensors) + 1):
        yield from map(frozenset, combinations(sorted(tensors), count))


def least_price(
    given: Problem, law: Law, operators: tuple[int, ...], resident: Tensors, retained: Tensors
) -> float:
    """The least latency of one step, whatever its tile, k and order of tiles; infinity if none fits."""
    best = inf
    read = {t for op in operators for t in given.inputs[op]}
    output = next(given.outputs[op] for op in operators if given.outputs[op] not in read)
    width, height = given.widths[output], given.heights[output]
    depths = [given.reduction(op) for op in operators if given.is_matmul[op]]
    deepest = min([*depths, given.native[2]] if law.k_capped else depths, default=1) if depths else 1
    sizes = product(
        range(1, min(given.native[0], width) + 1),
        range(1, min(given.native[1], height) + 1),
        range(1, deepest + 1),
    )
    for w, h, k in sizes:
        try:
            walk = walk_of(given, Step(operators, w, h, k, tuple(retained)), law, resident)
            best = min(best, _best_order(walk))
        except IllegalSchedule as error:
            if error.rule in ("L2", "L8"):
                return inf
    return best


def _best_order(walk: Walk) -> float:
    """The least latency of a walk in any of the orders; a tile's depends on the one before it alone."""

    @cache
    def behind(tile: int, before: int) -> tuple[float, Left]:
        times, _, left = walk.tile(tile, NOTHING if before < 0 else behind(before, -1)[1])
        return fsum(times), left

    return min(
        fsum(behind(tile, before)[0] for before, tile in pairwise((-1, *order)))
        for order in _orders(walk.across, walk.down)
    )


@cache
def _orders(across: int, down: int) -> list[tuple[int, ...]]:
    tiles = across * down
    if tiles <= 4:
        return list(permutations(range(tiles)))
    found = set()
    for by_columns, flip, turn, back in product((False, True), repeat=4):
        lines = [[row * across + column for column in range(across)] for row in range(down)]
        if by_columns:
            lines = [list(line) for line in zip(*lines, strict=True)]
        lines = lines[::-1] if flip else lines
        ways = [line[::-1] if (back and n % 2 == 1) != turn else line for n, line in enumerate(lines)]
        found.add(tuple(tile for line in ways for tile in line))
    return sorted(found)


def tree(seed: int) -> Problem:
    """A random in-tree of two to five operators: every tensor that is made has one reader."""
    rnd = random.Random(seed)
    return _random(rnd, rnd.choice((2, 3, 4, 5)), shared=False)


def graph(seed: int, counts: tuple[int, ...] = (4, 5, 6)) -> Problem:
    """A random graph of four to six operators, in which some tensor that one makes has several readers."""
    rnd = random.Random(seed)
    while True:
        made = _random(rnd, rnd.choice(counts), shared=True)
        if any(len(made.readers[tensor]) > 1 for tensor in made.outputs):
            return made


def reused(seed: int) -> Problem:
    """A product of square matrices in several steps of k, of which something reads one once more."""
    rnd = random.Random(seed)
    side, twice = rnd.choice((3, 4, 5, 6)), rnd.choice((None, 0, 1))
    base = partial(rnd.choice, (0, 0, 1, 3))
    operators = [("MatMul", (0, 0 if twice is None else 1), 2, base())]
    if twice is not None or rnd.random() < 0.5:
        operators.append(("Pointwise", (2, twice or 0), 3, base()))
        if rnd.random() < 0.3:
            operators.append(("Pointwise", (3, 1), 4, base()))
    return problem(
        [(side, side)] * (2 + len(operators)),
        operators,
        capacity=rnd.randint(3, 3 * side * side),
        bandwidth=rnd.choice((1, 2, 5)),
        native=(rnd.randint(1, side), rnd.randint(1, side), rnd.randint(1, side - 1)),
    )


def _random(rnd: random.Random, count: int, *, shared: bool) -> Problem:
    """Operators from the last to the first: each makes a tensor that is wanted, and wants its inputs."""
    sides = (2, 3, 4) if shared else (2, 3, 4, 5)
    shapes = [(rnd.choice(sides), rnd.choice(sides))]
    wanted, operators = [0], []
    while len(operators) < count and wanted:
        output = wanted.pop(rnd.randrange(len(wanted)))
        height, width = shapes[output]
        if rnd.random() < 0.55:
            reduction = rnd.choice(sides)
            needs = [(height, reduction), (reduction, width)]
        else:
            needs = [(height, width)] * rnd.choice((1, 1, 2))
        inputs = []
        for shape in needs:
            free = [t for t in wanted if shapes[t] == shape] if shared else []
            if free and rnd.random() < 0.6:
                inputs.append(rnd.choice(free))
            else:
                shapes.append(shape)
                inputs.append(len(shapes) - 1)
                wanted.append(len(shapes) - 1)
        kind = "MatMul" if len(needs) == 2 and needs != [(height, width)] * 2 else "Pointwise"
        operators.insert(0, (kind, tuple(inputs), output, rnd.choice((1, 5, 20))))
    largest = max(h * w for h, w in shapes)
    return problem(
        shapes,
        operators,
        capacity=rnd.randint(largest // 2 + 4, 3 * largest),
        bandwidth=rnd.choice((1, 2, 5)),
        native=(rnd.choice((2, 3)), rnd.choice((2, 3)), rnd.choice((2, 3, 4))),
    )
