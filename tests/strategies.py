"""Random networks and budgets, hard on purpose: one vocabulary for every property test.

`random_network` and `random_case` take a `random.Random` and are quick enough for tens of thousands of cases;
`networks` and `cases` are the same generators as hypothesis strategies, which shrink what fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from random import Random

from hypothesis import strategies as st

from onchip.machines.chip import Chip
from onchip.network import Geometry, Network, OperatorSpec, TensorKind, bits, mask

ALIGNMENTS = (1, 1, 1, 1, 2, 3, 4, 8)
"""Mostly 1, so that sizes themselves stay adversarial."""


@dataclass(frozen=True)
class Case:
    """A network on a chip that knows its alignment only, within a budget in bytes."""

    network: Network
    alignment: int
    budget: int
    in_place: bool = False

    @property
    def chip(self) -> Chip:
        return Chip("test", self.alignment)


def network_of(tensors: dict[str, int], operators: list[str], outputs: str) -> Network:
    """A network in few words: sizes by tensor, operators as `a b -> c d + 3` (its workspace), output names.

    Tensors that no operator writes are graph inputs.
    """
    specs = []
    for i, line in enumerate(operators):
        operands, _, workspace = line.partition("+")
        reads, _, writes = operands.partition("->")
        specs.append(OperatorSpec(f"op{i}", "Any", reads.split(), writes.split(), 0, int(workspace or 0)))
    written = {name for spec in specs for name in spec.outputs}
    rows: list[tuple[str, int, TensorKind]] = [
        (name, size, "activation" if name in written else "input") for name, size in tensors.items()
    ]
    return Network.build("small", rows, specs, outputs.split())


# -- figures that the budgets are drawn between: written from the definitions, for the tests alone ----------


def rounded(size: int, alignment: int) -> int:
    """`size` bytes as they count in the scratchpad."""
    return (size + alignment - 1) // alignment * alignment


def written_over(network: Network, op: int, done: int = 0) -> int | None:
    """An input that element-wise `op` may write its output over once the operators in `done` have run.

    It has the output's size, nobody else reads it later, and each operand that is (a view of) it is all of
    it, or lies in the last element: what is smaller may be wanted by every step, and that one alone writes
    there.
    """
    operator = network.operators[op]
    if operator.geometry is None or operator.geometry.kind != "elementwise" or len(operator.outputs) != 1:
        return None
    size = network.tensors[operator.outputs[0]].bytes
    last = size - size // prod(operator.geometry.output)  # where the last element begins
    offset = {view.tensor: view.offset for view in network.views}
    for x in bits(network.reads[op]):
        operands = [t for t in operator.inputs if network.root[t] == x]
        whole = network.tensors[x].bytes == size and all(
            network.tensors[t].bytes == size or offset.get(t, 0) >= last for t in operands
        )
        if whole and not network.readers[x] & ~(done | 1 << op):
            return x
    return None


def need(network: Network, op: int, alignment: int = 1, *, done: int | None = None) -> int:
    """Bytes in use while operator `op` runs with nothing else resident.

    With `done`, the operators that have run, its output is written over an input where that may be.
    """
    sizes = [
        rounded(network.tensors[t].bytes, alignment) for t in bits(network.reads[op] | network.writes[op])
    ]
    over = None if done is None else written_over(network, op, done)
    saved = 0 if over is None else rounded(network.tensors[over].bytes, alignment)
    return sum(sizes) + rounded(network.operators[op].workspace, alignment) - saved


def minimum_requirement(
    network: Network, alignment: int = 1, *, in_place: bool = False, order: Sequence[int] | None = None
) -> int:
    """MR: the least budget in which every operator runs at all; in place, in some order or the given one."""
    if not in_place:
        return max(need(network, op.id, alignment) for op in network.operators)
    if order is not None:
        return max(need(network, v, alignment, done=mask(order[:i])) for i, v in enumerate(order))
    everything = (1 << len(network.operators)) - 1
    least = {0: 0}
    for done in range(everything):  # a set comes after all its subsets
        if done not in least:
            continue
        for v in bits(everything & ~done):
            if not network.predecessors[v] & ~done:
                reached, after = max(least[done], need(network, v, alignment, done=done)), done | 1 << v
                least[after] = min(reached, least.get(after, reached))
    return least[everything]


def peak_of_order(
    network: Network, order: Sequence[int], alignment: int = 1, *, in_place: bool = False
) -> int:
    """Most bytes in use when operators run in `order`, inputs load late and nothing is ever spilled."""
    peak, resident, done = 0, 0, 0
    for v in order:
        resident |= network.reads[v] | network.writes[v]
        in_use = sum(rounded(network.tensors[t].bytes, alignment) for t in bits(resident))
        if in_place and (over := written_over(network, v, done)) is not None:
            in_use -= rounded(network.tensors[over].bytes, alignment)
        peak = max(peak, in_use + rounded(network.operators[v].workspace, alignment))
        done |= 1 << v
        for t in bits(resident):
            if not network.readers[t] & ~done:
                resident &= ~(1 << t)
    return peak


def careful_peak(network: Network, alignment: int = 1, *, in_place: bool = False) -> int:
    """The peak of a good order, near MP: what leaves fewest bytes live runs next; or the given order's."""

    def live_after(held: int, done: int) -> int:
        return sum(network.tensors[t].bytes for t in bits(held) if network.readers[t] & ~done)

    order: list[int] = []
    done = held = 0
    while len(order) < len(network.operators):
        left = [op.id for op in network.operators if not done >> op.id & 1]
        ready = [v for v in left if not network.predecessors[v] & ~done]
        touched = {v: held | network.reads[v] | network.writes[v] for v in ready}
        v = min((live_after(touched[v], done | 1 << v), need(network, v, alignment), v) for v in ready)[2]
        order.append(v)
        done, held = done | 1 << v, touched[v]
    return min(peak_of_order(network, o, alignment, in_place=in_place) for o in (order, network.order))


