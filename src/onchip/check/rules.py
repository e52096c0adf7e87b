"""The checker's rules, each with the name that a refusal carries. docs/plan-program.md has a row for each."""

from __future__ import annotations

from typing import NoReturn

from onchip.base.errors import IllegalPlan

__all__ = ["RULES", "Broken", "broken"]

RULES: dict[str, str] = {
    # header
    "bad-budget": "the budget is a whole number of bytes from 0 to 1 TiB",
    "bad-alignment": "the alignment is a whole number of bytes from 1 to 1 MiB",
    "bad-accumulators": "a sum that is not complete takes from 1 to 8 bytes",
    "bad-rate": "every rate of the chip is a positive number below 10^18",
    "patches": "a tensor in patches has the channels, rows and columns that the geometry says",
    "repeat": "what repeats an operator has its figures, and reads the same values in the same places",
    # names
    "unknown-tensor": "an instruction names only tensors of the network",
    "unknown-operator": "an instruction or group names only operators (and groups) that exist",
    "names-view": "an instruction names the tensor that holds the bytes, never a view of it",
    "inner-tensor": "a tensor inside a group lives only in the group's scratch",
    "operator-in-group": "an operator of a group runs with its group only",
    # address ranges
    "misaligned": "an address is a multiple of the chip's alignment",
    "outside-budget": "a range starts at 0 or above and ends within the budget",
    "range-not-free": "a range shares no byte with what is resident or reserved",
    # several memories
    "memory": "a range lies in one of the chip's memories, which have names of their own and are the budget",
    "memory-operands": "operands and scratch of a running operator lie in memories that operators reach",
    # load, alloc, store, free
    "load-no-dram-copy": "what is loaded has a copy in DRAM",
    "already-resident": "what is loaded or reserved has no range yet",
    "already-produced": "only an operator's output that does not exist yet is reserved",
    "not-resident": "what is stored, freed or overlapped is resident",
    "not-produced": "what is stored, freed or overlapped holds its value",
    "free-loses-data": "what is freed has a DRAM copy if it is still to be read or is an output",
    # alloc ... over ... by
    "overlap-not-input": "the overlapped tensor is an input of the operator that writes the new one",
    "overlap-distance": "the stated distance is the overlapped tensor's address minus the new one's",
    "overlap-unproved": "the operator's geometry is one for which the checker can prove the order of reads",
    "overlap-unsafe": "no byte of the overlapped tensor is overwritten before it was read",
    "overlap-still-needed": "nothing reads the overlapped tensor later; an output has a DRAM copy",
    "overlap-freed": "the overlapped tensor stays where it is until the operator ran",
    # alloc ... of, join
    "join-not-concat": "what is joined are the operands of a concat whose output is their bytes in turn",
    "join-place": "an operand that is joined on chip lies where its part of the output begins",
    "join-graph-input": "no operand that is joined in DRAM is a graph input",
    "join-no-dram-copy": "every operand of a concat joined in DRAM has a copy there",
    "join-twice": "a tensor is part of one concat joined in DRAM, or of such that each begins the next",
    "join-reserved": "the output of a concat joined in DRAM has no range in the scratchpad",
    # scratch and run
    "scratch-twice": "scratch is reserved once",
    "already-run": "an operator runs once, and takes no scratch after that",
    "input-not-resident": "every input of a running operator is resident or streamed",
    "input-not-produced": "every input of a running operator holds its value",
    "output-not-reserved": "every output of a running operator has a range or is streamed",
    "no-scratch": "an operator with a workspace has its scratch when it runs",
    # run ... streaming
    "streaming-operand": "what is streamed is an operand of the running operator",
    "streaming-no-dram-copy": "a streamed input has a copy in DRAM",
    "streaming-reserved": "a streamed output has no range in the scratchpad",
    "streaming-unproved": "the checker can derive how many bytes cross",
    "streaming-bytes": "the stated number of bytes is the one that crosses",
    # pins and state
    "pin": "what is pinned is named once; pinned weights are those of an operator that runs on its own",
    "pin-moved": "a pinned tensor lies at its stated address, and in one place until its last reader has run",
    "weights-do-not-fit": "a separate weight scratchpad holds a run's weights beside all pinned ones",
    "state": "a state pairs a graph input with what an operator makes, of the same size, each once",
    "state-not-kept": "at the end the state's output lies where the next inference expects it",
    "cache": "a cache is what a concat puts behind a graph input, or begins; its buffer has room for it",
    "cache-moved": "a cache is made in its buffer, over its input, by an operator alone; nothing moves it",
    "cache-not-kept": "at the end every cache lies in its buffer",
    # groups
    "group-name": "a group's name is no operator's and no other group's",
    "group-members": "a group has operators, each named once, and 1 or more subgroups",
    "group-overlap": "an operator belongs to one group at most",
    "group-not-convex": "no path leaves a group and enters it again",
    "group-weights": "refills are 1 or more, of members, and not of members whose weights are resident",
    "group-scratch": "a group's scratch holds its tensors, resident weights, and a workspace or weight tile",
    "group-unproved": "the checker can prove what a group keeps in its scratch",
    # groups in tiles
    "tiling-sizes": "bands, blocks and slices are 1 or more, and images at a time 1 to all",
    "tiling-streamed": "a tiling streams tensors that its group reads or writes",
    "tiling-passes": "streamed tensors are made in passes over the channels that can follow each other",
    "tiling-subgroups": "a tiled group has as many subgroups as its bands and images make",
    "tiling-refills": "a tiled group fetches weights that it does not keep once for every subgroup",
    "tiling-blocks": "a group that runs in blocks is a single operator, and keeps no weights but a block's",
    "tiling-operands": "a tiling streams no operand that is whole",
    # groups in rings
    "rings-stages": "stages of rings cut their group's operators; each hands on its last one's output",
    "rings-sizes": "bands of rings have a row or more, and there are from 1 strip to one for every column",
    "rings-fetched": "what rings fetch by columns is read by their first stage alone",
    # groups by rows
    "rows-alone": "a group by rows has 1 subgroup, no refills, no resident weights, and streams all operands",
    "rows-maps": "a map's operators make its rows from rows of what it reads; shapes and reaches say which",
    "rows-steps": "every map makes each of its rows once",
    "rows-read": "a step reads rows that are made",
    "rows-alive": "no byte of a row is overwritten before the row was read last, nor by the step that reads",
    "rows-pieces": "a map that is read whole lies in one piece",
    "rows-complete": "every member of the group makes a map; what leaves it is there in the end, whole",
    # groups in nests
    "nest-alone": "a group in a nest has 1 subgroup, and states no refills and no resident weights",
    "nest-leaves": "every member of the group is one leaf of its nest, behind the makers of what it reads",
    "nest-axes": "a loop cuts, alike, one axis of each operator in it; none is kept together or sliced twice",
    "nest-tiles": "a loop and a slice take 1 index or more in a turn",
    "nest-finished": "a loop around maker and reader of a tensor cuts it alike, and is no sum of the maker",
    "nest-windows": "windows along a loop agree in strides and turns; no loop inside goes along it again",
    "nest-keep": "a body keeps, once, streamed operands or constants: around a use; what leaves, around all",
    "nest-over": "an output replaces, element by element, an operand made inside that nothing reads later",
    "nest-under": "an output lies over an input of its elements that is read before, in every turn",
    "nest-carried": "no loop over a sum that carries a state stands around the home of the output",
    "nest-copies": "copies and channels are of what a body keeps; those of sums hold one part after another",
    "nest-late": "late stores are of a streamed output in copies, complete, and cut along no windows",
    "nest-array": "on the sides of the chip's array lie axes of outputs, and of sums, each once",
    "nest-channels": "a buffer comes and goes through channels that the chip has, and that go that way",
    "layout": "a tensor in tiles goes from nest to nest, and each fill of it is whole tiles, or lies in one",
    "nest-beside": "a group beside the one before it has its scratch then, and reads nothing that it stores",
    # the end, and the figures
    "operator-not-run": "at the end every operator has run",
    "output-not-stored": "at the end every output has a DRAM copy",
    "timing": "the stated times are those that the program and the chip's rates give",
    "section": "sections follow each other; a module's parts and processing are what its program does",
    "result": "every figure of the result is what the program gives, and its claims agree with each other",
    "claim": "what is claimed was made of this problem and these figures, by a plan that its options allow",
}
"""Rule name -> the statement that holds in every legal plan."""


class Broken(Exception):
    """A rule was broken; the interpreter adds the instruction. Never leaves the package."""

    def __init__(self, rule: str, reason: str) -> None:
        assert rule in RULES, rule
        self.rule, self.reason = rule, reason
        super().__init__(rule, reason)

    def illegal(self, index: int | None = None, instruction: str = "") -> IllegalPlan:
        """Return the public error."""
        return IllegalPlan(self.rule, self.reason, index=index, instruction=instruction)


def broken(rule: str, reason: str) -> NoReturn:
    """Refuse a plan: raise `Broken` with a rule and a reason."""
    raise Broken(rule, reason)
