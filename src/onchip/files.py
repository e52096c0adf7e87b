"""Files that are whole or not there: every output is written under a temporary name and renamed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from onchip.errors import InputError

__all__ = ["read_bytes", "write_atomically"]

MAX_FILE_BYTES = 4 << 30
"""Larger model, chip and plan files are refused (weights of that size belong in external data)."""


def read_bytes(path: Path, *, error: type[InputError] = InputError) -> bytes:
    """The file's content; raises `error` with one clear line when it cannot be read or is absurdly large."""
    try:
        if not path.is_file():
            raise error("no such file" if not path.exists() else "not a regular file", where=str(path))
        if path.stat().st_size > MAX_FILE_BYTES:
            raise error(f"larger than {MAX_FILE_BYTES:,} bytes", where=str(path))
        return path.read_bytes()
    except OSError as problem:
        raise error(problem.strerror or "cannot be read", where=str(path)) from None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write `content` to `path`: a reader sees the old file or the whole new one, never a part.

    Raises `InputError` naming the path when it cannot be written; nothing is left behind then.
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    temporary = None
    try:
        if path.is_dir():
            raise InputError("is a directory", where=str(path))
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:64]}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        temporary = None
    except OSError as problem:
        raise InputError(problem.strerror or "cannot be written", where=str(path)) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
