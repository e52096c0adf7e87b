"""Readers turn a model file into a `Network`, and keep the original nodes so that a plan for it can be
executed.

`load` reads every MODEL of the command line. ONNX files are read in stages, one module each: `onnx_graph`
parses and checks, `shapes` infers, `constants` finds the values that depend on no input, `places` finds the
bytes of each value, `operators` puts nodes together, `onnx_reader` assembles.
"""

from onchip.readers.load import load
from onchip.readers.source import Executable, ReadOptions, Source
from onchip.readers.traits import declare_elementwise, declare_reach

__all__ = ["Executable", "ReadOptions", "Source", "declare_elementwise", "declare_reach", "load"]
