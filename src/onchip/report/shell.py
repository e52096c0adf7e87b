"""The common parts of every page: the assets, their hashes, and data that cannot end its element."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jinja2

__all__ = ["asset", "embedded", "hash_of", "template", "version"]


@cache
def asset(name: str) -> str:
    """Return the text of a file in `assets/`."""
    return (resources.files("onchip.report") / "assets" / name).read_text("utf-8")


def template(name: str, **helpers: Any) -> jinja2.Template:
    """Return a template of `assets/` that escapes its arguments; `helpers` are functions it may call."""
    import jinja2

    pages = jinja2.FunctionLoader(asset)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, loader=pages)
    environment.globals.update(helpers)
    return environment.get_template(name)


def hash_of(content: str) -> str:
    """Return the hash of a style or a script for a content security policy."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def version() -> str:
    """Return the installed version; empty for a source tree that is not installed."""
    try:
        return metadata.version("onchip")
    except metadata.PackageNotFoundError:
        return ""


def embedded(data: Any) -> str:
    """Return JSON that can stand inside a script element: no character of it can end the element."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
