"""Files are whole or not there, and what cannot be read or written says so in one line."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import onchip.base.files
from onchip.base.errors import ChipError, InputError
from onchip.base.files import read_bytes, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_text_and_bytes_are_written_and_replaced(tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    write_atomically(target, "é\n")
    assert target.read_bytes() == "é\n".encode()
    write_atomically(target, b"\0\r\n")
    assert read_bytes(target) == b"\0\r\n"
    assert names(tmp_path) == ["plan.json"]


def test_a_relative_name_is_written_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically(Path("out"), b"1")
    assert names(tmp_path) == ["out"]


def test_permissions_are_those_of_an_ordinary_new_file(tmp_path: Path) -> None:
    ordinary = tmp_path / "ordinary"
    ordinary.write_bytes(b"")
    write_atomically(tmp_path / "ours", b"")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_replacing_keeps_the_permissions_that_were_there(tmp_path: Path) -> None:
    target = tmp_path / "secret"
    target.write_bytes(b"old")
    target.chmod(0o600)
    write_atomically(target, b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_symlink_stays_one_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "plan", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path / "there") == ["plan"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failing_disk_leaves_the_old_file_and_nothing_else(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "plan"
    target.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    class FullFile:
        def __init__(self, handle: int, _: str) -> None:
            self.handle = handle

        def __enter__(self) -> FullFile:
            return self

        def __exit__(self, *_: object) -> None:
            os.close(self.handle)

        write = full

    if call == "write":
        monkeypatch.setattr(onchip.base.files.os, "fdopen", FullFile)
    else:
        monkeypatch.setattr(onchip.base.files.os, call, full)
    with pytest.raises(InputError, match="No space left on device") as caught:
        write_atomically(target, b"new")
    assert str(target) in str(caught.value)
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["plan"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(onchip.base.files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "plan", b"new")
    assert names(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="Permission denied"):
            write_atomically(tmp_path / "plan", b"new")
        assert names(tmp_path) == []
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing/plan", "No such file or directory"),
        ("file/plan", "Not a directory"),
        ("", "is a directory"),
        (".", "is a directory"),
        ("n" * 300, "File name too long"),
        ("a\0b", "null"),
    ],
)
def test_what_cannot_be_written_says_so(path: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(InputError, match=reason) as caught:
        write_atomically(tmp_path / path, b"new")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing", "no such file"),
        ("dangling", "no such file"),
        (".", "not a regular file"),
        ("file/inside", "not a directory"),
        ("loop", "symbolic link"),
        ("n" * 300, "too long"),
        ("a\0b", "null"),
    ],
)
def test_what_cannot_be_read_says_so(path: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ChipError, match=f"(?i){reason}") as caught:
        read_bytes(tmp_path / path, error=ChipError)
    assert str(caught.value).startswith(str(tmp_path))
    assert str(caught.value).isprintable()


def test_an_absurdly_large_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCHIP_MAX_TEXT_BYTES", "3")
    (tmp_path / "f").write_bytes(b"1234")
    with pytest.raises(InputError, match=r"f: larger than 3 bytes .ONCHIP_MAX_TEXT_BYTES sets"):
        read_bytes(tmp_path / "f")
    assert read_bytes(tmp_path / "f", model=True) == b"1234"
