"""A C++ header that makes several processes keep the order of a schedule, with flags in shared memory.

A unit's flag counts the stretches that it has ended; a stretch begins when the count is its turn. Without
it, networks that drift apart by a moment run in another order than the planned one. The header is
the fixed text of `order_flags.h.txt` behind tables of numbers.
"""

from __future__ import annotations

from importlib import resources

from onchip.base.errors import UsageError
from onchip.export.names import identifiers
from onchip.multi_dnn.export.devices import engines_of, network_names
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.schedule import Step
from onchip.multi_dnn.stretches import Stretch, stretches

__all__ = ["write"]


def write(made: Judged) -> str:
    """Return the header; it needs C++17 and POSIX shared memory."""
    workload = made.workload
    names = network_names(made)
    units = identifiers(workload.soc.unit_names)
    rows = stretches(made.schedule)
    idle = dict(made.schedule.idle_ms)
    try:
        engines = engines_of(made)
    except UsageError:  # other units than TensorRT's: the user provides the engines
        engines = {}
    engine = {key: n for n, key in enumerate(engines)}
    mine = sorted((one for row in rows for one in row), key=lambda s: (s.job, s.run, s.first))
    gates: list[str] = []
    lines: list[str] = []
    first = [0] * (len(names) + 1)
    for one in mine:
        first[one.job + 1] += 1
        before = len(gates)
        gates += [f"    {{{other}u, {runs}}}," for other, runs in _gates(made, one)]
        last = len(workload.jobs[one.job].profile.groups) - 1
        wait = round(idle.get(Step(one.job, one.run, one.first), 0.0) * 1e6)
        number = engine.get((one.job, one.first, one.last, one.unit), 0)
        lines.append(
            f"    {{{one.job}u, {one.run}u, {one.first}u, {one.last}u, {one.unit}u, {one.turn}u, {number}u,"
            f" {int(one.last == last)}u, {before}u, {len(gates)}u, {wait}u}},"
        )
    for n in range(1, len(first)):
        first[n] += first[n - 1]
    body = (resources.files("onchip.multi_dnn.export") / "order_flags.h.txt").read_text("utf-8")
    return "\n".join([*_HEAD, *_tables(made, names, units), "",
        "inline constexpr Gate kGates[] = {", *(gates or ["    {0u, 0},"]), "};",
        "// All stretches; a network has kFirst[network] to kFirst[network + 1], in the order of its runs.",
        "inline constexpr Stretch kStretches[] = {", *lines, "};",
        f"inline constexpr std::uint32_t kFirst[] = {{{', '.join(f'{n}u' for n in first)}}};",
        "// The engines that `onchip export --to tensorrt` builds, by Stretch::engine.",
        "inline constexpr const char* kEngines[] = {",
        *([f'    "{e.file}",' for e in engines.values()] or ['    "",']), "};",
    ]) + "\n" + body  # fmt: skip


def _tables(made: Judged, names: list[str], units: dict[str, str]) -> list[str]:
    workload = made.workload
    turns = ", ".join(f"{len(row)}u" for row in stretches(made.schedule))
    runs = ", ".join(f"{workload.runs(j)}u" for j in range(len(names)))
    return [
        f"inline constexpr std::uint32_t kNetworks = {len(names)}u;",
        f"inline constexpr std::uint32_t kUnits = {len(units)}u;",
        *(f"inline constexpr std::uint32_t kNetwork_{name} = {n}u;" for n, name in enumerate(names)),
        *(f"inline constexpr std::uint32_t kUnit_{name} = {n}u;" for n, name in enumerate(units.values())),
        "// Stretches of every unit, and runs of every network, in one period.",
        f"inline constexpr std::uint64_t kTurns[] = {{{turns}}};",
        f"inline constexpr std::uint64_t kRuns[] = {{{runs}}};",
    ]


def _gates(made: Judged, one: Stretch) -> list[tuple[int, int]]:
    """Return (network, its runs that must have ended) before a stretch that begins a frame.

    Runs are counted from the beginning of the period: those of periods before are below 1.
    """
    workload = made.workload
    frame, iteration = divmod(one.run, workload.jobs[one.job].iterations)
    if one.first or iteration:
        return []
    found = {other: (frame + 1) * workload.jobs[other].iterations for other in workload.waits_for[one.job]}
    if workload.frames_at_once:
        for other, job in enumerate(workload.jobs):
            found.setdefault(other, (frame + 1 - workload.frames_at_once) * job.iterations)
    return sorted(found.items())


_HEAD = [
    "// The order in which networks share the units of a SoC, and flags in shared memory that enforce it.",
    "// Written by onchip. C++17, POSIX; link with -lrt where shm_open is there.",
    "#ifndef ONCHIP_ORDER_H",
    "#define ONCHIP_ORDER_H",
    "",
    "#include <atomic>",
    "#include <cerrno>",
    "#include <cstdint>",
    "#include <ctime>",
    "",
    "#include <fcntl.h>",
    "#include <sched.h>",
    "#include <sys/mman.h>",
    "#include <sys/types.h>",
    "#include <unistd.h>",
    "",
    "namespace onchip_order {",
    "",
    "// A network may not begin before `network` has ended so many runs since the period began.",
    "struct Gate {",
    "    std::uint32_t network;",
    "    std::int64_t runs;",
    "};",
    "",
    "// Groups that a unit runs in one go. `turn` counts the unit's stretches in a period, from 0.",
    "struct Stretch {",
    "    std::uint32_t network, run, first_group, last_group, unit, turn, engine;",
    "    std::uint32_t ends_run, first_gate, last_gate;",
    "    std::uint64_t wait_ns;",
    "};",
    "",
]
