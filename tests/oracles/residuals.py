"""Random networks of streams that operators add to: outputs there may lie over inputs of their size."""

from __future__ import annotations

from random import Random

from onchip.network import Constant, Network, OperatorSpec, Reach, Side

__all__ = ["residual_network"]


def residual_network(random: Random, operators: int) -> Network:
    """A network of rows: norms, products, element-wise operators, sums with what was before.

    Most tensors have one size. Some inputs come late, and some tensors are read again.
    """
    rows, width = random.randint(2, 6), random.randint(2, 5)
    hidden = random.randint(2, 8)
    sizes = {"x": (rows, width)}
    made: list[str] = []
    specs: list[OperatorSpec] = []
    for v in range(operators):
        name = made[-1] if made and random.random() < 0.85 else random.choice(list(sizes))
        size = sizes[name]
        alike = [t for t in sizes if sizes[t] == size and t != name]
        kind = random.choice(("norm", "product", "product", "map", "add", "add", "add"))
        if kind == "add" and not alike:
            kind = "norm"
        reads, weights, sums = [name], (), ()
        out, operands = size, [(Side(size[0], 0), Side(size[1], 1))]
        if kind == "norm":
            operands = [(Side(size[0], 0), Side(size[1], span=size[1]))]
        elif kind == "product":
            out = (size[0], width if size[1] == hidden or random.random() < 0.4 else hidden)
            sums = (size[1],)
            operands = [(Side(size[0], 0), Side(size[1], 2))]
            weights = (Constant(f"w{v}", size[1] * out[1], (Side(size[1], 2), Side(out[1], 1))),)
        elif kind == "add":
            reads.append("x" if "x" in alike and random.random() < 0.4 else random.choice(alike))
            operands *= 2
        elif random.random() < 0.4:
            sizes[f"x{v}"] = size
            reads.append(f"x{v}")
            operands *= 2
        bytes_ = sum(c.bytes for c in weights)
        work = out[0] * out[1] * (sums[0] if sums else 1)
        reach = Reach(out, tuple(operands), weights, sums)
        specs.append(OperatorSpec(f"op{v}", kind, reads, [f"t{v}"], bytes_, macs=work, reach=reach))
        sizes[f"t{v}"] = out
        made.append(f"t{v}")
    read = {t for spec in specs for t in spec.inputs}
    outputs = [t for t in made if t not in read or random.random() < 0.05]
    used = [t for t in sizes if t in read or t in made]
    rows_ = [(t, sizes[t][0] * sizes[t][1], "activation" if t in made else "input") for t in used]
    return Network.build("residual", rows_, specs, outputs)  # type: ignore[arg-type]
