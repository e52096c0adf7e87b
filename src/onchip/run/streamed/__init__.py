"""Executing `run OP streaming ...` of maps in patches, part by part, in no more than the scratch stated.

An operator with windows runs strip by strip, behind a line buffer of patch rows; an element-wise one on a few
patches at a time. With only outputs streamed and inputs resident, the operator runs whole, and the machine
sends its result out in patches.
"""

from onchip.run.streamed.execute import run_in_parts
from onchip.run.streamed.whole import stream_in, streamable, through_scratch

__all__ = ["run_in_parts", "stream_in", "streamable", "through_scratch"]
