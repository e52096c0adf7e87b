"""What Markdown says in HTML where it lies, said in the site's words: pictures for light and dark, links out.

- `<picture>` with a dark source becomes two images, of which the theme shows one.
- A link to a file of the project that is no page goes to nothing on the site: it becomes the file's name.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]*)"(?: width="(?P<width>[^"]+)")?>\s*</picture>'
)
OUTSIDE = re.compile(r"\[(?P<words>[^\]\n]+)\]\((?P<target>\.\./[^)\s]+)\)")


def two_images(found: re.Match[str]) -> str:
    alt = unescape(found["alt"]).replace("]", "\\]")
    return "\n".join(f"{{.only-{when}}}\n![{alt}]({found[when]})\n" for when in ("light", "dark"))


def rewrite(app: Sphinx, name: str, text: list[str]) -> None:
    written = PICTURE.sub(two_images, text[0])
    if "/" not in name:  # a page in a folder reaches other pages by ../
        written = OUTSIDE.sub(r"\g<words> (`\g<target>`)", written).replace("(`../", "(`")
    text[0] = written


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", rewrite)
    app.add_lexer("csv", TextLexer)
    return {"parallel_read_safe": True}
