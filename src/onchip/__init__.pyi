"""Written by scripts/stubs.py from the code; do not edit."""

# ruff: noqa

from typing import Literal

from collections.abc import Mapping
from collections.abc import Sequence
from onchip.machines.board import Board
from onchip.machines.soc import SoC
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.result.microcontroller import Kernels
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.workload import Workload
from onchip.planners.fusion.energy import GroupEnergy
from onchip.planners.limits import Progress
from onchip.plans import Plan as PlanProgram
from onchip.readers import Source
from onchip.sweeps.spec import Spec
from pathlib import Path
from typing import Any
from onchip.api import Plan as Plan
from onchip.at_run_time import Prepared as Prepared
from onchip.base.errors import ChipError as ChipError
from onchip.base.errors import IllegalPlan as IllegalPlan
from onchip.base.errors import IllegalSchedule as IllegalSchedule
from onchip.base.errors import Infeasible as Infeasible
from onchip.base.errors import InputError as InputError
from onchip.base.errors import Mismatch as Mismatch
from onchip.base.errors import MissingExtra as MissingExtra
from onchip.base.errors import ModelError as ModelError
from onchip.base.errors import NegativeAnswer as NegativeAnswer
from onchip.base.errors import OnchipError as OnchipError
from onchip.base.errors import PlanFormatError as PlanFormatError
from onchip.base.errors import ProfileError as ProfileError
from onchip.base.errors import UsageError as UsageError
from onchip.by_length.session import Session as Session
from onchip.by_length.table import Lengths as Lengths
from onchip.comparison.comparison import Comparison as Comparison
from onchip.machines.chip import Chip as Chip
from onchip.microcontroller.result.board_fits import BoardFit as BoardFit
from onchip.microcontroller.result.microcontroller import Microcontroller as Microcontroller
from onchip.microcontroller.result.microcontroller_several import SeveralNetworks as SeveralNetworks
from onchip.multi_dnn.dynamic import DynamicScheduler as DynamicScheduler
from onchip.multi_dnn.dynamic import StaticScheduler as StaticScheduler
from onchip.multi_dnn.result.corunned import Corunned as Corunned
from onchip.network import Geometry as Geometry
from onchip.network import Network as Network
from onchip.network import Operator as Operator
from onchip.network import OperatorSpec as OperatorSpec
from onchip.network import Tensor as Tensor
from onchip.network import View as View
from onchip.results.branched import Branched as Branched
from onchip.results.fused import Fused as Fused
from onchip.sweeps.swept import Swept as Swept

__all__ = [
    "load",
    "chip",
    "plan",
    "fuse",
    "branches",
    "corun",
    "mcu",
    "mcu_fit",
    "mcu_several",
    "compare",
    "sweep",
    "lengths",
    "session",
    "read",
    "prepare_fusion",
    "fusion_energy",
    "workload",
    "Plan",
    "Fused",
    "Branched",
    "Corunned",
    "Microcontroller",
    "SeveralNetworks",
    "BoardFit",
    "Comparison",
    "Swept",
    "Lengths",
    "Session",
    "Prepared",
    "DynamicScheduler",
    "StaticScheduler",
    "Chip",
    "Network",
    "Operator",
    "OperatorSpec",
    "Tensor",
    "View",
    "Geometry",
    "OnchipError",
    "InputError",
    "UsageError",
    "ModelError",
    "ChipError",
    "PlanFormatError",
    "ProfileError",
    "MissingExtra",
    "NegativeAnswer",
    "Infeasible",
    "IllegalPlan",
    "IllegalSchedule",
    "Mismatch",
]

def load(
    model: str | Path,
    *,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
) -> Source:
    """Read a network: `zoo:NAME`, an `.onnx` or `.tflite` file, or a network as `.json`.

    `options` are the fields of `ReadOptions` (granularity, dtype, dims, ...). The result has the `network`
    that planners see. Raises `ModelError` naming the file, the node and the reason.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    """

def chip(
    name_or_path: str | Path = "generic",
) -> Chip:
    """Return a built-in chip by name, or one from a TOML file by path."""

