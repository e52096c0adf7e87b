"""Groups in nests and tensors between them whole: what known networks move, beside figures found elsewhere.

    .venv/bin/python benchmarks/nest_known_values.py [--network NAME] [--room KIB ...] [--most N]
    [--no-passes] [--accumulator BYTES] [--no-rules]

The networks are one GPT-3 6.7B layer (2,048 tokens, 16 bit; `gpt3_online`: with attention in one piece,
whose sum over keys carries the state of an on-line softmax), one BERT-base layer (512 tokens, int8), one
layer of ViT-B/16 (197 tokens, int8) and two blocks of a MobileNet (28 x 28, int8), along whose rows windows
slide. Groups are intervals of the order given here, of at most `--most` operators. A tensor between groups
goes through DRAM, or lies on chip whole from the group that makes or loads it to its last reader. `theirs`
are figures of two programs that share nothing with this one, found in the same space but for pairs of
classes at 64 KiB and norms in the place of their operand: with them 512 KiB is 12,986,112 there, too. The
MobileNet's are of bands of rows. Of r2plus1d_18 the first seven operators and the next five are searched as
one group each. With `--accumulator`, sums that are not complete are so wide, and `theirs` are the figures
found so: for 4 bytes, with loops of at most two and groups of at most four. Three of these cannot be: what a
tile sums takes all of the room there (512 x 256 sums of 4 bytes are 512 KiB), and nothing is left for a
product's operands. Where theirs is less, the least room from which we move as few bytes is printed. With
`--no-rules` every home, order and loop is looked at. Prints bytes, CPU seconds and searches.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import onchip
from onchip.check.nests import nested
from onchip.network import mask
from onchip.network.axes import axes_of
from onchip.planners.nests import ALL_RULES, MANY, NestFound, NestRules, NestSearch, group_key
from onchip.plans import Group

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from nest_groups import group_of

KIB = 1024

NO_RULES = NestRules(
    inner=False, outer=False, exchange=False, slices=False, rings=False, bounds=False
)  # every tile would take too long


@dataclass(frozen=True)
class Known:
    """A network in the words of `group_of`; `weights` are operands that only their operator reads."""

    name: str
    sizes: str
    element: int
    lines: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    theirs: dict[int, int]
    theirs_wide: dict[int, int] = field(default_factory=dict)


GPT3 = Known(
    "gpt3",
    "m=2048 p=2048 d=4096 h=32 e=128 v=128 o=4096 f=16384 y=4096",
    2,
    (
        "K: k(p,h,e) = I(p,d) WK(d,h,e)",
        "V: v(p,h,v) = I(p,d) WV(d,h,v)",
        "Q: q(m,h,e) = I(m,d) WQ(d,h,e)",
        "S: s(h,m,p) = q(m,h,e) k(p,h,e) | p",
        "PV: a(m,h,v) = s(h,m,p) v(p,h,v)",
        "Z: z(m,o) = a(m,h,v) WZ(h,v,o)",
        "FFA: b(m,f) = z(m,o) WA(o,f)",
        "FFB: c(m,y) = b(m,f) WB(f,y)",
    ),
    ("I",),
    ("c",),
    {
        1024: 2_868_903_936,
        2048: 1_946_157_056,
        4096: 1_493_172_224,
        8192: 1_040_187_392,
        16384: 771_751_936,
        32768: 570_425_344,
        65536: 436_207_616,
    },
)


ONLINE = replace(
    GPT3,
    name="gpt3_online",
    lines=(
        *GPT3.lines[:3],
        "AT: a(m,h,v) = q(m,h,*e) k(p,h,*e) v(p,h,v) | v | 2 v",
        *GPT3.lines[5:],
    ),
    theirs=GPT3.theirs | {1024: 2_634_022_912, 2048: 1_962_934_272},
    theirs_wide={
        1024: 3_623_878_656,
        2048: 2_600_468_480,
        4096: 1_979_711_488,
        8192: 1_493_172_224,
        16384: 1_023_410_176,
        32768: 687_865_856,
        65536: 436_207_616,
    },
)


def encoder(
    name: str, tokens: int, theirs: dict[int, int], *, norm_first: bool, wide: dict[int, int] | None = None
) -> Known:
    """One layer of 768 features and 12 heads; a norm before or behind each half."""
    attention = (
        "Q: q(m,h,e) = {x}(m,d) WQ(d,h,e) BQ(h,e)",
        "K: k(p,h,e) = {x}(p,d) WK(d,h,e) BK(h,e)",
        "V: v(p,h,v) = {x}(p,d) WV(d,h,v) BV(h,v)",
        "S: s(h,m,p) = q(m,h,e) k(p,h,e) | p",
        "PV: a(m,h,v) = s(h,m,p) v(p,h,v)",
        "O: o(m,y) = a(m,h,v) WO(h,v,y) BO(y)",
        "A1: r(m,d) = o(m,d) x(m,d)",
    )
    forward = (
        "FA: b(m,f) = {n}(m,d) WA(d,f) BA(f)",
        "FB: c(m,y) = b(m,f) WB(f,y) BB(y)",
        "A2: t(m,d) = c(m,d) {r}(m,d)",
    )
    norm = "{name}: {to}(m,d) = {of}(m,*d) G{name}(d) H{name}(d) | d"
    first, second = norm.replace("{name}", "N1"), norm.replace("{name}", "N2")
    if norm_first:
        lines = (
            first.format(to="n", of="x"),
            *(line.format(x="n") for line in attention),
            second.format(to="l", of="r"),
            *(line.format(n="l", r="r") for line in forward),
        )
        outputs = ("t",)
    else:
        lines = (
            *(line.format(x="x") for line in attention),
            first.format(to="n", of="r"),
            *(line.format(n="n", r="n") for line in forward),
            second.format(to="u", of="t"),
        )
        outputs = ("u",)
    sizes = f"m={tokens} p={tokens} d=768 h=12 e=64 v=64 y=768 f=3072"
    return Known(name, sizes, 1, lines, ("x",), outputs, theirs, wide or {})


def inverted_bottlenecks(count: int) -> Known:
    """1x1 24 to 192, 3x3 depthwise, 1x1 192 to 24 on maps of 28 x 28, so often."""
    lines, x = [], "x0"
    for n in range(count):
        lines += [
            f"E{n}: a{n}(m,h,w) = {x}(i,h,w) WE{n}(i,m)",
            f"D{n}: b{n}(m,h,w) = a{n}(m,H@h:1:1:3,W@w:1:1:3) WD{n}(m,k,l)",
            f"P{n}: x{n + 1}(o,h,w) = b{n}(m,h,w) WP{n}(m,o)",
        ]
        x = f"x{n + 1}"
    sizes = "h=28 w=28 H=28 W=28 i=24 o=24 m=192 k=3 l=3"
    return Known("mobilenet", sizes, 1, tuple(lines), ("x0",), (x,), {8: 381_696, 16: 97_152, 32: 59_520})


NETWORKS = (
    GPT3,
    ONLINE,
    encoder(
        "bert",
        512,
        {64: 42_084_096, 128: 28_911_360, 256: 20_653_824, 512: 13_379_328, 1024: 7_874_304},
        norm_first=False,
        wide={128: 41_887_488, 256: 28_714_752, 512: 17_704_704, 1024: 13_379_328},
    ),
    encoder("vit", 197, {}, norm_first=True),
    inverted_bottlenecks(2),
)

State = frozenset[tuple[str, bool]]
"""Tensors that lie on chip whole, and whether DRAM has them, too."""


@dataclass
class Joint:
    """Intervals of operators as groups, tensors between them whole or not: the least bytes, by states."""

    known: Known
    most: int
    passes: bool
    accumulator: int | None = None
    rules: NestRules = ALL_RULES
    searches: int = 0
    slowest: float = 0.0
    answers: dict[str, tuple[NestSearch, list[tuple[int, NestFound | None]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.operators = [_names(line) for line in self.known.lines]
        self.last: dict[str, int] = {}
        readers: dict[str, int] = {}
        for at, (_, reads) in enumerate(self.operators):
            for name in reads:
                self.last[name] = at
                readers[name] = readers.get(name, 0) + 1
        made = {name for name, _ in self.operators}
        self.tensors = made | set(self.known.inputs)
        self.bytes = {
            b.name: b.bytes for b in group_of(self.known.sizes, self.known.lines, self.known.element).buffers
        }
        self.least = sum(
            size for name, size in self.bytes.items() if name not in made or name in self.known.outputs
        )

    def needed(self, name: str, at: int) -> bool:
        """Return true if an operator from place `at` on reads the tensor."""
        return self.last.get(name, -1) >= at

    def price(
        self, first: int, end: int, leaving: frozenset[str], whole: frozenset[str], room: int
    ) -> NestFound | None:
        """Return the best nest of operators first..end-1, from what is known of larger rooms if possible."""
        group = group_of(self.known.sizes, self.known.lines[first:end], self.known.element)
        out = [i for i, b in enumerate(group.buffers) if b.name in leaving]
        kept = [i for i, b in enumerate(group.buffers) if b.name in whole]
        key = group_key(group, out, kept)
        if key not in self.answers:
            self.answers[key] = (
                NestSearch(
                    group,
                    out,
                    passes=MANY if self.passes else 0,
                    accumulator=self.accumulator,
                    rules=self.rules,
                ),
                [],
            )
        search, known = self.answers[key]
        for asked, found in known:
            if room <= asked and (found is None or found.scratch <= room):
                return found
        began = time.process_time()
        found = search.best(kept, room)
        self.slowest = max(self.slowest, time.process_time() - began)
        self.searches += 1
        known.append((room, found))
        return found

    def moves(
        self, state: State, first: int, end: int
    ) -> Iterator[tuple[int, State, frozenset[str], frozenset[str]]]:
        """Yield ways to run a group: bytes beside its own, what lies on chip, what leaves, what is whole."""
        chip = dict(state)
        made = [name for name, _ in self.operators[first:end]]
        reads = {name for _, names in self.operators[first:end] for name in names} & self.tensors - set(made)
        ways: list[list[tuple[str, str]]] = []
        for name in sorted(reads - set(chip)):
            ways.append([(name, "stream"), (name, "load")])
        for name in made:
            if name in self.known.outputs:
                ways.append([(name, "leave"), (name, "store")])
            elif self.needed(name, end):
                ways.append([(name, "leave"), (name, "hold")])
        for chosen in product(*ways):
            extra, now, leaving = 0, dict(chip), set()
            for name, way in chosen:
                if way in ("load", "store"):
                    extra += self.bytes[name]
                    now[name] = True
                elif way == "hold":
                    now[name] = False
                elif way == "leave":
                    leaving.add(name)
            whole = frozenset(now) & (set(made) | reads)
            yield extra, frozenset(now.items()), frozenset(leaving), whole

    def rests(self, state: State, end: int) -> Iterator[tuple[int, State]]:
        """Yield what may be left on chip behind a group, with the bytes of stores for what goes."""
        alive = [(name, stored) for name, stored in sorted(state) if self.needed(name, end)]
        for stays in product((True, False), repeat=len(alive)):
            gone = sum(
                self.bytes[name]
                for (name, stored), stay in zip(alive, stays, strict=True)
                if not stay and not stored
            )
            yield gone, frozenset(t for t, stay in zip(alive, stays, strict=True) if stay)

    def solve(self, room: int) -> tuple[int, list[str]] | None:
        """Return the least bytes in a scratchpad of `room` bytes, with the groups."""
        best: list[dict[State, tuple[int, list[str]]]] = [{} for _ in range(len(self.operators) + 1)]
        best[0][frozenset()] = (0, [])
        for first in range(len(self.operators)):
            for state, (cost, steps) in sorted(best[first].items(), key=lambda kv: kv[1][0]):
                for end in range(first + 1, min(len(self.operators), first + self.most) + 1):
                    for extra, now, leaving, whole in self.moves(state, first, end):
                        left = room - sum(self.bytes[name] for name, _ in now)
                        if left < 1:
                            continue
                        found = self.price(first, end, leaving, whole, left)
                        if found is None:
                            continue
                        names = " ".join(line.partition(":")[0] for line in self.known.lines[first:end])
                        step = f"{names}: {found.bytes + extra:,} ({found.scratch:,}) whole {sorted(whole)}"
                        for gone, rest in self.rests(now, end):
                            total = cost + found.bytes + extra + gone
                            if total < best[end].get(rest, (total + 1, []))[0]:
                                best[end][rest] = (total, [*steps, step])
        return min(best[-1].values(), key=lambda way: way[0], default=None)


def room_for(joint: Joint, room: int, bytes_moved: int) -> int | None:
    """Return the least room in which no more bytes are moved; None if twice the room is too little."""
    low, high = room, 2 * room

    def fits(room: int) -> bool:
        found = joint.solve(room)
        return found is not None and found[0] <= bytes_moved

    if not fits(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _names(line: str) -> tuple[str, list[str]]:
    made, _, operands = line.partition(":")[2].partition("=")
    words = operands.partition("|")[0].split()
    return made.strip().partition("(")[0], [word.partition("(")[0] for word in words]


def r2plus1d() -> None:
    """Print what the first groups of r2plus1d_18 move as one nest each, and what the checker says of them."""
    network = onchip.load("zoo:r2plus1d_18", dtype="int8").network
    for first, end, theirs in ((0, 7, "37.9 MB"), (7, 12, "")):
        ids = network.order[first:end]
        axes = axes_of(network, ids)
        assert not isinstance(axes, str)
        made = [(i, b.tensor) for i, b in enumerate(axes.buffers) if b.maker is not None]
        out = [i for i, t in made if t is not None and network.readers[t] & ~mask(ids)]
        began = time.process_time()
        search = NestSearch(axes, out)
        found = search.best((), 1024 * KIB)
        assert found is not None
        group = Group("g", tuple(network.operators[v].name for v in ids), found.scratch, tiling=found.nest)
        law = nested(network, group, ids, None, 1)
        moved = sum(law.crossing.values()) + law.weights
        work = sum(network.operators[v].work for v in ids)
        print(
            f"{first + 1} to {end} at 1 MiB: {found.bytes:,} (least {search.least:,}; theirs {theirs}),"
            f" scratch {found.scratch:,}; by the checker {moved:,} and {law.layout.need:,}, work"
            f" {law.layout.macs / work:.2f} times; {time.process_time() - began:.1f} s CPU"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", choices=[*(known.name for known in NETWORKS), "r2plus1d_18"])
    parser.add_argument("--room", type=int, nargs="*", help="KiB")
    parser.add_argument("--most", type=int, default=5)
    parser.add_argument("--no-passes", action="store_true")
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("--accumulator", type=int)
    parser.add_argument("--no-rules", action="store_true", help="search without the rules that make it quick")
    args = parser.parse_args()
    if args.network in (None, "r2plus1d_18") and args.accumulator is None:
        r2plus1d()
    for known in NETWORKS:
        if args.network not in (None, known.name):
            continue
        rules = NO_RULES if args.no_rules else ALL_RULES
        joint = Joint(known, args.most, not args.no_passes, args.accumulator, rules)
        known_there = known.theirs if args.accumulator is None else known.theirs_wide
        if args.accumulator is not None and not known_there:
            continue
        print(f"{known.name}: least {joint.least:,}, groups of at most {args.most}")
        for room in args.room or sorted(known_there) or (128, 256, 512, 1024):
            began = time.process_time()
            searches, joint.slowest = joint.searches, 0.0
            found = joint.solve(room * KIB)
            spent = time.process_time() - began
            said = "no plan" if found is None else f"{found[0]:,}"
            theirs = f"{known_there[room]:,}" if room in known_there else ""
            print(
                f"{room:>7,} KiB {said:>15}  theirs {theirs:>15}  {spent:7.1f} s CPU "
                f"{joint.searches - searches:>5} searches, slowest {joint.slowest:.2f} s",
                flush=True,
            )
            if found is not None and found[0] > known_there.get(room, found[0]):
                enough = room_for(joint, room * KIB, known_there[room])
                more = "not in twice the room" if enough is None else f"{enough - room * KIB:,} bytes more"
                print(f"            room for theirs: {more}")
            if args.plans and found is not None:
                print(*(f"        {step}" for step in found[1]), sep="\n")


if __name__ == "__main__":
    main()
