"""Where HaX-CoNN's exhibits are shown, printed and tested."""

from __future__ import annotations

__all__ = ["PAGE", "PAPERS", "SCRIPT", "SETUP", "SHOWN", "TESTS", "printed"]

PAGE = "hax-conn.md"
TESTS = "tests/multi_dnn"
SETUP = f"{TESTS}/test_hax_conn_setup.py"
SHOWN = f"{TESTS}/test_hax_conn_page.py"
PAPERS = "tests/documentation/test_figures_of_papers.py"
SCRIPT = "paper/hax_conn.py"


def printed(*sections: str) -> str:
    """The command that prints some sections."""
    return f"{SCRIPT} --only {' '.join(sections)}"