def plan(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    method: str = "best",
    level: str | None = None,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    weights: Literal["streamed", "resident"] = "streamed",
    order: Literal["free", "given", "minpeak"] = "free",
    in_place: bool = False,
    time_limit: float | None = None,
    memory_limit: int = 2147483648,
    strategy: Literal["exact", "dnc", "beam", "greedy", "ilp"] = "exact",
    beam_width: int = 100,
    solver: Literal["cp-sat", "highs", "scip"] = "cp-sat",
    inputs: Literal["sensible", "literal"] = "sensible",
    moves: bool = True,
    pin: tuple[str, ...] = (),
    state: tuple[str, ...] = (),
    capacity: int | None = None,
    seed: int = 0,
    objective: Literal["traffic", "peak", "latency", "energy", "edp"] = "traffic",
    fuse: bool | None = None,
    overlap: bool = True,
    nests: bool = True,
    concat_views: bool = True,
    dram_tiles: bool = True,
    recompute: bool = False,
    channel_tile: int | None = None,
    batch_weights: Literal["per-image", "held", "shared"] = "per-image",
    isoa: Literal["channelwise", "paper", "off", "sums"] = "channelwise",
    halo: Literal["auto", "lines", "paper", "recompute"] = "auto",
    residency: Literal["partial", "all", "none"] = "partial",
    blocks: Literal["best", "fallback"] = "best",
    weight_tile: bool = True,
    search: Literal["exact", "algorithm1", "algorithm1-top-down", "online"] = "exact",
    space: Literal["full", "dnnvm", "efficient-s"] = "full",
    rules: Literal["paper", "ours"] = "paper",
    long_skip: int = 8,
) -> Plan:
    """Give the best plan of a network that a chip can run: the one that moves the fewest bytes.

    Operators run fused, in tiles, where that moves less than keeping tensors whole; `fuse` and `method` ask
    for one of both, or for a paper's method. `budget` is bytes, a size like "512KiB", or "MR" (the least in
    which every operator runs whole), "MP" (the least peak of any order: without spills and reloads no plan
    needs less) or "MH" (halfway between them); without it, the chip's own scratchpad, or for the objective
    `peak` what it takes. Of a chip with several memories it is "sram=256KiB,psram=8MiB", and those not named
    are as large as the chip says; tiles are then planned for one of them, `level`, and whole operators over
    all. `options` are the fields of `ReadOptions` (when `model` is to be read), `MethodOptions`,
    `PlacementOptions`, `JointOptions` and `PaperOptions`. What is to be said beside the plan, and is not in
    its file, stands in its `notes`.

    >>> import onchip
    >>> made = onchip.plan("zoo:squeezenet1_0", budget="64KiB")
    >>> made.result.status, made.check() == made.result
    ('optimal', True)

    Raises `Infeasible` naming the operator that does not fit, `ModelError`, `ChipError` or `UsageError`.

    Options:

    - `method` (default 'best'): `best`: the best plan that the chip can run, fused in tiles where that moves less. Or one method alone: `joint` (tiles and whole tensors as one search: --fuse), `cosma` (tensors whole: --no-fuse), `optimus` (fused groups), `simple` (modules of branches), or a planner of your own by its name.
    - `level` (default None): On a chip with several memories: the one that tiles are planned for. Without it, the innermost that operators read. The next one out takes DRAM's part.
    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `weights` (default 'streamed'): `streamed`: weights take no scratchpad; `resident`: an operator's weights are held while it runs.
    - `order` (default 'free'): `free` decides the order too, `given` keeps the network's, `minpeak` fixes the one of lowest peak.
    - `in_place` (default False): Element-wise operators may write their output over an input that nobody reads afterwards (strategies `exact`, `dnc`, `beam`).
    - `time_limit` (default None): Seconds in all, reading included; when they are over, the plan is the best so far, with its gap.
    - `memory_limit` (default 2147483648): Bytes that the search may hold; when they are full, the plan is the best so far, with its gap.
    - `strategy` (default 'exact'): `exact`: complete search, then addresses. `dnc`: divide at break nodes, solve the pieces exactly. `beam`: a beam search. `greedy`: one pass, no search. `ilp`: COSMA's integer program, for small networks. All state a proved lower bound.
    - `beam_width` (default 100): States that strategy `beam` keeps of each length.
    - `solver` (default 'cp-sat'): What solves the program of strategy `ilp`; the other strategies need none.
    - `inputs` (default 'sensible'): `sensible`: a network input lies in DRAM, so evicting it is free. `literal`: its first spill is charged, as COSMA's eq. 12 says (strategies `exact` and `ilp`).
    - `moves` (default True): On a chip with several memories tensors may move from one to another, or (`--no-moves`) stay in one.
    - `pin` (default ()): Keep TENSOR on chip from its creation to its last reader, in one place; or `weights:OPERATOR` for good. With @ADDRESS behind it there. May be given several times.
    - `state` (default ()): INPUT=OUTPUT[@ADDRESS]: the input is on chip at the start, and the output ends in its place for the next inference. An output that is the input with new rows behind it is a cache: it grows in a buffer of its own; =OUTPUT begins one. A `*` in both stands for the same text. May be given several times.
    - `capacity` (default None): Rows that the buffers of caches given by --state have room for; without it, those that are there after this inference.
    - `seed` (default 0): Breaks ties: another seed may give another plan, as good.
    - `objective` (default 'traffic'): `traffic`: fewest DRAM bytes; `energy`: least energy; `latency`: shortest inference, with prefetching; `edp`: least product of energy and latency, with --fuse; `peak`: least scratchpad without any spill or reload.
    - `fuse` (default None): Let operators run fused, in tiles (fusion and placement as one search), or keep all tensors whole. Without either, `plan` gives the better one, and others keep tensors whole.
    - `overlap` (default True): With tiles: an output may take the place of an input that dies with its operator, where that is proved safe.
    - `nests` (default True): With tiles: neighbouring operators may run as a nest of loops over any of their axes, and groups in bands, blocks and boxes are written as nests where that costs nothing.
    - `concat_views` (default True): With tiles: the operands of a concat may lie side by side in DRAM, where they are its output.
    - `dram_tiles` (default True): With tiles, for the least time: tensors between groups may lie in DRAM in tiles that their maker and their readers move, and not row by row.
    - `recompute` (default False): With tiles: an operator may run again for a later reader instead of being stored, or kept, for it, where fewer bytes cross so.
    - `channel_tile` (default None): With tiles: channels that are processed at a time (T_c); without, the chip's.
    - `batch_weights` (default 'per-image'): `per-image`: refilled weights are fetched for every band of every image, and whole images run together where several fit; `held`: so do bands, with line buffers for every image; `shared`: once per band or block for the whole batch, with the buffers of one image, as the paper counts (nothing can run that: figures only).
    - `isoa` (default 'channelwise'): Which tensors are held a few channels at a time. `channelwise`: neighbours may, where no channels are summed between them; `paper`: never neighbours (figures only); `off`: none; `sums`: whatever no sum forbids, in an order of passes or not (figures only).
    - `halo` (default 'auto'): Rows that neighbouring bands share. `lines`: as many as really overlap, in line buffers; `paper`: as eq. 4 of Optimus counts them; `recompute`: made anew by every band (figures only); `auto`: `paper` with --isoa paper, else `lines`.
    - `residency` (default 'partial'): Which operators of a group keep their weights on chip: the best choice, all or nothing, or none.
    - `blocks` (default 'best'): When an operator that runs alone does so in blocks of rows, columns and channels: where that moves less than bands of rows, or only where no band fits.
    - `weight_tile` (default True): Refilled weights take the scratchpad of one tile; without, none, as eq. 4 says (figures only).
    - `search` (default 'exact'): `exact`: the best of all partitions; `algorithm1`: the paper's, bottom up or top down; `online`: its fast variant.
    - `space` (default 'full'): Which groups are looked at: all, or only those that another fuser knows.
    - `rules` (default 'paper'): `paper`: Algorithms 1 to 6 to the letter; `ours`: the best of all branch orders, a module's input is given back after its last reader, a sum may be written over it, and layers outside modules hand on chip what fits. `ours` moves no more than `paper` in the whole network; in the modules alone it may.
    - `long_skip` (default 8): A connection around more layers than this is long: it goes through DRAM, and closes no module.
    """

