"""Int8 networks in integers: the content of a .tflite file, and the exact arithmetic of its interpreters."""
