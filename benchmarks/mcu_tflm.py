"""TensorFlow Lite Micro beside onchip, on the same emulated core, in the same run.

On Arm cores it has CMSIS-NN, on RISC-V its reference kernels.

    git clone https://github.com/tensorflow/tflite-micro
    git clone https://github.com/ARM-software/CMSIS-NN
    .venv/bin/python benchmarks/mcu_tflm.py --tflm tflite-micro --third-party FOLDER --cmsis CMSIS-NN
        [--core CORE] [--into docs/mcu.md] MODEL.tflite ...

FOLDER holds `flatbuffers`, `gemmlowp` and `ruy`, as TFLM's own makefile downloads them (`third_party` of
Espressif's esp-tflite-micro has them in one piece). Everything is compiled here with the same compiler and
-O3, kernels and CMSIS-NN for the core itself; TFLM's framework, which executes little, is compiled once for
all Arm cores without Helium. So arenas are those of a 32-bit build: `arena_used_bytes()` once the tensors are
allocated. One inference of the same input is counted, and the outputs are compared byte by byte. RISC-V's
compiler has no C++ headers of its own: those of Arm's compiler serve both.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from page_marks import write

import onchip
from onchip.base.errors import OnchipError
from onchip.machines.board import MOST_BYTES, Board
from onchip.machines.cores import CORES, Core, core_names
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
MORE = {
    "unidirectional_sequence_lstm": ("lstm_eval", "lstm_eval_common"),
    "depthwise_conv": ("conv_common",),
}
"""Kernels that call others."""
SHARED: Core = "cortex-m0plus"
"""The core that the framework is compiled for: its code runs on every Arm core."""
HEADERS = (
    "tensorflow/lite/kernels/internal/common.h",
    "tensorflow/lite/kernels/internal/tensor_ctypes.h",
    "tensorflow/lite/kernels/kernel_util.h",
    "tensorflow/lite/micro/kernels/kernel_util.h",
    "tensorflow/lite/micro/micro_interpreter.h",
    "tensorflow/lite/micro/micro_resource_variable.h",
)
"""What nearly all sources include, and most of the compiler's time goes to: compiled once for a core."""
RISCV_HEADERS = ("12.2.1", "12.2.1/arm-none-eabi/thumb/v6-m/nofp")


