"""Make `src/onchip/zoo/models/`: structure-only ONNX files of public network definitions.

Nobody needs this to plan: the files are committed. To make them again, in an environment of its own (the pin
on torch matters, a plain `torch` brings gigabytes of GPU libraries; torchvision and timm are used for their
model definitions alone, hence without what they depend on):

    python3 -m venv out/zoo-venv
    out/zoo-venv/bin/pip install -r scripts/zoo_requirements.txt .
    out/zoo-venv/bin/pip install --no-deps torchvision==0.28.0 timm==1.0.31
    out/zoo-venv/bin/python scripts/make_zoo.py            # all, or the names to make

Networks that neither package has are defined in `zoo_models/`.

For each network: build it with weights from a seed, export, run the export in onnxruntime with every graph
optimisation off and compare with torch, then drop the weights' data and compress. Two runs give the same
bytes. `--check` makes nothing and fails where a committed file differs.
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper

from onchip.readers.torch_export import Exported, export
from onchip.readers.torch_reader import trace

ZOO = Path(__file__).resolve().parents[1] / "src" / "onchip" / "zoo"
SEED = 0
TOLERANCE = 1e-3
OTHER_SIZE = (250, 317)
"""Height and width of the second comparison, for networks that may be resized: odd on purpose."""

WORKS_OUT_SIZES = {
    "deeplabv3_resnet50",
    "fcn_resnet18",
    "fcn_resnet50",
    "lraspp_mobilenet_v3_large",
    "shufflenet_v2_x1_0",
}
"""Networks that ask for sizes of their input; to the others, a slow export with free sizes gives nothing."""

SCHEMAS = """
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
roi_align(Tensor input, Tensor rois, float scale, int h, int w, int sampling_ratio, bool aligned) -> Tensor
roi_pool(Tensor input, Tensor rois, float scale, int h, int w) -> (Tensor, Tensor)
ps_roi_align(Tensor input, Tensor rois, float scale, int h, int w, int sampling_ratio) -> (Tensor, Tensor)
ps_roi_pool(Tensor input, Tensor rois, float scale, int h, int w) -> (Tensor, Tensor)
deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int[] settings) -> Tensor
_roi_align_backward(Tensor grad) -> Tensor
_roi_pool_backward(Tensor grad) -> Tensor
_ps_roi_align_backward(Tensor grad) -> Tensor
_ps_roi_pool_backward(Tensor grad) -> Tensor
_deform_conv2d_backward(Tensor grad) -> (Tensor, Tensor, Tensor, Tensor, Tensor)
"""
"""Operators of torchvision's compiled half: importing it wants them declared, the definitions call none."""


def main() -> None:
    parser = argparse.ArgumentParser(description="make the built-in networks")
    parser.add_argument("names", nargs="*", help="which networks; all when none is named")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    catalogue = tomllib.loads((ZOO / "catalogue.toml").read_text())
    different = []
    files = {name: entry for name, entry in catalogue.items() if name in (options.names or catalogue)}
    for name, entry in list(files.items()):
        for height, width in entry.get("sizes", ()):
            shape = [*entry["input"][:-2], height, width]
            files[f"{name}@{height}x{width}"] = {**entry, "input": shape}
    for name, entry in files.items():
        model = make(name, entry)
        path = ZOO / "models" / f"{name}.onnx.xz"
        content = model.SerializeToString(deterministic=True)
        if options.check:
            if not path.is_file() or lzma.decompress(path.read_bytes()) != content:
                different.append(name)
        else:
            path.write_bytes(lzma.compress(content, check=lzma.CHECK_SHA256, preset=9 | lzma.PRESET_EXTREME))
    if different:
        sys.exit(f"differ from the committed files: {', '.join(different)}")


