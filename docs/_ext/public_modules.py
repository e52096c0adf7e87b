"""`{public} MODULE` documents a module: its docstring, and everything that its `__all__` names.

What several modules name is documented once, on the first page that names it (`onchip` before all), and
is a link on the others. `{others}` documents the packages that have no page of their own: there is no list
to forget one in.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from plain_docstrings import converted
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import onchip

PAGES = "api"
DIRECTIVE = re.compile(r"^```\{public\} (\S+)$", re.M)


def documented(folder: Path) -> list[str]:
    """The modules that the pages document, `onchip` first."""
    pages = sorted((folder / PAGES).rglob("*.md"), key=lambda p: (p.name != "onchip.md", p.name))
    return [name for page in pages for name in DIRECTIVE.findall(page.read_text("utf-8"))]


def others(names: list[str]) -> list[str]:
    """onchip's packages that export something and that no page documents."""
    packages = [module.name for module in pkgutil.iter_modules(onchip.__path__, "onchip.") if module.ispkg]
    without = [name for name in packages if name not in {*names, *OWN} and "._" not in name]
    return [name for name in without if getattr(importlib.import_module(name), "__all__", None)]


OWN = frozenset({"onchip.cli", "onchip.planners.modules", "onchip.results"})
"""What serves onchip's own commands."""


def owners(names: list[str]) -> dict[int, str]:
    """For everything exported the module that documents it, by the object's id."""
    owner: dict[int, str] = {}
    for name in names:
        module = importlib.import_module(name)
        for export in module.__all__:
            value = getattr(module, export)
            if nameable(value):
                owner.setdefault(id(value), name)
    return owner


def nameable(value: object) -> bool:
    """Whether the object has a home; strings, numbers and aliases belong to every module that names them."""
    return inspect.isclass(value) or inspect.isfunction(value)


def entry(module: ModuleType, name: str) -> list[str]:
    """The directive that documents one export."""
    value, full = getattr(module, name), f"{module.__name__}.{name}"
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        ours = any(base.__module__.startswith("onchip") for base in value.__bases__)
        return [
            f".. {kind}:: {full}",
            "   :members:",
            "   :undoc-members:",
            *["   :show-inheritance:"] * ours,
            "",
        ]
    if inspect.isroutine(value):
        return [f".. autofunction:: {full}", ""]
    shown = repr(value)
    facts = [f"   :value: {shown}"] if len(shown) < 90 and " at 0x" not in shown else []
    return [
        f".. py:data:: {full}",
        *facts,
        "",
        *("   " + line for line in converted(data_doc(name, value))),
        "",
    ]


def data_doc(name: str, value: object) -> list[str]:
    """The words below an assignment, in whichever of onchip's modules it stands."""
    for module in [m for n, m in sorted(sys.modules.items()) if n.startswith("onchip.")]:
        if getattr(module, name, None) is value and getattr(module, "__file__", "").endswith(".py"):
            analyzer = ModuleAnalyzer.for_module(module.__name__)
            analyzer.analyze()
            if ("", name) in analyzer.attr_docs:
                return analyzer.attr_docs["", name]
    return []


class Public(SphinxDirective):
    required_arguments = 1
    has_content = True
    """Names, one a line: only these, in this order; all where there are none."""

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        owner = self.env.onchip_owners  # type: ignore[attr-defined]
        chosen = [line.strip() for line in self.content if line.strip()]
        lines = [] if chosen else converted(inspect.cleandoc(module.__doc__ or "").splitlines())
        elsewhere = []
        for name in chosen or module.__all__:
            value = getattr(module, name)
            if nameable(value) and owner[id(value)] != module.__name__:
                elsewhere.append(f":py:obj:`~{owner[id(value)]}.{name}`")
            elif not inspect.ismodule(value):
                lines += entry(module, name)
        if elsewhere:
            lines += ["Here, too, and described elsewhere: " + ", ".join(elsewhere) + ".", ""]
        # Docstrings are reStructuredText by now, the page is Markdown: its directive for that takes them.
        fence = "`" * 8
        return self.parse_text_to_nodes("\n".join([fence + "{eval-rst}", *lines, fence]))


class Others(SphinxDirective):
    """The packages that have no page of their own, so that what is new is never missing."""

    def run(self) -> list[nodes.Node]:
        names = others(documented(Path(self.env.srcdir)))
        sections = [f"## {name}\n\n```{{public}} {name}\n```\n" for name in names]
        text = "\n".join(sections) or "At present there are none."
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def prepare(app: Sphinx, env: Any, names: list[str]) -> None:
    names = documented(Path(app.srcdir))
    env.onchip_owners = owners([*names, *others(names)])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("public", Public)
    app.add_directive("others", Others)
    app.connect("env-before-read-docs", prepare)
    return {"parallel_read_safe": False}
