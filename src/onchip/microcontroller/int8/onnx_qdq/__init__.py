"""Quantised ONNX files, read into the tables that a `.tflite` file is read into.

Two ways of writing a quantised network are read: floats between DequantizeLinear and QuantizeLinear (QDQ), or
operators on integers (QLinearConv and its like), which are first written in the other way. Both become
TensorFlow Lite's operators on int8, with TensorFlow Lite Micro's rounding; maps lie with their channels last.
"""

from __future__ import annotations
