# ruff: noqa: E501  # a line for each mutant
"""Break every rule of the law of time once, and see whether the suite's random plans notice.

    python benchmarks/time_mutants.py [--seeds 200]

Each mutant changes one line of the checker in a process of its own, which then holds the law against the
simulation on the plans of `tests/check/test_nest_times.py`. Prints the seed at which each was seen. Exits 1
if one was not, unless its condition is known to be redundant, or another test of that file sees it: then it says why.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Mutant(NamedTuple):
    """A line of a file of the checker, what it becomes, and why it is no matter if nothing notices."""

    what: str
    file: str
    old: str
    new: str
    redundant: str = ""


TIMES, DURATIONS, WALK = "nest_times.py", "nest_durations.py", "nest_walk.py"
PIECES, LAYOUTS = "nest_pieces.py", "nest_layouts.py"

MUTANTS = (
    Mutant("(c) before (b)", TIMES, "        self.store_shared()\n        for state in first:", "        self.store_shared()\n        self.store_owned()\n        for state in first:"),
    Mutant("(a) and (c) together", TIMES, "        self.store_owned()\n        goes_on", "        goes_on"),
    Mutant("shared fetches before owned ones", TIMES, "key=lambda state: not state.owned", "key=lambda state: state.owned"),
    Mutant("a shared fetch does not wait for the step", TIMES, "else max(self.end, self.shared_end or 0)", "else (self.shared_end or 0)"),
    Mutant("a shared fetch does not wait for shared stores", TIMES, "else max(self.end, self.shared_end or 0)", "else self.end"),
    Mutant("an owned fetch does not wait for its slot", TIMES, "wait = given_back if state.owned", "wait = 0 if state.owned"),
    Mutant("a slot is given back before its store", TIMES, "store.state.slots.append(self.store(store))", "store.state.slots.append(self.end), self.store(store)"),
    Mutant("a slot is given back when it is taken", TIMES, "                state.slots.append(self.end)\n            return", "                state.slots.append(0)\n            return"),
    Mutant("partial sums do not wait for their stores", TIMES, "wait = max(wait, state.stored)", "wait = max(wait, 0)", "seen by a test of its own: three slots for two boxes"),
    Mutant("a step does not wait for shared stores", TIMES, "ready = max(self.end, self.gate, self.shared_end or 0)", "ready = max(self.end, self.gate)"),
    Mutant("a step does not wait for the gate", TIMES, "ready = max(self.end, self.gate, self.shared_end or 0)", "ready = max(self.end, self.shared_end or 0)"),
    Mutant("a step does not wait for the step before", TIMES, "ready = max(self.end, self.gate, self.shared_end or 0)", "ready = max(self.gate, self.shared_end or 0)"),
    Mutant("a step does not wait for its fetches", TIMES, "ready = max(ready, self.begin(state))", "ready = max(ready, self.begin(state) * 0)"),
    Mutant("a step does not wait for slots of what is not fetched", TIMES, "            return given_back\n", "            return 0\n"),
    Mutant("a fetch does not wait for the gate", TIMES, "max(wait, self.gate)", "wait"),
    Mutant("a store does not wait for its step", TIMES, "store.state.store, store.ready, store.duration", "store.state.store, 0, store.duration"),
    Mutant("a late store waits for the last step", TIMES, "store.state.store, store.ready, store.duration", "store.state.store, self.end, store.duration"),
    Mutant("no store is late", TIMES, "if store.late and not every:", "if False:"),
    Mutant("a late store is never made for its slot", TIMES, "if state.owned and not state.slots:", "if False:"),
    Mutant("late stores let as many more steps pass", TIMES, "self.walked, one.home.late)", "self.walked, 2 * one.home.late)"),
    Mutant("late stores stay late across borders", TIMES, "self.owned = [replace(store, late=0) for store in self.owned]", "pass"),
    Mutant("stores wait for steps before what is skipped", TIMES, "store.ready + next(at)) for store", "store.ready + 0 * next(at)) for store"),
    Mutant("a group beside another waits for that", TIMES, "self.gate = self.before[0]", "self.gate = self.before[1]"),
    Mutant("a group beside another waits for nothing", TIMES, "self.gate = self.before[0]", "self.gate = 0"),
    Mutant("late stores are not of the group before", TIMES, "self.before[1] = max(self.before[1], end)", "pass", "seen at seed 670, which a test of its own has"),
    Mutant("stores go on across every border", TIMES, "            self.flush()\n            self.gate", "            self.gate"),
    Mutant("periods by the compute unit alone", TIMES, "if new - old != (by if uses != used else 0):", "if False:"),
    Mutant("periods whatever waits to be stored", TIMES, "if before[2] != now[2] or", "if", "seen by a test of its own: a late store from before a loop"),
    Mutant("the first turn is skipped as well", TIMES, "if before is not None and index else None", "if before is not None else None", "a comparison needs two turns: the first can never be skipped"),
    Mutant("a period too many", TIMES, "body.count - 2 - index, by)", "body.count - 1 - index, by)"),
    Mutant("periods where windows end at borders", TIMES, "not (self.walk_all or self.slides(body))", "not self.walk_all"),
    Mutant("partial sums are stored as elements", TIMES, "width = one.element if one.complete else one.width", "width = one.element"),
    Mutant("partial sums come as elements", TIMES, "width = one.width if one.stored else one.element", "width = one.element"),
    Mutant("finished sums are stored wide", TIMES, "width = one.element if one.complete else one.width", "width = one.width"),
    Mutant("no bursts", DURATIONS, "(-(-piece * width // burst) * burst)", "(piece * width)"),
    Mutant("one piece", DURATIONS, "return {piece: prod(lengths[:rest])}", "return {prod(lengths): 1}"),
    Mutant("weights in pieces", DURATIONS, "b.tensor is None and n == 1", "False and n == 1"),
    Mutant("weights of several buffers in one piece", DURATIONS, "b.tensor is None and n == 1", "b.tensor is None", "every constant is of one operator, and has one buffer"),
    Mutant("no time of a piece", DURATIONS, "count * channel.piece_picoseconds + ", ""),
    Mutant("tensors in tiles come row by row", DURATIONS, "if one.home.buffer in self.in_tiles:", "if False:"),
    Mutant("a part of a tile is whole", PIECES, "if length < size and side % size == 0", "if False"),
    Mutant("the rows of a tile are one piece", PIECES, "prod(sizes[last:])] += prod(sizes[:last]) *", "prod(sizes)] +="),
    Mutant("tiles never follow each other", PIECES, "        if lengths[rest] < sides[rest]:\n            break", "        rest += 1\n        break"),
    Mutant("tiles always follow each other", PIECES, "        if lengths[rest] < sides[rest]:\n            break\n", ""),
    Mutant("the last tile is as large as all", PIECES, "({rest: 1} if rest else {})", "({tile: 1} if rest else {})"),
    Mutant("a nest agrees on any tiles", LAYOUTS, "if size % left or whole % size:", "if False:"),
    Mutant("no time of a transfer", DURATIONS, "channel.transfer_picoseconds + ", ""),
    Mutant("transfers are rounded down", DURATIONS, "-(-moved * PICOSECONDS // channel", "(moved * PICOSECONDS // channel"),
    Mutant("steps are rounded down", DURATIONS, "busy = -(-cycles * PICOSECONDS //", "busy = (cycles * PICOSECONDS //"),
    Mutant("no cycles of a step", DURATIONS, "cycles = tiles.step_cycles", "cycles = 0"),
    Mutant("no cycles of a block", DURATIONS, "(tiles.block_cycles + work.products * sums)", "(work.products * sums)"),
    Mutant("a block ends with every slice of its sums", DURATIONS, 'if size.kind == "out":', "if True:"),
    Mutant("sums on no side are blocks", DURATIONS, "blocks = prod(n for axis, n in enumerate(extents[: cut.outputs]) if axis not in on)", "blocks = prod(n for axis, n in enumerate(extents) if axis not in on)"),
    Mutant("sides fill", DURATIONS, "-(-prod(extents[axis] for axis in side) // size.size)", "prod(extents[axis] for axis in side) / size.size"),
    Mutant("sums that go on are read for nothing", DURATIONS, "(2 if goes_on else 1)", "1"),
    Mutant("no vector operations", DURATIONS, "-(-work.vector * made *", "-(-0 * made *"),
    Mutant("late constants come always", WALK, "return all(body.ends for body in self.waits)", "return True"),
    Mutant("sums come back at first, too", WALK, "return any(body.begun for body in self.sums)", "return bool(self.sums)"),
    Mutant("all that is kept comes by number", WALK, "(at.get(name, len(keep)), one.number)", "one.number", "seen by a test of its own: the step waits for both, in whichever order they come"),
    Mutant("rings come whole", WALK, "body.windows.moved[self.number][body.index]", "body.windows.there[self.number][body.index]"),
    Mutant("the last use is the last turn of all loops", TIMES, "if index >= 0:\n                    item.index = index\n                if found", "if index != turns[0]:\n                    continue\n                if found"),
    Mutant("copies of a ring take nothing", "nest_copies.py", "slot + (home.copies - 1) * up(new * width, alignment)", "slot - slot"),
    Mutant("copies take no scratch", "nest_copies.py", "return home.copies * slot", "return slot"),
    Mutant("copies live as one does", "nests.py", "            first, last = 0, len(paths) - 1\n", ""),
)  # fmt: skip


class _Loader(SourceFileLoader):
    """Loads a file with one line changed."""

    mutant: Mutant | None = None


def _mutated(mutant: Mutant) -> None:
    """Let this process load the file with its change."""
    path = ROOT / "src" / "onchip" / "check" / mutant.file
    text = path.read_text()
    changed = text.replace(mutant.old, mutant.new)
    load = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if Path(self.path).name == mutant.file and Path(self.path).parent.name == "check":
            return compile(changed, self.path, "exec")
        return load(self, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]


def seen_at(mutant: Mutant, seeds: int) -> int:
    """Return the seed at which a mutant was seen, from 1 on; 0 if at none."""
    text = (ROOT / "src" / "onchip" / "check" / mutant.file).read_text()
    if mutant.old not in text:
        raise SystemExit(f"{mutant.what}: {mutant.file} has no such line")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        found = 0
        try:
            _mutated(mutant)
            sys.path.insert(0, str(ROOT / "tests"))
            from oracles.nest_clock_trial import time_trial

            for seed in range(seeds):
                try:
                    time_trial(seed, most=4)
                except Exception:  # a difference, or a machine that cannot go on
                    found = seed + 1
                    break
        finally:
            os.write(write, str(found).encode())
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    answer = os.read(read, 99)
    os.close(read)
    return int(answer)


def main() -> int:
    """Try all mutants."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", type=int, nargs="*", help="the numbers of some mutants, from 0")
    asked = parser.parse_args()
    missed = 0
    chosen = MUTANTS if asked.only is None else [MUTANTS[n] for n in asked.only]
    for mutant in chosen:
        found = seen_at(mutant, asked.seeds)
        missed += not found and not mutant.redundant
        said = f"seen at seed {found - 1}" if found else f"not seen: {mutant.redundant or 'MISSED'}"
        print(f"{mutant.what}: {said}", flush=True)
    print(f"{len(chosen)} mutants, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
