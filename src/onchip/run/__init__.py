"""Executing a plan: real bytes, real operators, every tensor compared.

The program runs in one byte array as large as the budget, with a second memory as DRAM; operators run through
onnxruntime on the model's original nodes; every tensor must equal the whole network in unoptimised
onnxruntime bit for bit, and the copies themselves count the bytes moved. docs/execution.md explains what
that proves.
"""

from onchip.run.execute import run
from onchip.run.moved import BytesMoved
from onchip.run.report import RunReport
from onchip.run.weights import fill_weights

__all__ = ["BytesMoved", "RunReport", "fill_weights", "run"]
