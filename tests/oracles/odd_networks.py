"""Tiny random networks of odd geometry: what planners of tiles have to get right at the borders of maps."""

from __future__ import annotations

from random import Random

from onchip.network import Constant, Geometry, Network, OperatorSpec, Reach, Side, TensorKind

__all__ = ["odd_network"]

Shape = tuple[int, int, int]
"""Channels, rows, columns of one image."""

KINDS = (
    "conv",
    "conv",
    "conv",
    "depthwise",
    "pool",
    "elementwise",
    "concat",
    "pad",
    "matrix",
    "row",
    "opaque",
    "product",
    "split",
    "work",
)


def odd_network(
    rng: Random, most: int = 3, *, largest: int = 7, batches: tuple[int, ...] = (1, 1, 2, 3)
) -> Network:
    """One of 1 to `most` operators: padding to 3, dilation, strides above kernels, groups, maps of one row,
    pads that cut rows off, broadcasts, workspaces, several outputs, products in boxes."""
    batch = rng.choice(batches)
    side = (1, 1, 2, 3, 4, 5, 6, 7, 9)
    sizes = [n for n in side if n <= largest]
    shapes: dict[str, Shape] = {"x": (rng.randint(1, 4), rng.choice(sizes), rng.choice(sizes))}
    operators: list[OperatorSpec] = []
    count = rng.randint(1, most)
    for _ in range(200):
        if len(operators) == count:
            break
        name, kind = f"f{len(operators)}", rng.choice(KINDS)
        first = rng.choice(list(shapes))
        c, h, w = shapes[first]
        reads, made, weights, workspace = [first], (c, h, w), 0, 0
        window: dict[str, tuple[int, ...]] = {}
        groups = 1
        if kind in ("conv", "depthwise", "pool"):
            kernel, stride, dilation = (
                tuple(rng.choice(some) for _ in "hw")
                for some in ((1, 2, 3, 3, 5), (1, 1, 2, 3), (1, 1, 1, 2, 3))
            )
            padding = tuple(rng.choice((0, 0, 1, 1, 2, 3)) for _ in range(4))
            span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
            out = [(n + padding[i] + padding[i + 2] - span[i]) // stride[i] + 1 for i, n in enumerate((h, w))]
            if min(out) < 1 or max(out) > largest + 2:
                continue
            channels = c
            if kind == "conv":
                groups = rng.choice([g for g in range(1, c + 1) if c % g == 0])
                channels = groups * rng.randint(1, 3)
            if kind == "depthwise":
                groups = c
            made = (channels, out[0], out[1])
            window = {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding}
            if kind != "pool":
                weights = channels * (c // groups) * kernel[0] * kernel[1] + rng.choice((0, channels))
        elif kind in ("elementwise", "concat"):
            alike = [
                t
                for t, m in shapes.items()
                if t != first and m[1:] == (h, w) and (kind == "concat" or m[0] in (1, c))
            ]
            if not alike and kind == "concat":
                continue
            reads += rng.sample(alike, min(len(alike), rng.choice((1, 1, 2))))
            made = (sum(shapes[t][0] for t in reads), h, w) if kind == "concat" else (c, h, w)
        elif kind == "pad":
            padding = tuple(rng.choice((-1, 0, 0, 1, 2, 3)) for _ in range(4))
            made = (c, h + padding[0] + padding[2], w + padding[1] + padding[3])
            if min(made) < 1 or max(made) > largest + 3:
                continue
            window = {"padding": padding}
        elif kind == "matrix":
            made = (rng.randint(1, 4), 1, 1)
            weights = c * h * w * made[0]
        elif kind == "product":
            made = (rng.randint(1, 3), h, w)
            if batch * c * h * w * made[0] > 40:  # the oracle tries every box
                continue
            weights = c * made[0]
        elif kind == "split":
            if c < 2:
                continue
            made = (c - 1, h, w)
        elif kind == "work":
            workspace = rng.randint(1, batch * c * h * w)
        geometry: Geometry | None = None
        reach: Reach | None = None
        if kind == "matrix":
            geometry = Geometry("fully_connected", input=(batch, c * h * w), output=(batch, made[0]))
        elif kind == "product":  # over the channels of every pixel, in boxes
            read = (Side(batch, 0), Side(c, 4), Side(h, 2), Side(w, 3))
            constant = Constant("w", weights, (Side(made[0], 1), Side(c, 4)))
            reach = Reach((batch, *made), (read,), (constant,), sums=(c,))
        elif kind != "opaque":
            said = {"row": "rowwise", "split": "rowwise", "work": rng.choice(("elementwise", "rowwise"))}
            out = (batch, c, h, w) if kind == "split" else (batch, *made)
            named = said.get(kind, kind)
            geometry = Geometry(named, input=(batch, c, h, w), output=out, groups=groups, **window)  # type: ignore[arg-type]
        writes = (name,)
        if kind == "split":
            writes = (name, f"{name}b")
            shapes[f"{name}b"] = (1, h, w)
        operators.append(
            OperatorSpec(name, kind, tuple(reads), writes, weights, workspace, geometry, reach=reach)
        )
        shapes[name] = made
    wanted = {t for op in operators for t in op.inputs}
    tensors: list[tuple[str, int, TensorKind]] = [
        (t, batch * c * h * w, "input" if t == "x" else "activation")
        for t, (c, h, w) in shapes.items()
        if t != "x" or t in wanted
    ]
    outputs = [t for t in shapes if t not in wanted] + [
        t for t in shapes if t in wanted and t != "x" and rng.random() < 0.15
    ]
    return Network.build("odd", tensors, operators, outputs)