def fuse(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    batch_weights: Literal["per-image", "held", "shared"] = "per-image",
    isoa: Literal["channelwise", "paper", "off", "sums"] = "channelwise",
    halo: Literal["auto", "lines", "paper", "recompute"] = "auto",
    residency: Literal["partial", "all", "none"] = "partial",
    blocks: Literal["best", "fallback"] = "best",
    weight_tile: bool = True,
    search: Literal["exact", "algorithm1", "algorithm1-top-down", "online"] = "exact",
    space: Literal["full", "dnnvm", "efficient-s"] = "full",
    channel_tile: int | None = None,
    time_limit: float | None = None,
    memory_limit: int = 2147483648,
) -> Fused:
    """Decide which operators of a network run as fused, tiled groups, with the fewest bytes to and from DRAM.

    `budget` is bytes or a size like "512KiB"; without it, the chip's own scratchpad. `options` are the fields
    of `ReadOptions` (when `model` is to be read: `batch` is one; the elements of a zoo network are the chip's
    unless `dtype` says otherwise) and `FusionOptions`.

    >>> import onchip
    >>> made = onchip.fuse("zoo:squeezenet1_0", "optimus", batch=4)
    >>> made.status, made.plan.check().dram_bytes == made.dram_bytes < made.baselines["none"]
    ('optimal', True)

    Raises `Infeasible` naming the operator that fits in no way, `ModelError`, `ChipError` or `UsageError`.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `batch_weights` (default 'per-image'): `per-image`: refilled weights are fetched for every band of every image, and whole images run together where several fit; `held`: so do bands, with line buffers for every image; `shared`: once per band or block for the whole batch, with the buffers of one image, as the paper counts (nothing can run that: figures only).
    - `isoa` (default 'channelwise'): Which tensors are held a few channels at a time. `channelwise`: neighbours may, where no channels are summed between them; `paper`: never neighbours (figures only); `off`: none; `sums`: whatever no sum forbids, in an order of passes or not (figures only).
    - `halo` (default 'auto'): Rows that neighbouring bands share. `lines`: as many as really overlap, in line buffers; `paper`: as eq. 4 of Optimus counts them; `recompute`: made anew by every band (figures only); `auto`: `paper` with --isoa paper, else `lines`.
    - `residency` (default 'partial'): Which operators of a group keep their weights on chip: the best choice, all or nothing, or none.
    - `blocks` (default 'best'): When an operator that runs alone does so in blocks of rows, columns and channels: where that moves less than bands of rows, or only where no band fits.
    - `weight_tile` (default True): Refilled weights take the scratchpad of one tile; without, none, as eq. 4 says (figures only).
    - `search` (default 'exact'): `exact`: the best of all partitions; `algorithm1`: the paper's, bottom up or top down; `online`: its fast variant.
    - `space` (default 'full'): Which groups are looked at: all, or only those that another fuser knows.
    - `channel_tile` (default None): Channels that are processed at a time (T_c); without, the chip's.
    - `time_limit` (default None): Seconds in all; when they are over, the result is the best so far, with its gap.
    - `memory_limit` (default 2147483648): Bytes of search states; when they are full, the result is the best so far, with its gap.
    """

def branches(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "exynos-npu",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    rules: Literal["paper", "ours"] = "paper",
    long_skip: int = 8,
) -> Branched:
    """Find a network's modules of branches and keep their feature maps on chip, by the simple method.

    `budget` is bytes or a size like "512KiB"; without it, the chip's own scratchpad. `options` are the fields
    of `ReadOptions` (when `model` is to be read; the elements of a zoo network are the chip's unless `dtype`
    says otherwise) and `BranchOptions`. Layers outside modules are streamed. A network without any module has
    a plan, too, and a table without rows. Source: Kim et al., A Simple Method, Algorithms 1 to 6.

    >>> import onchip
    >>> made = onchip.branches("zoo:inception_v3")
    >>> len(made.rows), made.total.naive_reads, made.total.reads, made.total.writes
    (11, 100, 1, 3)

    Raises `Infeasible` naming the operator that fits in no way, `ModelError`, `ChipError` or `UsageError`.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `rules` (default 'paper'): `paper`: Algorithms 1 to 6 to the letter; `ours`: the best of all branch orders, a module's input is given back after its last reader, a sum may be written over it, and layers outside modules hand on chip what fits. `ours` moves no more than `paper` in the whole network; in the modules alone it may.
    - `long_skip` (default 8): A connection around more layers than this is long: it goes through DRAM, and closes no module.
    """

def corun(
    models: Sequence[str | Path | Source | Network | Profile],
    soc: str | Path | SoC = "xavier-agx",
    objective: str = "latency",
    contention: str | None = None,
    *,
    progress: Progress | None = None,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    profile: tuple[str, ...] = (),
    most_groups: int = 10,
    iterations: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    frames: int = 1,
    pipelined: bool = True,
    in_flight: int | None = None,
    any_order: bool = True,
    prove: bool = True,
    switches: int | None = None,
    delays: bool = False,
    tries: int = 20000,
    nodes: int = 200000,
    time_limit: float | None = None,
    seed: int = 0,
) -> Corunned:
    """Schedule several networks at once on the processing units of one SoC that share its memory.

    A model is what `load` takes, a network, or a `Profile` or its file; the same may stand there twice.
    `objective` is `latency` (of the slowest network), `throughput` (frames per second) or `rates` (sum of
    1 / latency); `contention` a set of the SoC's constants (None: the SoC's own choice, `light` for the
    built-in boards). `options` are the fields of `ReadOptions`, `CorunOptions` and `SolveOptions`. GoogleNet
    from the zoo on xavier-agx has the profile that was measured; others are synthetic and say so. Source:
    Dagli and Belviranli, Shared Memory-contention-aware Concurrent DNN Execution (HaX-CoNN).

    >>> import onchip
    >>> made = onchip.corun(["zoo:googlenet", "zoo:googlenet"])
    >>> made.status, made.makespan_ms < 3.598 < made.baselines["gpu alone"]
    ('optimal', True)

    Raises `ProfileError`, `ChipError`, `ModelError` or `UsageError`.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `contention` (default None): The set of constants of the contention model: light, medium, heavy or none, or one of the SoC's file [default: the SoC's own, light for the built-in boards].
    - `profile` (default ()): A measured profile, FILE.csv or FILE.json: MODEL=FILE, or just FILE where one model is given. `synthetic` is a roofline even for what the paper measured, `measured` runs each network on this machine, as is done for the SoC `local`.
    - `most_groups` (default 10): Layer groups of a network whose profile is made here, at most.
    - `iterations` (default ()): NETWORK:TIMES, counted from 1: how often a network runs in each frame, to balance short ones with long ones.
    - `after` (default ()): LATER:EARLIER, counted from 1: a network that begins a frame only when another has finished it.
    - `frames` (default 1): Frames of a stream that are scheduled; throughput is that of the second half of them.
    - `pipelined` (default True): Whether a network may begin its next frame before the others have finished this one.
    - `in_flight` (default None): Frames of a stream that may be under way at once, 0 for any number [default: as many as there are networks, at least 2].
    - `any_order` (default True): Look at every order on every unit; off: only schedules in which no unit waits while a group is ready.
    - `prove` (default True): Prove the best of two chains, as far as memory allows.
    - `switches` (default None): Look only at mappings in which a run changes its unit at most so often; one frame only.
    - `delays` (default False): Insert idle time where it pays.
    - `tries` (default 20000): Schedules that local search plays at most.
    - `nodes` (default 200000): States that branch and bound looks at, at most; 0 leaves it out.
    - `time_limit` (default None): Seconds for the search. Baselines come on top: no other is begun when they took as long.
    - `seed` (default 0): Breaks ties: another seed may give another schedule.
    """