# -- the generators ------------------------------------------------------------------------------------------

SizeProfile = Callable[[Random], int]

SIZES: dict[str, SizeProfile] = {
    "ones": lambda r: 1,
    "tiny": lambda r: r.randint(1, 3),
    "small": lambda r: r.choice((1, 2, 2, 3, 4)),
    "ties": lambda r: r.choice((5, 5, 10)),
    "uniform": lambda r: r.randint(1, 100),
    "powers": lambda r: 1 << r.randint(0, 10),
    "mixture": lambda r: r.randint(1, 3) if r.random() < 0.5 else r.randint(40, 60),
    "one large": lambda r: 1000 if r.random() < 0.15 else r.randint(1, 20),
    "like r2": lambda r: r.choice((1, 1, 2, 5, 5, 10)),
}
"""How tensor sizes are drawn; a network keeps to one profile, because ties between tensors are what hurts."""

SMALL_SIZES = ("ones", "tiny", "small", "small")
"""Profiles for references whose effort grows with the sizes themselves."""


def random_network(
    rng: Random,
    max_operators: int = 8,
    *,
    min_operators: int = 1,
    sizes: Sequence[str] = tuple(SIZES),
    workspaces: bool = True,
    views: bool = True,
    elementwise: float = 0.0,
) -> Network:
    """A random network: fan-out, several and unused outputs, workspaces, views, inputs that are outputs.

    About that part of its operators is `elementwise`: one output of the size of its largest input.
    """
    size = SIZES[rng.choice(sizes)]
    tensors: list[tuple[str, int, TensorKind]] = []
    operators: list[OperatorSpec] = []
    view_rows: list[tuple[str, str, int]] = []
    readable: list[str] = []

    def add(name: str, bytes_: int, kind: TensorKind) -> None:
        tensors.append((name, bytes_, kind))
        readable.append(name)
        if views and rng.random() < 0.1:
            part = rng.randint(1, bytes_)
            tensors.append((f"{name}_part", part, "activation"))
            view_rows.append((f"{name}_part", name, rng.randint(0, bytes_ - part)))
            readable.append(f"{name}_part")

    for i in range(rng.choice((0, 1, 1, 1, 2, 2, 3))):
        add(f"x{i}", size(rng), "input")
    several = rng.choice((0.0, 0.15, 0.5))  # how often an operator has more than one output
    recent = rng.choice((0.0, 0.2, 0.5, 0.9))  # how much it prefers what was made last: deep or wide graphs
    fan_in = rng.choice(((1, 1, 1, 2, 2, 3), (1, 2, 2, 3), (1, 1, 2, 4)))
    count = max(rng.randint(min_operators, max_operators) for _ in range(rng.choice((1, 2))))
    for i in range(count):
        inputs = []
        for _ in range(min(len(readable), rng.choice(fan_in))):
            pool = readable[-3:] if rng.random() < recent else readable
            inputs.append(rng.choice(pool))
        if rng.random() < 0.03:
            inputs = []
        before = len(readable)
        if inputs and elementwise and rng.random() < elementwise:
            sizes_of = {name: bytes_ for name, bytes_, _ in tensors}
            largest = max(sizes_of[name] for name in inputs)
            add(f"t{i}", largest, "activation")
            geometry = Geometry("elementwise", (largest,), (largest,))
            scratch = size(rng) if workspaces and rng.random() < 0.2 else 0
            operators.append(OperatorSpec(f"op{i}", "Any", inputs, [f"t{i}"], 0, scratch, geometry))
            continue
        for j in range(rng.randint(2, 3) if rng.random() < several else 1):
            add(f"t{i}_{j}" if j else f"t{i}", size(rng), "activation")
        written = [name for name in readable[before:] if not name.endswith("_part")]
        workspace = size(rng) if workspaces and rng.random() < 0.2 else 0
        weights = rng.choice((0, 0, size(rng)))
        operators.append(OperatorSpec(f"op{i}", "Any", inputs, written, weights, workspace))

    read = {name for op in operators for name in op.inputs}
    outputs = [name for name in readable if name not in read and rng.random() < 0.7]
    outputs += [name for name in readable if name in read and rng.random() < 0.1]
    outputs = outputs or [rng.choice(readable)]
    # Ids say nothing about time: neither tensors nor operators need be listed in a topological order.
    if rng.random() < 0.7:
        rng.shuffle(tensors)
        rng.shuffle(operators)
    return Network.build("random", tensors, operators, outputs, views=view_rows)


