"""ExecuTorch's memory planning with the places of an onchip plan: a callable for its memory planning pass.

Use (`banks.json` from `onchip export plan.json --to executorch -o banks.json`):

    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass

    places = Banks.read("banks.json", name_of=...)
    edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(places)))

The mapping: a tensor's `mem_id`, `mem_offset` and the `bufsizes` by mem_id are those of the file. ExecuTorch
knows tensors by the nodes that make them; `name_of(node)` says which tensor of the plan a node makes (None:
none of its own, as of an allocation). An allocation and the operator that writes into it are one tensor, and
a tensor that no node names is refused.

This applies a plan that was made before, with its order, memories and moves decided by onchip. Without one,
`onchip.executorch.planner()` plans ExecuTorch's own graph and needs no names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


class Banks:
    """Called as the pass calls a planner: writes every place into its `TensorSpec`, returns the sizes."""

    __name__ = "onchip_banks"

    def __init__(self, table: dict[str, Any], name_of: Callable[[Any], str | None]) -> None:
        if table.get("format") != "onchip.executorch/1":
            raise ValueError("not a bank map: expected onchip.executorch/1")
        self.table, self.name_of = table, name_of
        self.row = {row["name"]: row for row in table["tensors"]}

    @classmethod
    def read(cls, path: str | Path, name_of: Callable[[Any], str | None]) -> Banks:
        """The bank map in a file."""
        return cls(json.loads(Path(path).read_text()), name_of)

    def __call__(
        self, alignment: int, specs: Iterable[Any], graph_module: Any, signature: Any, extra_padding: int = 0
    ) -> list[int]:
        places, sizes = self._places(alignment, specs, graph_module, extra_padding)
        for spec, row in places:
            spec.mem_id, spec.mem_obj_id, spec.mem_offset = row["mem_id"], None, row["mem_offset"]
        return sizes

    def algorithm(
        self, alignment: int, specs: Iterable[Any], graph_module: Any, signature: Any, extra_padding: int = 0
    ) -> Any:
        """The same as a `MemoryAlgoResult`, for a `MemoryPlanningAlgorithmSuite`, which writes the places."""
        from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult

        places, sizes = self._places(alignment, specs, graph_module, extra_padding)
        made = {spec: SpecAllocResult(row["mem_id"], None, row["mem_offset"]) for spec, row in places}
        return MemoryAlgoResult(made, sizes)

    def _places(
        self, alignment: int, specs: Iterable[Any], graph_module: Any, extra_padding: int
    ) -> tuple[list[tuple[Any, dict[str, Any]]], list[int]]:
        if self.table["alignment"] % alignment:
            raise ValueError(f"planned for alignment {self.table['alignment']}, not {alignment}")
        names = self._names(graph_module)
        places = []
        for spec in specs:
            name = names.get(id(spec))
            if name not in self.row:
                raise ValueError(f"the plan has no tensor for {name or spec}")
            row = self.row[name]
            spec.realign(alignment)
            room = -(-row["allocated_memory"] // alignment) * alignment
            if spec.allocated_memory > room:
                raise ValueError(f"{name} was planned with {room} bytes and has {spec.allocated_memory}")
            places.append((spec, row))
        return places, [n + extra_padding if n else 0 for n in self.table["bufsizes"]]

    def _names(self, graph_module: Any) -> dict[int, str]:
        found: dict[int, str] = {}
        for node in graph_module.graph.nodes:
            specs = node.meta.get("spec")
            for spec in specs if isinstance(specs, list | tuple) else [specs]:
                name = self.name_of(node)
                if spec is not None and name is not None:
                    found.setdefault(id(spec), name)
        return found
