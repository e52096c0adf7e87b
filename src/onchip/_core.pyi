# The compiled searches. Each section is owned by the package that wraps it; nothing else imports this module.
from collections.abc import Callable, Sequence
from typing import Literal, TypedDict

# -- onchip.planners.placement.search ------------------------------------------------------------------------

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
    stop: Callable[[int], bool] | None,
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
    stop: Callable[[int], bool] | None,
) -> tuple[Literal["packed", "infeasible", "unknown"], list[int], int]: ...

# -- onchip.planners.fusion.search ---------------------------------------------------------------------------

TensorRow = tuple[int, int, int, int, int, bool]
WindowRow = tuple[int, bool, bool, int, int, int]
BoxRow = tuple[int, int, int, int]
OperatorRow = tuple[
    int,
    Sequence[WindowRow],
    Sequence[int],
    int,
    int,
    int,
    Sequence[int],
    Sequence[BoxRow],
    Sequence[Sequence[int]],
]
GroupRow = tuple[int, int, int, int, int, int, int, int, list[int], list[int], bool, list[int]]

class Fused(TypedDict):
    groups: list[tuple[list[int], GroupRow]]
    bound: int
    complete: bool
    end: Literal["complete", "time", "memory", "stopped"]
    misfit: int
    candidates: int
    kept: int
    evaluated: int
    states: int
    transitions: int
    memory: int

class Fuser:
    def __init__(
        self,
        *,
        tensors: Sequence[TensorRow],
        operators: Sequence[OperatorRow],
        images: int,
        channel_tile: int,
        least_rows: int,
        alignment: int,
        parts: tuple[int, int],
        options: Sequence[int],
        largest: int,
        whole_fan_out: bool,
        chains: bool,
        shared_inputs: bool,
        order: Sequence[int],
    ) -> None: ...
    def count_convex(self) -> tuple[int, bool]: ...
    def misfits(self, budget: int) -> list[int]: ...
    def alone(self, op: int, cost: int) -> None: ...
    def enumerate(
        self,
        *,
        budget: int | None,
        rules: Sequence[bool],
        seconds: float | None,
        memory: int,
        groups: int,
        stop: Callable[[int, int], bool] | None,
    ) -> tuple[bool, Literal["complete", "time", "memory", "stopped"]]: ...
    @property
    def listed(self) -> int: ...
    def candidates(self) -> list[tuple[list[int], int]]: ...
    def cost(self, members: Sequence[int], budget: int, limit: int | None) -> GroupRow: ...
    def dram_bytes(self, groups: Sequence[Sequence[int]], budget: int) -> list[int]: ...
    def least_scratch(self, members: Sequence[int], bands: int) -> int: ...
    def best(
        self,
        *,
        budget: int,
        largest: int,
        rules: Sequence[bool],
        seconds: float | None,
        memory: int,
        groups: int,
        states: int,
        stop: Callable[[int, int], bool] | None,
    ) -> Fused: ...

class Pricer:
    def __init__(
        self, fuser: Fuser, budget: int, alone: Sequence[int], halo_percent: int, guess: bool = False
    ) -> None: ...
    def sound(self) -> bool: ...
    def cost(self, members: Sequence[int]) -> int: ...
    def price(
        self, *, first: int, worth: Sequence[int], tolerance: int, nodes: int, seconds: float | None
    ) -> tuple[int, bool, list[tuple[list[int], int]], int]: ...

# -- onchip.planners.joint.search ----------------------------------------------------------------------------

JointStep = tuple[list[int], list[int], list[int], int, bool, int, GroupRow]

class JointFound(TypedDict):
    steps: list[JointStep]
    cost: int
    found: bool
    bound: int
    complete: bool
    end: Literal["complete", "time", "memory", "stopped"]
    states: int
    downsets: int
    evaluated: int
    memory: int

