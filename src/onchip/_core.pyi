"""Written by scripts/stubs.py from the code; do not edit."""

# ruff: noqa

from collections.abc import Callable, Sequence
from typing import Literal

class Limits:
    def __init__(
        self,
        *,
        seconds: float | None = None,
        memory: int = 2147483648,
        stop: Callable[..., bool] | None = None,
    ) -> None: ...

class PlacementBoundary:
    def __init__(self, *, paid: int, resident: Sequence[int], copied: Sequence[int]) -> None: ...
    @property
    def paid(self) -> int: ...
    @property
    def resident(self) -> list[int]: ...
    @property
    def copied(self) -> list[int]: ...

class PlacementProblem:
    def __init__(
        self,
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
        read_later: Sequence[int],
        starts: Sequence[PlacementBoundary],
        budget: int,
    ) -> None: ...

class PlacementRules:
    def __init__(
        self,
        *,
        dominance: bool,
        safe_moves: bool,
        safe_loads: bool,
        safe_chains: bool,
        minimal_evictions: bool,
        incumbent: bool,
    ) -> None: ...

class PlacementOptions:
    def __init__(self, *, seed: int, beam_width: int) -> None: ...

class PlacementStep:
    @property
    def operator(self) -> int: ...
    @property
    def evict(self) -> list[int]: ...

class PlacementArrival:
    @property
    def at(self) -> PlacementBoundary: ...
    @property
    def start(self) -> int: ...
    @property
    def steps(self) -> list[PlacementStep]: ...

class PlacementFound:
    @property
    def arrivals(self) -> list[PlacementArrival]: ...
    @property
    def steps(self) -> list[PlacementStep]: ...
    @property
    def value(self) -> int: ...
    @property
    def bound(self) -> int: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...
    @property
    def expanded(self) -> int: ...
    @property
    def stored(self) -> int: ...
    @property
    def memory(self) -> int: ...

def minimum_traffic(
    *, problem: PlacementProblem, rules: PlacementRules, options: PlacementOptions, limits: Limits
) -> PlacementFound: ...
def minimum_peak(
    *, problem: PlacementProblem, rules: PlacementRules, options: PlacementOptions, limits: Limits
) -> PlacementFound: ...

class PackBuffer:
    def __init__(
        self, *, live: Sequence[tuple[int, int]], size: int, alignment: int, offset: int | None
    ) -> None: ...

class PackRules:
    def __init__(
        self,
        *,
        divide: bool,
        cliques: bool,
        section_bound: bool,
        canonical_skip: bool,
        boundary: bool,
        symmetry: bool,
        decompose: bool,
        table: bool,
        backjump: bool,
        restarts: bool,
        last_conflict: bool,
    ) -> None: ...

class PackEffort:
    def __init__(
        self,
        *,
        greedy: bool,
        search: bool,
        repair: bool,
        nodes: int | None,
        last_nodes: int | None,
        share: float,
    ) -> None: ...

class PackAddresses:
    @property
    def offsets(self) -> list[int]: ...
    @property
    def extent(self) -> int: ...

class PackDecision:
    @property
    def status(self) -> Literal["packed", "infeasible", "unknown"]: ...
    @property
    def offsets(self) -> list[int]: ...
    @property
    def nodes(self) -> int: ...
    @property
    def method(self) -> Literal["bound", "greedy", "search", "repair"]: ...

def pack_greedy(*, buffers: Sequence[PackBuffer], enough: int, rules: PackRules) -> PackAddresses: ...
def pack_allocate(*, buffers: Sequence[PackBuffer]) -> PackAddresses: ...
def pack_is_large(*, buffers: Sequence[PackBuffer], most: int = 4194304) -> bool: ...
def pack_decide(
    *,
    buffers: Sequence[PackBuffer],
    capacity: int,
    rules: PackRules,
    seed: int,
    effort: PackEffort,
    limits: Limits,
) -> PackDecision: ...