def mcu(
    model: str | Path | Int8Model,
    board: str | Path | Board = "nucleo-f411re",
    ram: str | int | None = None,
    *,
    plan: str | Path | PlanProgram | None = None,
    kernels: Kernels = "auto",
    compare: bool = False,
    run: bool = False,
    runs: int = 3,
    seed: int = 0,
    run_limit: float | None = None,
    inputs: str | Path | None = None,
    labels: str | Path | None = None,
    reentrant: bool = False,
    progress: Progress | None = None,
    input: Literal["held", "once", "again"] = "held",
    objective: Literal["free", "once", "least"] = "free",
    time_limit: float | None = None,
    method: Literal["best", "chains", "rows"] = "best",
) -> Microcontroller:
    """Plan an int8 network onto a microcontroller and write its C; run it on the emulated core if asked to.

    `model` is a `.tflite` file, `made:NAME` (a network made from a seed), or one read already. `ram` is bytes
    or a size like "24KiB", stack and all; without it, the board's. `plan` is a plan for this network, or its
    file, instead of one made here. `kernels` are `specialised` on the layers' shapes, `shared` by layers of
    all shapes, or specialised but for those that must be shared for the code to fit the flash. `run` builds
    the program, runs it on `runs` random inputs of `seed` behind a guard and compares every byte; the
    emulator is stopped after `run_limit` seconds, by default ample for the network's work. `compare` adds
    other methods' needs for the same network (`beside` of the result). `inputs` is a `.npy` file of inputs to
    compute (`tried` of the result), with `run` those that run, and `labels` one of their classes. The C of a
    `reentrant` network writes no variable: the caller has an array for each instance. `options`
    are the fields of `SegmentOptions`. Without a cross compiler the figures are those of the plan alone.

    Raises `Infeasible` naming the layer that does not fit, `ModelError`, `ChipError`, `UsageError`, and with
    `run` `MissingTool` or `EmulationFailed`. What a board lacks for the linked program is in the result.

    Options:

    - `input` (default 'held'): The input image: `held` in RAM, fetched `once` row by row, or fetched `again` where it is needed again.
    - `objective` (default 'free'): `free`: the fewest bytes that cost no instructions, and where those are too many the fewest instructions that fit; `once`: the fewest bytes with no row made twice; `least`: the fewest bytes.
    - `time_limit` (default None): Seconds for the search among plans that do work anew; the best so far is taken.
    - `method` (default 'best'): `chains`: groups of layers in rings of rows, or else whole tensors; `rows`: an address for each row of every map, in strips or made twice where that is needed to fit; `best`: the better of the two.
    """

def mcu_fit(
    model: str | Path | Int8Model,
    boards: Sequence[str | Path | Board] | None = None,
    *,
    kernels: Kernels = "auto",
    progress: Progress | None = None,
    input: Literal["held", "once", "again"] = "held",
    objective: Literal["free", "once", "least"] = "free",
    time_limit: float | None = None,
    method: Literal["best", "chains", "rows"] = "best",
) -> tuple[BoardFit, ...]:
    """Return RAM, flash and time of an int8 network on every board: the built-in ones, or those named.

    The network is planned for each board's RAM; every program is built, linked and counted once on the
    emulated core, where there are a cross compiler and an emulator for it, and else reckoned. `options` are
    the fields of `SegmentOptions`. Raises `ModelError`, `ChipError`, `UsageError`.

    Options:

    - `input` (default 'held'): The input image: `held` in RAM, fetched `once` row by row, or fetched `again` where it is needed again.
    - `objective` (default 'free'): `free`: the fewest bytes that cost no instructions, and where those are too many the fewest instructions that fit; `once`: the fewest bytes with no row made twice; `least`: the fewest bytes.
    - `time_limit` (default None): Seconds for the search among plans that do work anew; the best so far is taken.
    - `method` (default 'best'): `chains`: groups of layers in rings of rows, or else whole tensors; `rows`: an address for each row of every map, in strips or made twice where that is needed to fit; `best`: the better of the two.
    """

def mcu_several(
    models: Sequence[str | Path | Int8Model],
    board: str | Path | Board = "nucleo-f411re",
    ram: str | int | None = None,
    *,
    name: str = "networks",
    kernels: Kernels = "auto",
    run: bool = False,
    runs: int = 3,
    seed: int = 0,
    run_limit: float | None = None,
    reentrant: bool = False,
    progress: Progress | None = None,
    input: Literal["held", "once", "again"] = "held",
    objective: Literal["free", "once", "least"] = "free",
    time_limit: float | None = None,
    method: Literal["best", "chains", "rows"] = "best",
) -> SeveralNetworks:
    """Plan several int8 networks into one array of a microcontroller: they run one behind the other.

    Arguments are as in `mcu`. The array holds the activations of whichever network runs, and in places of
    their own the states that networks keep between inferences. `name` is the project's in C. `run` runs
    `runs` rounds on the emulated core, every network once a round, and compares every byte.

    Raises as `mcu` does.

    Options:

    - `input` (default 'held'): The input image: `held` in RAM, fetched `once` row by row, or fetched `again` where it is needed again.
    - `objective` (default 'free'): `free`: the fewest bytes that cost no instructions, and where those are too many the fewest instructions that fit; `once`: the fewest bytes with no row made twice; `least`: the fewest bytes.
    - `time_limit` (default None): Seconds for the search among plans that do work anew; the best so far is taken.
    - `method` (default 'best'): `chains`: groups of layers in rings of rows, or else whole tensors; `rows`: an address for each row of every map, in strips or made twice where that is needed to fit; `best`: the better of the two.
    """

