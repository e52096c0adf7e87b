"""Int8 networks of the project's own, written as `.tflite` files from a seed.

With them, tests, examples and a first try need no download: `made_model` makes published topologies with
random weights, `Builder` any network, and
`WideBuilder` one that moves, looks up or keeps bytes. The files load in LiteRT and in TensorFlow Lite Micro.
"""

from onchip.microcontroller.made.builder import Builder, Map
from onchip.microcontroller.made.networks import NAMES, made_model
from onchip.microcontroller.made.wide import WideBuilder

__all__ = ["NAMES", "Builder", "Map", "WideBuilder", "made_model"]