def random_chain(rng: Random, most_parts: int = 3, max_operators: int = 4) -> Network:
    """Random networks in a row: each reads a tensor of the one before, now and then others made earlier.

    Its joints are often operators that every order passes alone, with tensors riding past them.
    """
    tensors: list[tuple[str, int, TensorKind]] = []
    operators: list[OperatorSpec] = []
    joint, riders = "", [""]
    for part in range(rng.randint(2, most_parts)):
        piece = random_network(rng, max_operators, views=False)
        name = {t.id: f"p{part}.{t.name}" for t in piece.tensors}
        for t in piece.tensors:
            if t.kind == "input" and joint:  # an input of a later part is the joint, or made earlier
                name[t.id] = rng.choice((joint, joint, joint, rng.choice(riders)))
            else:
                tensors.append((name[t.id], t.bytes, t.kind))
        for v in piece.order:
            op = piece.operators[v]
            reads = [name[t] for t in op.inputs] or ([joint] if joint else [])
            writes = [name[t] for t in op.outputs]
            operators.append(OperatorSpec(f"p{part}.{op.name}", "Any", reads, writes, 0, op.workspace))
        joint = f"joint{part}"
        unread = [name[t] for op in piece.operators for t in op.outputs if not piece.readers[t]]
        tensors.append((joint, rng.randint(1, 10), "activation"))
        operators.append(OperatorSpec(joint, "Join", unread, [joint]))
        riders = [n for n, _, _ in tensors]
    return Network.build("chain", tensors, operators, [joint])


def random_budget(rng: Random, network: Network, alignment: int = 1, *, in_place: bool = False) -> int:
    """A feasible budget: often MR exactly, where everything is tight, else up to a little above a peak."""
    low = minimum_requirement(network, alignment, in_place=in_place)
    high = careful_peak(network, alignment, in_place=in_place)
    match rng.randint(0, 9):
        case 0 | 1 | 2 | 3 | 4:
            return low
        case 5:
            return low + 1
        case 6:
            return (low + high) // 2
        case 7:
            return max(low, high - 1)
        case 8:
            return high
        case _:
            return rng.randint(low, high + 2)


def random_case(
    rng: Random, max_operators: int = 8, *, min_operators: int = 1, in_place: bool = False, **how: object
) -> Case:
    """A network, an alignment and a feasible budget; `how` is passed to `random_network`."""
    if in_place:
        how = {"elementwise": rng.choice((0.3, 0.6, 0.9))} | how
    alignment = rng.choice(ALIGNMENTS)
    for _ in range(rng.choice((1, 6))):
        network = random_network(rng, max_operators, min_operators=min_operators, **how)  # type: ignore[arg-type]
        # Where the largest operator alone decides the peak, no budget costs anything: mostly try for another.
        least = minimum_requirement(network, alignment, in_place=in_place)
        if careful_peak(network, alignment, in_place=in_place) > least:
            break
    return Case(network, alignment, random_budget(rng, network, alignment, in_place=in_place), in_place)