@dataclass(frozen=True)
class Peer:
    """The checkouts, and the folder of what is compiled from them for cores."""

    tflm: Path
    third_party: Path
    cmsis: Path
    core: Core
    folder: Path
    optimise: str = "-O3"

    @property
    def arm(self) -> bool:
        return CORES[self.core].family == "arm"

    @property
    def hard(self) -> bool:
        """True for a core whose code passes floating-point numbers in registers."""
        return "-mfloat-abi=hard" in CORES[self.core].flags

    def flags(self, core: Core) -> list[str]:
        found = [*CORES[core].flags, self.optimise, "-w", "-ffunction-sections", "-fdata-sections"]
        found += ["-mfloat-abi=soft"] if self.arm and not self.hard else []
        found += [f"-D{name}" for name in DEFINES if self.arm or name != "CMSIS_NN"]
        third = self.third_party
        places = (self.tflm, third / "flatbuffers/include", third / "gemmlowp", third / "ruy")
        found += [f"-I{place}" for place in (*places, self.cmsis, self.cmsis / "Include")]
        if not self.arm:
            found += ["--specs=picolibc.specs"]
            found += [f"-isystem/usr/include/newlib/c++/{place}" for place in RISCV_HEADERS]
        return found

    def room(self, core: Core) -> Path:
        """The folder of a core's objects, by its whole path: the linker is called elsewhere."""
        return self.folder.resolve() / core

    def compiled(self, source: Path, name: str, *more: str, shared: bool = False) -> Path:
        """The object of a source; made once."""
        core = SHARED if shared and self.arm and not self.hard else self.core
        made = self.room(core) / f"{name}.o"
        if made.exists():
            return made
        made.parent.mkdir(parents=True, exist_ok=True)
        plus = source.suffix == ".cc"
        prefix = "arm-none-eabi" if self.arm else "riscv64-unknown-elf"
        tool = f"{prefix}-g++" if plus else f"{prefix}-gcc"
        how = (
            ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-fno-use-cxa-atexit"]
            if plus
            else ["-std=c11"]
        )
        part = made.with_suffix(".part")
        flags = [tool, *self.flags(core), *how]
        if plus:
            more = ("-include", str(self.headers(core, flags)), *more)
        _call([*flags, *more, "-c", "-o", str(part), str(source)])
        return part.rename(made)

    def headers(self, core: Core, flags: list[str]) -> Path:
        """The file that includes the headers; beside it, once, what the compiler has made of it."""
        file = self.room(core) / "headers.h"
        made = file.with_suffix(".h.gch")
        if not made.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f'#include "{name}"\n' for name in HEADERS))
            part = made.with_suffix(".part")
            _call([*flags, "-x", "c++-header", "-o", str(part), str(file)])
            part.rename(made)
        return file

    def operators(self, names: list[str]) -> list[Path]:
        """The objects of the operators' kernels: CMSIS-NN's where it has them, and what they share."""
        found = []
        for name in dict.fromkeys(self.registered(name)[1] for name in names):
            for one in (name, *MORE.get(name, ()), f"{name}_common"):
                for source in self.places(one):
                    found.append(self.compiled(source, f"k_{one}"))
                    break
        return found

    def places(self, name: str) -> list[Path]:
        kernels = self.tflm / "tensorflow/lite/micro/kernels"
        rooms = (kernels / "cmsis_nn", kernels) if self.arm else (kernels,)
        return [room / f"{name}.cc" for room in rooms if (room / f"{name}.cc").exists()]

    def called(self, objects: list[Path]) -> list[Path]:
        """The objects of CMSIS-NN that others call, and that those call in turn."""
        places = defined_in(self.cmsis)
        found: list[Path] = []
        looked = list(objects)
        while looked:
            names = _call(["arm-none-eabi-nm", "--undefined-only", *map(str, looked)])
            sources = {places[name] for name in re.findall(r" U (\w+)", names) if name in places}
            looked = [self.compiled(source, source.stem) for source in sorted(sources)]
            looked = [made for made in looked if made not in found]
            found += looked
        return found

    def registered(self, name: str) -> tuple[str, str]:
        """(the resolver's method that adds an operator, the file that holds its kernel)."""
        resolver = (self.tflm / "tensorflow/lite/micro/micro_mutable_op_resolver.h").read_text()
        method = ""
        for found in re.finditer(r"TfLiteStatus Add(\w+)\(|AddBuiltin\(\s*BuiltinOperator_(\w+),", resolver):
            if found[1]:
                method = found[1]
            elif found[2] == name:
                break
        else:
            raise MissingOperator(name)
        for file in sorted((self.tflm / "tensorflow/lite/micro/kernels").glob("*.cc")):
            if re.search(rf"Register_{name}\(\)\s*{{", file.read_text()):
                return method, file.stem
        raise MissingOperator(name)


def absolute(text: str) -> Path:
    """Return the folder of an option, wherever compilers run."""
    return Path(text).resolve()


@cache
def defined_in(cmsis: Path) -> dict[str, Path]:
    """The source of CMSIS-NN that defines each function and each table."""
    found = {}
    for source in sorted((cmsis / "Source").rglob("*.c")):
        text = source.read_text()
        functions = re.findall(r"^\w[\w \*]*\b(arm_\w+)\(", text, re.MULTILINE)
        for name in functions + re.findall(r"^const \w+ (\w+)\[", text, re.MULTILINE):
            found[name] = source
    return found


class MissingOperator(OnchipError):
    """An operator for which the checkout has no kernel."""


