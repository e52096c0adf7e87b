"""Readers turn a model file into a `Network`, and keep the original nodes so that a plan for it can be
executed.

`load` takes every MODEL the command line takes. ONNX files are read in stages, one module each:
`onnx_graph` parses and checks, `shapes` infers, `constants` knows what depends on no input, `places` finds
which bytes hold each value, `operators` puts nodes together, `onnx_reader` assembles.
"""

from onchip.readers.load import load
from onchip.readers.source import Executable, ReadOptions, Source
from onchip.readers.traits import declare_elementwise, declare_reach

__all__ = ["Executable", "ReadOptions", "Source", "declare_elementwise", "declare_reach", "load"]
