"""The checker: an abstract interpreter of the plan program, which imports no planner.

`check` (in `judge`) proves a plan legal and recomputes every figure of its result; `certify` (in
`certificate`) turns a planner's program into a plan whose figures come from the program alone; `events_of`
lists the program's events. docs/plan-program.md states the rules that it enforces.

To read it, begin with `interpreter`, which runs the program instruction by instruction. Then `units`: the
operators and groups that a run executes. Then the ways to run a group: `tiles` (in bands of rows, or in
`blocks`), `boxes`, `rings`, `nests` of loops. Then the proofs that an output may lie over an input:
`operator_overlap` (in steps of `operator_walk`), `group_overlap`, `ring_overlap`. Then what follows from a
legal program: the bytes in `ledger`, the times in `timing`. Then `claims`: what the planner says of its plan.
Last `as_nests`: groups in bands, blocks and boxes as nests of loops, and what they cost then.
"""

from onchip.check.certificate import certify, plan_chip_of
from onchip.check.claims.standing import Standing, standing, why_derived
from onchip.check.energy import energy
from onchip.check.figures import times_of
from onchip.check.following import prove_following
from onchip.check.joins import concat_offsets, joined_offsets, one_begins_the_other, plain_concat
from onchip.check.judge import check
from onchip.check.nests import Layout, Place, layout_of
from onchip.check.operator_overlap import may_overwrite
from onchip.check.replay import events_of
from onchip.check.rules import RULES
from onchip.check.streaming import streaming_scratch
from onchip.check.timing import Clock, clock_of

__all__ = [
    "RULES",
    "Clock",
    "Layout",
    "Place",
    "Standing",
    "certify",
    "check",
    "clock_of",
    "concat_offsets",
    "energy",
    "events_of",
    "joined_offsets",
    "layout_of",
    "may_overwrite",
    "one_begins_the_other",
    "plain_concat",
    "plan_chip_of",
    "prove_following",
    "standing",
    "streaming_scratch",
    "times_of",
    "why_derived",
]
