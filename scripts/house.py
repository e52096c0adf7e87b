"""The structure of the package in figures: `scripts/house.py [FOLDER ...]`, of folders that hold `onchip/`.

Of each tree: lines and files, by package; edges between packages (a package of `planners`, of a wing or of
`papers` counts by itself); circles among packages and among files; and, where no circle is left, layers: a
package stands one above the highest that it imports. With two folders the figures stand side by side.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

Graph = Mapping[str, set[str]]


def modules(folder: Path) -> dict[str, Path]:
    """The modules of onchip below a folder, by name."""
    found = {}
    for path in sorted((folder / "onchip").rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of onchip that a file imports, those for type checkers included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            while name not in known and "." in name:
                name = name.rpartition(".")[0]
            if name.startswith("onchip."):
                yield name


def package_of(name: str, packages: set[str]) -> str:
    """The innermost package of at most two levels that a module is in, else the module itself."""
    parts = name.split(".")
    if parts[1] == "planners" and len(parts) > 2:
        return ".".join(parts[:3])  # what planners share lies beside them, below and above
    for depth in (3, 2):
        candidate = ".".join(parts[:depth])
        if candidate in packages and (depth == 2 or parts[1] in GROUPS):
            return candidate
    return ".".join(parts[:2])


GROUPS = {"planners", "microcontroller", "multi_dnn", "papers", "comparison"}


def circles(graph: Graph) -> list[set[str]]:
    """The sets of nodes that reach one another (Tarjan), but for single ones."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        work = [(node, iter(sorted(graph.get(node, ()))))]
        index[node] = low[node] = len(index)
        stack.append(node)
        while work:
            at, rest = work[-1]
            for there in rest:
                if there not in index:
                    index[there] = low[there] = len(index)
                    stack.append(there)
                    work.append((there, iter(sorted(graph.get(there, ())))))
                    break
                if there in stack:
                    low[at] = min(low[at], index[there])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    group = set()
                    while at not in group:
                        group.add(stack.pop())
                    if len(group) > 1:
                        found.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def layers(graph: Graph, tangled: list[set[str]]) -> dict[str, int]:
    """The layer of each node, one above the highest that it imports; a circle counts as one node."""
    name = {node: f"circle {n}" for n, group in enumerate(tangled) for node in group}
    merged: dict[str, set[str]] = defaultdict(set)
    for node, there in graph.items():
        merged[name.get(node, node)] |= {name.get(t, t) for t in there} - {name.get(node, node)}
    depth: dict[str, int] = {}

    def below(node: str) -> int:
        if node not in depth:
            depth[node] = 1 + max((below(t) for t in merged.get(node, ())), default=0)
        return depth[node]

    return {node: below(name.get(node, node)) for node in graph}


def graphs(folder: Path) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Who imports whom in a tree: modules, and packages."""
    known = modules(folder)
    packages = {name for name, path in known.items() if path.name == "__init__.py"}
    files: dict[str, set[str]] = {}
    rooms: dict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        if name != "onchip":
            files[name] = set(imports(path, known)) - {name}
            here = package_of(name, packages)
            rooms[here] |= {package_of(there, packages) for there in files[name]} - {here}
    return files, rooms


def depths(folder: Path) -> dict[str, int]:
    """The layer of each package of a tree."""
    _, rooms = graphs(folder)
    return layers(rooms, circles(rooms))


def figures(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """The figures of a tree, and lines by package."""
    known = modules(folder)
    packages = {name for name, path in known.items() if path.name == "__init__.py"}
    files, rooms = graphs(folder)
    lines: dict[str, int] = defaultdict(int)
    for name in files:
        lines[package_of(name, packages)] += len(known[name].read_text("utf-8").splitlines())
    tangled, tangled_files = circles(rooms), circles(files)
    rows = {
        "lines": sum(lines.values()),
        "files": len(files),
        "packages and single modules": len(rooms),
        "edges between them": sum(map(len, rooms.values())),
        "layers": max(layers(rooms, tangled).values()),
        "circles among packages": len(tangled),
        "packages in a circle": sum(map(len, tangled)),
        "circles among files": len(tangled_files),
        "files in a circle": sum(map(len, tangled_files)),
    }
    return rows, dict(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(__file__).parents[1] / "src"])
    parser.add_argument("--lines", action="store_true", help="print the lines of each package, too")
    given = parser.parse_args()
    found = [figures(folder) for folder in given.folders]
    print(f"| |{' | '.join(f' {folder}' for folder in given.folders)} |")
    print(f"|---|{'--:|' * len(found)}")
    for key in found[0][0]:
        print(f"| {key} | {' | '.join(f'{rows[key]:,}' for rows, _ in found)} |")
    if given.lines:
        for _, lines in found:
            print()
            for name, count in sorted(lines.items(), key=lambda row: -row[1]):
                print(f"{count:7,} {name}")


if __name__ == "__main__":
    main()
