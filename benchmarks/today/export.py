"""Networks into files: by three exporters, by onnxruntime's quantiser, and by its optimiser."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from pathlib import Path
from typing import Any

import classify
import dense
import further
import language
import more_images
import more_rest
import more_text
import other
import torch

FAMILIES = {
    "images to classes": classify.NETWORKS,
    "images to images and boxes": dense.NETWORKS,
    "text": language.NETWORKS,
    "sound, video, points, graphs, tables": other.NETWORKS,
    "further parts": further.NETWORKS,
    "more images": more_images.NETWORKS,
    "more text": more_text.NETWORKS,
    "more sound, video, points, graphs, tables, series": more_rest.NETWORKS,
}
SMALL = ("more images", "more text", "more sound, video, points, graphs, tables, series")
"""The families of networks so small that their room is a share of what their largest operator reads and
makes."""

NETWORKS: dict[str, tuple[Any, Any]] = {
    name: made for family in FAMILIES.values() for name, made in family.items()
}
FORMS = ("script", "dynamo", "pt2", "qdq", "qoperator", "dynamic", "optimised")
"""TorchScript, dynamo, `torch.export.save`; the first one's file quantised in three forms, optimised."""


def path_of(folder: Path, name: str, form: str) -> Path:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return folder / f"{plain}.{form}{'.pt2' if form == 'pt2' else '.onnx'}"


def export(name: str, form: str, folder: Path) -> Path:
    """Write the network's file unless it is there; raises what the exporter raises."""
    path = path_of(folder, name, form)
    if path.exists():
        return path
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    torch.backends.mha.set_fastpath_enabled(False)
    make, example = NETWORKS[name]
    torch.manual_seed(0)
    if form in ("script", "dynamo", "pt2"):
        module, inputs = make().eval(), example()
        with (
            torch.no_grad(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            if form == "script":
                torch.onnx.export(module, inputs, path, dynamo=False, opset_version=17)
            elif form == "dynamo":
                torch.onnx.export(module, inputs, path, dynamo=True, opset_version=20, external_data=False)
            else:
                torch.export.save(torch.export.export(module, inputs), path)
        return path
    source = export(name, "script", folder)
    if form == "optimised":
        _optimised(source, path)
    elif form == "dynamic":
        _quantised_as_it_runs(source, path)
    else:
        _quantised(source, path, example(), form)
    return path


def _optimised(source: Path, path: Path) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def _quantised(source: Path, path: Path, example: tuple[torch.Tensor, ...], form: str) -> None:
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    folded = path.with_suffix(".folded")
    quant_pre_process(str(source), str(folded), skip_symbolic_shape=True)
    names = [value.name for value in onnx.load(source).graph.input]

    class Data(CalibrationDataReader):
        left = 1

        def get_next(self) -> dict[str, Any] | None:
            self.left -= 1
            if self.left < 0:
                return None
            return {name: value.numpy() for name, value in zip(names, example, strict=True)}

    quantize_static(
        str(folded), str(path), Data(),
        quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator, per_channel=form == "qdq",
    )  # fmt: skip
    folded.unlink()


def _quantised_as_it_runs(source: Path, path: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(source), str(path), weight_type=QuantType.QInt8)


if __name__ == "__main__":
    import sys
    import traceback

    for name in NETWORKS:
        for form in sys.argv[2:]:
            try:
                export(name, form, Path(sys.argv[1]))
            except Exception as problem:
                traceback.print_exc(limit=-2)
                print(
                    "FAILED",
                    name,
                    form,
                    type(problem).__name__,
                    str(problem)[:300].replace("\n", " "),
                    flush=True,
                )
