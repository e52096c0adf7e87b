"""Network definitions that no installable package has, written from the papers for `make_zoo.py`."""
