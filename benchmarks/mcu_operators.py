"""The operators of TensorFlow Lite Micro and what `onchip mcu` makes of each, as a table.

    .venv/bin/python benchmarks/mcu_operators.py TFLITE_MICRO [--into docs/mcu-reference.md]

TFLITE_MICRO is a checkout of tensorflow/tflite-micro. The operators are those of its interpreter for Python
(`python/tflite_micro/python_ops_resolver.cc`), by the schema's names. What is read is asked of the readers;
why the others are not is said here, and the script fails where that is not so: an operator without a reason,
a reason for one that is read, or one that is said to have floats only and whose kernel has int8.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from page_marks import write

from onchip.microcontroller.int8.move import MOVES
from onchip.microcontroller.int8.read import RECURRENT
from onchip.microcontroller.int8.read_fold import FOLDS
from onchip.microcontroller.int8.read_layers import LAYERS
from onchip.microcontroller.int8.read_state import STATEFUL
from onchip.microcontroller.int8.sixteen.layers import LAYERS16
from onchip.readers.tflite_traits import SAME_BYTES

READ = {*LAYERS, *RECURRENT, *STATEFUL, *MOVES, *SAME_BYTES, "TRANSPOSE", "DEQUANTIZE"}
MOVES_ANY = {*MOVES, *SAME_BYTES, "TRANSPOSE", "DEQUANTIZE"}
KNOWN = "of shapes and places that are known when the file is read, which become constants; else refused"
FLOATS = "floats only"
WHOLE = (
    "whole numbers or booleans, which an int8 network has only at its end, where they are left to the caller"
)
CONTROL = "control flow, which a plan of fixed addresses does not have"
SIGNAL = "of the signal library, on numbers of 16 and 32 bits of its own"
BATCH = "makes a batch of several images, which no tensor of a plan is"
OPEN = "has an int8 kernel; not read, and in none of the files of public repositories"
_BY_REASON = {
    KNOWN: "SHAPE FLOOR_DIV",
    FLOATS: "CEIL COS FLOOR FLOOR_MOD LOG NEG ROUND SIN SQRT SQUARE L2_POOL_2D",
    WHOLE: "ARG_MAX ARG_MIN BROADCAST_ARGS CAST EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND"
    " LOGICAL_NOT LOGICAL_OR NOT_EQUAL REDUCE_ALL SELECT_V2",
    CONTROL: "IF WHILE",
    BATCH: "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND",
    OPEN: "ADD_N CUMSUM DIV DYNAMIC_UPDATE_SLICE EMBEDDING_LOOKUP FILL GATHER_ND L2_NORMALIZATION ZEROS_LIKE",
    "keeps rows in an operator of its own; files since keep them in variables": "CIRCULAR_BUFFER",
    "compressed weights, which are not read": "DECODE",
    "boxes in floats behind the last bytes, which are left to the caller": "DETECTION_POSTPROCESS",
    "compiled for another processor": "ETHOS_U",
}
REASONS = {operator: reason for reason, names in _BY_REASON.items() for operator in names.split()}
_CUSTOM = {"CircularBuffer": "CIRCULAR_BUFFER", "Decode": "DECODE", "EthosU": "ETHOS_U"}
_CUSTOM |= {"DetectionPostprocess": "DETECTION_POSTPROCESS"}


def operators(checkout: Path) -> list[str]:
    """The schema's name of each operator of the resolver; of others the name that they are added by."""
    resolver = (checkout / "python/tflite_micro/python_ops_resolver.cc").read_text()
    header = (checkout / "tensorflow/lite/micro/micro_mutable_op_resolver.h").read_text()
    named: dict[str, str] = {}
    for part in header.split("TfLiteStatus Add")[1:]:
        name = part.partition("(")[0]
        found = re.search(r"BuiltinOperator_(\w+)", part)
        named[name] = found[1] if found and name not in _CUSTOM else _CUSTOM.get(name, f"({name})")
    return [named[name] for name in re.findall(r"Add([A-Z]\w*)\(", resolver)]


def verdict(operator: str, checkout: Path) -> str:
    reason = REASONS.get(operator) or (SIGNAL if operator.startswith("(") else "")
    if operator in READ:
        if reason:
            raise SystemExit(f"{operator} is read, and said not to be")
        wide = operator in LAYERS16 or operator in MOVES_ANY
        return f"int8{', int16' if wide else ''}"
    if not reason:
        raise SystemExit(f"{operator} is not read, and no reason is given")
    if reason == KNOWN:
        if operator not in FOLDS:
            raise SystemExit(f"{operator} is not computed when a file is read")
        return reason
    kernel = checkout / "tensorflow/lite/micro/kernels" / f"{operator.lower()}.cc"
    if reason == FLOATS and kernel.exists() and "case kTfLiteInt8" in kernel.read_text():
        raise SystemExit(f"{operator} has more than floats")
    return f"refused: {reason}"


def table(checkout: Path) -> Iterator[str]:
    yield "| operators | read |"
    yield "|---|---|"
    by: dict[str, list[str]] = {}
    for operator in sorted(operators(checkout)):
        by.setdefault(verdict(operator, checkout), []).append(operator.strip("()"))
    for what, names in sorted(by.items()):
        yield f"| {', '.join(f'`{name}`' for name in names)} | {what} |"
    refused = sum(len(names) for what, names in by.items() if what.startswith("refused"))
    yield f"| all {sum(map(len, by.values()))} | {refused} refused |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--into", type=Path)
    asked = parser.parse_args()
    write({"operators": lambda: table(asked.checkout)}, asked.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
