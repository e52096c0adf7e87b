"""External data: weights in files beside the model, never outside its folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import ModelError
from onchip.readers.elements import BITS, value_bytes

if TYPE_CHECKING:
    import onnx

MOST_ENTRIES, MOST_PARTS, MOST_LETTERS = 16, 64, 4096
"""The most keys of a tensor's external data, and folders and letters of its location."""

__all__ = ["external_file", "is_external", "read_array", "read_external"]

KEYS = frozenset({"location", "offset", "length"})
"""The keys of an entry that are read; others (checksums, a program's own) do not locate the data."""


def is_external(tensor: onnx.TensorProto) -> bool:
    """Return whether the tensor's data lies in another file."""
    return bool(tensor.data_location == 1)


def external_file(
    tensor: onnx.TensorProto, folder: Path | None, *, where: str
) -> tuple[Path, int, int | None]:
    """Return the file with a tensor's data, the offset of its bytes, and their number (None: to the end).

    Nothing is opened. Raises `ModelError` naming `where` and the tensor for a location that is absolute,
    climbs out of the folder, passes a symbolic link, or is no path, and for offsets that are no numbers.
    """

    def refuse(reason: str) -> ModelError:
        return ModelError(reason, where=where, item=f"tensor {tensor.name}")

    if len(tensor.external_data) > MOST_ENTRIES:
        raise refuse(f"has {len(tensor.external_data):,} entries of external data")
    entries = {entry.key: entry.value for entry in tensor.external_data if entry.key in KEYS}
    if not all(isinstance(value, str) for value in entries.values()):
        raise refuse("has external data with a text that is not UTF-8")
    location = entries.get("location", "")
    if folder is None:
        raise refuse("has external data, and this model has no folder to hold it")
    if not location or "\0" in location:
        raise refuse("has external data without a location")
    windows = PureWindowsPath(location)
    if PurePosixPath(location).is_absolute() or windows.drive or windows.root:
        raise refuse(f"external data {location!r} is an absolute path; it must lie in the model's folder")
    parts = PurePosixPath(location).parts
    if len(parts) > MOST_PARTS or len(location) > MOST_LETTERS:
        raise refuse("external data has a location that is no usable path")
    if ".." in parts or ".." in windows.parts:
        raise refuse(f"external data {location!r} lies outside the model's folder")
    path = folder
    for part in parts:
        path = path / part
        try:
            if path.is_symlink():
                raise refuse(f"external data {location!r} is reached through a symbolic link")
        except OSError:
            raise refuse(f"external data {location!r} is not a usable path") from None
    try:
        offset = int(entries.get("offset") or 0)
        length = int(entries["length"]) if entries.get("length") else None
    except ValueError:
        raise refuse("external data has an offset or length that is no number") from None
    if offset < 0 or (length is not None and length < 0):
        raise refuse("external data has a negative offset or length")
    if max(offset, length or 0) >= 1 << 62:
        raise refuse("external data has an offset or length beyond any file")
    return path, offset, length


def read_external(tensor: onnx.TensorProto, folder: Path | None, *, where: str) -> bytes:
    """Return a tensor's external bytes, exactly as many as its type and shape state.

    Raises `ModelError` naming the tensor as `external_file` does, for a stated length that contradicts type
    and shape, for missing bytes, and for anything but a regular file: a pipe would never end.
    """

    def refuse(reason: str) -> ModelError:
        return ModelError(f"external data {path.name!r}: {reason}", where=where, item=f"tensor {tensor.name}")

    path, offset, length = external_file(tensor, folder, where=where)
    if tensor.data_type not in BITS or min(tensor.dims, default=0) < 0:
        raise refuse("its tensor has no known size")
    size = value_bytes(tensor.data_type, tensor.dims, "file")
    if length is not None and length != size:
        raise refuse(f"is stated to have {length:,} bytes; the tensor has {size:,}")
    try:
        # Do not wait for the other end of a pipe; a link may have appeared since the check for links.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(handle)
            raise refuse("not a regular file")
        with open(handle, "rb") as file:
            missing = offset + size - status.st_size
            if missing > 0:
                raise refuse(f"ends {missing:,} bytes too early")
            file.seek(offset)
            data = file.read(size)
    except OSError as problem:
        raise refuse(problem.strerror or "cannot be read") from None
    except MemoryError:
        raise refuse("does not fit in this machine's memory") from None
    if len(data) < size:
        raise refuse(f"ends {size - len(data):,} bytes too early")
    return data


def read_array(tensor: onnx.TensorProto, folder: Path | None, *, where: str) -> np.ndarray[Any, Any]:
    """Return a tensor's values, wherever they lie.

    Raises `ModelError` naming the tensor as `read_external` does, and for data that does not match its type
    and shape.
    """
    from onnx import numpy_helper

    try:
        if is_external(tensor):
            copy = type(tensor)(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
            copy.raw_data = read_external(tensor, folder, where=where)
            tensor = copy
        return np.asarray(numpy_helper.to_array(tensor))
    except ModelError:
        raise
    except MemoryError:
        reason = "does not fit in this machine's memory"
    except Exception as problem:  # onnx's have no common class
        reason = (str(problem).splitlines() or ["it does not match its type and shape"])[0]
    raise ModelError(f"its data cannot be read: {reason}", where=where, item=f"tensor {tensor.name}")
