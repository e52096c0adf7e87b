"""The linker script: the sections of a program in the memories of the emulated board."""

from __future__ import annotations

from onchip.machines.board import MOST_BYTES

__all__ = ["EMULATED_FLASH", "EMULATED_RAM", "FLASH", "RAM", "linker_script"]

FLASH, RAM = 0x0000_0000, 0x2000_0000
"""The start of flash and RAM on the emulated boards (Arm's MPS2)."""

END_BYTES = 32
"""The alignment of the linked RAM's end: the finest granularity of the protection unit."""

EMULATED_FLASH, EMULATED_RAM = 4 << 20, (4 << 20) - END_BYTES
"""The bytes available to a program there: the guard may have to begin at the last piece of RAM."""


def linker_script(stack_bytes: int) -> str:
    """Return a script with memories of any size: the program's size is known once linked, and judged then.

    The stack, `stack_bytes`, is a section like any other, the lowest of RAM; .bss is the highest, and the
    network's arena is last in it, so that an access beyond either end hits the guard. The gap that lets
    .bss end where the guard can begin lies before it and belongs to no section.
    """
    return f"""\
MEMORY
{{
  FLASH (rx) : ORIGIN = {FLASH:#x}, LENGTH = {MOST_BYTES}
  RAM (rw) : ORIGIN = {RAM:#x}, LENGTH = {MOST_BYTES}
}}
ENTRY(host_reset)
SECTIONS
{{
  .text : {{ KEEP(*(.vectors)) *(.text .text.*) *(.rodata .rodata.*) . = ALIGN(4); }} > FLASH
  .ARM.exidx : {{ *(.ARM.exidx*) }} > FLASH
  .stack (NOLOAD) : {{ _stack_bottom = .; . = . + {stack_bytes}; . = ALIGN(8); _stack_top = .; }} > RAM
  .data : {{ _data_start = .; *(.data .data.*) . = ALIGN(4); _data_end = .; }} > RAM AT > FLASH
  _data_image = LOADADDR(.data);
  .bss . + (-(. + SIZEOF(.bss)) & {END_BYTES - 1}) (NOLOAD) : {{
    _bss_start = .;
    *(.bss .bss.[!a]* .bss.a[!r]* COMMON) *(.bss.*)
    . = ALIGN(MAX(4, ALIGNOF(.bss)));
    _bss_end = .;
  }} > RAM
  _ram_end = .;
}}
"""