def compare(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    strategies: str = "exact",
    schemes: str = "all",
    planners: str = "all",
    weights: Literal["streamed", "resident"] = "streamed",
    time_limit: float | None = 10.0,
    memory_limit: int = 2147483648,
    seed: int = 0,
) -> Comparison:
    """Plan a network in several ways and set the figures side by side: strategies, and what others do.

    Arguments as in `plan`; `options` are the fields of `ReadOptions` and `CompareOptions` (`strategies`,
    `schemes`, `weights`, `time_limit`, ...). Every row with a plan holds it, certified.

    >>> import onchip
    >>> rows = onchip.compare("zoo:resnet50", budget="MR", schemes="given-belady").rows
    >>> {row.scheme: row.status for row in rows if not row.traffic_bytes}
    {'joint': 'optimal', 'branches': 'optimal', 'exact': 'optimal'}

    Raises `Infeasible` when an operator does not fit, `ModelError`, `ChipError` or `UsageError`.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `strategies` (default 'exact'): Placement strategies, with commas between; `exact:given` or `exact:minpeak` fix the order.
    - `schemes` (default 'all'): Baselines, with commas between: given-belady, given-greedy, minpeak-belady, minpeak-greedy, tflm, executorch; or `all`, or `none`.
    - `planners` (default 'all'): onchip's other planners, with commas between: joint, fusion, branches; or `all`, or `none`.
    - `weights` (default 'streamed'): Of strategies and baselines. `streamed`: weights take no scratchpad; `resident`: an operator's weights are held while it runs.
    - `time_limit` (default 10.0): Seconds for each row; when they are over, the row is the best so far, and its gap says how far above the least it may be.
    - `memory_limit` (default 2147483648): Bytes that searches may hold, of each row.
    - `seed` (default 0): Breaks ties: another seed may give another plan, as good.
    """

def sweep(
    spec: str | Path | Mapping[str, Any] | Spec,
    folder: str | Path | None = None,
    *,
    progress: Progress | None = None,
    jobs: int = 0,
    dask: str | None = None,
    dask_tls: tuple[str, ...] = (),
    time_limit: float | None = None,
    retry: bool = False,
    trust: tuple[str, ...] = (),
) -> Swept:
    """Plan many points, networks x chips x planners x buffer sizes, and find the gain of a larger buffer.

    `spec` is a TOML file, or the table that one holds (docs/sweep.md); `folder` keeps the journal, the table
    (CSV, and Parquet with pyarrow) and the page; without it, the file's name with `.sweep`. What `folder` has
    an answer for is not computed again. `options` are the fields of `SweepOptions`. After Ctrl-C or the time
    limit the result has the points so far, and the same call goes on.

    >>> import onchip, tempfile
    >>> asked = {"networks": "zoo:squeezenet1_0", "planners": "fuse", "chips": "optimus",
    ...          "budgets": [{"from": "32KiB", "to": "512KiB", "factor": 2}]}
    >>> made = onchip.sweep(asked, tempfile.mkdtemp(), jobs=1)
    >>> len(made.rows), made.complete, made.curves[0].knee.budget
    (5, True, 262144)

    Raises `UsageError` naming the spec and its key, `InputError` for a folder that cannot be used or is in
    use, `WorkerLost` when the Dask cluster is gone.

    Options:

    - `jobs` (default 0): Worker processes on this machine; 0: one for each core.
    - `dask` (default None): Address of a Dask scheduler, HOST:PORT: its workers compute the points, each of which has onchip.
    - `dask_tls` (default ()): Files for TLS with --dask, three times: the authority's certificate, one's own certificate, its key.
    - `time_limit` (default None): Seconds in all; when they are over, the same command goes on where it was.
    - `retry` (default False): Try the points again that failed in an earlier run.
    - `trust` (default ()): Read this network of the spec, which may run code: `module:function` or `.pt2`; may be repeated.
    """

