"""The project on disk: all of its files at once, or none of them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from onchip.base import guard
from onchip.base.errors import UsageError
from onchip.machines.board import Board
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.kernel_language.names import c_comment
from onchip.microcontroller.project.build_files import build_files
from onchip.microcontroller.project.examples import example_c, host_main
from onchip.microcontroller.project.sources import LICENCE, Sources

__all__ = ["project_files", "replaceable", "write_project"]

MARKERS = ("model.h", "Makefile")
"""Files that mark a folder as a replaceable project."""

_OURS = frozenset(
    {
        *("LICENSE", "Makefile", "README.md", "example", "main.c", "onchip_dsp.h", "examples/host/main.c"),
        *("library.properties", "library.json"),
        *(f"{unit}.{kind}" for unit in ("model", "kernels", "weights") for kind in "cho"),
    }
)
"""The files of a project and of its Makefile by their paths, except those that say so or have its name."""

_SAYS = "Written by onchip"


def project_files(sources: Sources, model: Int8Model, board: Board) -> dict[str, str]:
    """Return all files of the project by path: sources, examples, builds, a licence and a page on its use."""
    words = {
        "name": sources.name,
        "big": sources.name.upper(),
        "licence": LICENCE,
        "core": board.core,
        "board": c_comment(board.name),
        "model": c_comment(model.name),
        "sha256": model.sha256,
        "arena": f"{sources.arena_bytes + sources.state_bytes:,}",
        "constants": f"{sum(sources.constant_bytes.values()):,}",
        "unless": ", unless one keeps bytes between inferences, as this one does" if sources.stateful else "",
    }
    return {
        **sources.files,
        **build_files(words, board, [sources]),
        "examples/host/main.c": host_main([sources], "model.h"),
        "README.md": (_README + (_INSTANCES if sources.reentrant else _OWN)).format(**words)
        + example_c([sources]),
    }


def replaceable(folder: Path) -> None:
    """Raise `UsageError` for a folder that cannot become a project: it cannot exist, or has others' files."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError("is there and is no folder", where=str(folder))
    if not folder.parent.is_dir():
        raise UsageError("its folder does not exist", where=str(folder))
    if not os.access(folder.parent, os.W_OK):
        raise UsageError("its folder cannot be written", where=str(folder))
    if folder.is_dir() and any(folder.iterdir()):
        if not any(_made_by_us(folder / name, name) for name in MARKERS):
            raise UsageError("is a folder with files that onchip has not written", where=str(folder))
        others = sorted(path.relative_to(folder).as_posix() for path in _foreign(folder, folder))
        if others:
            reason = f"would be replaced, and has {others[0]!r}, which onchip has not written"
            raise UsageError(reason, where=str(folder))


def _foreign(folder: Path, root: Path) -> Iterator[Path]:
    """Yield what lies in a project and is not of onchip's making; links and empty folders are not."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink() and any(path.iterdir()):
            yield from _foreign(path, root)
        elif not _made_by_us(path, path.relative_to(root).as_posix()):
            yield path


def _made_by_us(path: Path, name: str) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    library = name.startswith("lib") and name.endswith(".a") and "/" not in name
    if (name in _OURS and name not in MARKERS) or library:
        return True
    if path.suffix == ".o" and _made_by_us(path.with_suffix(".c"), name):
        return True
    with path.open("rb") as file:
        return _SAYS.encode() in file.read(500)


def write_project(files: Mapping[str, str], folder: Path) -> None:
    """Write the files as `folder`, replacing an older project: whole, or not at all.

    Raises `UsageError` naming the folder where it cannot be written.
    """
    replaceable(folder)
    beside = folder.parent / f".onchip-{secrets.token_hex(8)}.tmp"
    old = folder.parent / f".onchip-{secrets.token_hex(8)}.old"
    guard.keep(beside)
    try:
        beside.mkdir()
        for name, text in files.items():
            (beside / name).parent.mkdir(parents=True, exist_ok=True)
            (beside / name).write_text(text, encoding="utf-8")
        if folder.is_dir():
            folder.rename(old)
        try:
            beside.rename(folder)
        except BaseException:
            if old.is_dir():
                old.rename(folder)
            raise
    except OSError as problem:
        raise UsageError(problem.strerror or "cannot be written", where=str(folder)) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        guard.drop(beside)
        shutil.rmtree(old, ignore_errors=True)


_README = """\
# {name}

C for `{model}` (SHA-256 {sha256}), written by onchip for {board} ({core}).

- `model.h`: the functions, and shapes, scales and zero points of input and output.
- `model.c`: when which layer makes which row, and where every byte lies: {arena} bytes for all
  activations and workspaces. No dynamic memory.
- `kernels.c`, `onchip_dsp.h`: the layers' kernels, with the instructions of the core where the compiler has
  them, in plain C on anything else.
- `weights.c`: {constants} bytes of constants for the flash.
- `{name}.h`: `model.h` under a name of its own. C and C++ can both include and compile everything here.

Ways to build it; each reads its own file, and the sources are the same:

| build | how |
|---|---|
| CMake | `add_subdirectory` of this folder, link `{name}`; alone it makes `examples/host` for this machine |
| make | `make`: the library with the cross compiler; `make example`: `examples/host` |
| Arduino | put the folder into `libraries`; `examples/{name}` is a sketch |
| PlatformIO | put the folder into `lib` |
| ESP-IDF | put the folder into `components` |
| Zephyr | add the folder to `ZEPHYR_EXTRA_MODULES`, set `CONFIG_ONCHIP_{big}=y` |
| CMSIS-Pack | `onchip.{name}.pdsc` |

Definitions for the compiler, none of which is needed:

| definition | for |
|---|---|
| `{big}_WEIGHTS_ATTRIBUTE` | the constants, e.g. a section of external flash |
"""

_OWN = """\
| `{big}_ARENA_ATTRIBUTE` | the array of activations, e.g. `__attribute__((section(".dtcm")))` |
| `{big}_ARENA_GIVEN` | no array: `{name}_use(memory)` takes yours, of {big}_ARENA_BYTES bytes, aligned to 4 |

One call at a time. Networks that run one behind the other may be given the same memory, as much as the
largest needs{unless}.

"""

_INSTANCES = """\

Memory belongs to instances, and no variable is written: instances with arrays of their own may run at the
same time, in threads or in an interrupt. Those that run one behind the other may have one array.

"""
