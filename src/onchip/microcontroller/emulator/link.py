"""The linker script: the sections of a program in the memories of the emulated machine."""

from __future__ import annotations

from onchip.machines.board import MOST_BYTES
from onchip.machines.cores import PIECE, Family, Machine

__all__ = ["linker_script"]


STACK_ALIGNMENT = {"arm": 8, "riscv": 16}


def linker_script(stack_bytes: int, machine: Machine, family: Family) -> str:
    """Return a script with memories of any size: the program's size is known once linked, and judged then.

    The stack, `stack_bytes`, is a section like any other, the lowest of RAM; .bss is the highest, and the
    network's arena is last in it, so that an access beyond either end hits the guard. The gap that lets
    .bss end where the guard can begin lies before it and belongs to no section.
    """
    align = STACK_ALIGNMENT[family]
    vectors = machine.vectors or machine.flash
    apart = machine.vectors is not None
    table = "  .vectors : { KEEP(*(.vectors)) } > VECTORS\n" if apart else ""
    first = "" if apart else "KEEP(*(.vectors)) "
    return f"""\
MEMORY
{{
  VECTORS (rx) : ORIGIN = {vectors.base:#x}, LENGTH = {vectors.bytes if apart else MOST_BYTES}
  FLASH (rx) : ORIGIN = {machine.flash.base:#x}, LENGTH = {MOST_BYTES}
  RAM (rw) : ORIGIN = {machine.ram.base:#x}, LENGTH = {MOST_BYTES}
}}
ENTRY(host_reset)
SECTIONS
{{
{table}  .text : {{
    _flash_start = .;
    {first}*(.text .text.*) *(.rodata .rodata.* .srodata .srodata.*) . = ALIGN(4);
  }} > FLASH
  .ARM.exidx : {{ *(.ARM.exidx*) }} > FLASH
  .stack (NOLOAD) : {{ _stack_bottom = .; . = . + {stack_bytes}; . = ALIGN({align}); _stack_top = .; }} > RAM
  .data : {{
    _data_start = .; *(.data .data.* .sdata .sdata.*) . = ALIGN(4); _data_end = .;
  }} > RAM AT > FLASH
  _data_image = LOADADDR(.data);
  .bss . + (-(. + SIZEOF(.bss)) & {PIECE - 1}) (NOLOAD) : {{
    _bss_start = .;
    *(.sbss .sbss.* .bss .bss.[!a]* .bss.a[!r]* COMMON) *(.bss.*)
    . = ALIGN(MAX(4, ALIGNOF(.bss)));
    _bss_end = .;
  }} > RAM
  _ram_end = .;
  _flash_base = {machine.flash.base:#x};
  _flash_end = {machine.flash.base + machine.flash.bytes:#x};
  _vectors_base = {vectors.base:#x};
  _vectors_end = {vectors.base + vectors.bytes:#x};
}}
"""
