"""Int8 networks as integers: what a .tflite file says, and the exact arithmetic that its interpreters do."""
