"""What is fuzzed, and what must hold: a result that can be written and read again, or one clear line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import msgspec

from fuzz import mutate, seeds
from fuzz.guard import bounded
from fuzz.mutate import Mutator
from onchip.base.errors import LINE, IllegalPlan, OnchipError
from onchip.check import check
from onchip.machines.board import parse_board
from onchip.machines.chip import parse_chip
from onchip.machines.soc_file import parse_soc
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.network import network_of
from onchip.multi_dnn.check import check_stated
from onchip.multi_dnn.profile_file import load_profile, profile_from_json, profile_json
from onchip.multi_dnn.schedule_file import schedule_from_json
from onchip.network import Network
from onchip.network.json import network_from_wire, read_network, wire_network
from onchip.papers.hax_conn.fit import fit_contention, read_matrix
from onchip.planners.packing.csv_file import read_buffers
from onchip.plans import Plan, from_json, from_text, to_json, to_text
from onchip.readers import ReadOptions
from onchip.readers.onnx_reader import read_onnx
from onchip.readers.tflite_reader import read_tflite
from onchip.sweeps.journal import Journal
from onchip.sweeps.points import points
from onchip.sweeps.spec import read_spec
from onchip.sweeps.table import to_csv

__all__ = ["TARGETS", "Target", "survives"]


@dataclass(frozen=True)
class Target:
    """A reader: `read` returns for what it accepts, and raises `OnchipError` for what it refuses."""

    name: str
    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    mutate: Mutator
    share: int = 1
    """Of the time for all targets together: those with more code take longer to know."""
    needs: str = ""
    seconds: float = 10.0
    """Of processor time, that one input may take."""

    @property
    def missing(self) -> bool:
        """Whether the library that it needs is not installed."""
        return bool(self.needs) and find_spec(self.needs) is None


def survives(target: Target, content: bytes) -> bool:
    """Whether the content is accepted; every failure but one clear line is raised."""
    said = ""
    with bounded(target.seconds):
        try:
            target.read(content)
            return True
        except OnchipError as problem:
            said = str(problem)
    assert said.isprintable(), f"no clear line: {said!r}"
    assert 0 < len(said) <= LINE, f"a line of {len(said)} characters: {said[:100]!r}"
    return False


@contextmanager
def file(content: bytes, suffix: str = "") -> Iterator[Path]:
    """A file with this content, for readers that take paths."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        path = Path(folder) / f"n{suffix}"
        path.write_bytes(content)
        yield path


def choice(content: bytes, most: int) -> int:
    """A number that follows from the content: which options it is read with."""
    return crc32(content) % most


# ---------------------------------------------------------------------------------------------- networks

_READ = (
    ReadOptions(),
    ReadOptions(granularity="op"),
    ReadOptions(dtype="int8"),
    ReadOptions(batch=2),
    ReadOptions(attention="parts"),
)


def returns(network: Network) -> None:
    """A network that was read can be written and read again."""
    again = network_from_wire(msgspec.json.decode(msgspec.json.encode(wire_network(network)), type=_wire()))
    assert again == network, "comes back from JSON as another network"


def _wire() -> type:
    from onchip.network.json import WireNetwork

    return WireNetwork


def onnx_file(content: bytes) -> None:
    options = _READ[choice(content, len(_READ))]
    if b"\x12\x01N" in content and options.batch is None:  # a dimension that is called N
        options = replace(options, dims="N=2")
    returns(
        read_onnx(
            content, options, name="n", where="n.onnx", folder=None, dtype=options.dtype or "file"
        ).network
    )


def tflite_file(content: bytes) -> None:
    options = ReadOptions(dtype="int8") if choice(content, 4) == 0 else ReadOptions()
    returns(read_tflite(content, options, name="n", where="n.tflite", dtype=options.dtype or "file").network)


def int8_file(content: bytes) -> None:
    returns(network_of(model_of(content, name="n", where="n.tflite")))


def network_file(content: bytes) -> None:
    with file(content, ".json") as path:
        returns(read_network(path))


def pt2_file(content: bytes) -> None:
    from onchip.readers.torch_reader import read_pt2

    with file(content, ".pt2") as path:
        returns(read_pt2(path, ReadOptions(), where="n.pt2").network)


# ------------------------------------------------------------------------------------ plans and schedules


def plan_returns(plan: Plan) -> None:
    """Both forms give it back, and the checker has an answer; a legal one can be shown."""
    assert from_json(to_json(plan)) == plan, "comes back from JSON as another plan"
    assert from_text(to_text(plan)) == plan, "comes back from text as another plan"
    with suppress(IllegalPlan):
        check(plan)


def plan_json(content: bytes) -> None:
    plan_returns(from_json(content, where="p.json"))


def plan_text(content: bytes) -> None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    plan_returns(from_text(text, where="p.plan"))


def schedule_file(content: bytes) -> None:
    check_stated(schedule_from_json(content, "s.json"))


def profile_file(content: bytes) -> None:
    with file(content, ".csv" if content[:1] != b"{" else ".json") as path:
        profile = load_profile(path, units=("gpu", "dla"))
    again = profile_from_json(profile_json(profile).encode(), "p.json")
    assert again == profile, "comes back from JSON as another profile"


# ------------------------------------------------------------------------------------------------- sweeps


def spec_file(content: bytes) -> None:
    with file(content, ".toml") as path:
        points(read_spec(path))


def journal_file(content: bytes) -> None:
    """A sweep's journal: a SQLite file, whose answers become rows of the table."""
    with file(content, ".sqlite") as path, Journal(path) as journal:
        for figures in journal.answers(None).values():
            to_csv([figures], tuple(figures))


# -------------------------------------------------------------------------------------------- small files


def matrix_file(content: bytes) -> None:
    with file(content, ".csv") as path:
        fit_contention(read_matrix(path), 100.0)


def buffers_file(content: bytes) -> None:
    with file(content, ".csv") as path:
        read_buffers(path)


TARGETS = {
    target.name: target
    for target in (
        Target("onnx", onnx_file, seeds.onnx_files, mutate.protobuf, 8),
        Target("tflite", tflite_file, seeds.tflite_files, mutate.flatbuffer, 5),
        Target("int8", int8_file, seeds.int8_files, mutate.flatbuffer, 4),
        Target("pt2", pt2_file, seeds.pt2_files, mutate.archive, 4, needs="torch", seconds=30),
        Target("network", network_file, seeds.networks, mutate.as_json, 2),
        Target("plan-json", plan_json, lambda: seeds.plans("json"), mutate.as_json, 5),
        Target("plan-text", plan_text, lambda: seeds.plans("text"), mutate.text, 5),
        Target("schedule", schedule_file, seeds.schedules, mutate.as_json, 3),
        Target("profile", profile_file, seeds.profiles, mutate.as_json),
        Target("chip", lambda c: parse_chip(c, "c.toml"), lambda: seeds.built_in("chips"), mutate.text),
        Target("board", lambda c: parse_board(c, "b.toml"), lambda: seeds.built_in("boards"), mutate.text),
        Target("soc", lambda c: parse_soc(c, "s.toml"), lambda: seeds.built_in("socs"), mutate.text),
        Target("spec", spec_file, seeds.specs, mutate.text, 2),
        Target("journal", journal_file, seeds.journals, mutate.raw),
        Target("buffers", buffers_file, seeds.buffers, mutate.text),
        Target("matrix", matrix_file, seeds.matrices, mutate.text),
    )
}
