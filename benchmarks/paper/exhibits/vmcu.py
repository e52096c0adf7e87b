"""Exhibits of the paper whose page is docs/vmcu.md."""

from __future__ import annotations

from exhibits.record import Exhibit

EXHIBITS: tuple[Exhibit, ...] = ()
