"""A block that is scaled by what is squeezed out of it: its middle is six times as wide as its input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

SQUEEZE = """
<ir_version: 8, opset_import: ["" : 17]>
block (float[1,4,12,12] x) => (float[1,4,12,12] y) {
  e0 = Conv (x, w1)
  e1 = Relu (e0)
  d0 = Conv <group = 24, kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (e1, w2)
  d1 = Relu (d0)
  g = GlobalAveragePool (d1)
  s0 = Conv (g, w3)
  s1 = HardSigmoid (s0)
  m = Mul (d1, s1)
  p = Conv (m, w4)
  y = Add (x, p)
}
"""

SHAPES = {"w1": (24, 4, 1, 1), "w2": (24, 1, 3, 3), "w3": (24, 24, 1, 1), "w4": (4, 24, 1, 1)}


def write_squeeze(path: Path) -> Path:
    """Write the block as a model, with weights."""
    model = parser.parse_model(SQUEEZE)
    draw = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        weights = (0.3 * draw.standard_normal(shape)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
    onnx.save(model, path)
    return path
