"""Runs of simulators and mappers of single layers, each in a process of its own; what they gave is kept."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from time_layers import Layer

__all__ = ["HERE", "Answer", "Peer", "Records", "stated"]

Answer = dict[str, Any]
HERE = Path(__file__).resolve().parent


def stated(layer: Layer) -> Answer:
    """Return a layer as the scripts that run the peers read it."""
    rows, columns = layer.rows, layer.columns
    return {
        "loops": [
            layer.groups,
            layer.outputs,
            layer.inputs,
            rows.outputs,
            columns.outputs,
            rows.taps,
            columns.taps,
        ],
        "strides": [rows.stride, columns.stride],
        "inputs": [rows.inputs, columns.inputs],
        "before": [rows.before, columns.before],
    }


@dataclass
class Records:
    """Answers by what was asked, each a line of a file if there is one; they are added as they come."""

    file: Path | None = None
    known: dict[str, Answer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file is not None and self.file.is_file():
            for line in self.file.read_text().splitlines():
                record = json.loads(line)
                self.known[self.key(record["asked"])] = record["answer"]

    @staticmethod
    def key(asked: Answer) -> str:
        """Return what was asked as text."""
        return json.dumps(asked, sort_keys=True)

    def get(self, asked: Answer) -> Answer | None:
        """Return the answer that is known."""
        return self.known.get(self.key(asked))

    def put(self, asked: Answer, answer: Answer) -> Answer:
        """Keep an answer, and return it."""
        self.known[self.key(asked)] = answer
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as file:
                file.write(f"{json.dumps({'asked': asked, 'answer': answer})}\n")
        return answer


@dataclass(frozen=True)
class Peer:
    """A script that answers for layers, a line each, and the interpreter that runs it within CPU seconds.

    Without an interpreter, or with no seconds, there are the answers that are known.
    """

    name: str
    script: str
    python: Path | None
    cpu: int
    records: Records

    def answers(self, layers: Iterable[Layer], asked: Answer) -> dict[Layer, Answer]:
        """Return the answers for those of the layers that have one; `asked` is what else is asked."""
        layers = list(layers)
        keys = {layer: {"peer": self.name, "layer": stated(layer), **asked} for layer in layers}
        missing = [layer for layer in layers if self.records.get(keys[layer]) is None]
        if missing and self.python is not None and self.cpu:
            for layer, answer in zip(missing, self._lines(missing, asked), strict=False):
                self.records.put(keys[layer], answer)
        known = {layer: self.records.get(keys[layer]) for layer in layers}
        return {layer: answer for layer, answer in known.items() if answer is not None}

    def _lines(self, layers: list[Layer], asked: Answer) -> Iterable[Answer]:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (self.cpu, self.cpu + 5))

        assert self.python is not None
        with subprocess.Popen(
            [self.python, HERE / self.script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=limit,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            json.dump({"layers": [stated(layer) for layer in layers], **asked}, process.stdin)
            process.stdin.close()
            for line in process.stdout:
                if line.startswith("{"):
                    yield json.loads(line)
        if process.returncode:
            print(f"{self.name}: exit status {process.returncode}", file=sys.stderr)
