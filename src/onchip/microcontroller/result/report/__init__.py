"""The page of `onchip mcu --report`."""

from onchip.microcontroller.result.report.page import html, report

__all__ = ["html", "report"]
