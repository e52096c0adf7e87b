"""Microcontrollers: int8 networks as TensorFlow Lite quantises them, their exact arithmetic, and their C
code.

`model` is the network as frozen layers of integers, `read` makes one of a `.tflite` file, `reference` runs it
in numpy bit for bit as the public interpreters do, `network` converts it for the planners.
"""
