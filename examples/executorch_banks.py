"""ExecuTorch's memory planning with the places of an onchip plan: a memory planning algorithm for its pass.

Use (`banks.json` from `onchip export plan.json --to executorch -o banks.json`):

    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult
    from executorch.exir.passes import MemoryPlanningPass

    places = Banks.read("banks.json", MemoryAlgoResult, SpecAllocResult, name_of=...)
    edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(places)))

The mapping: a tensor's `mem_id`, `mem_offset` and the `bufsizes` by mem_id are those of the file. ExecuTorch
knows tensors by the nodes that make them; `name_of(node)` says which tensor of the plan a node makes (None:
it is not in the plan, and is refused). An allocation and the operator that writes into it are one tensor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


class Banks:
    """Called as ExecuTorch calls an algorithm: (alignment, specs, module, signature, padding) to a result."""

    __name__ = "onchip_banks"

    def __init__(
        self, table: dict[str, Any], result: Callable[..., Any], place: Callable[..., Any],
        name_of: Callable[[Any], str | None],
    ) -> None:  # fmt: skip
        if table.get("format") != "onchip.executorch/1":
            raise ValueError("not a bank map: expected onchip.executorch/1")
        self.table, self.result, self.place, self.name_of = table, result, place, name_of
        self.row = {row["name"]: row for row in table["tensors"]}

    @classmethod
    def read(cls, path: str | Path, *how: Any, **more: Any) -> Banks:
        """The bank map in a file."""
        return cls(json.loads(Path(path).read_text()), *how, **more)

    def __call__(
        self, alignment: int, specs: Iterable[Any], graph_module: Any, signature: Any, extra_padding: int = 0
    ) -> Any:
        if self.table["alignment"] % alignment:
            raise ValueError(f"planned for alignment {self.table['alignment']}, not {alignment}")
        names = self._names(graph_module)
        places = {}
        for spec in specs:
            name = names.get(id(spec))
            if name not in self.row:
                raise ValueError(f"the plan has no tensor for {name or spec}")
            row = self.row[name]
            spec.realign(alignment)
            room = -(-row["allocated_memory"] // alignment) * alignment
            if spec.allocated_memory > room:
                raise ValueError(f"{name} was planned with {room} bytes and has {spec.allocated_memory}")
            places[spec] = self.place(row["mem_id"], None, row["mem_offset"])
        sizes = [n + extra_padding if n else 0 for n in self.table["bufsizes"]]
        return self.result(places, sizes)

    def _names(self, graph_module: Any) -> dict[int, str]:
        found: dict[int, str] = {}
        for node in graph_module.graph.nodes:
            specs = node.meta.get("spec")
            for spec in specs if isinstance(specs, list | tuple) else [specs]:
                name = self.name_of(node)
                if spec is not None and name is not None:
                    found.setdefault(id(spec), name)
        return found
