"""Exhibits of the paper whose page is docs/hax-conn.md."""

from __future__ import annotations

from exhibits.record import Exhibit

EXHIBITS: tuple[Exhibit, ...] = ()
