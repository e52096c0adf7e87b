"""Arenas of ExecuTorch programs, planned by its greedy and by onchip: the tables of docs/executorch.md.

    python benchmarks/executorch_models.py measure FILE.json [--only NAME ...] [--pixels N]
    python benchmarks/executorch_models.py run FILE.json [--only NAME ...]
    python benchmarks/executorch_tables.py FILE.json --into docs/executorch.md

`measure` exports every model at 224 pixels with random weights, as ExecuTorch does it by default and with
constants folded (`do_quant_fusion_and_const_prop`), and asks every planner for the same tensors: `greedy`,
onchip without and with results in place, and, with half of greedy's bytes in a fast memory, the banked pass
and onchip. `run` exports at 64 pixels, or the least size that a model takes, and compares the outputs of
ExecuTorch's own runtime bit by bit. Both add to FILE.json what it does not have yet.

Needs an environment of its own: pip install executorch timm torchvision, torch as ExecuTorch wants it, and
onchip. A model's least size is found by trying.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

TV = torch.library.Library("torchvision", "DEF")
for schema in (
    "nms(Tensor dets, Tensor scores, float iou) -> Tensor",
    "qnms(Tensor a, Tensor b, float c) -> Tensor",
):
    TV.define(schema)

from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge  # noqa: E402
from executorch.exir.memory_planning import greedy  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass  # noqa: E402

from onchip.executorch import Bank, planner  # noqa: E402

warnings.filterwarnings("ignore")

MODELS = (
    "resnet18", "squeezenet1_0", "squeezenet1_1", "alexnet", "lcnet_050", "mnasnet0_5",
    "vit_tiny_patch16_224",
    "selecsls42b", "convnext_atto", "mobilenetv1_100", "mobilenetv2_100", "googlenet", "ghostnet_100",
    "efficientnet_b0", "mobilenetv3_small_100", "shufflenet_v2_x0_5",
)  # fmt: skip
TORCHVISION = ("alexnet", "googlenet", "mnasnet0_5", "shufflenet_v2_x0_5", "squeezenet1_0", "squeezenet1_1")
SIZES = (64, 80, 96, 128, 224)
CONFIGURATIONS = {"default": False, "folded": True}


def model_of(name: str, pixels: int) -> tuple[Any, tuple[Any, ...]]:
    """Return a model with random weights, and its example inputs."""
    torch.manual_seed(0)
    if name in TORCHVISION:
        import torchvision

        more = {"init_weights": False, "aux_logits": False} if name == "googlenet" else {}
        model = getattr(torchvision.models, name)(weights=None, **more)
    else:
        import timm

        sized = {"img_size": pixels} if name.startswith("vit") else {}
        model = timm.create_model(name, pretrained=False, **sized)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_var.uniform_(0.5, 1.5)
            module.running_mean.normal_(0, 0.1)
    return model.eval(), (torch.randn(1, 3, pixels, pixels),)


def exported_of(name: str, pixels: int) -> Any:
    """Return the exported model."""
    model, inputs = model_of(name, pixels)
    return torch.export.export(model, inputs)


def programs(exported: Any, folded: bool, algorithms: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """Return an ExecuTorch program for each algorithm, all of the same exported model."""
    made = {}
    for label, algorithm in algorithms.items():
        edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        made[label] = edge.to_executorch(
            ExecutorchBackendConfig(
                memory_planning_pass=MemoryPlanningPass(algorithm), do_quant_fusion_and_const_prop=folded
            )
        )
    return made


def greedy_pass(*asked: Any) -> list[int]:
    """ExecuTorch's greedy, as a callable for the pass."""
    result = greedy(*asked)
    for spec, place in result.spec_dict.items():
        spec.mem_id, spec.mem_offset, spec.mem_obj_id = place.mem_id, place.mem_offset, place.mem_obj_id
    return result.bufsizes


def banked_pass(banks: list[Bank]) -> Callable[..., list[int]]:
    """ExecuTorch's banked greedy, as a callable for the pass."""
    from executorch.exir import banked_memory_planning as banked

    target = banked.TargetMemoryMap([banked.Bank(b.name, b.size, b.mem_id) for b in banks])
    plan = banked.BankedGreedy(target)

    def banked_greedy(*asked: Any) -> list[int]:
        result = plan(*asked)
        for spec, place in result.spec_dict.items():
            spec.mem_id, spec.mem_offset, spec.mem_obj_id = place.mem_id, place.mem_offset, place.mem_obj_id
        return list(result.bufsizes)

    return banked_greedy


