"""The linker script: where a program's parts lie in a board's memories, as the emulated board has them."""

from __future__ import annotations

from onchip.board import Board

__all__ = ["FLASH", "RAM", "linker_script"]

FLASH, RAM = 0x0000_0000, 0x2000_0000
"""Where flash and RAM begin on the emulated boards (Arm's MPS2); both have 4 MB there."""


def linker_script(board: Board, stack_bytes: int) -> str:
    """Flash and RAM as large as the board's: what does not fit is an error of the linker, with the bytes.

    The stack, `stack_bytes`, is a section like any other, the lowest of RAM.
    """
    return f"""\
MEMORY
{{
  FLASH (rx) : ORIGIN = {FLASH:#x}, LENGTH = {board.flash_bytes}
  RAM (rw) : ORIGIN = {RAM:#x}, LENGTH = {board.ram_bytes}
}}
ENTRY(host_reset)
SECTIONS
{{
  .text : {{ KEEP(*(.vectors)) *(.text .text.*) *(.rodata .rodata.*) . = ALIGN(4); }} > FLASH
  .ARM.exidx : {{ *(.ARM.exidx*) }} > FLASH
  .stack (NOLOAD) : {{ _stack_bottom = .; . = . + {stack_bytes}; . = ALIGN(8); _stack_top = .; }} > RAM
  .data : {{ _data_start = .; *(.data .data.*) . = ALIGN(4); _data_end = .; }} > RAM AT > FLASH
  _data_image = LOADADDR(.data);
  .bss (NOLOAD) : {{ _bss_start = .; *(.bss .bss.*) *(COMMON) . = ALIGN(4); _bss_end = .; }} > RAM
  _ram_end = .;
}}
"""
