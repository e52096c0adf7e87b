"""Object files are compiled once a process, and again where what they come from differs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from onchip.base.errors import BuildFailed
from onchip.microcontroller.emulator import objects
from onchip.microcontroller.emulator.objects import objects_of

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a compiler")

FILES = {
    "a.c": '#include "a.h"\nint a(void) { return A; }\n',
    "b.c": "int b(void) { return 2; }\n",
    "a.h": "#ifndef A\n#define A 1\n#endif\n",
}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Forget what is known; return the names of the sources that are compiled from now on."""
    names: list[str] = []
    call = objects.call

    def noted(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        names.extend(x for x in command if x.endswith(".c"))
        return call(command, folder)

    monkeypatch.setattr(objects, "call", noted)
    monkeypatch.setattr(objects, "_KNOWN", objects._Known())
    return names


def made(
    folder: Path,
    files: dict[str, str],
    defines: tuple[str, ...] = (),
    flag: str = "-O1",
    *,
    remember: bool = True,
) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    units = [name for name in files if name.endswith(".c")]
    found = objects_of(["cc", flag], files, units, defines, folder, remember=remember)
    return {name: (folder / name).read_bytes() for name in found}


def test_what_is_the_same_is_compiled_once(tmp_path: Path, compiled: list[str]) -> None:
    first = made(tmp_path / "1", FILES)
    assert compiled == ["a.c", "b.c"]
    assert made(tmp_path / "2", FILES) == first
    assert compiled == ["a.c", "b.c"]
    made(tmp_path / "3", FILES, remember=False)
    assert compiled == ["a.c", "b.c"] * 2


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"b.c": "int b(void) { return 3; }\n"}, ["b.c"]),
        ({"a.h": "#define A 7\n"}, ["a.c", "b.c"]),
    ],
)
def test_another_text_is_compiled(
    tmp_path: Path, compiled: list[str], changed: dict[str, str], again: list[str]
) -> None:
    first = made(tmp_path / "1", FILES)
    compiled.clear()
    second = made(tmp_path / "2", FILES | changed)
    assert compiled == again
    assert second != first


def test_a_define_and_a_flag_are_told_apart(tmp_path: Path, compiled: list[str]) -> None:
    first = made(tmp_path / "1", FILES, ("A=1",))
    assert made(tmp_path / "2", FILES, ("A=5",)) != first
    assert made(tmp_path / "3", FILES, ("A=5", "C")) != first
    assert compiled == ["a.c", "b.c"] * 2  # nothing speaks of C; a header, that all may include, of A
    made(tmp_path / "4", FILES, ("A=5",), "-O2")
    assert len(compiled) == 6


def test_sources_of_one_name_each_have_an_object(tmp_path: Path, compiled: list[str]) -> None:
    files = {"a.c": "int a(void) { return 1; }\n", "a.S": ".globl b\nb:\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = objects_of(["cc"], files, list(files), (), tmp_path)
    assert len({(tmp_path / name).read_bytes() for name in found}) == 2


def test_memory_is_bounded(tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "MOST_BYTES", 1)
    made(tmp_path / "1", FILES)
    made(tmp_path / "2", FILES)
    assert compiled == ["a.c", "b.c"] * 2
    assert objects._KNOWN.bytes == sum(map(len, objects._KNOWN.files.values())) <= 1


def test_an_error_is_the_compilers_first(tmp_path: Path, compiled: list[str]) -> None:
    with pytest.raises(BuildFailed, match=r"a\.c"):
        made(tmp_path, FILES | {"a.c": "int a(void) { return }\n"})