def lengths(
    model: str | Path,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    length: str = "",
    slack: float = 0.0,
    read: int = 256,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    weights: Literal["streamed", "resident"] = "streamed",
    order: Literal["free", "given", "minpeak"] = "free",
    in_place: bool = False,
    time_limit: float | None = None,
    memory_limit: int = 2147483648,
    strategy: Literal["exact", "dnc", "beam", "greedy", "ilp"] = "exact",
    beam_width: int = 100,
    solver: Literal["cp-sat", "highs", "scip"] = "cp-sat",
    inputs: Literal["sensible", "literal"] = "sensible",
    moves: bool = True,
    pin: tuple[str, ...] = (),
    state: tuple[str, ...] = (),
    capacity: int | None = None,
    seed: int = 0,
    objective: Literal["traffic", "peak", "latency", "energy", "edp"] = "traffic",
    fuse: bool | None = None,
    overlap: bool = True,
    nests: bool = True,
    concat_views: bool = True,
    dram_tiles: bool = True,
    recompute: bool = False,
    channel_tile: int | None = None,
) -> Lengths:
    """Plan a network for every length of an open dimension, and find where the best plan changes.

    `model` is a file with a dimension that `length` names, as "past=1..2048"; `budget` is bytes or a size.
    One plan serves a row of lengths: the same instructions at the same addresses. That it is the best at each
    is proved from the ends of the row, or checked at every length; every row says which. With `fuse=True`
    operators may run fused, and every length is checked. `save` writes the table for a runtime, and the
    plans.

    Raises `Infeasible` where the first length has no plan, `ModelError`, `ChipError` or `UsageError`.

    Options:

    - `length` (default ''): The open dimension and its lengths, `past=1..2048`.
    - `slack` (default 0.0): Percent of DRAM bytes that a plan may move beyond the best of a length: fewer plans for all.
    - `read` (default 256): The most lengths at which the model is read to see that its tensors grow evenly. Proofs name it.
    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `weights` (default 'streamed'): `streamed`: weights take no scratchpad; `resident`: an operator's weights are held while it runs.
    - `order` (default 'free'): `free` decides the order too, `given` keeps the network's, `minpeak` fixes the one of lowest peak.
    - `in_place` (default False): Element-wise operators may write their output over an input that nobody reads afterwards (strategies `exact`, `dnc`, `beam`).
    - `time_limit` (default None): Seconds in all, reading included; when they are over, the plan is the best so far, with its gap.
    - `memory_limit` (default 2147483648): Bytes that the search may hold; when they are full, the plan is the best so far, with its gap.
    - `strategy` (default 'exact'): `exact`: complete search, then addresses. `dnc`: divide at break nodes, solve the pieces exactly. `beam`: a beam search. `greedy`: one pass, no search. `ilp`: COSMA's integer program, for small networks. All state a proved lower bound.
    - `beam_width` (default 100): States that strategy `beam` keeps of each length.
    - `solver` (default 'cp-sat'): What solves the program of strategy `ilp`; the other strategies need none.
    - `inputs` (default 'sensible'): `sensible`: a network input lies in DRAM, so evicting it is free. `literal`: its first spill is charged, as COSMA's eq. 12 says (strategies `exact` and `ilp`).
    - `moves` (default True): On a chip with several memories tensors may move from one to another, or (`--no-moves`) stay in one.
    - `pin` (default ()): Keep TENSOR on chip from its creation to its last reader, in one place; or `weights:OPERATOR` for good. With @ADDRESS behind it there. May be given several times.
    - `state` (default ()): INPUT=OUTPUT[@ADDRESS]: the input is on chip at the start, and the output ends in its place for the next inference. An output that is the input with new rows behind it is a cache: it grows in a buffer of its own; =OUTPUT begins one. A `*` in both stands for the same text. May be given several times.
    - `capacity` (default None): Rows that the buffers of caches given by --state have room for; without it, those that are there after this inference.
    - `seed` (default 0): Breaks ties: another seed may give another plan, as good.
    - `objective` (default 'traffic'): `traffic`: fewest DRAM bytes; `energy`: least energy; `latency`: shortest inference, with prefetching; `edp`: least product of energy and latency, with --fuse; `peak`: least scratchpad without any spill or reload.
    - `fuse` (default None): Let operators run fused, in tiles (fusion and placement as one search), or keep all tensors whole. Without either, `plan` gives the better one, and others keep tensors whole.
    - `overlap` (default True): With tiles: an output may take the place of an input that dies with its operator, where that is proved safe.
    - `nests` (default True): With tiles: neighbouring operators may run as a nest of loops over any of their axes, and groups in bands, blocks and boxes are written as nests where that costs nothing.
    - `concat_views` (default True): With tiles: the operands of a concat may lie side by side in DRAM, where they are its output.
    - `dram_tiles` (default True): With tiles, for the least time: tensors between groups may lie in DRAM in tiles that their maker and their readers move, and not row by row.
    - `recompute` (default False): With tiles: an operator may run again for a later reader instead of being stored, or kept, for it, where fewer bytes cross so.
    - `channel_tile` (default None): With tiles: channels that are processed at a time (T_c); without, the chip's.
    """

def session(
    prompt: str | Path,
    step: str | Path,
    chip: str | Path | Chip = "generic",
    budget: str | int | None = None,
    *,
    progress: Progress | None = None,
    prompt_dims: str = "",
    begins: tuple[str, ...] = (),
    length: str = "",
    slack: float = 0.0,
    read: int = 256,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    weights: Literal["streamed", "resident"] = "streamed",
    order: Literal["free", "given", "minpeak"] = "free",
    in_place: bool = False,
    time_limit: float | None = None,
    memory_limit: int = 2147483648,
    strategy: Literal["exact", "dnc", "beam", "greedy", "ilp"] = "exact",
    beam_width: int = 100,
    solver: Literal["cp-sat", "highs", "scip"] = "cp-sat",
    inputs: Literal["sensible", "literal"] = "sensible",
    moves: bool = True,
    pin: tuple[str, ...] = (),
    state: tuple[str, ...] = (),
    capacity: int | None = None,
    seed: int = 0,
    objective: Literal["traffic", "peak", "latency", "energy", "edp"] = "traffic",
    fuse: bool | None = None,
    overlap: bool = True,
    nests: bool = True,
    concat_views: bool = True,
    dram_tiles: bool = True,
    recompute: bool = False,
    channel_tile: int | None = None,
) -> Session:
    """Plan a prompt and the steps behind it into one arena, with the caches on chip at one place.

    `prompt` makes the caches that `state` names, `step` appends to them; both are files. `length` names the
    step's open dimension and its lengths, the first of which is what the prompt leaves; `prompt_dims` are
    the prompt's dimensions; with `fuse=True` its operators may run fused, in tiles. The other options hold
    for both. The steps are planned as by `lengths`. `check` proves that the plans follow each other, `run`
    executes them in turn, `save` writes them.

    Raises `Infeasible` naming the caches that do not fit, `ModelError`, `ChipError` or `UsageError`.

    Options:

    - `prompt_dims` (default ''): Values for symbolic dimensions of the prompt, `words=40`; `--dims` and `--length` are the steps'.
    - `begins` (default ()): Outputs of the prompt that begin the caches, in the order of --state; without, those of the same names as the steps'. May be given several times.
    - `length` (default ''): The open dimension and its lengths, `past=1..2048`.
    - `slack` (default 0.0): Percent of DRAM bytes that a plan may move beyond the best of a length: fewer plans for all.
    - `read` (default 256): The most lengths at which the model is read to see that its tensors grow evenly. Proofs name it.
    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `weights` (default 'streamed'): `streamed`: weights take no scratchpad; `resident`: an operator's weights are held while it runs.
    - `order` (default 'free'): `free` decides the order too, `given` keeps the network's, `minpeak` fixes the one of lowest peak.
    - `in_place` (default False): Element-wise operators may write their output over an input that nobody reads afterwards (strategies `exact`, `dnc`, `beam`).
    - `time_limit` (default None): Seconds in all, reading included; when they are over, the plan is the best so far, with its gap.
    - `memory_limit` (default 2147483648): Bytes that the search may hold; when they are full, the plan is the best so far, with its gap.
    - `strategy` (default 'exact'): `exact`: complete search, then addresses. `dnc`: divide at break nodes, solve the pieces exactly. `beam`: a beam search. `greedy`: one pass, no search. `ilp`: COSMA's integer program, for small networks. All state a proved lower bound.
    - `beam_width` (default 100): States that strategy `beam` keeps of each length.
    - `solver` (default 'cp-sat'): What solves the program of strategy `ilp`; the other strategies need none.
    - `inputs` (default 'sensible'): `sensible`: a network input lies in DRAM, so evicting it is free. `literal`: its first spill is charged, as COSMA's eq. 12 says (strategies `exact` and `ilp`).
    - `moves` (default True): On a chip with several memories tensors may move from one to another, or (`--no-moves`) stay in one.
    - `pin` (default ()): Keep TENSOR on chip from its creation to its last reader, in one place; or `weights:OPERATOR` for good. With @ADDRESS behind it there. May be given several times.
    - `state` (default ()): INPUT=OUTPUT[@ADDRESS]: the input is on chip at the start, and the output ends in its place for the next inference. An output that is the input with new rows behind it is a cache: it grows in a buffer of its own; =OUTPUT begins one. A `*` in both stands for the same text. May be given several times.
    - `capacity` (default None): Rows that the buffers of caches given by --state have room for; without it, those that are there after this inference.
    - `seed` (default 0): Breaks ties: another seed may give another plan, as good.
    - `objective` (default 'traffic'): `traffic`: fewest DRAM bytes; `energy`: least energy; `latency`: shortest inference, with prefetching; `edp`: least product of energy and latency, with --fuse; `peak`: least scratchpad without any spill or reload.
    - `fuse` (default None): Let operators run fused, in tiles (fusion and placement as one search), or keep all tensors whole. Without either, `plan` gives the better one, and others keep tensors whole.
    - `overlap` (default True): With tiles: an output may take the place of an input that dies with its operator, where that is proved safe.
    - `nests` (default True): With tiles: neighbouring operators may run as a nest of loops over any of their axes, and groups in bands, blocks and boxes are written as nests where that costs nothing.
    - `concat_views` (default True): With tiles: the operands of a concat may lie side by side in DRAM, where they are its output.
    - `dram_tiles` (default True): With tiles, for the least time: tensors between groups may lie in DRAM in tiles that their maker and their readers move, and not row by row.
    - `recompute` (default False): With tiles: an operator may run again for a later reader instead of being stored, or kept, for it, where fewer bytes cross so.
    - `channel_tile` (default None): With tiles: channels that are processed at a time (T_c); without, the chip's.
    """

