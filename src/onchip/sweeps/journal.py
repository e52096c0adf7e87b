"""The stored answers of a sweep: a SQLite file in its folder, to which each answer is added once.

A batch of answers is one transaction (write-ahead log, `synchronous=FULL`): after a crash at any moment it is
in the file as a whole or not at all, and SQLite itself removes half-written data. One process writes, and
locks the file; when it dies, in any way, the file is free for the next one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Self

from onchip.base.errors import InputError
from onchip.sweeps.points import Done
from onchip.sweeps.table import type_of

__all__ = ["Journal"]

FORMAT = "onchip.sweep/1"

TABLES = """
CREATE TABLE about (format TEXT NOT NULL);
CREATE TABLE answers (
    key TEXT NOT NULL, seconds_limit REAL NOT NULL, settled INTEGER NOT NULL, figures TEXT NOT NULL,
    PRIMARY KEY (key, seconds_limit)
) WITHOUT ROWID;
"""

SETTLED = ("optimal", "infeasible", "refused")
"""The statuses of answers that more time would not change."""

UNLIMITED = 0.0

MOST_LETTERS = 1 << 24
"""The most characters of one answer; some hundred are usual."""

STEPS = 10_000
"""Instructions of SQLite's virtual machine between two checks of their number."""

MOST_STEPS, MOST_STEPS_PER_BYTE = 10_000_000, 100
"""The instruction limit of one request, beside the limit for each byte of the file: reading a row of a sweep
takes few, but pages of a foreign file may refer to each other without end."""


def _schema(base: sqlite3.Connection) -> list[tuple[object, ...]]:
    """Return the schema that the file states: tables, indexes, views, triggers, each with its SQL."""
    asked = "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 64"
    return sorted(base.execute(asked).fetchall(), key=repr)


def _make(base: sqlite3.Connection) -> None:
    for statement in TABLES.split(";"):
        base.execute(statement)


@cache
def _ours() -> list[tuple[object, ...]]:
    base = sqlite3.connect(":memory:")
    try:
        _make(base)
        return _schema(base)
    finally:
        base.close()


def _fits(name: str, value: object) -> bool:
    """Return whether a column of the table may hold this value: integers, finite numbers, or text."""
    kind = type_of(name)
    if value is None or kind == "text":
        return value is None or isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300 if kind == "number" else isinstance(value, int) and abs(value) < 1 << 63


class Journal:
    """The answers in a folder, by the points' keys.

    An answer is settled if it is proved: it is valid under every time limit. Any other is valid under the
    limit with which it was made. Raises `InputError` naming the file when it cannot be read or written, or
    another process is using it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._steps = 0
        self._base = self._connect()
        try:
            with self._told():
                self._base.set_progress_handler(self._step, STEPS)
                self._open()
        except BaseException:
            self._base.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self.path, timeout=2.0, isolation_level=None)
        except sqlite3.Error as problem:
            raise InputError(str(problem), where=str(self.path)) from None

    def _open(self) -> None:
        run = self._base.execute
        self._base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LETTERS)
        run("PRAGMA trusted_schema=OFF")
        run("PRAGMA locking_mode=EXCLUSIVE")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("BEGIN IMMEDIATE")
        found = _schema(self._base)
        if not found:
            _make(self._base)
            run("INSERT INTO about VALUES (?)", (FORMAT,))
        elif found != _ours() or run("SELECT format FROM about LIMIT 2").fetchall() != [(FORMAT,)]:
            raise InputError(f"is no journal of this version ({FORMAT})", where=str(self.path))
        run("COMMIT")

    def _step(self) -> bool:
        """Return whether a request has exceeded the instruction limit for a file of this size."""
        self._steps += STEPS
        return self._steps > MOST_STEPS and self._steps > MOST_STEPS + MOST_STEPS_PER_BYTE * self._bytes()

    def _bytes(self) -> int:
        """Return the bytes of the file and its log."""
        paths = self.path, self.path.with_name(self.path.name + "-wal")
        return sum(path.stat().st_size for path in paths if path.exists())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._base.close()

    def answers(self, seconds: float | None) -> dict[str, dict[str, Any]]:
        """Return the figures that are valid under a limit of so many seconds, by key."""
        limit = UNLIMITED if seconds is None else seconds
        rows: list[tuple[bool, float, str, str]] = []
        with self._told():
            asked = "SELECT key, seconds_limit, settled, figures FROM answers"
            most, held = self._bytes(), 0
            for key, made_with, settled, figures in self._base.execute(asked):
                if not (isinstance(key, str) and isinstance(figures, str) and isinstance(made_with, float)):
                    raise InputError("is no answer of a sweep", where=str(self.path), item=str(key)[:80])
                held += len(key) + len(figures)
                if held > most:
                    raise InputError("is a damaged journal", where=str(self.path))
                if settled or made_with == limit:
                    rows.append((bool(settled), made_with, key, figures))
        rows.sort()
        return {key: self._read(key, figures) for _, _, key, figures in rows}

    def _read(self, key: str, text: str) -> dict[str, Any]:
        """Return one answer's figures; refuse by key an answer that no sweep writes (of a foreign file)."""
        try:
            figures = json.loads(text)
        except (ValueError, RecursionError):
            figures = None
        if not isinstance(figures, dict):
            raise InputError("is no answer of a sweep", where=str(self.path), item=key[:80])
        for name, value in figures.items():
            if not isinstance(name, str) or not _fits(name, value):
                item = f"{key[:80]}: {str(name)[:40]}"
                raise InputError(f"{str(value)[:60]!r} is no such figure", where=str(self.path), item=item)
        return figures

    def add(self, done: Iterable[Done], seconds: float | None) -> None:
        """Add answers, all or none of them; the caller must not add a point that has one already."""
        limit = UNLIMITED if seconds is None else seconds
        rows = [(d.key, limit, d.figures.get("status") in SETTLED, json.dumps(d.figures)) for d in done]
        with self._told():
            run = self._base.execute
            run("BEGIN IMMEDIATE")
            try:
                self._base.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", rows)
                run("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    run("ROLLBACK")
                raise

    def forget_failures(self) -> int:
        """Delete the points that failed, so that they are tried again; return their number."""
        with self._told():
            return self._base.execute(
                "DELETE FROM answers WHERE json_extract(figures, '$.status') = 'failed'"
            ).rowcount

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Convert SQLite's errors to onchip's."""
        self._steps = 0
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except UnicodeDecodeError:  # SQLite's message may contain damaged names as they are in the file
            raise InputError("is a damaged journal", where=str(self.path)) from None
        except sqlite3.Error as problem:
            reason = str(problem)
            if reason == "interrupted":
                reason = "is a damaged journal"
            elif "locked" in reason:
                reason = "another sweep is using it"
            raise InputError(reason, where=str(self.path)) from None
