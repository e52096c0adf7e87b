"""Modules as MODELs of the form `module:function`, and running what was read of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from onchip.readers import Source  # noqa: E402
from onchip.readers.torch_reader import read_module  # noqa: E402
from onchip.run.sessions import Subgraphs  # noqa: E402
from onchip.run.weights import seeded_weights  # noqa: E402


class Calling(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A module whose forward is a function."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def outputs(source: Source, *inputs: Any) -> list[np.ndarray[Any, Any]]:
    """What onnxruntime computes from the model that was read, with the module's own weights."""
    executable = source.executable
    assert executable is not None
    model = executable.model
    weights = seeded_weights(model, 0, None, executable.weights)
    assert not weights.seeded
    signature = {
        v.name: (v.type.tensor_type.elem_type, tuple(d.dim_value for d in v.type.tensor_type.shape.dim))
        for v in (*model.graph.input, *model.graph.output)
    }
    names = [v.name for v in model.graph.input]
    given = {name: value.numpy() for name, value in zip(names, inputs, strict=True)}
    wanted = [v.name for v in model.graph.output]
    return Subgraphs(model, weights.values).run(given, signature, wanted, "all")


def agrees(module: Any, *inputs: Any, tolerance: float = 1e-4, **options: Any) -> Source:
    """Read the module, run what was read, and compare with the module itself."""
    from onchip.readers import ReadOptions

    source = read_module(module, inputs, None, ReadOptions(**options), name="module", where="test")
    with torch.no_grad():
        expected = module.eval()(*(t.clone() for t in inputs))
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    found = outputs(source, *inputs)
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        theirs = theirs.numpy()
        assert mine.shape == theirs.shape
        assert mine.dtype == theirs.dtype
        if theirs.dtype.kind == "f":
            scale = max(float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0)), 1e-6)
            np.testing.assert_allclose(mine / scale, theirs / scale, rtol=0, atol=tolerance)
        else:
            np.testing.assert_array_equal(mine, theirs)
    return source
