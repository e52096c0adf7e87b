"""Exhibits of the paper whose page is docs/optimus.md."""

from __future__ import annotations

from exhibits.record import Exhibit

EXHIBITS: tuple[Exhibit, ...] = ()
