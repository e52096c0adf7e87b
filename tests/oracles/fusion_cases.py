"""Small random networks with maps, and fusion by brute force over all partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from onchip.network import Constant, Geometry, Network, OperatorSpec, Reach, Side, TensorKind, bits

__all__ = ["acyclic_partitions", "cheapest_partition", "random_maps", "shaped"]

Shape = tuple[int, int, int]


def shaped(
    name: str, rows: list[tuple[str, str, list[str], Shape, dict[str, int]]], start: Shape, batch: int
) -> Network:
    """A network of (name, kind, operands, output shape, kernel/stride/padding/weights); `x` is its input.

    Of kind `reach` is an operator without a geometry, of which a reach says the windows on its first operand
    (its rows are read `whole` if that is said) and that it reads all of the others.
    """
    shapes: dict[str, Shape] = {"x": start}
    operators = []
    for op, kind, reads, made, how in rows:
        shapes[op] = made
        first = (batch, *shapes[reads[0]])
        k, s, p = how.get("kernel", 1), how.get("stride", 1), how.get("padding", 0)
        geometry: Geometry | None
        reach: Reach | None = None
        if kind == "reach":
            geometry, reach = None, _reach(batch, [shapes[t] for t in reads], made, how)
        elif kind == "fully_connected":
            size = first[1] * first[2] * first[3]
            geometry = Geometry("fully_connected", input=(batch, size), output=(batch, made[0]))
        elif kind == "opaque":
            geometry = None
        else:
            window = {"kernel": (k, k), "stride": (s, s), "padding": (p, p, p, p)}
            if kind == "gap":
                window = {"kernel": first[2:]}
            if kind in ("elementwise", "concat", "rowwise"):
                window = {}
            groups = first[1] if kind == "depthwise" else 1
            geometry = Geometry(
                "pool" if kind == "gap" else kind, input=first, output=(batch, *made), groups=groups, **window
            )
        operators.append(OperatorSpec(op, kind, reads, [op], how.get("weights", 0), 0, geometry, 0, reach))
    read = {t for row in rows for t in row[2]}
    tensors: list[tuple[str, int, TensorKind]] = [
        (t, batch * c * h * w, "input" if t == "x" else "activation") for t, (c, h, w) in shapes.items()
    ]
    stated = {t: (batch, *shape) for t, shape in shapes.items()}
    return Network.build(name, tensors, operators, [t for t in shapes if t not in read], shapes=stated)


def _reach(batch: int, reads: list[Shape], made: Shape, how: dict[str, int]) -> Reach:
    """The reach of an operator with windows on the rows and columns of its first operand."""
    k, s, p = how.get("kernel", 1), how.get("stride", 1), how.get("padding", 0)
    found = []
    for i, (c, h, w) in enumerate(reads):
        rows, columns = Side(h, 2, s, p, k), Side(w, 3, s, p, k)
        if i or how.get("whole"):
            rows, columns = Side(h, span=h), Side(w, span=w)
        found.append((Side(batch, 0), Side(c, span=c), rows, columns))
    weights = how.get("weights", 0)
    constants = (Constant("w", weights, (Side(made[0], 1),)),) if weights else ()
    return Reach((batch, *made), tuple(found), constants)


def random_maps(rng: Random, most: int = 8, batch: int | None = None) -> Network:
    """A random network of 3 to `most` operators that mostly have windows, on maps of a few rows."""
    shapes: dict[str, Shape] = {"x": (rng.choice((2, 3, 8)), rng.choice((6, 7, 12, 16)), rng.choice((4, 9)))}
    rows: list[tuple[str, str, list[str], Shape, dict[str, int]]] = []
    count = rng.randint(3, most)
    kinds = ["conv"] * 6 + ["depthwise", "pool", "pool", "elementwise", "elementwise", "concat", "rowwise"]
    kinds += ["gap", "fully_connected", "opaque", "pad", "reach", "reach"]
    while len(rows) < count:
        name, kind = f"o{len(rows)}", rng.choice(kinds)
        first = rng.choice(list(shapes)[-3:] if rng.random() < 0.7 else list(shapes))
        c, h, w = shapes[first]
        reads, how, made = [first], {}, (c, h, w)
        if kind in ("conv", "depthwise", "pool"):
            k, s = rng.choice((1, 3, 3, 2, 5)), rng.choice((1, 1, 1, 2, 3))
            p = rng.choice((0, k // 2, k // 2))
            if h + 2 * p < k or w + 2 * p < k:
                continue
            channels = rng.choice((2, 3, 5, 8, 12)) if kind == "conv" else c
            made = (channels, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1)
            how = {"kernel": k, "stride": s, "padding": p}
            if kind != "pool":
                how["weights"] = channels * (c if kind == "conv" else 1) * k * k + rng.choice((0, channels))
        elif kind in ("elementwise", "concat"):
            alike = [t for t, m in shapes.items() if t != first and m[1:] == (h, w)]
            if kind == "elementwise":
                alike = [t for t in alike if shapes[t][0] == c]
            if not alike:
                continue
            reads += rng.sample(alike, min(len(alike), rng.choice((1, 1, 2))))
            made = (c if kind == "elementwise" else sum(shapes[t][0] for t in reads), h, w)
        elif kind == "gap":
            made = (c, 1, 1)
        elif kind == "reach":
            k, s, p = rng.choice((1, 3)), rng.choice((1, 1, 2)), rng.choice((0, 1))
            if h + 2 * p < k or w + 2 * p < k:
                continue
            made = (c, (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1)
            how = {
                "kernel": k,
                "stride": s,
                "padding": p,
                "whole": rng.random() < 0.3,
                "weights": rng.choice((0, c)),
            }
            if rng.random() < 0.3 and len(shapes) > 1:
                reads.append(rng.choice([t for t in shapes if t != first]))
        elif kind == "fully_connected":
            made = (rng.choice((4, 10)), 1, 1)
            how = {"weights": made[0] * c * h * w}
        elif kind == "pad":
            made, how = (c, h + 2, w + 2), {"padding": 1}
        rows.append((name, kind, reads, made, how))
        shapes[name] = made
    return shaped("random", rows, shapes["x"], batch or rng.choice((1, 2, 4)))


def acyclic_partitions(network: Network) -> Iterator[list[int]]:
    """Every division of the operators into groups (bitsets, connected or not) that can run one by one."""
    order = network.order

    def divide(i: int, groups: list[int]) -> Iterator[list[int]]:
        if i == len(order):
            if _acyclic(network, groups):
                yield list(groups)
            return
        for g in range(len(groups)):
            groups[g] |= 1 << order[i]
            yield from divide(i + 1, groups)
            groups[g] ^= 1 << order[i]
        groups.append(1 << order[i])
        yield from divide(i + 1, groups)
        groups.pop()

    yield from divide(0, [])


def _acyclic(network: Network, groups: list[int]) -> bool:
    needs = []
    for g in groups:
        before = 0
        for v in bits(g):
            before |= network.predecessors[v]
        needs.append(before & ~g)
    done, left = 0, list(range(len(groups)))
    while left:
        ready = [i for i in left if not needs[i] & ~done]
        if not ready:
            return False
        for i in ready:
            done |= groups[i]
        left = [i for i in left if i not in ready]
    return True


def cheapest_partition(network: Network, cost: Callable[[int], int | None]) -> int | None:
    """The least total cost of an acyclic partition, by looking at all; None when there is none."""
    known: dict[int, int | None] = {}
    best = None
    for groups in acyclic_partitions(network):
        total = 0
        for g in groups:
            if g not in known:
                known[g] = cost(g)
            priced = known[g]
            if priced is None:
                break
            total += priced
        else:
            best = total if best is None else min(best, total)
    return best