def read(
    path: str | Path,
) -> Plan:
    """Read a plan file, JSON or text."""

def prepare_fusion(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "generic",
    most: str | int | None = None,
    *,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    batch_weights: Literal["per-image", "held", "shared"] = "per-image",
    isoa: Literal["channelwise", "paper", "off", "sums"] = "channelwise",
    halo: Literal["auto", "lines", "paper", "recompute"] = "auto",
    residency: Literal["partial", "all", "none"] = "partial",
    blocks: Literal["best", "fallback"] = "best",
    weight_tile: bool = True,
    search: Literal["exact", "algorithm1", "algorithm1-top-down", "online"] = "exact",
    space: Literal["full", "dnnvm", "efficient-s"] = "full",
    channel_tile: int | None = None,
    time_limit: float | None = None,
    memory_limit: int = 2147483648,
) -> Prepared:
    """Prepare a network for a chip, so that each buffer size is then fused for in milliseconds.

    `most` is the largest budget that will be asked for: bytes or a size like "512KiB"; without it the chip's
    own scratchpad. `options` are the fields of `ReadOptions` and `FusionOptions`; `search` is always
    `online`. Source: Optimus (Cai, Wang, Zhang), section 6, Algorithm 3.

    >>> import onchip
    >>> prepared = onchip.prepare_fusion("zoo:squeezenet1_0", "optimus")
    >>> large, small = prepared.fuse("128KiB"), prepared.fuse("64KiB")
    >>> large.plan.check().dram_bytes == large.dram_bytes < small.dram_bytes
    True

    Raises `ModelError`, `ChipError`, `UsageError`, or `Infeasible` naming the operator that fits in no way.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `batch_weights` (default 'per-image'): `per-image`: refilled weights are fetched for every band of every image, and whole images run together where several fit; `held`: so do bands, with line buffers for every image; `shared`: once per band or block for the whole batch, with the buffers of one image, as the paper counts (nothing can run that: figures only).
    - `isoa` (default 'channelwise'): Which tensors are held a few channels at a time. `channelwise`: neighbours may, where no channels are summed between them; `paper`: never neighbours (figures only); `off`: none; `sums`: whatever no sum forbids, in an order of passes or not (figures only).
    - `halo` (default 'auto'): Rows that neighbouring bands share. `lines`: as many as really overlap, in line buffers; `paper`: as eq. 4 of Optimus counts them; `recompute`: made anew by every band (figures only); `auto`: `paper` with --isoa paper, else `lines`.
    - `residency` (default 'partial'): Which operators of a group keep their weights on chip: the best choice, all or nothing, or none.
    - `blocks` (default 'best'): When an operator that runs alone does so in blocks of rows, columns and channels: where that moves less than bands of rows, or only where no band fits.
    - `weight_tile` (default True): Refilled weights take the scratchpad of one tile; without, none, as eq. 4 says (figures only).
    - `search` (default 'exact'): `exact`: the best of all partitions; `algorithm1`: the paper's, bottom up or top down; `online`: its fast variant.
    - `space` (default 'full'): Which groups are looked at: all, or only those that another fuser knows.
    - `channel_tile` (default None): Channels that are processed at a time (T_c); without, the chip's.
    - `time_limit` (default None): Seconds in all; when they are over, the result is the best so far, with its gap.
    - `memory_limit` (default 2147483648): Bytes of search states; when they are full, the result is the best so far, with its gap.
    """

