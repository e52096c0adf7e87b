"""The networks of a sweep, each read once and kept in the sweep's folder as `onchip.network/1` JSON.

A network's key is the hash of its JSON, and every reader of the JSON checks it. The planned network is
therefore the one that was hashed, whatever happens meanwhile to the model's file or to this one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from onchip.base.errors import InputError, ModelError, OnchipError, UsageError
from onchip.base.files import read_bytes, write_atomically
from onchip.machines.chip import Chip
from onchip.readers.reference import check_named
from onchip.sweeps.points import Point

__all__ = ["Sources", "network_bytes"]


class Sources:
    """The networks of a sweep's folder."""

    def __init__(self, folder: Path, spec: str, trusted: Sequence[str] = ()) -> None:
        self.folder, self.spec, self.trusted = folder, spec, frozenset(trusted)
        self._keys: dict[tuple[Any, ...], str] = {}

    def path(self, key: str) -> Path:
        """Return the path of the network with this key."""
        return self.folder / f"{key}.json"

    def content(self, key: str) -> bytes:
        """Return the network's JSON; raises `ModelError` if the file's content does not match its name."""
        return network_bytes(self.folder, key)

    def key(self, point: Point, say: Callable[[str], None]) -> str:
        """Return the key of a point's network, and write the network if it is not there yet.

        Raises `UsageError` naming the spec and the network that cannot be read.
        """
        options = _options(point)
        asked = (point.model.model, *sorted(options.items()))
        if asked not in self._keys:
            try:
                self._check_trusted(point)
                self._keys[asked] = self._kept(point.model.model, options, say)
            except InputError as problem:
                raise UsageError(str(problem), where=self.spec, item=point.model.item) from None
            except OnchipError as problem:  # an extra that is not installed
                raise UsageError(str(problem), where=self.spec, item=point.model.item) from None
        return self._keys[asked]

    def _check_trusted(self, point: Point) -> None:
        """Raise `UsageError` for a model that may run code and that the user has not named."""
        if not {point.model.name, point.model.model} & self.trusted:
            check_named(point.model.model, "--trust")

    def _kept(self, model: str, options: dict[str, Any], say: Callable[[str], None]) -> str:
        """Read the model, and write its network under the hash of its JSON, unless it is there."""
        from onchip.network.json import wire_network
        from onchip.readers import ReadOptions, load

        say(f"reading {model}")
        network = load(model, ReadOptions(**options)).network
        written = msgspec.json.encode(wire_network(replace(network, source="", sha256="")))
        key = hashlib.sha256(written).hexdigest()
        path = self.path(key)
        if not path.is_file() or hashlib.sha256(read_bytes(path, error=ModelError)).hexdigest() != key:
            write_atomically(path, written)
        return key


def network_bytes(folder: Path, key: str) -> bytes:
    """Return the JSON of a network in a sweep's folder; raises `ModelError` if its hash is not `key`."""
    path = folder / f"{key}.json"
    content = read_bytes(path, error=ModelError)
    if hashlib.sha256(content).hexdigest() != key:
        raise ModelError("was changed since the sweep wrote it", where=str(path))
    return content


def _options(point: Point) -> dict[str, Any]:
    """Return the reader's options: the same for every planner, with the chip's elements for a zoo network."""
    given = dict(point.model.read)
    if point.model.model.startswith("zoo:") and given.get("dtype") is None:
        given["dtype"] = _element(point.machine.chip)
    return given


def _element(chip: Chip) -> str:
    return {"int8": "int8", "int16": "int16", "float32": "file"}.get(chip.element, "int8")
