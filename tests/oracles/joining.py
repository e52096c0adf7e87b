"""Random networks with many concats of what was made before: some share operands, some go on from others."""

from __future__ import annotations

from random import Random

from onchip.network import Network
from oracles.fusion_cases import Shape, shaped

__all__ = ["joining_maps"]


def joining_maps(rng: Random, most: int) -> Network:
    """A network of 4 to `most` convolutions, element-wise operators, pools, concats and operators without
    a window, on maps of one image.

    Concats are read more than once where that can be."""
    rows: list[tuple[str, str, list[str], Shape, dict[str, int]]] = []
    high, wide = rng.choice((2, 4, 6)), rng.choice((2, 4))
    shapes: dict[str, Shape] = {"x": (rng.choice((2, 6, 12)), high, wide)}
    dense: list[str] = []
    for _ in range(rng.randint(4, most)):
        name = f"o{len(rows)}"
        read = rng.choice(list(shapes)[-3:])
        if len(rows) == 1:
            read = "x"
        joined = [row[0] for row in rows if row[1] == "concat"]
        if joined and rng.random() < 0.7:
            read = rng.choice(joined)
        c, h, w = shapes[read]
        alike = [t for t, m in shapes.items() if t not in (read, "x") and m[1:] == (h, w)]
        kind = rng.choice(("conv", "conv", "elementwise", "pool", "concat", "concat", "concat"))
        if len(rows) == 2:
            kind = "concat"
        if kind == "concat" and alike:
            reads = [read, *rng.sample(alike, min(len(alike), rng.choice((1, 2))))]
            if dense and rng.random() < 0.5 and all(shapes[t][1:] == (h, w) for t in dense):
                reads = [*dense, *(t for t in (read,) if t not in dense)]
            if len(reads) == len(set(reads)) > 1:
                dense = reads
                made = (sum(shapes[t][0] for t in reads), h, w)
                rows.append((name, "concat", reads, made, {}))
                shapes[name] = made
                continue
        how: dict[str, int] = {}
        made = (c, h, w)
        if kind != "concat" and rng.random() < 0.1:  # runs whole, so that no group takes the concat with it
            made = (rng.choice((1, 2)), h, w)
            rows.append((name, "opaque", [read], made, how))
            shapes[name] = made
            continue
        if kind == "pool" and h > 2 and w > 2 and rng.random() < 0.4:
            made, how = (c, h // 2, w // 2), {"kernel": 2, "stride": 2}
        elif kind in ("conv", "pool", "concat"):
            kind, made = "conv", (rng.choice((2, 8, 12)), h, w)
            k = rng.choice((1, 3))
            how = {"kernel": k, "padding": k // 2, "weights": made[0] * c * k * k}
        rows.append((name, kind, [read], made, how))
        shapes[name] = made
    return shaped("joining", rows, shapes["x"], 1)
