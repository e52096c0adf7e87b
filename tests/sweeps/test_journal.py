"""The journal: an answer is there as a whole or not at all, whatever is left of the file."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from onchip.base.errors import InputError
from onchip.sweeps.journal import Journal
from onchip.sweeps.points import Done


def done(*names: str, status: str = "optimal") -> list[Done]:
    return [Done(name, {"status": status, "dram_bytes": 3}) for name in names]


def test_what_was_added_is_there_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.add(done("a", "b"), None)
    with Journal(path) as journal:
        assert set(journal.answers(None)) == {"a", "b"}
        assert journal.answers(None)["a"] == {"status": "optimal", "dram_bytes": 3}


def test_a_point_is_answered_once(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.add(done("a"), None)
        with pytest.raises(sqlite3.IntegrityError):
            journal.add(done("b", "a"), None)
        assert set(journal.answers(None)) == {"a"}  # all or none


def test_what_is_proved_serves_under_every_limit_and_anything_else_under_its_own(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.add([*done("proved"), *done("cut", status="feasible"), *done("dead", status="failed")], 2.0)
        assert set(journal.answers(2.0)) == {"proved", "cut", "dead"}
        assert set(journal.answers(3.0)) == set(journal.answers(None)) == {"proved"}
        journal.add(done("cut"), 9.0)
        assert journal.answers(2.0)["cut"]["status"] == "optimal"


def test_failures_can_be_forgotten(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.add([*done("a"), *done("dead", status="failed")], None)
        assert journal.forget_failures() == 1
        assert set(journal.answers(None)) == {"a"}


@pytest.mark.thorough
def test_a_torn_log_has_a_batch_whole_or_not_at_all(tmp_path: Path) -> None:
    """A process that dies leaves the write-ahead log as it is; here it also lost any number of its bytes."""
    code = (
        "import os, sys; from pathlib import Path; from onchip.sweeps.journal import Journal\n"
        "from onchip.sweeps.points import Done\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for batch in ('ab', 'cd', 'ef'):\n"
        "    journal.add([Done(key, {'status': 'optimal'}) for key in batch], None)\n"
        "os._exit(9)"
    )
    (tmp_path / "whole").mkdir()
    path = tmp_path / "whole" / "j"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    log = path.with_name("j-wal").read_bytes()
    assert log
    seen = set()
    for cut in range(0, len(log) + 1, 1031):
        shutil.rmtree(tmp_path / "torn", ignore_errors=True)
        shutil.copytree(path.parent, tmp_path / "torn")
        (tmp_path / "torn" / "j-wal").write_bytes(log[:cut])
        with Journal(tmp_path / "torn" / "j") as journal:
            found = "".join(sorted(journal.answers(None)))
            assert found in ("", "ab", "abcd", "abcdef")
            seen.add(found)
            journal.add(done("z"), None)
    assert len(seen) >= 3
    with Journal(path) as journal:
        assert len(journal.answers(None)) == 6


@pytest.mark.thorough
def test_a_second_sweep_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "j"), pytest.raises(InputError, match="another sweep is using it"):
        Journal(tmp_path / "j")
    with Journal(tmp_path / "j"):
        pass


@pytest.mark.parametrize("content", [b"no journal at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_another_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j"
    path.write_bytes(content)
    with pytest.raises(InputError, match="j: "):
        Journal(path)
    assert path.read_bytes() == content


def test_a_base_of_another_program_is_no_journal(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "j")
    base.execute("CREATE TABLE other (x)")
    base.commit()
    base.close()
    with pytest.raises(InputError, match="no journal"):
        Journal(tmp_path / "j")


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from onchip.base.errors import InputError; from onchip.sweeps.journal import Journal\n"
        "from onchip.sweeps.points import Done\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "journal = Journal(Path(sys.argv[1])); journal.add([Done('a', {'status': 'optimal'})], None)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    for i in range(1000): journal.add([Done(f'{i}', {'reason': 'x' * 5000})], None)\n"
        "except InputError as problem: print(problem)\n"
    )
    path = tmp_path / "j"
    said = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"{path}: ")
    assert said.stdout.count("\n") == 1
    with Journal(path) as journal:
        assert "a" in journal.answers(None)
        journal.add(done("b"), None)


@pytest.mark.parametrize(
    "figures",
    [
        "{",
        "[]",
        "[" * 100_000,
        '{"dram_bytes": "1"}',
        '{"dram_bytes": 1.5}',
        '{"dram_bytes": true}',
        '{"gap": NaN}',
        '{"seconds": 1e999}',
        '{"status": {}}',
        '{"macs": 99999999999999999999}',
    ],
)
def test_figures_that_no_sweep_writes_are_refused_by_their_key(tmp_path: Path, figures: str) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.add([Done("k1", {"status": "optimal", "dram_bytes": 1, "gap": 0.5, "reason": None})], None)
    base = sqlite3.connect(path)
    base.execute("UPDATE answers SET figures = ?", (figures,))
    base.commit()
    base.close()
    with Journal(path) as journal, pytest.raises(InputError, match="j: k1"):
        journal.answers(None)


ENDLESS = (
    "DROP TABLE answers; CREATE VIEW answers AS"
    " WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
    " SELECT CAST(x AS TEXT) AS key, 0.0 AS seconds_limit, 1 AS settled, '{}' AS figures FROM c"
)


@pytest.mark.parametrize(
    "change",
    [
        ENDLESS,
        "CREATE TABLE more (x)",
        "CREATE VIEW more AS SELECT 1",
        "CREATE INDEX more ON answers (abs(seconds_limit))",
        "CREATE TRIGGER more AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
        "DROP TABLE answers; CREATE TABLE answers (key, seconds_limit, settled, figures)",
        "DROP TABLE about; CREATE TABLE about (format TEXT, more AS (format || 'x'))",
        "INSERT INTO about SELECT format FROM about",
    ],
    ids=lambda change: change[:30],
)
def test_a_base_that_is_made_otherwise_is_no_journal(tmp_path: Path, change: str) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.add(done("a"), None)
    base = sqlite3.connect(path)
    base.executescript(change)
    base.close()
    with pytest.raises(InputError, match="j: is no journal of this version"):
        Journal(path)


@pytest.mark.thorough
def test_pages_that_are_read_again_and_again_are_damage(tmp_path: Path) -> None:
    """Every page of the way to the answers leads a dozen times to the next: no end would ever come."""
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.add([Done(f"{i:04}", {"reason": "x" * 9}) for i in range(1500)], None)
    base = sqlite3.connect(path)
    ((root,),) = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'answers'").fetchall()
    base.execute("PRAGMA journal_mode=DELETE")
    base.close()
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    page = bytes(data[(root - 1) * size : root * size])
    assert page[0] == 2
    cells = int.from_bytes(page[3:5], "big")
    assert cells > 10
    places = [8, *(int.from_bytes(page[12 + 2 * i : 14 + 2 * i], "big") for i in range(cells))]
    count, deep = len(data) // size, 12
    for level in range(deep):
        copy = bytearray(page)
        if level < deep - 1:
            for place in places:
                copy[place : place + 4] = (count + level + 2).to_bytes(4, "big")
        data += copy
    for place in places:
        at = (root - 1) * size + place
        data[at : at + 4] = (count + 1).to_bytes(4, "big")
    data[28:32] = (count + deep).to_bytes(4, "big")
    path.write_bytes(data)
    with Journal(path) as journal:
        with pytest.raises(InputError, match="j: is a damaged journal"):
            journal.answers(None)
        with pytest.raises(InputError, match="j: "):
            journal.forget_failures()
