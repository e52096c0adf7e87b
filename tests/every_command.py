"""One small call of every command, and the ways in which the world outside fails it.

The commands are those that are registered: a new one without a call here fails the tests.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

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
    "mcu": ("made:kws",),
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
    from onchip.multi_dnn.profile_file import profile_json
    from onchip.multi_dnn.published import googlenet
    from test_cli import NETWORK

    text = """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
        c = Conv<pads=[1,1,1,1], kernel_shape=[3,3]>(x, w) s = Sigmoid(c) y = Mul(c, s) }"""
    (folder / "net.onnx").write_bytes(weighted(graph(text), w=(4, 3, 3, 3)).SerializeToString())
    (folder / "net.json").write_text(json.dumps(NETWORK))
    saved(folder, "words.onnx", model(words=1, past="past"))
    saved(folder, "prompt.onnx", model(words="words", past=None))
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
) -> Ended:
    """Run the console's command in `folder`; `first` is Python that comes before it in its process.

    With nothing but a call the process has the modules of onchip already.
    """

    def limit() -> None:
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    if not first and stdout is None and stderr is None and file_bytes is None:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = warm().run(call, folder, os.environ, out.fileno(), err.fileno())
            return Ended(code, _text(out), _text(err))
    done = subprocess.run(
        [sys.executable, "-c", first + START, *call],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE if stderr is None else stderr,
        text=True,
        preexec_fn=limit if file_bytes is not None else None,
    )
    return Ended(done.returncode, done.stdout or "", done.stderr or "")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