def random_tight_case(rng: Random, max_operators: int = 5, *, in_place: bool = False) -> Case:
    """A case of few bytes where addresses matter: workspaces fill what the tensors leave, in one range.

    The workspaces are chosen along one order, in which nothing then has to be spilled for its size alone.
    """
    if max_operators >= 5 and not in_place and rng.random() < 0.5:
        # Three live ranges that overlap like stairs: at two ends of the memory there is no place for a third.
        sizes = {name: rng.randint(1, 3) for name in "abcdef"}
        lines = ["a -> b", "b -> c", "a c -> d", "b d -> e", "c e -> f"]
        network = network_of(sizes, lines, rng.choice(("f", "f a", "f d")))
    else:
        part = 0.6 if in_place else 0.0
        network = random_network(
            rng, max_operators, min_operators=3, sizes=SMALL_SIZES, workspaces=False, elementwise=part
        )
    budget = peak_of_order(network, network.order, in_place=in_place) + rng.randint(0, 3)
    workspace: dict[int, int] = {}
    for i, v in enumerate(network.order):
        # What is in use at v is the peak of the order cut off there, less what died before.
        done = mask(network.order[:i])
        touched = network.reads[v] | network.writes[v]
        for u in network.order[:i]:
            for t in bits(network.reads[u] | network.writes[u]):
                touched |= (1 << t) if network.readers[t] & ~done else 0
        over = written_over(network, v, done) if in_place else None
        saved = 0 if over is None else network.tensors[over].bytes
        free = budget - sum(network.tensors[t].bytes for t in bits(touched)) + saved
        workspace[v] = free if rng.random() < 0.8 else rng.randint(0, free)
    operators = tuple(replace(op, workspace=workspace[op.id]) for op in network.operators)
    return Case(replace(network, operators=operators), 1, budget, in_place)


# -- the same as hypothesis strategies -----------------------------------------------------------------------


@st.composite
def networks(draw: st.DrawFn, max_operators: int = 8, **how: object) -> Network:
    """`random_network`, drawn and shrunk by hypothesis."""
    return random_network(draw(st.randoms(use_true_random=False)), max_operators, **how)  # type: ignore[arg-type]


@st.composite
def cases(draw: st.DrawFn, max_operators: int = 8, **how: object) -> Case:
    """`random_case`, drawn and shrunk by hypothesis."""
    return random_case(draw(st.randoms(use_true_random=False)), max_operators, **how)


HOSTILE_NAMES = (
    "", " ", "in", "out", "over", "by", "streaming", "program", "x:10", '"', "\\", "#", "a b", "a\nb",
    "a\r\nb", "<script>alert(1)</script>", "../../etc/passwd", "/abs", "%s{0}", "\0", "\x1b[31m", "\u202e",
    "\u2028", "é", "\U0001d4af", "NaN", "null", "--flag", "a" * 300, "'; --", "&amp;", "]]>", "@0", ":", "-1",
)  # fmt: skip
"""Names that files may contain and that must survive or be escaped everywhere."""

hostile_names = st.one_of(st.sampled_from(HOSTILE_NAMES), st.text(max_size=12))
"""Any name a file can hold (no lone surrogates: neither JSON nor protobuf carries them)."""


@st.composite
def hostile_networks(draw: st.DrawFn, max_operators: int = 4) -> Network:
    """A random network whose tensors, operators and name are hostile text."""
    plain = draw(networks(max_operators))
    count = len(plain.tensors)
    tensor = draw(st.lists(hostile_names, min_size=count, max_size=count, unique=True))
    operator = draw(
        st.lists(hostile_names, min_size=len(plain.operators), max_size=len(plain.operators), unique=True)
    )
    return Network.build(
        draw(hostile_names),
        [(tensor[t.id], t.bytes, t.kind) for t in plain.tensors],
        [
            OperatorSpec(
                operator[op.id],
                draw(hostile_names),
                [tensor[t] for t in op.inputs],
                [tensor[t] for t in op.outputs],
                op.weight_bytes,
                op.workspace,
            )
            for op in plain.operators
        ],
        [tensor[t] for t in plain.outputs],
        views=[(tensor[v.tensor], tensor[v.of], v.offset) for v in plain.views],
        source=draw(hostile_names),
    )
