"""Every exhibit of the five papers, and what of ours stands beside it: the data of docs/exhibits.md."""

from __future__ import annotations

from exhibits import cosma, hax_conn, optimus, simple_method, vmcu
from exhibits.record import Exhibit, Outcome

__all__ = ["PAPERS", "Exhibit", "Outcome", "Paper"]

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper by its title, the script whose sections print its exhibits, and their records."""

    title: str
    script: str
    exhibits: tuple[Exhibit, ...]


PAPERS = (
    Paper("COSMA", "cosma.py", cosma.EXHIBITS),
    Paper("Optimus", "optimus.py", optimus.EXHIBITS),
    Paper("A Simple Method", "simple_method.py", simple_method.EXHIBITS),
    Paper("vMCU", "vmcu.py", vmcu.EXHIBITS),
    Paper("HaX-CoNN", "hax_conn.py", hax_conn.EXHIBITS),
)
