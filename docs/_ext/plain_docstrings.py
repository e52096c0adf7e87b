"""Docstrings are plain words with `names` in backticks; this makes them reStructuredText.

A name in backticks becomes a link where something public has that name, and code where not. What Sphinx would
take for markup in the words (a star, a bar, an underscore at a word's end) is escaped. Doctests, lists and
indented examples stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.transforms.post_transforms import SphinxPostTransform

CODE = re.compile(r"``([^`]+)``|`([^`]+)`")
NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?\Z")
MARKUP = re.compile(r"([*|\\])|(?<=\w)(_)(?!\w)")


def code(found: re.Match[str]) -> str:
    inner = found[1] or found[2]
    if NAME.match(inner):
        return f":py:obj:`{inner}`" if not inner.startswith("_") else f"``{inner}``"
    return f"``{inner}``"


def words(text: str) -> str:
    """One paragraph's words, markup escaped and backticks turned into roles."""
    parts, at = [], 0
    for found in CODE.finditer(text):
        parts.append(MARKUP.sub(r"\\\g<0>", text[at : found.start()]))
        before, after = text[: found.start()][-1:], text[found.end() :][:1]
        joined = (
            "\\ " if before and re.match(r"[\w)]", before) else "",
            "\\ " if re.match(r"\w", after) else "",
        )
        parts.append(joined[0] + code(found) + joined[1])
        at = found.end()
    parts.append(MARKUP.sub(r"\\\g<0>", text[at:]))
    return "".join(parts)


def converted(lines: list[str]) -> list[str]:
    """The docstring block by block: doctests and indented examples as they are, everything else as words."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    written: list[str] = []
    for block in filter(None, blocks):
        first = block[0]
        if first.lstrip().startswith(">>>"):
            new = block
        elif first.startswith("    ") and not first.lstrip().startswith(("- ", "* ")):
            new = ["::", "", *block]
        else:
            new = listed(words("\n".join(block)).split("\n"))
        written += [*new, ""]
    return written


def listed(block: list[str]) -> list[str]:
    """Lists need an empty line before them, and indented lines below words are an example."""
    written: list[str] = []
    inside = False
    for line in block:
        item = re.match(r"\s*(- |\d+\. )", line)
        indented = line.startswith(" ")
        if item and not inside and written:
            written.append("")
        if not item and not indented and inside:
            written.append("")
        inside = bool(item) or (inside and indented)
        if indented and not inside and written and not written[-1].startswith("|"):
            written = ["| " + w if not w.startswith("|") else w for w in written]
        written.append(("| " + line) if written and written[-1].startswith("| ") and not item else line)
    return written


def process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = converted(lines)


class Names(SphinxPostTransform):
    """What a name means, in docstrings and signatures: what has it in the same class or module, else the one
    class, exception or called function of that name anywhere. Every other name is only code."""

    default_priority = 5  # before Sphinx, which takes the type `bytes` for a field of that name

    def run(self, **kwargs: Any) -> None:
        for node in list(self.document.findall(pending_xref)):
            if node.get("refdomain") == "py" and "pending" not in node.get("classes", []):
                node.replace_self(self.linked(node))

    def linked(self, node: pending_xref) -> list[nodes.Node]:
        objects, content = self.env.domains.python_domain.objects, list(node.children)
        name = find(node["reftarget"], node.get("py:module") or "", node.get("py:class") or "", objects)
        if name is None or self.app.builder.format != "html":
            return content
        entry = objects[name]
        uri = self.app.builder.get_relative_uri(self.env.docname, entry.docname) + "#" + entry.node_id
        return [nodes.reference("", "", *content, internal=True, refuri=uri, reftitle=name)]


def find(target: str, module: str, class_: str, objects: Mapping[str, ObjectEntry]) -> str | None:
    """The full name of what a docstring calls `target`."""
    called, bare = target.endswith("()"), target.removesuffix("()").lstrip(".~")
    for name in (f"{module}.{class_}.{bare}", f"{class_}.{bare}", f"{module}.{bare}", f"onchip.{bare}", bare):
        entry = objects.get(name)
        if (
            entry
            and entry.objtype in KINDS
            and (called or not is_word(bare) or name.startswith(f"{module}."))
        ):
            return name
    last = bare.rpartition(".")[2]
    found = [
        n for n, o in objects.items() if n.rpartition(".")[2] == last and o.objtype in KINDS and not o.aliased
    ]
    own = [n for n in found if n == f"onchip.{last}"]
    best = own or found
    return best[0] if len(best) == 1 and (called or not is_word(bare)) else None


def is_word(name: str) -> bool:
    """Whether the name could be a word of the language: only a class's is surely none."""
    return "." not in name and name.islower()


KINDS = ("class", "exception", "function", "method", "property")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process)
    app.add_post_transform(Names)
    return {"parallel_read_safe": True}
