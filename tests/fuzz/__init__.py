"""Fuzzing: whatever a file holds, onchip reads it or refuses it in one line, soon and in little memory.

`targets` are the readers and parsers with what must hold of each; `mutate` damages files with a view to what
they are; `guard` bounds one input's time and memory. `python -m fuzz` (in tests/) searches with coverage as
its guide, for minutes or hours; `test_fuzz.py` does the same without a guide for seconds.
"""
