"""The tree of pages from nav.toml, so that pages say what they say and not where they stand.

`nav.toml` is turned into toctrees: one for each section at the end of the index, one at the end of each page
that has others below it. Sphinx then warns of a page that stands nowhere and of a name without a page.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PLACES = "nav.toml"


def expand(names: list[str], pages: set[str], named: set[str]) -> list[str]:
    """The pages of an entry: a name is itself, a pattern every page that matches and that no entry names."""
    found = []
    for name in names:
        if "*" not in name:
            found.append(name)
        else:
            found += sorted(
                p
                for p in pages
                if fnmatchcase(p, name) and p not in named and p.count("/") == name.count("/")
            )
    return found


def toctree(pages: list[str], caption: str = "") -> str:
    """A hidden toctree in MyST's words; an absolute name means the same from every page."""
    options = [":hidden:"] + ([f":caption: {caption}"] if caption else [])
    return "\n".join(["", "```{toctree}", *options, "", *(f"/{page}" for page in pages), "```", ""])


def read(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / PLACES).read_text("utf-8"))


def append(app: Sphinx, name: str, text: list[str]) -> None:
    nav = read(Path(app.srcdir))
    below = nav.get("below", {})
    every = [page for section in nav["section"] for page in section["pages"]]
    every += [page for pages in below.values() for page in pages]
    named = {page for page in every if "*" not in page}
    pages = set(app.env.found_docs)
    if name == "index":
        for section in nav["section"]:
            text[0] += toctree(expand(section["pages"], pages, named), section["caption"])
    if name in below:
        text[0] += toctree(expand(below[name], pages, named))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", append)
    return {"parallel_read_safe": True}
