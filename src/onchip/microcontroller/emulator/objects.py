"""Object files of C sources, each compiled once a process.

The programs of a network for several boards and stacks, with and without marks, share most of their sources.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onchip.microcontroller.emulator.toolchain import call, failure_of

__all__ = ["objects_of"]

MOST_BYTES = 64 << 20
"""The most bytes of object files that are remembered; those that were used last stay."""


class _Known:
    """Object files by what they are compiled from."""

    def __init__(self) -> None:
        self.files: OrderedDict[str, bytes] = OrderedDict()
        self.bytes = 0

    def get(self, key: str) -> bytes | None:
        found = self.files.get(key)
        if found is not None:
            self.files.move_to_end(key)
        return found

    def put(self, key: str, content: bytes) -> None:
        self.bytes += len(content) - len(self.files.pop(key, b""))
        self.files[key] = content
        while self.bytes > MOST_BYTES:
            self.bytes -= len(self.files.popitem(last=False)[1])


_KNOWN = _Known()


def objects_of(
    compiler: Sequence[str],
    files: Mapping[str, str],
    units: Sequence[str],
    defines: Iterable[str],
    folder: Path,
    *,
    remember: bool = True,
) -> list[str]:
    """Compile `units` of `files` (name to text) in their `folder`; return the names of the object files.

    `compiler` is the command and its flags without the `defines`. What was compiled before, from the same
    text with the same headers, flags, and defines of which it speaks, is not compiled again: not to be
    `remember`ed where sources include headers from elsewhere. Raises `BuildFailed` with the first error.
    """
    headers = "\0".join(f"{name}\0{files[name]}" for name in sorted(files) if name.endswith(".h"))
    keys, missing = dict[str, str](), dict[tuple[str, ...], list[str]]()
    for unit in units:
        spoken = tuple(d for d in defines if d.split("=")[0] in files[unit] or d.split("=")[0] in headers)
        keys[unit] = _digest(*compiler, "\1", *spoken, "\1", unit, files[unit], headers)
        known = _KNOWN.get(keys[unit]) if remember else None
        if known is None:
            missing.setdefault(spoken, []).append(unit)
        else:
            (folder / _object(unit)).write_bytes(known)
    for spoken, some in missing.items():
        command = [*compiler, *(f"-D{define}" for define in spoken), "-c"]
        alike = len({Path(unit).stem for unit in some}) < len(some)
        for together in [[unit] for unit in some] if alike else [some]:
            done = call([*command, *together], folder)
            if done.returncode:
                raise failure_of(done.stderr)
            for unit in together:
                (folder / unit).with_suffix(".o").rename(folder / _object(unit))
        for unit in some if remember else ():
            _KNOWN.put(keys[unit], (folder / _object(unit)).read_bytes())
    return [_object(unit) for unit in units]


def _object(unit: str) -> str:
    return f"{unit}.o"


def _digest(*texts: str) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(f"{len(text)}:".encode())
        found.update(text.encode())
    return found.hexdigest()
