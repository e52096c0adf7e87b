"""The same layers of transformers planned by AccelForge's mapper and by onchip: docs/peers.md.

    python benchmarks/peers/nests.py [--accelforge PYTHON] [--only PATTERN] [--cpu SECONDS] [--memory GIB]
                                     [--records FILE] [--into PAGE]

PYTHON is an interpreter that has the package accelforge (it needs Python 3.12); without it, or for a run
that does not end within the CPU seconds and memory given, its cells say so. Every run of it is a process of
one thread with these limits. `--records` keeps what its runs gave, and takes from there what was run before;
with `--cpu 0` nothing else is run.

Figures are bytes to and from DRAM and CPU seconds of planning alone, without start and imports. *Nests* is
the search over groups that run as nests, with tensors between them on chip or not, by the joint search of
benchmarks/nest_known_values.py; *plan* is `onchip plan --fuse`, with addresses, replayed by the checker.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onchip

sys.path += [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
from nest_known_values import Joint, Known
from page_marks import put_into
from transformer_layers import Layer, gpt3_67b, lines_of, llama3_8b, network_of, qwen3_8b, workload_of

MAPPER = Path(__file__).resolve().with_name("accelforge_mapper.py")
MARKS = "nests"
"""The name of the marks on the page between which the table stands."""

MIB = 1 << 20
LARGEST = 6
"""Most operators of a group in the search over nests, as in `onchip plan`."""


@dataclass(frozen=True)
class Tiles:
    """The tile sizes that the peer's mapper tries."""

    name: str
    imperfect: bool
    coarseness: float = 1.0


DIVISORS = Tiles("divisors", imperfect=False)
COARSE = Tiles("any, coarseness 2", imperfect=True, coarseness=2.0)
FINER = Tiles("any, coarseness 1.5", imperfect=True, coarseness=1.5)
ANY = Tiles("any", imperfect=True)


def cases() -> Iterator[tuple[Layer, int, tuple[Tiles, ...]]]:
    """Yield layers with buffer sizes in bytes and the tile sizes for the peer."""
    for mib in (4, 16, 32):
        yield gpt3_67b(), mib * MIB, (DIVISORS, COARSE, FINER, ANY) if mib < 32 else (DIVISORS,)
    for model in (llama3_8b, qwen3_8b):
        for mib in (4, 16, 32):
            yield model(2048), mib * MIB, (DIVISORS,)
        yield model(1, 4096), MIB, (DIVISORS,)


# -- onchip ------------------------------------------------------------------------------------------------


def nests(layer: Layer, room: int) -> tuple[int, float]:
    """Return the bytes and CPU seconds of the search over groups in nests, passes among them."""
    began = time.process_time()
    sizes = " ".join(f"{axis}={size}" for axis, size in layer.sizes.items())
    known = Known(layer.name, sizes, layer.element, lines_of(layer), layer.inputs, layer.outputs, {})
    found = Joint(known, LARGEST, True).solve(room)
    if found is None:
        raise SystemExit(f"{layer.name}: no nest in {room:,} bytes")
    return found[0], time.process_time() - began


def planned(layer: Layer, room: int) -> tuple[int, float]:
    """Return the bytes and CPU seconds of `onchip plan --fuse`, the plan replayed."""
    network = network_of(layer)
    began = time.process_time()
    plan = onchip.plan(network, budget=room, fuse=True)
    seconds = time.process_time() - began
    if plan.check() != plan.result:
        raise SystemExit(f"{layer.name}: the checker found other figures")
    assert plan.result.dram_bytes is not None
    return plan.result.dram_bytes, seconds


# -- the peer ----------------------------------------------------------------------------------------------


