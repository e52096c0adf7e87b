"""Libraries that send telemetry and write in the home folder for it: switched off before imports."""

from __future__ import annotations

import os
import sys

__all__ = ["quiet_onnxruntime", "quiet_openvino"]


def quiet_onnxruntime() -> None:
    """Have onnxruntime make no device id and no database of events; a user's own setting stands."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def quiet_openvino() -> None:
    """Have openvino run without its telemetry, as where that package is not installed."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