class FusionTensor:
    def __init__(
        self, *, channels: int, rows: int, columns: int, element: int, bytes: int, output: bool
    ) -> None: ...

class FusionWindow:
    def __init__(
        self, *, tensor: int, whole: bool, broadcast: bool, stride: int, padding: int, span: int
    ) -> None: ...

class FusionGrid:
    def __init__(
        self,
        *,
        kernel: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        span: Sequence[int],
        input_channels: int,
        output_channels: int,
        groups: int,
    ) -> None: ...

class FusionBoxes:
    def __init__(self, *, scratch: int, again: int, weight: int, tiles: int) -> None: ...

class FusionOperator:
    def __init__(
        self,
        *,
        form: Literal["opaque", "reduce", "channelwise", "elementwise", "concat", "rowwise"],
        inputs: Sequence[FusionWindow],
        outputs: Sequence[int],
        weight: int,
        tile: int,
        workspace: int,
        grid: FusionGrid | None,
        boxes: Sequence[FusionBoxes],
        streams: Sequence[Sequence[int]],
    ) -> None: ...

class FusionOptions:
    def __init__(
        self,
        *,
        batch_weights: Literal["per-image", "held", "shared"],
        isoa: Literal["channelwise", "paper", "off", "sums"],
        halo: Literal["lines", "paper", "recompute"],
        residency: Literal["partial", "all", "none"],
        weight_tile: bool,
        blocks: bool,
    ) -> None: ...

class FusionProblem:
    def __init__(
        self,
        *,
        tensors: Sequence[FusionTensor],
        operators: Sequence[FusionOperator],
        images: int,
        channel_tile: int,
        least_rows: int,
        alignment: int,
        maps_budget: int,
        weights_budget: int,
        options: FusionOptions,
    ) -> None: ...

class FusionSpace:
    def __init__(
        self, *, largest: int, whole_fan_out: bool, chains: bool, shared_inputs: bool, order: Sequence[int]
    ) -> None: ...

class FusionRules:
    def __init__(self, *, lazy: bool, worth: bool, monotone: bool, incumbent: bool) -> None: ...

class FusionBlocks:
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def keep(self) -> bool: ...
    @property
    def box(self) -> int: ...

