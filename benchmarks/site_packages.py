"""The bytes that `pip install 'onchip[run]'` puts into site-packages, by package, and what each extra brings.

    .venv/bin/python benchmarks/site_packages.py [--extra run] [--into docs/sizes.md]

It prints the tables of docs/sizes.md. Run it in a fresh environment where a wheel of onchip is installed with
the extra, after `python -m compileall` of its site-packages. The packages are what the installed
metadata requires, one after the other; bytes are those of the installed files, compiled ones (`.pyc`)
included, without pip and setuptools. A package counts as OR-Tools' where nothing but OR-Tools needs it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path

from packaging.requirements import Requirement
from page_marks import write

import onchip

SOLVER = "ortools"
SOURCES = {".cpp", ".h"}


def name_of(name: str) -> str:
    """Return a package's normalised name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(first: str, extras: frozenset[str], without: frozenset[str] = frozenset()) -> set[str]:
    """Return all packages that one requires, itself included, but for those `without` and what they need."""
    found: set[str] = set()
    pending = [(first, extras)]
    while pending:
        name, asked = pending.pop()
        if name in without:
            continue
        found.add(name)
        for line in metadata.requires(name) or ():
            wanted = Requirement(line)
            chosen = [{"extra": extra} for extra in ("", *asked)]
            if wanted.marker is not None and not any(wanted.marker.evaluate(env) for env in chosen):
                continue
            there = name_of(wanted.name)
            if there not in found:
                pending.append((there, frozenset(wanted.extras)))
    return found


def bytes_of(name: str) -> int:
    """Return the bytes of a package's installed files."""
    if name == "onchip":
        package = Path(onchip.__file__).parent
        files = [file for file in package.rglob("*") if file.is_file() and file.suffix not in SOURCES]
        core = Path(str(import_module("onchip._core").__file__))
        return sum(file.stat().st_size for file in {*files, core})
    files = [Path(str(file.locate())) for file in metadata.files(name) or ()]
    return sum(file.stat().st_size for file in files if file.is_file())


def table(extra: str) -> Iterator[str]:
    """Yield the lines of the table."""
    every = needed("onchip", frozenset({extra} if extra else ()))
    without = needed("onchip", frozenset({extra} if extra else ()), frozenset({SOLVER}))
    sizes = {name: bytes_of(name) for name in every}
    total, least = sum(sizes.values()), sum(sizes[name] for name in without)
    yield "| package | version | MB | share | needed by OR-Tools alone |"
    yield "|---|---|--:|--:|---|"
    for name in sorted(every, key=lambda name: -sizes[name]):
        share = sizes[name] / total
        alone = "yes" if name not in without else ""
        yield f"| {name} | {metadata.version(name)} | {sizes[name] / 1e6:.1f} | {share:.1%} | {alone} |"
    yield f"| all | | {total / 1e6:.1f} | 100.0% | |"
    yield f"| without OR-Tools | | {least / 1e6:.1f} | {least / total:.1%} | |"


def extras() -> Iterator[str]:
    """Yield the lines of the table of extras, but for those of onchip's own developers."""
    yield "| extra | brings |"
    yield "|---|---|"
    for extra in metadata.metadata("onchip").get_all("Provides-Extra") or ():
        if extra in ("dev", "docs"):
            continue
        lines = map(Requirement, metadata.requires("onchip") or ())
        found = [r for r in lines if r.marker is not None and r.marker.evaluate({"extra": extra})]
        yield f"| {extra} | {', '.join(f'{r.name} {r.specifier}'.strip() for r in found)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--extra", default="run")
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    write({"site packages": lambda: table(args.extra), "extras": extras}, args.into)


if __name__ == "__main__":
    main()