def make(name: str, entry: dict[str, Any]) -> onnx.ModelProto:
    """The structure, after the export with its weights was seen to compute what torch computes."""
    torch.manual_seed(SEED)
    network = BUILDERS[entry["library"]](name.partition("@")[0]).eval()
    seed_statistics(network)
    examples = [torch.randn(size) for size in (entry["input"], *entry.get("also", []))]
    free: tuple[Any, ...] | None = None
    if name in WORKS_OUT_SIZES:
        rank = len(entry["input"])
        free = ({rank - 2: torch.export.Dim.AUTO, rank - 1: torch.export.Dim.AUTO},)
    program = trace(network, tuple(examples), free_sizes=free, where=name)
    made = export(program, name.partition("@")[0], opset=entry["opset"], module=network)
    model = with_weights(made)
    error, spread = compare(model, network, examples)
    if entry["resizable"]:
        other = torch.randn([*entry["input"][:-2], *OTHER_SIZE])
        error = max(error, compare(resized(model), network, [other])[0])
    weights = sum(int(np.prod(t.dims)) for t in made.model.graph.initializer if t.name in made.weights)
    print(
        f"{name}: {len(made.model.graph.node)} nodes, {weights:,} weights; onnxruntime and torch differ by"
        f" {error:.1e} of the largest output, which spreads by {spread:.2g}",
        flush=True,
    )
    return made.model


def with_weights(made: Exported) -> onnx.ModelProto:
    """The exported model with its weights' data."""
    model = onnx.ModelProto()
    model.CopyFrom(made.model)
    for tensor in model.graph.initializer:
        if tensor.name in made.weights:
            tensor.CopyFrom(numpy_helper.from_array(made.weights[tensor.name].detach().numpy(), tensor.name))
    return model


def compare(
    model: onnx.ModelProto, network: torch.nn.Module, examples: list[torch.Tensor]
) -> tuple[float, float]:
    """Largest difference as a share of the largest output, and the standard deviation of the output."""
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in session.get_inputs()]
    (computed,) = session.run(None, {n: e.numpy() for n, e in zip(names, examples, strict=True)})
    with torch.no_grad():
        expected = network(*examples)
    expected = (expected["out"] if isinstance(expected, dict) else expected).numpy()
    error = float(np.abs(computed - expected).max() / np.abs(expected).max())
    spread = float(expected.std())
    if not (np.isfinite(expected).all() and spread > 0 and error < TOLERANCE):
        raise SystemExit(f"{model.graph.name}: differs by {error} of the largest output, spread {spread}")
    return error, spread


def resized(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same nodes for an input of `OTHER_SIZE`: every other shape follows."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for axis, size in zip((-2, -1), OTHER_SIZE, strict=True):
        copy.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = size
    copy.graph.output[0].type.tensor_type.ClearField("shape")
    return copy


def seed_statistics(network: torch.nn.Module) -> None:
    """Statistics of batch normalisation that are not 0 and 1, so that a swapped operand would show."""
    for module in network.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


# ---------------------------------------------------------------------- the definitions


def from_torchvision(name: str) -> torch.nn.Module:
    import torchvision.models

    options: dict[str, Any] = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": False}
    if name in ("fcn_resnet50", "deeplabv3_resnet50"):
        options |= {"weights_backbone": None, "aux_loss": False}
    if name == "lraspp_mobilenet_v3_large":
        options |= {"weights_backbone": None}
    network: torch.nn.Module = torchvision.models.get_model(name, **options)
    if name == "vit_b_16":  # its head starts at zero, which would hide any difference before it
        torch.nn.init.normal_(network.heads.head.weight, std=0.05)
    return network


def from_timm(name: str) -> torch.nn.Module:
    import timm

    network: torch.nn.Module = timm.create_model(name, pretrained=False)
    return network


def from_torch(name: str) -> torch.nn.Module:
    assert name == "transformer"
    return torch.nn.Transformer()


def from_papers(name: str) -> torch.nn.Module:
    from zoo_models.amoebanet import AmoebaNetD
    from zoo_models.caffenet import CaffeNet
    from zoo_models.darts import Darts
    from zoo_models.fcn_resnet18 import FCNResNet18
    from zoo_models.mobilenet_v1 import MobileNetV1
    from zoo_models.nasnet_mobile import NASNetAMobile
    from zoo_models.resnet_cifar import CifarResNet

    definitions: dict[str, Callable[[], torch.nn.Module]] = {
        "amoebanet_d": AmoebaNetD,
        "caffenet": CaffeNet,
        "darts": Darts,
        "fcn_resnet18": FCNResNet18,
        "mobilenet_v1": MobileNetV1,
        "nasnetamobile": NASNetAMobile,
        "resnet1202": CifarResNet,
    }
    return definitions[name]()


BUILDERS: dict[str, Callable[[str], torch.nn.Module]] = {
    "torch": from_torch,
    "torchvision": from_torchvision,
    "timm": from_timm,
    "onchip": from_papers,
}


if __name__ == "__main__":
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS.strip().splitlines():
        library.define(schema)
    main()
