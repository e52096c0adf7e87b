"""`python -m onchip.cli`."""

from onchip_command import main

main()
