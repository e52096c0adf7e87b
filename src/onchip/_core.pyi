# The compiled searches. Each section is owned by the package that wraps it; nothing else imports this module.
from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

# -- onchip.placement.search ---------------------------------------------------------------------------------

Steps = list[tuple[int, list[int]]]

class SearchResult(TypedDict):
    arrivals: list[tuple[int, list[int], list[int], int, Steps]]
    steps: Steps
    value: int
    bound: int
    end: Literal["complete", "time", "memory", "stopped", "width"]
    expanded: int
    stored: int
    memory: int

def minimum_traffic(
    *,
    size: Sequence[int],
    cost: Sequence[int],
    workspace: Sequence[int],
    inputs: Sequence[Sequence[int]],
    outputs: Sequence[Sequence[int]],
    graph_inputs: Sequence[int],
    graph_outputs: Sequence[int],
    overwrites: Sequence[Sequence[int]],
    order: Sequence[int],
    budget: int,
    rules: Sequence[bool],
    seconds: float | None,
    memory: int,
    seed: int,
    stop: Callable[[int, int, int], bool] | None,
    lives_on: Sequence[int],
    starts: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    beam_width: int,
) -> SearchResult: ...
def minimum_peak(
    *,
    size: Sequence[int],
    cost: Sequence[int],
    workspace: Sequence[int],
    inputs: Sequence[Sequence[int]],
    outputs: Sequence[Sequence[int]],
    graph_inputs: Sequence[int],
    graph_outputs: Sequence[int],
    overwrites: Sequence[Sequence[int]],
    order: Sequence[int],
    budget: int,
    rules: Sequence[bool],
    seconds: float | None,
    memory: int,
    seed: int,
    stop: Callable[[int, int, int], bool] | None,
    lives_on: Sequence[int],
    starts: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    beam_width: int,
) -> SearchResult: ...

# -- onchip.packing ------------------------------------------------------------------------------------------

class PackRules:
    divide: bool
    cliques: bool
    section_bound: bool
    canonical_skip: bool
    boundary: bool
    symmetry: bool
    decompose: bool
    table: bool
    backjump: bool
    restarts: bool
    last_conflict: bool
    def __init__(self) -> None: ...

def pack_greedy(
    lower: list[int],
    upper: list[int],
    size: list[int],
    alignment: list[int],
    offset: list[int],
    gaps: list[list[tuple[int, int]]],
    enough: int,
    rules: PackRules,
) -> tuple[list[int], int]: ...
def pack_by_blame(
    lower: list[int],
    upper: list[int],
    size: list[int],
    alignment: list[int],
    offset: list[int],
    gaps: list[list[tuple[int, int]]],
    capacity: int,
    rules: PackRules,
    seed: int,
    tries: int,
    seconds: float | None,
    progress: Callable[[int], object] | None,
) -> tuple[list[int], int]: ...
def pack_search(
    lower: list[int],
    upper: list[int],
    size: list[int],
    alignment: list[int],
    offset: list[int],
    gaps: list[list[tuple[int, int]]],
    capacity: int,
    rules: PackRules,
    seed: int,
    seconds: float | None,
    node_limit: int | None,
    progress: Callable[[int], object] | None,
) -> tuple[Literal["packed", "infeasible", "unknown"], list[int], int]: ...
