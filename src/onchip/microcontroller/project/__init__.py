"""A plan and an int8 model as a project in C: three functions, no dynamic memory, one array for all bytes."""

from onchip.microcontroller.project.sources import Sources, sources_of

__all__ = ["Sources", "sources_of"]
