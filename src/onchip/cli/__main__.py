"""`python -m onchip.cli`."""

from onchip.cli import main

main()