def banks_for(size: int) -> list[Bank]:
    """A fast memory of half the bytes, and a slow one in which everything fits."""
    return [Bank("fast", max(16, size // 32 * 16), 1), Bank("slow", 4 * size, 2)]


class Measuring:
    """A callable for the pass that asks every planner, keeps their bytes, and answers with greedy's plan."""

    def __init__(self) -> None:
        self.row: dict[str, Any] = {}

    def __call__(
        self, alignment: int, specs: Any, module: Any, signature: Any, padding: int = 0
    ) -> list[int]:
        given = list(specs)
        asked = (alignment, given, module, signature, padding)

        def answer(plan: Callable[..., list[int]]) -> tuple[list[int], float]:
            kept = [(s.mem_id, s.mem_obj_id, s.mem_offset) for s in given]
            began = time.process_time()
            sizes = plan(*asked)
            spent = time.process_time() - began
            for s, (mem_id, obj, offset) in zip(given, kept, strict=True):
                s.mem_id, s.mem_obj_id, s.mem_offset = mem_id, obj, offset
            return sizes, spent

        theirs, _ = answer(greedy_pass)
        plans: list[Any] = []
        ours, seconds = answer(planner(in_place=False, on_plan=plans.append))
        over, more = answer(planner(on_plan=plans.append))
        banks = banks_for(sum(theirs))
        try:
            banked = answer(banked_pass(banks))[0]
        except Exception as refused:  # theirs may not fit where ours does
            banked = [0, 0, -1]
            print(f"  banked: {refused}", file=sys.stderr)
        two, slow_seconds = answer(planner(banks, in_place=False))
        two_over, _ = answer(planner(banks))
        self.row = {
            "lives": [(*s.lifetime, s.allocated_memory) for s in given],
            "tensors": len(given),
            "greedy": sum(theirs),
            "onchip": sum(ours),
            "in place": sum(over),
            "load": plans[0].result.peak_lower_bound_bytes,
            "load in place": plans[1].result.peak_lower_bound_bytes,
            "seconds": round(seconds, 3),
            "seconds in place": round(more, 3),
            "fast": banks[0].size,
            "banked": banked[2] if len(banked) > 2 else 0,
            "two": two[2] if len(two) > 2 else 0,
            "two in place": two_over[2] if len(two_over) > 2 else 0,
            "two seconds": round(slow_seconds, 3),
        }
        return greedy_pass(*asked)


def measure(names: list[str], file: Path, pixels: int) -> None:
    kept = json.loads(file.read_text()) if file.exists() else {}
    for name in names:
        if all(f"{name} {label}" in kept for label in CONFIGURATIONS):
            continue
        exported = exported_of(name, pixels)
        for label, folded in CONFIGURATIONS.items():
            key = f"{name} {label}"
            if key in kept:
                continue
            measuring = Measuring()
            try:
                programs(exported, folded, {"all": measuring})
            except Exception as problem:  # ExecuTorch's own, for some models
                print(f"{key}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr, flush=True)
                continue
            kept[key] = measuring.row
            print(key, {k: v for k, v in measuring.row.items() if k != "lives"}, flush=True)
            file.write_text(json.dumps(kept, indent=1))


def run(names: list[str], file: Path) -> None:
    from executorch.runtime import Runtime

    kept = json.loads(file.read_text()) if file.exists() else {}
    for name in names:
        key = f"{name} run"
        if key in kept:
            continue
        for pixels in SIZES:
            try:
                model, (x,) = model_of(name, pixels)
                with torch.no_grad():
                    reference = model(x)
                break
            except Exception:  # too small for this model
                continue
        try:
            exported = torch.export.export(model, (x,))
            made = programs(exported, True, {"greedy": greedy_pass})
            banks = banks_for(sum(made["greedy"].executorch_program.execution_plan[0].non_const_buffer_sizes))
            made |= programs(exported, True, {"onchip": planner(), "two": planner(banks)})
            outputs = {}
            for label, program in made.items():
                method = Runtime.get().load_program(program.buffer).load_method("forward")
                outputs[label] = method.execute([x])[0].clone()
        except Exception as problem:  # ExecuTorch's own, for some models
            print(f"{key}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr, flush=True)
            continue
        same = all(torch.equal(outputs["greedy"], y) for y in outputs.values())
        kept[key] = {
            "pixels": pixels,
            "same": same,
            "against torch": float((outputs["greedy"] - reference).abs().max()),
        }
        print(key, kept[key], flush=True)
        file.write_text(json.dumps(kept, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", choices=("measure", "run"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="*", default=MODELS)
    parser.add_argument("--pixels", type=int, default=224)
    args = parser.parse_args()
    if args.what == "measure":
        measure(args.only, args.file, args.pixels)
    else:
        run(args.only, args.file)


if __name__ == "__main__":
    main()