class FusionCost:
    @property
    def crossing(self) -> int: ...
    @property
    def halo(self) -> int: ...
    @property
    def weight(self) -> int: ...
    @property
    def scratch(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def subgroups(self) -> int: ...
    @property
    def images(self) -> int: ...
    @property
    def streamed(self) -> list[int]: ...
    @property
    def resident(self) -> list[int]: ...
    @property
    def whole(self) -> bool: ...
    @property
    def blocks(self) -> FusionBlocks | None: ...
    @property
    def dram(self) -> int | None: ...

class FusionListed:
    @property
    def complete(self) -> bool: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...

class FusionPartition:
    @property
    def groups(self) -> list[list[int]]: ...
    @property
    def costs(self) -> list[FusionCost]: ...
    @property
    def bound(self) -> int: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...
    @property
    def complete(self) -> bool: ...
    @property
    def candidates(self) -> int: ...
    @property
    def kept(self) -> int: ...
    @property
    def evaluated(self) -> int: ...
    @property
    def states(self) -> int: ...
    @property
    def transitions(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def fits(self) -> bool: ...

class Fuser:
    def __init__(self, *, problem: FusionProblem, space: FusionSpace) -> None: ...
    def count_convex(self) -> int | None: ...
    def misfits(self, budget: int) -> list[int]: ...
    def alone(self, op: int, cost: int | None) -> None: ...
    def enumerate(
        self, *, budget: int | None, rules: FusionRules, groups: int, limits: Limits
    ) -> FusionListed: ...
    @property
    def listed(self) -> int: ...
    def candidates(self) -> list[tuple[list[int], int]]: ...
    def cost(self, members: Sequence[int], budget: int) -> FusionCost: ...
    def dram_bytes(self, groups: Sequence[Sequence[int]], budget: int) -> list[int | None]: ...
    def least_scratch(self, members: Sequence[int], bands: int) -> int | None: ...
    def best(
        self, *, budget: int, largest: int, rules: FusionRules, groups: int, states: int, limits: Limits
    ) -> FusionPartition: ...

class Priced:
    @property
    def least(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def columns(self) -> list[tuple[list[int], int]]: ...
    @property
    def nodes(self) -> int: ...

class Pricer:
    def __init__(
        self, fuser: Fuser, budget: int, alone: Sequence[int], halo_percent: int, guess: bool = False
    ) -> None: ...
    def sound(self) -> bool: ...
    def cost(self, members: Sequence[int]) -> int | None: ...
    def price(
        self, *, first: int, worth: Sequence[int], tolerance: int, nodes: int, limits: Limits
    ) -> Priced: ...

class JointRules:
    def __init__(self, *, dominance: bool, minimal: bool, ahead: bool, incumbent: bool) -> None: ...

class JointPriced:
    @property
    def worth(self) -> list[int]: ...
    @property
    def columns(self) -> list[tuple[list[int], int]]: ...
    @property
    def complete(self) -> bool: ...

class JointStep:
    @property
    def members(self) -> list[int]: ...
    @property
    def whole(self) -> list[int]: ...
    @property
    def evicted(self) -> list[int]: ...
    @property
    def joined(self) -> bool: ...
    @property
    def over(self) -> int | None: ...
    @property
    def made(self) -> int | None: ...
    @property
    def plain(self) -> bool: ...
    @property
    def nest(self) -> bool: ...
    @property
    def cost(self) -> FusionCost: ...

class JointFound:
    @property
    def steps(self) -> list[JointStep]: ...
    @property
    def bound(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...
    @property
    def states(self) -> int: ...
    @property
    def downsets(self) -> int: ...
    @property
    def evaluated(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def hoped(self) -> list[int]: ...
    @property
    def cost(self) -> int | None: ...

class JointNest:
    def __init__(
        self,
        *,
        members: Sequence[int],
        text: int,
        buffers: Sequence[tuple[int, int]],
        floor: int,
        windowed: Sequence[int],
        over: Sequence[tuple[int, int]],
    ) -> None: ...

class NestCosts:
    def __init__(
        self,
        *,
        texts: Sequence[NestProblem],
        budget: int,
        most_shapes: Sequence[int],
        looks: int,
        in_order: int,
    ) -> None: ...
    def cut_texts(self) -> list[int]: ...
    def leave_out(self, texts: Sequence[int]) -> None: ...
    def deepen(self, looks: int) -> None: ...
    def deepen_some(self, *, texts: Sequence[int], times: int, most: int) -> bool: ...
    def nest(self, *, text: int, whole: int, over: tuple[int, int] | None, room: int) -> NestFound | None: ...

class Joint:
    def __init__(
        self,
        *,
        fuser: Fuser,
        budget: int,
        over: Sequence[Sequence[int]],
        nests: Sequence[JointNest],
        costs: NestCosts,
        joins: Sequence[int],
        rules: JointRules,
    ) -> None: ...
    def prepare(self, *, most: int, below: int | None, limits: Limits) -> bool: ...
    def forget_nests(self, *, hopeful: bool) -> None: ...
    def untile(self, members: Sequence[int]) -> None: ...
    def least(self, op: int) -> int: ...
    def misfits(self) -> list[int]: ...
    def floor(self) -> int: ...
    def worth(self, of: Sequence[int]) -> None: ...
    def price(self, *, worth: Sequence[int], most: int, limits: Limits) -> JointPriced: ...
    def search(self, *, width: int, below: int | None, seed: int, limits: Limits) -> JointFound: ...

class NestSlide:
    def __init__(self, *, side: int, axis: int, stride: int, before: int, span: int, per: int) -> None: ...

class NestUse:
    def __init__(
        self, *, buffer: int, axes: Sequence[int], slides: Sequence[NestSlide], late: bool
    ) -> None: ...

class NestOperator:
    def __init__(
        self,
        *,
        axes: Sequence[int],
        outputs: int,
        together: Sequence[int],
        reads: Sequence[NestUse],
        writes: NestUse,
        carries: int,
        across: Sequence[int],
    ) -> None: ...

class NestBuffer:
    def __init__(
        self, *, sides: Sequence[int], element: int, maker: int, leaves: bool, accumulated: int
    ) -> None: ...

class NestRules:
    def __init__(
        self,
        *,
        tiles: bool,
        inner: bool,
        outer: bool,
        exchange: bool,
        slices: bool,
        rings: bool,
        bounds: bool,
    ) -> None: ...

class NestItem:
    @property
    def operation(self) -> int | None: ...
    @property
    def slices(self) -> list[tuple[int, int]]: ...
    @property
    def under(self) -> int | None: ...
    @property
    def over(self) -> list[tuple[int, int]]: ...
    @property
    def tile(self) -> int: ...
    @property
    def keep(self) -> list[int]: ...
    @property
    def ring(self) -> list[int]: ...
    @property
    def body(self) -> list[NestItem]: ...

class NestFound:
    @property
    def bytes(self) -> int: ...
    @property
    def need(self) -> int: ...
    @property
    def root(self) -> NestItem: ...

class NestAnswer:
    @property
    def found(self) -> NestFound | None: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...
    @property
    def shapes(self) -> int: ...
    @property
    def bound(self) -> int: ...

class NestProblem:
    def __init__(
        self,
        *,
        operators: Sequence[NestOperator],
        buffers: Sequence[NestBuffer],
        alignment: int,
        spine: int,
        passes: int,
        long_passes: bool,
        pairs: bool,
        in_place: bool,
        windows: int,
        rules: NestRules,
    ) -> None: ...
    def best(
        self,
        *,
        whole: Sequence[int],
        over: tuple[int, int] | None = None,
        room: int,
        below: int | None,
        most_shapes: int | None = None,
        in_order: int | None = None,
        limits: Limits,
    ) -> NestAnswer: ...
    def least(self, *, whole: Sequence[int]) -> int: ...

class TimedChannel:
    def __init__(
        self, *, bytes_per_second: int, transfer: int, piece: int, burst: int, loads: bool, stores: bool
    ) -> None: ...

class TimedSide:
    def __init__(self, *, sums: bool, size: int) -> None: ...

class TimedRates:
    def __init__(
        self,
        *,
        clock: int,
        step_cycles: int,
        block_cycles: int,
        own_operands: bool,
        channels: Sequence[TimedChannel],
        sides: Sequence[TimedSide],
        vector: int | None,
        scratchpad: int | None,
    ) -> None: ...

class TimedWork:
    def __init__(self, *, products: int, vector: int) -> None: ...

class TimedStored:
    def __init__(
        self, *, whole: Sequence[int], constant: bool, on_chip: bool, tile: Sequence[int], in_fills: bool
    ) -> None: ...

class TimedKept:
    def __init__(self, *, buffer: int, copies: int, load: int, store: int, late: int) -> None: ...
    @property
    def buffer(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def load(self) -> int: ...
    @property
    def store(self) -> int: ...
    @property
    def late(self) -> int: ...

class TimedItem:
    def __init__(
        self,
        *,
        loop_class: int,
        tile: int,
        operation: int,
        under: int,
        keep: Sequence[TimedKept],
        ring: Sequence[int],
        body: Sequence[TimedItem],
    ) -> None: ...
    @property
    def loop_class(self) -> int: ...
    @property
    def tile(self) -> int: ...
    @property
    def operation(self) -> int: ...
    @property
    def under(self) -> int: ...
    @property
    def keep(self) -> list[TimedKept]: ...
    @property
    def ring(self) -> list[int]: ...
    @property
    def body(self) -> list[TimedItem]: ...

class TimedTimes:
    @property
    def time(self) -> int: ...
    @property
    def work(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def transfers(self) -> int: ...
    @property
    def busy(self) -> list[int]: ...

class TimedPriced:
    @property
    def times(self) -> TimedTimes: ...
    @property
    def need(self) -> int: ...
    @property
    def scratch(self) -> int: ...
    @property
    def arrays(self) -> list[list[list[int]]]: ...

class TimedFound:
    @property
    def nest(self) -> TimedItem: ...
    @property
    def times(self) -> TimedTimes: ...
    @property
    def scratch(self) -> int: ...
    @property
    def cost(self) -> int: ...

class TimedAnswer:
    @property
    def best(self) -> TimedFound | None: ...
    @property
    def front(self) -> list[TimedFound]: ...
    @property
    def effort(self) -> int: ...
    @property
    def prices(self) -> int: ...

class TimedRules:
    def __init__(self, *, floors: bool, idle: bool, second: bool, more: bool) -> None: ...

class TimedFront:
    @property
    def found(self) -> list[TimedFound]: ...
    @property
    def nests(self) -> int: ...
    @property
    def prices(self) -> int: ...
    @property
    def complete(self) -> bool: ...

class TimedProblem:
    def __init__(
        self,
        *,
        operators: Sequence[NestOperator],
        buffers: Sequence[NestBuffer],
        stored: Sequence[TimedStored],
        work: Sequence[TimedWork],
        rates: TimedRates,
        alignment: int,
        paired: bool = True,
    ) -> None: ...
    @property
    def classes(self) -> list[list[int]]: ...
    def price(self, *, nest: TimedItem, every_turn: bool = False) -> TimedPriced | None: ...
    def refusal(self, *, nest: TimedItem) -> str: ...
    def search(
        self,
        *,
        starts: Sequence[TimedItem],
        room: int,
        effort: int,
        seed: int,
        slack: int = 250000,
        price: int = 0,
        of_bytes: int = 1,
        limits: Limits,
    ) -> TimedAnswer: ...
    def fronts(
        self,
        *,
        loops: int,
        copies: int,
        channels: bool,
        room: int,
        most: int,
        rules: TimedRules,
        limits: Limits,
    ) -> TimedFront: ...

class PairRules:
    def __init__(self, *, dominance: bool, bounds: bool) -> None: ...

class CorunStart:
    @property
    def net(self) -> int: ...
    @property
    def group(self) -> int: ...
    @property
    def unit(self) -> int: ...

class PairSchedule:
    @property
    def value(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def starts(self) -> list[CorunStart]: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...
    @property
    def labels(self) -> int: ...
    @property
    def made(self) -> int: ...

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
        rules: PairRules,
        width: int,
        limits: Limits,
    ) -> PairSchedule: ...

class CorunTasks:
    def __init__(
        self,
        *,
        units: int,
        work: Sequence[float],
        gb: Sequence[float],
        move: Sequence[float],
        row: Sequence[int],
        before: Sequence[int | None],
        gates: Sequence[Sequence[int]],
    ) -> None: ...

class CorunStream:
    def __init__(
        self, *, task: Sequence[Sequence[int]], chain: Sequence[int], lag: Sequence[int]
    ) -> None: ...

class CorunAim:
    def __init__(
        self,
        *,
        kind: Literal["latency", "throughput", "rates"],
        last: Sequence[Sequence[int]],
        firsts: Sequence[Sequence[int]],
        pipelined: bool,
    ) -> None: ...

class CorunCandidate:
    def __init__(self, *, unit: Sequence[int], sequence: Sequence[int]) -> None: ...
    @property
    def unit(self) -> list[int]: ...
    @property
    def sequence(self) -> list[int]: ...

class ChainOptions:
    def __init__(
        self, *, yields: bool, switches: int | None, rates: bool, upper: float, nodes: int
    ) -> None: ...

class LocalSchedule:
    @property
    def best(self) -> CorunCandidate: ...
    @property
    def order(self) -> list[list[int]]: ...
    @property
    def value(self) -> float: ...
    @property
    def tries(self) -> int: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...

class ChainSchedule:
    @property
    def value(self) -> float: ...
    @property
    def bound(self) -> float: ...
    @property
    def starts(self) -> list[CorunStart]: ...
    @property
    def end(self) -> Literal["complete", "time", "memory", "stopped", "nodes", "width"]: ...
    @property
    def nodes(self) -> int: ...

class Dispatcher:
    def __init__(self, *, tasks: CorunTasks, slowdown: Callable[[int, float, float], float]) -> None: ...
    def first_ready(self, *, unit: Sequence[int], rank: Sequence[int]) -> tuple[list[int], list[float]]: ...

def local_search(
    *,
    tasks: CorunTasks,
    slowdown: Callable[[int, float, float], float],
    stream: CorunStream,
    aim: CorunAim,
    starts: Sequence[CorunCandidate],
    tries: int,
    seed: int,
    limits: Limits,
) -> LocalSchedule: ...
def chain_schedule(
    *,
    tasks: CorunTasks,
    slowdown: Callable[[int, float, float], float],
    first: Sequence[int],
    options: ChainOptions,
    limits: Limits,
) -> ChainSchedule: ...

class ContestWant:
    def __init__(
        self,
        *,
        tensor: int,
        height: int,
        width: int,
        rows: Literal["tile", "depth", "whole"],
        columns: Literal["tile", "depth", "whole"],
        reach: int,
        late: bool,
    ) -> None: ...

class ContestDepth:
    def __init__(
        self, *, reduction: int, per_element: float, strips: float, padded: Sequence[float]
    ) -> None: ...

class ContestSubgraph:
    def __init__(
        self,
        *,
        height: int,
        width: int,
        once: float,
        late: float,
        depths: Sequence[ContestDepth],
        wants: Sequence[ContestWant],
        least_width: Sequence[int],
        least_height: Sequence[int],
        most_depth: int,
        stored: int,
        held: int,
        room: int,
        bandwidth: float,
        native: Sequence[int],
        kept: bool,
    ) -> None: ...

class ContestTile:
    @property
    def latency(self) -> float: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def by_columns(self) -> bool: ...
    @property
    def from_right(self) -> bool: ...
    @property
    def from_bottom(self) -> bool: ...
    @property
    def turns(self) -> bool: ...

def contest_price(
    *, subgraph: ContestSubgraph, bound: bool, limit: float, seconds: float | None
) -> ContestTile: ...

class RowOperand:
    def __init__(self, *, maker: int, windows: Sequence[tuple[int, int]], distance: int) -> None: ...

class RowOperator:
    def __init__(
        self, *, steps: int, bytes: int, kept: bool, held: bool, anew: bool, operands: Sequence[RowOperand]
    ) -> None: ...

class RowRules:
    def __init__(self, *, free_steps: bool, valley: bool, cuts: bool) -> None: ...

class RowRectangle:
    def __init__(self, *, made: int, read: int, bytes: int) -> None: ...

class RowPair:
    def __init__(self, *, under: int, over: int, distance: int) -> None: ...

class RowsFound:
    @property
    def peak(self) -> int: ...
    @property
    def bound(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def states(self) -> int: ...
    @property
    def binding(self) -> int: ...
    @property
    def binding_step(self) -> int: ...
    @property
    def schedule(self) -> list[int]: ...

class RowsPacked:
    @property
    def addresses(self) -> list[int]: ...
    @property
    def extent(self) -> int: ...

def rows_search(
    *,
    operators: Sequence[RowOperator],
    share: bool,
    rules: RowRules,
    most_states: int,
    most_moves: int,
    below: int,
    limits: Limits,
) -> RowsFound: ...
def rows_pack(
    *,
    rows: Sequence[RowRectangle],
    pairs: Sequence[RowPair],
    bottom: Sequence[int],
    top: Sequence[int],
    alignment: int,
    least: int,
    tries: int,
    limits: Limits,
) -> RowsPacked: ...
def rows_least(*, operators: Sequence[RowOperator], share: bool, maker: int, made: int) -> int: ...
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
