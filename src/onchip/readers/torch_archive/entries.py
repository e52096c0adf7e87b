"""The entries of a `.pt2` archive: each once, stored uncompressed, at a place that torch itself writes."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onchip.base.errors import ModelError
from onchip.base.limits import VARIABLE, limits
from onchip.readers.torch_archive.words import Senseless, shown

__all__ = ["BROKEN", "Entries", "opened"]

BROKEN = (
    OSError,
    zipfile.BadZipFile,
    NotImplementedError,
    ValueError,
    RuntimeError,
    EOFError,
    struct.error,
    zlib.error,
)
"""The errors that `zipfile` raises for damaged files."""

_PLACES = re.compile(
    r"data/(?:weights/(?:weight_\d+|[^/]+\.json)|constants/(?:tensor_\d+|[^/]+\.json)|sample_inputs/[^/]+\.pt)"
    r"|models/[^/]+\.json|archive_format|archive_version|byteorder|version|\.data/[^/]+|\.format_version"
    r"|\.storage_alignment|extra/.*",
    re.ASCII,
)
"""The places that `torch.export.save` writes for programs of plain tensors."""

_ENCRYPTED = 0x1


@dataclass(frozen=True)
class Entries:
    """An open archive, and its entries by their place below the folder that they all share."""

    archive: zipfile.ZipFile
    found: dict[str, zipfile.ZipInfo]

    def size(self, place: str) -> int | None:
        """Return the bytes of an entry, None if there is none."""
        entry = self.found.get(place)
        return None if entry is None else entry.file_size

    def read(self, place: str, most: int | None = None) -> bytes:
        """Return an entry's bytes; raises `Senseless` if it is missing, damaged or larger than `most`."""
        entry = self.found.get(place)
        if entry is None:
            raise Senseless("is not there", f"entry {shown(place)}")
        if most is not None and entry.file_size > most:
            raise Senseless(f"has {entry.file_size:,} bytes, more than {most:,}", f"entry {shown(place)}")
        try:
            return self.archive.read(entry)
        except BROKEN as problem:
            raise Senseless("is damaged", f"entry {shown(place)}") from problem

    def text(self, place: str) -> str:
        """Return a short entry of words."""
        return self.read(place, 100).decode("ascii", "replace").strip()


@contextmanager
def opened(path: Path, where: str) -> Iterator[Entries]:
    """Yield the archive's entries.

    Raises `ModelError` for anything but an archive of `torch.export.save`, and `Senseless` for an entry that
    torch would not write: one that is repeated, compressed, encrypted, or elsewhere.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError("is no regular file", where=where)
        size = path.stat().st_size
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise ModelError("no such file", where=where) from None
    except BROKEN:
        raise ModelError("is no file of torch.export.save", where=where) from None
    with archive:
        yield Entries(archive, _checked(archive, size))


def _checked(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    unpacked = sum(entry.file_size for entry in archive.infolist())
    most = limits().model_bytes
    if unpacked > most:
        said = f"({VARIABLE}MODEL_BYTES sets how much is read)"
        raise Senseless(f"unpacks to {unpacked:,} bytes, more than {most:,} {said}")
    found: dict[str, zipfile.ZipInfo] = {}
    folders, seen = set(), set()
    for entry in archive.infolist():
        item = f"entry {shown(entry.filename)}"
        folder, _, place = entry.filename.partition("/")
        folders.add(folder)
        if entry.filename != entry.orig_filename or "\\" in place or folder in ("", ".", ".."):
            raise Senseless("is no name that torch writes", item)
        if any(part in ("", ".", "..") for part in place.split("/")):
            raise Senseless("leads out of the archive", item)
        if place.casefold() in seen:
            raise Senseless("stands in the archive twice", item)
        seen.add(place.casefold())
        if _PLACES.fullmatch(place) is None:
            raise Senseless("is no tensor and no program: it is not loaded", item)
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise Senseless("is compressed, which torch never does", item)
        if entry.flag_bits & _ENCRYPTED:
            raise Senseless("is encrypted", item)
        try:
            archive.open(entry).close()  # compares with the header that stands before the bytes
        except BROKEN as problem:
            raise Senseless("is described in two ways", item) from problem
        found[place] = entry
    if len(folders) != 1:
        raise Senseless(f"has {len(folders)} folders, not one")
    if unpacked > size:
        raise Senseless("has entries that share their bytes")
    return found