def fusion_energy(
    model: str | Path | Source | Network,
    chip: str | Path | Chip = "optimus",
    budget: str | int | None = None,
    *,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    batch_weights: Literal["per-image", "held", "shared"] = "per-image",
    isoa: Literal["channelwise", "paper", "off", "sums"] = "channelwise",
    halo: Literal["auto", "lines", "paper", "recompute"] = "auto",
    residency: Literal["partial", "all", "none"] = "partial",
    blocks: Literal["best", "fallback"] = "best",
    weight_tile: bool = True,
    search: Literal["exact", "algorithm1", "algorithm1-top-down", "online"] = "exact",
    space: Literal["full", "dnnvm", "efficient-s"] = "full",
    channel_tile: int | None = None,
    time_limit: float | None = None,
    memory_limit: int = 2147483648,
) -> tuple[GroupEnergy, ...]:
    """Fuse a network, and price each group in energy and time on the chip's array, in running order.

    Energies are in multiply-accumulates, times in seconds; see docs/fusion-energy.md. They are a model, and
    no figures of the plan. Arguments as in `fuse`. Source: Optimus, section 7.1, after Eyeriss.

    >>> import onchip
    >>> groups = onchip.fusion_energy("zoo:squeezenet1_0")
    >>> all(group.energy > group.dram > 0 for group in groups)
    True

    Raises what `fuse` raises, and `ChipError` where the chip states no array or no prices.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `batch_weights` (default 'per-image'): `per-image`: refilled weights are fetched for every band of every image, and whole images run together where several fit; `held`: so do bands, with line buffers for every image; `shared`: once per band or block for the whole batch, with the buffers of one image, as the paper counts (nothing can run that: figures only).
    - `isoa` (default 'channelwise'): Which tensors are held a few channels at a time. `channelwise`: neighbours may, where no channels are summed between them; `paper`: never neighbours (figures only); `off`: none; `sums`: whatever no sum forbids, in an order of passes or not (figures only).
    - `halo` (default 'auto'): Rows that neighbouring bands share. `lines`: as many as really overlap, in line buffers; `paper`: as eq. 4 of Optimus counts them; `recompute`: made anew by every band (figures only); `auto`: `paper` with --isoa paper, else `lines`.
    - `residency` (default 'partial'): Which operators of a group keep their weights on chip: the best choice, all or nothing, or none.
    - `blocks` (default 'best'): When an operator that runs alone does so in blocks of rows, columns and channels: where that moves less than bands of rows, or only where no band fits.
    - `weight_tile` (default True): Refilled weights take the scratchpad of one tile; without, none, as eq. 4 says (figures only).
    - `search` (default 'exact'): `exact`: the best of all partitions; `algorithm1`: the paper's, bottom up or top down; `online`: its fast variant.
    - `space` (default 'full'): Which groups are looked at: all, or only those that another fuser knows.
    - `channel_tile` (default None): Channels that are processed at a time (T_c); without, the chip's.
    - `time_limit` (default None): Seconds in all; when they are over, the result is the best so far, with its gap.
    - `memory_limit` (default 2147483648): Bytes of search states; when they are full, the result is the best so far, with its gap.
    """

def workload(
    models: Sequence[str | Path | Source | Network | Profile],
    soc: str | Path | SoC = "xavier-agx",
    contention: str | None = None,
    *,
    progress: Progress | None = None,
    granularity: Literal["fused", "op"] = "fused",
    dtype: Literal["file", "int8", "int16"] | None = None,
    dims: str = "",
    batch: int | None = None,
    attention: Literal["whole", "parts"] = "whole",
    cache: str = "",
    float_boundary: bool = False,
    profile: tuple[str, ...] = (),
    most_groups: int = 10,
    iterations: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    frames: int = 1,
    pipelined: bool = True,
    in_flight: int | None = None,
) -> Workload:
    """Return several networks on one SoC as a problem, the argument of `DynamicScheduler.change`.

    Arguments as in `corun`, whose options of `ReadOptions` and `CorunOptions` are taken.

    >>> import onchip
    >>> both = onchip.workload(["zoo:googlenet", "zoo:googlenet"])
    >>> with onchip.DynamicScheduler() as scheduler:
    ...     first = scheduler.change(both)
    ...     _ = scheduler.settle()
    ...     scheduler.frame().cost_ms() < first.cost_ms()
    True

    Raises `ProfileError`, `ChipError`, `ModelError` or `UsageError`.

    Options:

    - `granularity` (default 'fused'): `op`: one operator for each node that computes; `fused`: element-wise and batch-norm operators with one activation input merge into the producer of that input.
    - `dtype` (default None): Element size of floating-point tensors and parameters; without it int8 for the zoo, else as in the file.
    - `dims` (default ''): Values for symbolic dimensions, `batch=1,height=224`; an unnamed one is `INPUT.AXIS`, as in `x.0=1`.
    - `batch` (default None): Images at once, for a model of one image or with a free first axis; refused where it is not proved that the images stay apart. Without it as the model is.
    - `attention` (default 'whole'): `whole`: an attention is one operator; `parts`: its products, mask and softmax are operators.
    - `cache` (default ''): `INPUT=OUTPUT,...`: an output of an .onnx file that is the input with new elements behind it, as a cache of keys and values. The input stays where it lies, and only what is new is written. A `*` in both names stands for the same text.
    - `float_boundary` (default False): An .onnx input that is only quantised and an output that is only dequantised are floats, and the conversions operators, as at granularity `op`. Else they are the integers, and the caller converts.
    - `contention` (default None): The set of constants of the contention model: light, medium, heavy or none, or one of the SoC's file [default: the SoC's own, light for the built-in boards].
    - `profile` (default ()): A measured profile, FILE.csv or FILE.json: MODEL=FILE, or just FILE where one model is given. `synthetic` is a roofline even for what the paper measured, `measured` runs each network on this machine, as is done for the SoC `local`.
    - `most_groups` (default 10): Layer groups of a network whose profile is made here, at most.
    - `iterations` (default ()): NETWORK:TIMES, counted from 1: how often a network runs in each frame, to balance short ones with long ones.
    - `after` (default ()): LATER:EARLIER, counted from 1: a network that begins a frame only when another has finished it.
    - `frames` (default 1): Frames of a stream that are scheduled; throughput is that of the second half of them.
    - `pipelined` (default True): Whether a network may begin its next frame before the others have finished this one.
    - `in_flight` (default None): Frames of a stream that may be under way at once, 0 for any number [default: as many as there are networks, at least 2].
    """