@dataclass
class Peer:
    """The peer's mapper in processes of `python`, each within CPU seconds and GiB of memory."""

    python: Path
    cpu: int
    memory: int
    records: Path | None

    def __post_init__(self) -> None:
        here = self.records is not None and self.records.is_file()
        self.known: list[dict[str, Any]] = (
            [json.loads(line) for line in self.records.read_text().splitlines()]
            if here and self.records
            else []
        )

    def run(self, layer: Layer, room: int, tiles: Tiles) -> dict[str, Any]:
        """Return what the mapper found, {"failed": why, "seconds": CPU}, or {} if it is not to run."""
        asked = {
            "workload": workload_of(layer),
            "bytes": room,
            "imperfect": tiles.imperfect,
            "coarseness": tiles.coarseness,
        }
        for record in self.known:
            limits = record.get("limits", self.limits())
            if record["asked"] == asked and (not self.cpu or limits == self.limits()):
                return dict(record["answer"])
        if not self.cpu:
            return {}
        answer = self.started(asked)
        self.known.append({"asked": asked, "answer": answer})
        if "failed" in answer:
            self.known[-1]["limits"] = self.limits()
        if self.records is not None:
            self.records.write_text("".join(f"{json.dumps(record)}\n" for record in self.known))
        return answer

    def limits(self) -> list[int]:
        """Return what a run may take; only a failure depends on it."""
        return [self.cpu, self.memory]

    def started(self, asked: dict[str, Any]) -> dict[str, Any]:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (self.cpu, self.cpu + 5))
            resource.setrlimit(resource.RLIMIT_AS, (self.memory << 30, self.memory << 30))

        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [self.python, MAPPER],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=limit,
        )
        if done.returncode == 0:
            return dict(json.loads(done.stdout.splitlines()[-1]))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if "MemoryError" in done.stderr or "llocate" in done.stderr:
            why = f"more than {self.memory} GiB"
        elif seconds >= self.cpu:
            why = f"more than {self.cpu} s"
        else:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise SystemExit(f"{self.python}: {last[0][:300]}")
        return {"failed": why, "seconds": seconds}


# -- the comparison ----------------------------------------------------------------------------------------


def rows(peer: Peer | None, only: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield the lines of the table, each with the peer's answer."""
    for layer, room, tried in cases():
        if not fnmatch.fnmatch(layer.name, only):
            continue
        found, found_s = nests(layer, room)
        made, made_s = planned(layer, room)
        answers = [(tiles, peer.run(layer, room, tiles) if peer is not None else None) for tiles in tried]
        for tiles, theirs in [row for row in answers if row[1]] or answers[:1]:
            cells = [layer.name, f"{room / MIB:g}", *_theirs(theirs, tiles), _mb(found), f"{found_s:.1f}"]
            cells += [_against(theirs, found, found_s), _mb(made), f"{made_s:.1f}", _mb(layer.least())]
            yield f"| {' | '.join(cells)} |", theirs


def _theirs(answer: dict[str, Any] | None, tiles: Tiles) -> list[str]:
    if not answer:
        return [tiles.name, "not run", ""] if answer is not None else ["", "", ""]
    if "failed" in answer:
        return [tiles.name, f"did not end: {answer['failed']}", f"{answer['seconds']:.0f}"]
    return [tiles.name, _mb(answer["dram_bytes"]), f"{answer['seconds']:.0f}"]


def _against(answer: dict[str, Any] | None, found: int, seconds: float) -> str:
    """Return our bytes and CPU seconds over theirs."""
    if not answer or "failed" in answer:
        return ""
    return f"{found / answer['dram_bytes']:.3f}, 1/{answer['seconds'] / seconds:.0f}"


def _mb(size: int) -> str:
    return f"{size / 1e6:,.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--accelforge", type=Path, metavar="PYTHON")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="of layers by name")
    parser.add_argument("--cpu", type=int, default=300, metavar="SECONDS", help="for each run of the peer")
    parser.add_argument("--memory", type=int, default=11, metavar="GIB", help="for each run of the peer")
    parser.add_argument("--records", type=Path, metavar="FILE")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    if args.accelforge is None:
        print("AccelForge: left out: --accelforge PYTHON (pip install accelforge)", file=sys.stderr)
        peer = None
    else:
        peer = Peer(args.accelforge, args.cpu, args.memory, args.records)
    lines, versions = [], set()
    for line, answer in rows(peer, args.only):
        print(line, file=sys.stderr, flush=True)
        lines.append(line)
        versions |= {answer["version"]} if answer is not None and "version" in answer else set()
    said = f"AccelForge {', '.join(sorted(versions))}" if versions else "without AccelForge"
    table = "\n".join(
        [
            f"<!-- {platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()}; {said};"
            f" {f'{args.cpu} CPU s and ' if args.cpu else ''}{args.memory} GiB for each of its runs -->",
            "| layer | MiB | FFM's tiles | FFM MB | CPU s | nests MB | CPU s | nests / FFM: bytes, CPU"
            " | plan MB | CPU s | least MB |",
            "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|",
            *lines,
        ]
    )
    if args.into is None:
        print(table)
        return
    args.into.write_text(put_into(args.into.read_text(), MARKS, table))


if __name__ == "__main__":
    main()
