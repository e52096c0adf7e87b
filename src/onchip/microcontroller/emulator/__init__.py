"""Programs for microcontrollers, built and run on an emulated core: Cortex-M4 and M7 in QEMU.

A program is linked for a board's RAM and flash, so that one that does not fit is not built. It runs behind a
memory protection unit that closes everything past the linked RAM and makes the flash read-only. Executed
instructions, loads and stores are counted by function and by layer, but not cycles: no emulator models them.
"""

from onchip.microcontroller.emulator.build import Image, build
from onchip.microcontroller.emulator.emulate import Emulation, emulate
from onchip.microcontroller.emulator.toolchain import find_toolchain

__all__ = ["Emulation", "Image", "build", "emulate", "find_toolchain"]
