"""One small call of every command, and the ways in which the world outside fails it.

The commands are those that are registered: a new one without a call here fails the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

import onchip
from onchip.cli import app, load_all
from warm import warm

load_all()
COMMANDS = tuple(typer.main.get_command(app).commands)  # type: ignore[attr-defined]

CALLS: Mapping[str, tuple[str, ...]] = {
    "plan": ("net.onnx", "--budget", "MR"),
    "fuse": ("zoo:alexnet", "--chip", "optimus"),
    "branches": ("zoo:squeezenet1_0", "--budget", "400KiB"),
    "corun": ("small.json", "small.json", "--time-limit", "5"),
    "mcu": ("small.tflite",),
    "sweep": ("sweep.toml", "--jobs", "1"),
    "lengths": ("words.onnx", "--length", "past=2..6", "--budget", "4KiB"),
    "session": (
        "prompt.onnx",
        "words.onnx",
        *("--prompt-dims", "words=2", "--length", "past=2..4", "--budget", "4KiB"),
        *("--state", "past.*=present.*"),
    ),
    "compare": ("net.json", "--budget", "MP"),
    "check": ("plan.json",),
    "run": ("plan.json",),
    "report": ("plan.json",),
    "diff": ("plan.json", "plan.json"),
    "export": ("plan.json", "--to", "json"),
    "pack": ("buffers.csv", "--capacity", "12"),
    "contest": ("solve", "contest.json"),
    "zoo": ("alexnet",),
    "chips": (),
    "boards": (),
    "socs": (),
    "sram": ("64KiB",),
}
"""Arguments without outputs, which are added: every option whose help begins with the word "write"."""

FOLDERS = {("mcu", "--output"), ("sweep", "--output"), ("lengths", "--output"), ("session", "--output")}
"""Outputs that are folders."""

JOURNALS = {"sweep"}
"""Commands whose outputs grow as they work, and which go on from what is there."""


def outputs(command: str) -> list[str]:
    """The options of a command that write files."""
    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    below = getattr(found, "commands", {})
    parameters = below[CALLS[command][0]].params if below else found.params
    return [
        max(p.opts, key=len)
        for p in parameters
        if str(getattr(p, "help", "") or "").startswith(("write", "the file to write", "folder of"))
    ]


def arguments(command: str) -> list[str]:
    """The whole call: with each of its outputs in `out/`."""
    call = [command, *CALLS[command]]
    for option in outputs(command):
        call += [option, f"out/{option.strip('-')}" + ("" if (command, option) in FOLDERS else ".json")]
    return call


def prepare(folder: Path) -> None:
    """The files that the calls name."""
    sys.path.insert(0, str(Path(__file__).parent / "readers"))
    from build import graph, weighted

    from growing import model, saved
    from onchip.microcontroller.made import Builder
    from onchip.multi_dnn.profile_file import profile_json
    from onchip.multi_dnn.published import googlenet
    from test_cli import NETWORK

    text = """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
        c = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w) s = Sigmoid(c) y = Mul(c, s) }"""
    (folder / "net.onnx").write_bytes(weighted(graph(text), w=(4, 3, 3, 3)).SerializeToString())
    (folder / "net.json").write_text(json.dumps(NETWORK))
    saved(folder, "words.onnx", model(words=1, past="past"))
    saved(folder, "prompt.onnx", model(words="words", past=None))
    b = Builder()
    x = b.conv(b.input((1, 8, 8, 3)), 8, 3, activation="RELU")
    (folder / "small.tflite").write_bytes(b.file(b.conv(b.depthwise(x, 3, 2), 6)))
    (folder / "small.json").write_text(profile_json(googlenet()))
    (folder / "buffers.csv").write_text("id,lower,upper,size\na,0,3,4\nb,1,5,8\nc,3,9,4\n")
    (folder / "contest.json").write_text(
        '{"widths": [8, 8], "heights": [8, 8], "inputs": [[0]], "outputs": [[1]], "base_costs": [1],'
        '"op_types": ["Pointwise"], "fast_memory_capacity": 128, "slow_memory_bandwidth": 1,'
        '"native_granularity": [8, 8]}'
    )
    (folder / "sweep.toml").write_text('networks = ["net.json"]\nbudgets = ["MR", "1KiB"]\n')
    here = os.getcwd()
    os.chdir(folder)  # the plan's source is then the same for whoever stands there
    try:
        onchip.plan("net.onnx", budget="MR").save("plan.json")
    finally:
        os.chdir(here)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def is_clear(self) -> bool:
        """No traceback and no complaint of the interpreter's: at most notes, then one line."""
        return all(line.startswith("onchip: ") for line in self.err.splitlines())


START = "from onchip_command import main; main()"


def run(
    folder: Path,
    call: list[str],
    *,
    first: str = "",
    stdout: int | None = None,
    stderr: int | None = None,
    file_bytes: int | None = None,
    fresh: bool = False,
) -> Ended:
    """Run the console's command in `folder`; `first` is Python that comes before it in its process.

    Its process has the modules of onchip already, unless it must be a `fresh` one.
    """
    # A limit of files holds for what is printed into them, too; what fails prints less than a pipe holds.
    with _kept(file_bytes is not None) as out, _kept(file_bytes is not None) as err:
        to = out.write if stdout is None else stdout, err.write if stderr is None else stderr
        if fresh:
            code = _fresh(folder, call, first, *to, file_bytes)
        else:
            code = warm().run(call, folder, os.environ, *to, first=first, file_bytes=file_bytes)
        return Ended(code, out.text(), err.text())


@dataclass(frozen=True)
class _Kept:
    """What a command prints: where it writes it, and where it is read."""

    write: int
    read: int

    def text(self) -> str:
        if self.write == self.read:
            os.lseek(self.read, 0, os.SEEK_SET)
        else:
            os.set_blocking(self.read, False)
        found = b""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.read, 1 << 16):
                found += piece
        return found.decode()


@contextlib.contextmanager
def _kept(pipe: bool) -> Iterator[_Kept]:
    if not pipe:
        with tempfile.TemporaryFile() as file:
            yield _Kept(file.fileno(), file.fileno())
        return
    read, write = os.pipe()
    try:
        yield _Kept(write, read)
    finally:
        os.close(read)
        os.close(write)


def _fresh(folder: Path, call: list[str], first: str, out: int, err: int, file_bytes: int | None) -> int:
    def limit() -> None:
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    done = subprocess.run(
        [sys.executable, "-c", first + START, *call],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        preexec_fn=limit if file_bytes is not None else None,
    )
    return done.returncode
