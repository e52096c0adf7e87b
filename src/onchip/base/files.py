"""Files that are complete or absent: every output is written under a temporary name and renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onchip.base import guard
from onchip.base.errors import InputError
from onchip.base.limits import VARIABLE, limits

__all__ = ["read_bytes", "temporary_folder", "write_atomically"]


def read_bytes(path: Path, *, error: type[InputError] = InputError, model: bool = False) -> bytes:
    """Return the file's content; raises `error` with one clear line if it cannot be read or is too large.

    `model` marks a file that holds weights, which may be larger than files of words (`onchip.base.limits`).
    """
    kind = "model_bytes" if model else "text_bytes"
    most = getattr(limits(), kind)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise error("not a regular file", where=str(path))
        if status.st_size > most:
            reason = f"larger than {most:,} bytes ({VARIABLE}{kind.upper()} sets how much is read)"
            raise error(reason, where=str(path))
        return path.read_bytes()
    except FileNotFoundError:
        raise error("no such file", where=str(path)) from None
    except OSError as problem:
        raise error(problem.strerror or "cannot be read", where=str(path)) from None
    except ValueError as problem:  # a null byte in the name
        raise error(f"is no path: {problem}", where=str(path)) from None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write `content` to `path`: a reader sees the old file or the complete new one, never a part.

    A replaced file keeps its permissions, a link stays a link, and anything but a regular file (a pipe, a
    device) is written to directly. Raises `InputError` naming the path if it cannot be written; then nothing
    is left behind.
    """
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    try:
        try:
            mode: int | None = os.stat(path).st_mode
        except FileNotFoundError:
            mode = None
        if mode is not None and stat.S_ISDIR(mode):
            raise InputError("is a directory", where=str(path))
        if mode is not None and not stat.S_ISREG(mode):
            with open(path, "wb") as device:
                device.write(data)
            return
        _replace(Path(os.path.realpath(path)), data, mode)
    except OSError as problem:
        raise InputError(problem.strerror or "cannot be written", where=str(path)) from None
    except ValueError as problem:  # a null byte in the name
        raise InputError(f"is no path: {problem}", where=str(path)) from None


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield an empty temporary folder for this process alone; remove it afterwards."""
    from tempfile import gettempdir

    folder = Path(gettempdir()) / f"onchip-{secrets.token_hex(8)}"
    guard.keep(folder)  # before it exists: a signal may come at any time
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():  # otherwise a child still writes there: the end of this process tries again
            guard.drop(folder)


def _replace(path: Path, data: bytes, mode: int | None) -> None:
    """Replace `path` by a new regular file, with the permissions in `mode` or a new file's."""
    guard.doing(f"writing {path}")
    temporary = path.parent / f".onchip-{secrets.token_hex(8)}.tmp"
    guard.keep(temporary)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)  # less the umask
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        guard.drop(temporary)
