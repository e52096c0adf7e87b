"""The tables of `mcu_cores`: what files did on every core, beside TensorFlow Lite Micro."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from mcu_core_runs import Result, files_of

from onchip.machines.cores import CORES, Core, core_names

LINE = {
    core: 0.9 if core in ("cortex-m0plus", "cortex-m3", "cortex-m33", "cortex-m55") else 0.8 for core in CORES
}
"""Instructions, as a share of TensorFlow Lite Micro's, that no file should exceed."""


Results = dict[tuple[str, Core], Result]
"""By file and core."""


class Tables:
    """The tables of results; those of files that did not run read the list of files."""

    def __init__(self, results: Results, list_of_files: Path, folder: Path) -> None:
        self.results, self.list, self.folder = results, list_of_files, folder

    @cached_property
    def cores(self) -> list[Core]:
        found = {core for _, core in self.results}
        return [core for core in core_names() if core in found]

    def rows(self, core: Core) -> list[Result]:
        return [row for (_, c), row in self.results.items() if c == core and "left" not in row]

    def beside(self, core: Core) -> list[tuple[Result, float, float]]:
        """(result, instructions and RAM as shares of TensorFlow Lite Micro's)."""
        found = []
        for row in self.rows(core):
            peer = row.get("tflm", {"left": ""})
            if "left" not in peer:
                ram = row["ram"] / (peer["arena"] + peer["stack"])
                found.append((row, row["instructions"] / peer["instructions"], ram))
        return found

    def summary(self) -> Iterator[str]:
        yield (
            "| core | files | inferences | bytes | different | beside TFLM | instructions: geometric mean"
            " | worst | line | above it | RAM: worst |"
        )
        yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        for core in self.cores:
            rows, beside = self.rows(core), self.beside(core)
            cells = [len(rows), *(sum(r[k] for r in rows) for k in ("runs", "bytes", "different"))]
            ratios = [ratio for _, ratio, _ in beside]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
            above = sum(ratio > LINE[core] for ratio in ratios)
            shares = f"{mean:.2f} | {max(ratios, default=math.nan):.2f} | {LINE[core]:.2f} | {above}"
            worst = max((ram for *_, ram in beside), default=math.nan)
            yield (
                f"| {CORES[core].title} | {' | '.join(f'{n:,}' for n in cells)}"
                f" | {len(beside)} | {shares} | {worst:.2f} |"
            )

    def bytes_compared(self) -> Iterator[str]:
        """Every file that ran, with and without TensorFlow Lite Micro beside it."""
        cores = self.cores
        titles = " | ".join(CORES[core].title for core in cores)
        yield f"| repository | files | {titles} | bytes | different |"
        yield f"|---|--:|{'--:|' * (len(cores) + 2)}"
        rows = [row for core in cores for row in self.rows(core)]
        by: dict[str, list[Result]] = {}
        for row in rows:
            by.setdefault("/".join(row["file"].split("/")[:2]), []).append(row)
        for repository, of in [*by.items(), ("all", rows)]:
            ran = [f"{sum(row['core'] == core for row in of):,}" for core in cores]
            counts = (sum(row["bytes"] for row in of), sum(row["different"] for row in of))
            files = len({row["file"] for row in of})
            yield f"| {repository} | {files:,} | {' | '.join(ran)} | {counts[0]:,} | {counts[1]:,} |"

    def matrix(self) -> Iterator[str]:
        cores = self.cores
        yield f"| file | {' | '.join(CORES[core].title for core in cores)} | RAM |"
        yield f"|---|{'--:|' * (len(cores) + 1)}"
        found: dict[str, dict[str, list[tuple[float, float]]]] = {}
        counts: dict[str, set[str]] = {}
        for core in cores:
            for row, instructions, ram in self.beside(core):
                name = _short(row["file"], grouped=True)
                found.setdefault(name, {}).setdefault(core, []).append((instructions, ram))
                counts.setdefault(name, set()).add(row["file"])
        for name in dict.fromkeys(_short(name, grouped=True) for name, _ in self.results):
            if name not in found:
                continue
            cells = [f"{max(of)[0]:.2f}" if (of := found[name].get(core)) else "" for core in cores]
            most = max(ram for of in found[name].values() for _, ram in of)
            many = f" ({len(counts[name])} files)" if len(counts[name]) > 1 else ""
            yield f"| {name}{many} | {' | '.join(cells)} | {most:.2f} |"

    def above(self) -> Iterator[str]:
        yield "| file | core | instructions | line | layer with the most | its share |"
        yield "|---|---|--:|--:|---|--:|"
        for core in self.cores:
            for row, ratio, _ in self.beside(core):
                if ratio > LINE[core]:
                    layer = row.get("layer", {"name": "-", "kind": "-", "share": math.nan})
                    yield (
                        f"| {_short(row['file'])} | {CORES[core].title} | {ratio:.2f} | {LINE[core]:.2f}"
                        f" | `{layer['name']}` ({layer['kind']}) | {layer['share']:.0%} |"
                    )

    def left(self) -> Iterator[str]:
        yield "| file | core | reason |"
        yield "|---|---|---|"
        reasons: dict[tuple[str, str], list[str]] = {}
        for (name, core), row in self.results.items():
            peer = row.get("tflm", {})
            reason = row.get("left") or ("TFLM: " + peer["left"] if "left" in peer else "")
            if reason:
                reasons.setdefault((name, reason), []).append(CORES[core].title)
        for (name, reason), cores in reasons.items():
            yield f"| {_short(name)} | {', '.join(cores)} | {reason} |"

    def ram(self) -> Iterator[str]:
        """Linked RAM, stack and all, against TensorFlow Lite Micro's arena, whose stack comes on top."""
        yield (
            "| core | files | below the arena | geometric mean | worst | | with a skip across scales"
            " | below half | worst | |"
        )
        yield "|---|--:|--:|--:|--:|---|--:|--:|--:|---|"
        for core in self.cores:
            found = [
                (row["ram"] / row["arena"]["bytes"], row)
                for row in self.rows(core)
                if "bytes" in row.get("arena", ())
            ]
            if not found:
                continue
            across = [(share, row) for share, row in found if row["skips"]]
            mean = math.exp(sum(math.log(share) for share, _ in found) / len(found))
            cells = f"{len(found)} | {sum(share < 1 for share, _ in found)} | {mean:.2f} | {_worst(found)}"
            cells += f" | {len(across)} | {sum(share < 0.5 for share, _ in across)} | {_worst(across)}"
            yield f"| {CORES[core].title} | {cells} |"

    def across(self) -> Iterator[str]:
        """The files with a skip across scales, whose RAM is to be below half of the arena."""
        cores = self.cores
        yield f"| file | {' | '.join(CORES[core].title for core in cores)} | RAM | TFLM's arena |"
        yield f"|---|{'--:|' * (len(cores) + 2)}"
        files = {row["file"] for core in cores for row in self.rows(core) if row.get("skips")}
        for name in sorted(files):
            found = [self.results.get((name, core), {}) for core in cores]
            pairs = [
                (r["ram"], r["arena"]["bytes"]) if "bytes" in r.get("arena", ()) else None for r in found
            ]
            cells = " | ".join(f"{pair[0] / pair[1]:.2f}" if pair else "" for pair in pairs)
            most = max((pair for pair in pairs if pair), key=lambda pair: pair[0] / pair[1], default=None)
            last = f"{most[0]:,} | {most[1]:,}" if most else " | "
            yield f"| {_short(name)} | {cells} | {last} |"

    def not_run(self) -> Iterator[str]:
        """The files of the list that are accepted and have no result on some core."""
        yield "| file | multiply-accumulates, M | not on |"
        yield "|---|--:|---|"
        entries = json.loads(self.list.read_text())
        for file in sorted(files_of(entries, self.folder), key=lambda file: file.work):
            cores = [core for core in core_names() if (file.key, core) not in self.results]
            if cores:
                where = "any" if len(cores) == len(CORES) else ", ".join(CORES[core].title for core in cores)
                yield f"| {_short(file.key)} | {file.work / 1e6:,.1f} | {where} |"

    @property
    def good(self) -> bool:
        """Tell whether every byte was right and no ratio of instructions is above its line."""
        return not any(row["different"] for core in self.cores for row in self.rows(core)) and not any(
            ratio > LINE[core] for core in self.cores for _, ratio, _ in self.beside(core)
        )


def _worst(found: list[tuple[float, Result]]) -> str:
    """The greatest share and its file, as two cells."""
    if not found:
        return " | "
    share, row = max(found, key=lambda item: item[0])
    return f"{share:.2f} | {_short(row['file'])}"


def _short(name: str, grouped: bool = False) -> str:
    """A file by its repository and its own name; with `grouped` those of one operator by their folder."""
    _, repository, *rest = name.split("/")
    if grouped and "integration_tests" in rest:
        return f"{repository}: {'/'.join(rest[-3:-1])}"
    return f"{repository}: {rest[-1]}"
