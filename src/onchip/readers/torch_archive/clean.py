"""From a `.pt2` file to a new archive, written from the parts that were understood."""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from onchip.base.errors import ModelError
from onchip.base.limits import limits
from onchip.readers.torch_archive.entries import Entries, opened
from onchip.readers.torch_archive.examples import check_example
from onchip.readers.torch_archive.program import CleanProgram, Leaf, clean_program
from onchip.readers.torch_archive.tensors import cleaned_payloads
from onchip.readers.torch_archive.words import Senseless

__all__ = ["Clean", "clean_archive"]

IN_MEMORY = 64 << 20
"""The most bytes of an archive that is kept in memory; larger ones go to a temporary file."""


@dataclass(frozen=True)
class Clean:
    """An archive for torch, open at its beginning.

    `free` states that sizes were symbols; they are now the numbers of the example, and `inputs` are those to
    trace the program with.
    """

    archive: IO[bytes]
    free: bool
    inputs: tuple[Leaf, ...]


def clean_archive(path: Path, *, where: str) -> Clean:
    """Read, check and rewrite a `.pt2` file; raises `ModelError` in one line that names the unknown part."""
    try:
        with opened(path, where) as entries:
            return _clean(entries)
    except Senseless as problem:
        raise ModelError(problem.reason, where=where, item=problem.item) from None
    except ValueError as problem:
        raise ModelError(f"is no file of torch.export.save: {problem}", where=where) from None


def _clean(entries: Entries) -> Clean:
    if entries.text("archive_format") != "pt2" or entries.text("archive_version") != "0":
        raise Senseless("is of another kind or version than pt2 0", "archive")
    if "byteorder" in entries.found and entries.text("byteorder") != "little":
        raise Senseless("is not little", "byte order")
    models = [place for place in entries.found if place.startswith("models/")]
    if len(models) != 1:
        raise Senseless(f"has {len(models)} programs, not one", "archive")
    label = models[0].removeprefix("models/").removesuffix(".json")
    sample = f"data/sample_inputs/{label}.pt"
    if (entries.size(sample) or 0) > 0:
        check_example(entries.read(sample))
    program = clean_program(entries.read(models[0], limits().text_bytes))
    made: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  torch reads it
    try:
        _write(made, entries, label, program)
    except BaseException:
        made.close()
        raise
    made.seek(0)
    return Clean(made, program.free, program.inputs)


def _write(made: IO[bytes], entries: Entries, label: str, program: CleanProgram) -> None:
    with zipfile.ZipFile(made, "w") as archive:
        for kind in ("weights", "constants"):
            payloads, places = cleaned_payloads(entries, label, kind)
            archive.writestr(f"m/data/{kind}/model_{kind}_config.json", msgspec.json.encode(payloads))
            for place in places:
                archive.writestr(f"m/{place}", entries.read(place))
        archive.writestr("m/data/sample_inputs/model.pt", b"")
        archive.writestr("m/models/model.json", program.content)
        for place, text in (
            ("archive_format", "pt2"),
            ("archive_version", "0"),
            ("byteorder", "little"),
            (".data/version", "6\n"),
        ):
            archive.writestr(f"m/{place}", text)
