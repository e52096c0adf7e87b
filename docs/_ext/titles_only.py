"""The tree of pages beside every page, which shows titles, without copying all that stands below them first.

Sphinx copies the contents of every page into the tree and then leaves only titles; the contents of pages on
modules are long. Here it is given contents that have no more than it would leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def shortened(contents: nodes.Element) -> nodes.Element:
    """A page's contents with the pages below it, and without its sections and objects."""
    kept = contents.copy()
    for top in contents.children:
        assert isinstance(top, nodes.Element)
        entry = top.copy()
        if isinstance(top, nodes.list_item) and len(top) > 1:
            entry += top[0].deepcopy()
            if below := [tree.deepcopy() for tree in top.findall(addnodes.toctree)]:
                entry += top[1].copy()
                entry[1].extend(below)
        else:
            entry.extend(child.deepcopy() for child in top)
        kept += entry
    return kept


def shorten(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Before the theme asks for the tree: let it have the short contents."""
    given, env = context.get("toctree"), app.env
    if given is None:
        return
    if not hasattr(app, "_short_tocs"):
        app._short_tocs = {name: shortened(toc) for name, toc in env.tocs.items()}  # type: ignore[attr-defined]

    def toctree(**how: Any) -> str:
        if not how.get("titles_only"):
            return str(given(**how))
        whole, env.tocs = env.tocs, app._short_tocs  # type: ignore[attr-defined]
        try:
            return str(given(**how))
        finally:
            env.tocs = whole

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", shorten, priority=400)
    return {"parallel_read_safe": True}
