"""External data: weights in files beside the model, never outside its folder."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from onchip.errors import ModelError

if TYPE_CHECKING:
    import onnx

__all__ = ["external_file", "is_external", "read_external"]


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether the tensor's data lies in another file."""
    return bool(tensor.data_location == 1)


def external_file(
    tensor: onnx.TensorProto, folder: Path | None, *, where: str
) -> tuple[Path, int, int | None]:
    """The file with a tensor's data, where its bytes start, and how many there are (None: to the end).

    Nothing is opened. Raises `ModelError` naming `where` and the tensor for a location that is absolute,
    climbs out of the folder, passes a symbolic link, or is no path, and for offsets that are no numbers.
    """

    def refuse(reason: str) -> ModelError:
        return ModelError(reason, where=where, item=f"tensor {tensor.name}")

    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise refuse("has external data, and this model has no folder to hold it")
    if not location or "\0" in location:
        raise refuse("has external data without a location")
    windows = PureWindowsPath(location)
    if PurePosixPath(location).is_absolute() or windows.drive or windows.root:
        raise refuse(f"external data {location!r} is an absolute path; it must lie in the model's folder")
    parts = PurePosixPath(location).parts
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
    return path, offset, length


def read_external(tensor: onnx.TensorProto, folder: Path | None, *, where: str) -> bytes:
    """A tensor's external bytes; raises `ModelError` as `external_file` does, or when they are not there."""
    path, offset, length = external_file(tensor, folder, where=where)
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read() if length is None else file.read(length)
    except OSError as problem:
        raise ModelError(
            f"external data {path.name!r}: {problem.strerror or 'cannot be read'}",
            where=where,
            item=f"tensor {tensor.name}",
        ) from None
    if length is not None and len(data) < length:
        raise ModelError(
            f"external data {path.name!r} ends {length - len(data):,} bytes too early",
            where=where,
            item=f"tensor {tensor.name}",
        )
    return data
