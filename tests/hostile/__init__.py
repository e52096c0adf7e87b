"""Files that do harm: what each is, the command that it is tried with, and what must hold of every one.

`cd tests && python -m hostile` runs all and prints a table; `python -m hostile FOLDER` writes the files.
"""
