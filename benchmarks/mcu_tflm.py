"""TensorFlow Lite Micro with CMSIS-NN beside onchip, on the same emulated core, in the same run.

    git clone https://github.com/tensorflow/tflite-micro
    git clone https://github.com/ARM-software/CMSIS-NN
    .venv/bin/python benchmarks/mcu_tflm.py --tflm tflite-micro --third-party FOLDER --cmsis CMSIS-NN
        [--core cortex-m4|cortex-m7] [--into docs/mcu.md] MODEL.tflite ...

FOLDER holds `flatbuffers`, `gemmlowp` and `ruy`, as TFLM's own makefile downloads them (`third_party` of
Espressif's esp-tflite-micro has them in one piece). Everything is compiled here for the core, so that arenas
are those of a 32-bit build: `arena_used_bytes()` after the tensors are allocated. Both programs use the same
compiler and -O3; one inference of the same input is counted, and the outputs are compared byte by byte.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from page_marks import write

import onchip
from onchip.base.errors import OnchipError
from onchip.machines.board import Board
from onchip.microcontroller.emulator import Image, build, emulate
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.read import read_model

HERE = Path(__file__).resolve().parent
BOARD = Board("bench", "cortex-m4", 4 << 20, 4 << 20)
ARENA = 1 << 20
STACK = 16384
DEFINES = (
    "TF_LITE_STATIC_MEMORY",
    "TF_LITE_STRIP_ERROR_STRINGS",
    "CMSIS_NN",
    "NDEBUG",
    "TF_LITE_DISABLE_X86_NEON",
)
CORE_FILES = (
    "tensorflow/lite/array.cc",
    "tensorflow/lite/core/c/common.cc",
    "tensorflow/lite/core/api/flatbuffer_conversions.cc",
    "tensorflow/lite/core/api/tensor_utils.cc",
    "tensorflow/compiler/mlir/lite/core/api/error_reporter.cc",
    "tensorflow/compiler/mlir/lite/schema/schema_utils.cc",
    "tensorflow/lite/kernels/kernel_util.cc",
    "tensorflow/lite/kernels/internal/common.cc",
    "tensorflow/lite/kernels/internal/portable_tensor_utils.cc",
    "tensorflow/lite/kernels/internal/quantization_util.cc",
    "tensorflow/lite/kernels/internal/runtime_shape.cc",
    "tensorflow/lite/kernels/internal/tensor_ctypes.cc",
    "tensorflow/lite/kernels/internal/tensor_utils.cc",
    *(
        f"tensorflow/lite/micro/{name}.cc"
        for name in (
            "flatbuffer_utils",
            "memory_helpers",
            "micro_allocation_info",
            "micro_allocator",
            "micro_context",
            "micro_interpreter",
            "micro_interpreter_context",
            "micro_interpreter_graph",
            "micro_log",
            "micro_op_resolver",
            "micro_profiler",
            "micro_resource_variable",
            "micro_time",
            "micro_utils",
            "system_setup",
            "arena_allocator/non_persistent_arena_buffer_allocator",
            "arena_allocator/persistent_arena_buffer_allocator",
            "arena_allocator/single_arena_buffer_allocator",
            "memory_planner/greedy_memory_planner",
            "memory_planner/linear_memory_planner",
            "memory_planner/non_persistent_buffer_planner_shim",
            "tflite_bridge/flatbuffer_conversions_bridge",
            "tflite_bridge/micro_error_reporter",
            "kernels/kernel_util",
            "kernels/micro_tensor_utils",
        )
    ),
)
FILES = {
    "AVERAGE_POOL_2D": "pooling",
    "MAX_POOL_2D": "pooling",
    "CONV_2D": "conv",
    "DEPTHWISE_CONV_2D": "depthwise_conv",
}
FILES |= {"MEAN": "reduce", "SUM": "reduce", "PADV2": "pad", "CONCATENATION": "concatenation"}
FILES |= {
    "RELU": "activations",
    "RELU6": "activations",
    "MINIMUM": "maximum_minimum",
    "MAXIMUM": "maximum_minimum",
}
METHODS = {
    "AVERAGE_POOL_2D": "AveragePool2D",
    "MAX_POOL_2D": "MaxPool2D",
    "CONV_2D": "Conv2D",
    "RELU6": "Relu6",
}
METHODS |= {"DEPTHWISE_CONV_2D": "DepthwiseConv2D", "PADV2": "PadV2", "PRELU": "Prelu"}


@dataclass(frozen=True)
class Peer:
    """The checkouts, and the folder of what is compiled from them for a core."""

    tflm: Path
    third_party: Path
    cmsis: Path
    core: str
    folder: Path

    def flags(self) -> list[str]:
        found = [
            f"-mcpu={self.core}",
            "-mthumb",
            "-mfloat-abi=soft",
            "-O3",
            "-w",
            "-ffunction-sections",
            "-fdata-sections",
        ]
        found += [f"-D{name}" for name in DEFINES]
        third = self.third_party
        places = (
            self.tflm,
            self.cmsis,
            self.cmsis / "Include",
            third / "flatbuffers/include",
            third / "gemmlowp",
            third / "ruy",
        )
        return found + [f"-I{place}" for place in places]

    def compiled(self, source: Path, name: str, *more: str) -> Path:
        """The object of a source; made once."""
        made = self.folder / f"{name}.o"
        if made.exists():
            return made
        plus = source.suffix == ".cc"
        tool = "arm-none-eabi-g++" if plus else "arm-none-eabi-gcc"
        how = (
            ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fno-use-cxa-atexit"]
            if plus
            else ["-std=c11"]
        )
        _call([tool, *self.flags(), *how, *more, "-c", "-o", str(made), str(source)])
        return made

    def operators(self, names: list[str]) -> list[Path]:
        kernels = self.tflm / "tensorflow/lite/micro/kernels"
        found = []
        for name in names:
            file = FILES.get(name, name.lower())
            for one in (file, f"{file}_common"):
                for source in (kernels / "cmsis_nn" / f"{one}.cc", kernels / f"{one}.cc"):
                    if source.exists():
                        found.append(self.compiled(source, f"k_{one}"))
                        break
        return found


def program(peer: Peer, model: Path, folder: Path) -> Image:
    """The linked program of a model in TFLM."""
    names = sorted(set(operator_names(model.read_bytes())))
    methods = "".join(f"resolver.Add{METHODS.get(n) or n.title().replace('_', '')}();" for n in names)
    define = (f"-DARENA_BYTES={ARENA}", f"-DOPERATORS={len(names)}", f"-DADD_OPERATORS={methods}")
    firmware = Path(onchip.__file__).parent / "microcontroller/emulator/firmware"
    main = replace(peer, folder=folder).compiled(HERE / "mcu_tflm.cc", "main_tflm", f"-I{firmware}", *define)
    objects = [main, *(peer.compiled(peer.tflm / name, name.replace("/", "_")) for name in CORE_FILES)]
    objects += peer.operators(names)
    every = sorted((peer.cmsis / "Source").rglob("*.c"))
    sources = [source for source in every if not source.stem.endswith(("_f16", "_f32"))]
    objects += [peer.compiled(source, source.stem) for source in sources]
    together = folder / "together.o"
    _call(["arm-none-eabi-ld", "-r", "-o", str(together), *map(str, dict.fromkeys(objects))])
    marks = "".join(
        f'__attribute__((noinline)) void onchip_mark_{i}(void) {{ __asm volatile("/* {i} */"); }}\n'
        for i in (0, 1)
    )
    texts = {
        "main.c": f"int run_tflm(void);\n{marks}int main(void) {{ return run_tflm(); }}\n",
        "file.S": ".section .rodata\n.balign 16\n.global model_file\nmodel_file:\n"
        f'.incbin "{model.resolve()}"\n',
    }
    flags = ("-O3", "-std=c11", "-w", "-ffunction-sections", "-fdata-sections", str(together), "-lm")
    board = replace(BOARD, core=peer.core)
    return build(texts, board, folder, stack_bytes=STACK, flags=flags, float_abi="soft")


def operator_names(content: bytes) -> list[str]:
    import tflite

    model = tflite.Model.GetRootAs(content, 0)
    names = {v: k for k, v in vars(tflite.BuiltinOperator).items() if not k.startswith("_")}
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    return [names[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())] for code in codes]


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        printed = done.stderr.splitlines()
        wrong = [line for line in printed if "error" in line or "undefined" in line] or printed or ["failed"]
        sys.exit(f"{command[0]} ... {command[-1]}: {wrong[0]}")


class Table:
    """The lines of the table, each as soon as it is known; `good` once they are all there."""

    def __init__(self, asked: argparse.Namespace, folder: Path) -> None:
        self.asked, self.good = asked, True
        self.peer = Peer(asked.tflm, asked.third_party, asked.cmsis, asked.core, folder)

    def lines(self) -> Iterator[str]:
        yield (
            "| network | TFLM's arena | its stack | its instructions | plan | linked RAM | instructions"
            " | RAM | instructions | bytes that differ |"
        )
        yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        for path in self.asked.models:
            try:
                yield self.row(path)
            except OnchipError as problem:
                print(f"{path}: {problem}", file=sys.stderr)
                self.good = False

    def row(self, path: Path) -> str:
        model = read_model(path)
        given = inputs_of(model, 1)[0].tobytes()
        with tempfile.TemporaryDirectory() as folder:
            image = program(self.peer, path, Path(folder))
            theirs = emulate(image, {"in": given}, outputs=("out",), seconds=500)
        made = onchip.mcu(path, replace(BOARD, core=self.asked.core), run=True, runs=1)
        assert made.run is not None
        from onchip.microcontroller.int8.reference import run

        (x,) = inputs_of(model, 1)
        expected = run(model, [x])[0].tobytes()
        different = sum(a != b for a, b in zip(theirs.files["out"], expected, strict=True))
        counted = theirs.by_mark[0].instructions
        own = made.run.total.instructions
        arena, stack = theirs.report["arena"], theirs.stack_bytes
        self.good &= made.run.match
        cells = (arena, stack, counted, made.arena_bytes, made.ram_bytes, own)
        shares = f"{made.ram_bytes / (arena + stack):.2f} | {own / counted:.2f}"
        return f"| {model.name} | {' | '.join(f'{n:,}' for n in cells)} | {shares} | {different} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--tflm", type=Path, required=True, help="a checkout of tflite-micro")
    parser.add_argument(
        "--third-party", type=Path, required=True, help="a folder with flatbuffers, gemmlowp, ruy"
    )
    parser.add_argument("--cmsis", type=Path, required=True, help="a checkout of CMSIS-NN")
    parser.add_argument("--core", default="cortex-m4", choices=("cortex-m4", "cortex-m7"))
    parser.add_argument("--objects", type=Path, help="a folder that keeps what was compiled")
    parser.add_argument("--into", type=Path, help="a page that has the marks of this table")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        objects = asked.objects or Path(folder)
        objects.mkdir(parents=True, exist_ok=True)
        table = Table(asked, objects)
        write({f"tflm {asked.core}": table.lines}, asked.into)
    return 0 if table.good else 1


if __name__ == "__main__":
    sys.exit(main())
