"""The networks of a sweep, each read once and kept in the sweep's folder as `onchip.network/1` JSON.

A network's key is the hash of the file it comes from and of how it is read. Workers read the JSON, so what
they plan is what was hashed, whatever happens to the model's file meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from onchip.chip import Chip
from onchip.errors import InputError, ModelError, OnchipError, UsageError
from onchip.files import read_bytes, write_atomically
from onchip.readers.reference import is_reference
from onchip.sweep.points import Point, key_of

__all__ = ["Sources"]


class Sources:
    """The networks of a sweep's folder."""

    def __init__(self, folder: Path, spec: str) -> None:
        self.folder, self.spec = folder, spec
        self._keys: dict[tuple[Any, ...], str] = {}
        self._contents: dict[str, str] = {}

    def path(self, key: str) -> Path:
        """Where the network with this key lies."""
        return self.folder / f"{key}.json"

    def content(self, key: str) -> bytes:
        """The network's JSON."""
        return read_bytes(self.path(key), error=ModelError)

    def key(self, point: Point, say: Callable[[str], None]) -> str:
        """The key of a point's network, which is there from then on.

        Raises `UsageError` naming the spec and the network that cannot be read.
        """
        options = _options(point)
        asked = (point.model.model, *sorted(options.items()))
        if asked not in self._keys:
            try:
                self._keys[asked] = self._kept(point.model.model, options, say)
            except InputError as problem:
                raise UsageError(str(problem), where=self.spec, item=point.model.item) from None
            except OnchipError as problem:  # an extra that is not installed
                raise UsageError(str(problem), where=self.spec, item=point.model.item) from None
        return self._keys[asked]

    def _kept(self, model: str, options: dict[str, Any], say: Callable[[str], None]) -> str:
        if model not in self._contents and not is_reference(model):
            self._contents[model] = _content(model)
        content = self._contents.get(model)
        key = None if content is None else key_of([content, sorted(options.items())])
        if key is not None and self.path(key).exists():
            return key
        from onchip.network_json import wire_network
        from onchip.readers import ReadOptions, load

        say(f"reading {model}")
        network = load(model, ReadOptions(**options)).network
        written = msgspec.json.encode(wire_network(replace(network, source="", sha256="")))
        if content is not None and _content(model) != content:
            raise UsageError("was changed while it was read", item=model)
        if key is None:  # code has no file to be known by
            key = hashlib.sha256(written).hexdigest()
        write_atomically(self.path(key), written)
        return key


def _content(model: str) -> str:
    """The hash of the file behind a MODEL."""
    if model.startswith("zoo:"):
        from onchip import zoo

        name, _, size = model[4:].partition("@")
        return f"{hashlib.sha256(zoo.model_bytes(name)).hexdigest()}@{size}"
    return hashlib.sha256(read_bytes(Path(model), error=ModelError)).hexdigest()


def _options(point: Point) -> dict[str, Any]:
    """How a point's network is read: by every planner alike, a zoo network with the chip's elements."""
    given = dict(point.model.read)
    if point.model.model.startswith("zoo:") and given.get("dtype") is None:
        given["dtype"] = _element(point.machine.chip)
    return given


def _element(chip: Chip) -> str:
    return {"int8": "int8", "int16": "int16", "float32": "file"}.get(chip.element, "int8")