class Joint:
    def __init__(
        self, *, fuser: Fuser, budget: int, over: Sequence[Sequence[int]], rules: Sequence[bool]
    ) -> None: ...
    def prepare(
        self,
        *,
        most: int,
        seconds: float | None,
        memory: int,
        stop: Callable[[int, int], bool] | None,
    ) -> bool: ...
    def least(self, op: int) -> int: ...
    def floor(self) -> int: ...
    def worth(self, of: Sequence[int]) -> None: ...
    def price(
        self,
        *,
        worth: Sequence[int],
        most: int,
        seconds: float | None,
        memory: int,
        stop: Callable[[int, int], bool] | None,
    ) -> tuple[list[int], list[tuple[list[int], int]], bool]: ...
    def search(
        self,
        *,
        width: int,
        below: int | None,
        seed: int,
        seconds: float | None,
        memory: int,
        stop: Callable[[int, int], bool] | None,
    ) -> JointFound: ...

# -- onchip.multi_dnn.dp ------------------------------------------------------------------------------------

class PairSchedule(TypedDict):
    value: float
    bound: float
    starts: list[tuple[int, int, int]]
    end: Literal["complete", "time", "memory", "stopped", "width"]
    labels: int
    made: int

class BoundedPair:
    def __init__(
        self,
        *,
        units: int,
        work: tuple[Sequence[float], Sequence[float]],
        move: tuple[Sequence[float], Sequence[float]],
        slow: tuple[Sequence[float], Sequence[float]],
    ) -> None: ...
    def search(
        self,
        *,
        frames: tuple[float, float],
        upper: float,
        yields: bool,
        rules: tuple[bool, bool],
        seconds: float | None,
        memory: int,
        width: int,
        stop: Callable[[int], bool] | None,
    ) -> PairSchedule: ...

# -- onchip.multi_dnn.search, onchip.multi_dnn.dispatch ----------------------------------------------------

CorunTasks = tuple[int, list[float], list[float], list[float], list[int], list[int], list[list[int]]]

class LocalSearch(TypedDict):
    unit: list[int]
    sequence: list[int]
    order: list[list[int]]
    value: float
    tries: int
    end: Literal["complete", "time", "stopped"]

class Dispatcher:
    def __init__(self, *, tasks: CorunTasks, slowdown: Callable[[int, float, float], float]) -> None: ...
    def first_ready(self, *, unit: Sequence[int], rank: Sequence[int]) -> tuple[list[int], list[float]]: ...

def local_search(
    *,
    tasks: CorunTasks,
    slowdown: Callable[[int, float, float], float],
    token_tasks: Sequence[Sequence[int]],
    chain: Sequence[int],
    lag: Sequence[int],
    aim: Literal["latency", "throughput", "rates"],
    last: Sequence[Sequence[int]],
    firsts: Sequence[Sequence[int]],
    pipelined: bool,
    starts: Sequence[tuple[Sequence[int], Sequence[int]]],
    tries: int,
    seconds: float | None,
    seed: int,
    stop: Callable[[int, float], bool] | None,
) -> LocalSearch: ...

# -- onchip.multi_dnn.branch --------------------------------------------------------------------------------

class ChainSchedule(TypedDict):
    value: float
    bound: float
    starts: list[tuple[int, int, int]]
    end: Literal["complete", "time", "nodes", "stopped"]
    nodes: int

def chain_schedule(
    *,
    tasks: CorunTasks,
    slowdown: Callable[[int, float, float], float],
    first: Sequence[int],
    yields: bool,
    switches: int | None,
    rates: bool,
    upper: float,
    nodes: int,
    seconds: float | None,
    stop: Callable[[int], bool] | None,
) -> ChainSchedule: ...

# -- onchip.guard --------------------------------------------------------------------------------------------

def guard_start(before: float) -> int: ...
def guard_started() -> bool: ...
def guard_time(over: float | None, line: bytes) -> None: ...
def guard_memory(soft: int, hard: int, line: bytes) -> None: ...
def guard_weigh(from_now: bool) -> None: ...
def guard_own_seconds() -> float: ...
def guard_family_bytes() -> int: ...
def guard_heard() -> None: ...
def guard_keep(path: bytes) -> bool: ...
def guard_drop(path: bytes) -> None: ...
def guard_clean() -> None: ...
def guard_crash(log: bytes, head: bytes, line: bytes, traceback: int, code: int) -> None: ...
def die_with_parent(parent: int) -> None: ...
