"""A hash of onchip's own files, by which two machines compare their code."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

__all__ = ["content"]


@cache
def content() -> str:
    """Return the SHA-256 of the package's sources and data, by name, and of its compiled core."""
    import onchip
    from onchip import _core

    root = Path(onchip.__file__).parent
    core = Path(str(_core.__file__))
    found = hashlib.sha256()
    files = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    for path in sorted(files, key=lambda path: path.relative_to(root).as_posix()):
        name = path.relative_to(root).as_posix()
        if not name.startswith("_core"):  # its sources are not in a wheel
            found.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    found.update(hashlib.sha256(core.read_bytes()).digest())
    return found.hexdigest()
