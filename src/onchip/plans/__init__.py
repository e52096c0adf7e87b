"""The plan: a small straight-line program over one chip's memory, with its network and chip.

Every planner emits a `Plan`. The checker and the report read nothing else; the executor also reads the model.
A plan has two written forms, JSON and text, and both carry everything: `from_json(to_json(plan)) == plan` and
`from_text(to_text(plan)) == plan`.
"""

from onchip.plans.claim import bind, claim_digest, is_proved
from onchip.plans.files import FORMAT, read_plan, write_plan
from onchip.plans.json import from_json, to_json
from onchip.plans.program import (
    Alloc,
    Blocks,
    Boxes,
    Free,
    Group,
    Instruction,
    Join,
    Load,
    MemoryUse,
    Move,
    Moved,
    Pin,
    PinnedTensor,
    PinnedWeights,
    Plan,
    PlanChip,
    Result,
    Rings,
    Run,
    Scratch,
    Section,
    Stage,
    State,
    Status,
    Store,
    Tiling,
    Timed,
)
from onchip.plans.text_writing import from_text, to_text

__all__ = [
    "FORMAT",
    "Alloc",
    "Blocks",
    "Boxes",
    "Free",
    "Group",
    "Instruction",
    "Join",
    "Load",
    "MemoryUse",
    "Move",
    "Moved",
    "Pin",
    "PinnedTensor",
    "PinnedWeights",
    "Plan",
    "PlanChip",
    "Result",
    "Rings",
    "Run",
    "Scratch",
    "Section",
    "Stage",
    "State",
    "Status",
    "Store",
    "Tiling",
    "Timed",
    "bind",
    "claim_digest",
    "from_json",
    "from_text",
    "is_proved",
    "read_plan",
    "to_json",
    "to_text",
    "write_plan",
]