def program(peer: Peer, content: bytes, folder: Path, arena: int = ARENA, *, invoke: bool = True) -> Image:
    """The linked program of a model in TFLM; without `invoke` it ends when its tensors are allocated."""
    names = sorted(set(operator_names(content)))
    methods = "".join(f"resolver.Add{peer.registered(n)[0]}();" for n in names)
    define = (f"-DARENA_BYTES={arena}", f"-DOPERATORS={len(names)}", f"-DADD_OPERATORS={methods}")
    define += (f"-DVARIABLES={16 if 'VAR_HANDLE' in names else 0}", f"-DINVOKE={int(invoke)}")
    firmware = Path(onchip.__file__).parent / "microcontroller/emulator/firmware"
    digest = hashlib.sha256(repr(define).encode()).hexdigest()[:12]
    main = peer.compiled(HERE / "mcu_tflm.cc", f"main_{digest}", f"-I{firmware}", *define)
    files = [(peer.tflm / name, name.replace("/", "_")) for name in CORE_FILES]
    objects = [main, *(peer.compiled(*file, shared=True) for file in files), *peer.operators(names)]
    if peer.arm:
        objects += peer.called(objects)
    together = folder / "libtflm.a"
    prefix = "arm-none-eabi" if peer.arm else "riscv64-unknown-elf"
    _call([f"{prefix}-ar", "rcs", str(together), *map(str, dict.fromkeys(objects[1:]))])
    marks = "".join(
        f'__attribute__((noinline)) void onchip_mark_{i}(void) {{ __asm volatile("/* {i} */"); }}\n'
        for i in (0, 1)
    )
    (folder / "model.tflite").write_bytes(content)
    texts = {
        "main.c": f"int run_tflm(void);\n{marks}int main(void) {{ return run_tflm(); }}\n",
        "file.S": ".section .rodata\n.balign 16\n.global model_file\nmodel_file:\n"
        f'.incbin "{(folder / "model.tflite").resolve()}"\n',
    }
    linked = ("-Wl,--undefined=onchip_mark_0,--undefined=onchip_mark_1", str(main), "-Wl,--start-group")
    linked += (str(together), "-lm", "-lc", "-lgcc", "-Wl,--end-group")
    flags = ("-O3", "-std=c11", "-w", "-ffunction-sections", "-fdata-sections", *linked)
    board = Board("roomy", peer.core, MOST_BYTES, MOST_BYTES)
    abi = "soft" if peer.arm and not peer.hard else None
    return build(texts, board, folder, stack_bytes=STACK, flags=flags, float_abi=abi)


def operator_names(content: bytes) -> list[str]:
    import tflite

    model = tflite.Model.GetRootAs(content, 0)
    names = {v: k for k, v in vars(tflite.BuiltinOperator).items() if not k.startswith("_")}
    codes = [model.OperatorCodes(i) for i in range(model.OperatorCodesLength())]
    used = {
        graph.Operators(j).OpcodeIndex()
        for graph in map(model.Subgraphs, range(model.SubgraphsLength()))
        for j in range(graph.OperatorsLength())
    }
    return [names[max(codes[i].BuiltinCode(), codes[i].DeprecatedBuiltinCode())] for i in sorted(used)]


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        printed = done.stderr.splitlines()
        wrong = [line for line in printed if "error" in line or "undefined" in line] or printed or ["failed"]
        sys.exit(f"{command[0]} ... {command[-1]}: {wrong[0]}")
    return done.stdout


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
            image = program(self.peer, path.read_bytes(), Path(folder))
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
    parser.add_argument("--tflm", type=absolute, required=True, help="a checkout of tflite-micro")
    parser.add_argument(
        "--third-party", type=absolute, required=True, help="a folder with flatbuffers, gemmlowp, ruy"
    )
    parser.add_argument("--cmsis", type=absolute, required=True, help="a checkout of CMSIS-NN")
    parser.add_argument("--core", default="cortex-m4", choices=core_names())
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
