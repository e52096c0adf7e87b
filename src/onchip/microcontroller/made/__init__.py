"""Int8 networks of the project's own, written as `.tflite` files from a seed.

With them, tests, examples and a first try need no download: `made_model` makes published topologies with
random weights, `Builder` any network. The files load in LiteRT and in TensorFlow Lite Micro.
"""

from onchip.microcontroller.made.builder import Builder, Map
from onchip.microcontroller.made.networks import NAMES, made_model

__all__ = ["NAMES", "Builder", "Map", "made_model"]
