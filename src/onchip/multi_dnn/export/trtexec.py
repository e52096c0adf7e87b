"""A shell script of trtexec commands: each network with the device of every layer.

trtexec builds one engine a network and times it alone. It cannot enforce an order between networks; the
formats `tensorrt` and `order` can.
"""

from __future__ import annotations

import re
import shlex

from onchip.base.errors import UsageError
from onchip.multi_dnn.export.devices import device_of, network_names
from onchip.multi_dnn.judged import Judged

__all__ = ["write"]


def write(made: Judged) -> str:
    """Return the script; raises `UsageError` for unknown layers or two DLAs in one engine."""
    names = network_names(made)
    lines = [
        "#!/bin/sh",
        "# Builds and times each network alone, every layer on the device that the schedule gives it.",
        "# Written by onchip. The models are expected beside this script under the names below.",
        "set -e",
        'cd "$(dirname "$0")"',
    ]
    for j, job in enumerate(made.workload.jobs):
        rows = list(dict.fromkeys(made.schedule.units[j]))
        for n, row in enumerate(rows):
            spec = []
            for group, unit in zip(job.profile.groups, row, strict=True):
                if not group.layers:
                    raise UsageError(
                        f"the profile of {job.profile.network} does not say which layers group {group.name}"
                        " has (`layers`)",
                        item="--to",
                    )
                spec += [f"{_layer(layer)}:{device_of(made, unit).kind}" for layer in group.layers]
            plan = f"{names[j]}.plan" if len(rows) == 1 else f"{names[j]}_{n}.plan"
            cores = sorted({one.core for unit in row if (one := device_of(made, unit)).kind == "DLA"})
            if len(cores) > 1:
                raise UsageError(
                    f"{job.name} runs on DLA cores {cores[0]} and {cores[1]}; trtexec builds one engine, for"
                    " one of them: tensorrt can say it",
                    item="--to",
                )
            command = ["trtexec", f"--onnx={names[j]}.onnx", "--fp16"]
            if cores:
                command += [f"--useDLACore={cores[0]}", "--allowGPUFallback"]
                command.append(f"--layerDeviceTypes={','.join(spec)}")
            command.append(f"--saveEngine={plan}")
            lines += ["", " ".join(shlex.quote(word) for word in command)]
    return "\n".join(lines) + "\n"


def _layer(name: str) -> str:
    """Return a layer's name for a list of name:device; raises `UsageError` for an unsuitable one."""
    if re.search(r"[,:\x00-\x1f\x7f]", name) or not name.isprintable():
        raise UsageError(f"trtexec's lists cannot say the layer name {name[:80]!r}", item="--to")
    return name
