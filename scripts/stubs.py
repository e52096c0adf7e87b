"""Write what editors and type checkers read, which do not run the code. A test holds both files to the code.

`src/onchip/__init__.pyi`: the public names, with every option of the verbs as a keyword; `onchip` loads its
names when they are asked for, and its verbs take options as keywords. `src/onchip/_core.pyi`: the compiled
core.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any, get_args, get_origin

import onchip
from onchip import _core

PACKAGE = Path(onchip.__file__).parent

HEAD = '''"""Written by scripts/stubs.py from the code; do not edit."""

# ruff: noqa
'''


def stub() -> str:
    """The file's text."""
    source = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    verbs = [name for name in onchip.__all__ if inspect.isfunction(getattr(onchip, name))]
    guarded = next(node for node in source.body if isinstance(node, ast.If))
    lines = []
    for node in guarded.body:
        assert isinstance(node, ast.ImportFrom)
        names = [alias.name for alias in node.names if alias.name not in verbs]
        lines += [f"from {node.module} import {name} as {name}" for name in names]
    return "\n".join(
        [
            HEAD,
            "from typing import Literal\n",
            *_imports_of(*(PACKAGE / f"{name}.py" for name in ("api", "at_run_time", "on_microcontrollers"))),
            *lines,
            "",
            f"__all__ = {onchip.__all__!r}".replace("'", '"'),
            "",
            *(_function(name) for name in verbs),
        ]
    )


def _imports_of(*paths: Path) -> list[str]:
    """Imports of what the signatures of verbs name and `onchip` does not export."""
    found = set()
    for node in (node for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) in NAMED:
                    found.add(ast.unparse(ast.ImportFrom(node.module, [alias], 0)))
    return sorted(found)


NAMED = {
    *("Any", "Board", "Int8Model", "Kernels", "Mapping", "Path", "PlanProgram", "Profile", "Progress"),
    *("GroupEnergy", "SoC", "Sequence", "Source", "Spec", "Workload"),
}


def _function(name: str) -> str:
    """A verb with its options as keywords, on a line of its own each."""
    signature = inspect.signature(getattr(onchip, name))
    lines, star = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            star = True
            lines.append("*")
        default = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
        lines.append(f"{parameter.name}: {_written(parameter.annotation)}{default}")
    inner = "".join(f"    {line},\n" for line in lines)
    said = textwrap.indent(inspect.getdoc(getattr(onchip, name)) or "", "    ").strip()
    return f'def {name}(\n{inner}) -> {_written(signature.return_annotation)}:\n    """{said}\n    """\n'


def _written(hint: Any) -> str:
    """An annotation as source."""
    if isinstance(hint, str):
        return hint
    if hint is type(None) or hint is None:
        return "None"
    origin, args = get_origin(hint), get_args(hint)
    if origin is None:
        return str(hint.__name__)
    if str(origin).endswith("Literal"):
        return f"Literal[{', '.join(map(repr, args))}]"
    if origin in (tuple, list):
        return f"{origin.__name__}[{', '.join('...' if a is ... else _written(a) for a in args)}]"
    return " | ".join(_written(a) for a in args)


def core_stub() -> str:
    """The text of the compiled core's file."""
    from nanobind.stubgen import StubGen

    written = StubGen(_core)
    written.put(_core)
    return f"{HEAD}\n{written.get()}"


def formatted(path: Path, text: str) -> str:
    """The text as `ruff format` leaves it."""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


STUBS = {PACKAGE / "__init__.pyi": stub, PACKAGE / "_core.pyi": core_stub}

if __name__ == "__main__":
    for path, written in STUBS.items():
        path.write_text(formatted(path, written()), "utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
