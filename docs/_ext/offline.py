"""The site works from disk: a page that would load something from elsewhere ends the build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import SphinxError

LOADS = re.compile(
    r"<(?:script|img|iframe|source)[^>]*\ssrc=[\"']?(?:https?:)?//|<link[^>]*\shref=[\"']?(?:https?:)?//"
)
IMPORTS = re.compile(r"@import|url\([\"']?(?:https?:)?//")


def look(app: Sphinx, failed: Exception | None) -> None:
    if failed is not None or app.builder.format != "html":
        return
    for pattern, ending in ((LOADS, "*.html"), (IMPORTS, "*.css")):
        for page in Path(app.outdir).rglob(ending):
            if found := pattern.search(page.read_text("utf-8", errors="replace")):
                raise SphinxError(f"{page.name} would load from the network: {found[0]}")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", look)
    return {"parallel_read_safe": True}
