"""Which scripts make which page, and what their commands need beside onchip: the data of `results.py`."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from onchip.machines.cores import core_names

__all__ = [
    "BUSY", "DECIMAL", "KEPT", "RESULTS", "ROOT", "Quick", "Result", "filled", "idle_cores", "lacking",
    "wanting",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "results"
"""Where measured data are kept, and files lie that others published and that are no part of this project."""
DECIMAL = r"\d[\d,]*\.\d+"
STAT = Path("/proc/stat")
"""Ticks of the machine's cores by what they did: the fourth and fifth are idle ones."""
BUSY = 0.3
"""The part of a core that others may use beside a page that needs idle ones."""
EMULATED = ("arm-none-eabi-gcc", "qemu-system-arm")
RISCV = ("riscv64-unknown-elf-gcc", "qemu-system-riscv32")


@dataclass(frozen=True)
class Quick:
    """A command whose table rows must stand on its page as they are, but for what matches `varies`.

    It is left out where one of the `programs` is missing.
    """

    command: str
    varies: str = ""
    programs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a page comes about: the commands, one after another.

    `needs` is what a machine must have beside onchip. A command that names one of `given`, files and folders
    that others publish, is left out where that is not there: its rows stay as they are on the page. So is a
    command that begins as a pair of `installed` says, where the pair's program or Python module is not
    there. So are all commands of a page that needs `idle` cores, which nothing else uses, where there are not
    so many: what they measure then is the others' work. What matches `clock` comes from a search that a clock
    ended, or is a time: it may differ from run to run.
    """

    page: str
    commands: tuple[str, ...]
    quick: tuple[Quick, ...] = ()
    needs: str = ""
    given: tuple[str, ...] = ()
    installed: tuple[tuple[str, str], ...] = ()
    idle: int = 0
    clock: str = ""


SIMULATED = (
    "table2 readings table4 table5 table6 setup rivals layers transitions totals strength alone vgg19 table7"
    " table8 table8_rivals fig1 fig3 fig4 fig5 fig6 sensitivity claims"
)
FIG_7_TIMES = (
    r"(?<=^\| \d )\| \d+\.\d+ |\| \d+ (?=(\| \d+\.\d+ ){2}\| \d+\.\d \|$)"  # after a change
    r"|^\| \d+\.\d{3} \| \d+ "  # frames
    r"|(?<=\.\d\d )\| (?:dp|local search) \|$"  # which of two searches, side by side, comes first
    r"|(?<=^\| (?:light|heavy) )\|.*|(?<=^\| medium )\|.*"  # all pairs
)
"""What in Fig. 7 are times of this machine, or follows from them; latencies stay."""
COUNTED = "claims formulas errata table2 fig7 fig9 fig10 fig11 fig12"

MCU_FILES = " ".join(
    f"{{kept}}/models/{name}.tflite"
    for name in (
        "mcunet_5fps_vww",
        "mcunet_320kb_imagenet",
        "vww_96_int8",
        "pretrainedResnet_quant",
        "kws_ref_model",
        "ad01_int8",
    )
)
MODELS = "{kept}/models"
FILES = "{kept}/files"
DETECTORS = f"{FILES}/openmv+openmv/lib/models"
ROW_FILES = (
    f"{DETECTORS}/person_detect.tflite {MODELS}/mcunet_5fps_vww.tflite"
    f" {MODELS}/pretrainedResnet_quant.tflite {DETECTORS}/movenet_singlepose_192.tflite"
)
VELA_FILES = " ".join(name for name in MCU_FILES.split() if "320kb" not in name)
MCU_MADE = "made:mcunet_vww made:mcunet_320kb made:vww_96 made:resnet8 made:kws made:ad01"

RESULTS = (
    Result(
        "placement-figures.md",
        ("placement_known_values.py --plan", "placement_in_place.py --time-limit 60"),
        quick=(Quick("placement_known_values.py --plan", varies=DECIMAL),),
    ),
    Result(
        "simple-method.md",
        ("paper/simple_method.py --into docs/simple-method.md",),
        quick=(Quick("paper/simple_method.py"),),
        needs="pip install 'onchip[docs]'",
    ),
    Result("corun.md", ("corun_model.py --into docs/corun.md",), quick=(Quick("corun_model.py"),)),
    Result(
        "corun-profiles.md",
        ("corun_profiles.py --into docs/corun-profiles.md",),
        quick=(Quick("corun_profiles.py"),),
    ),
    Result(
        "hax-conn.md",
        ("paper/hax_conn.py --into docs/hax-conn.md",),
        quick=(
            Quick(f"paper/hax_conn.py --only {SIMULATED}"),
            Quick("paper/hax_conn.py --only pairs", varies=r"\| \d+ \| \d+ (?=\| \d+ \|$)"),
            Quick("paper/hax_conn.py --only fig7", varies=FIG_7_TIMES),
            Quick("paper/hax_conn.py --only planning", varies=r"\| \d+ \| \d* ?\|$"),
            Quick(
                "paper/hax_conn.py --only searched",
                varies=r"(?<=\+ 10 )(\| [\d.,]+ ){4}(?=\| [\d.]+ \|$)",
            ),
            Quick(
                "paper/hax_conn.py --only z3 z3_long",
                varies=r"\| \d+ \| \d+\.\d+ (?=\| \w+ \|$)|\| \d+ (?=\| not given to it)",
            ),
        ),
    ),
    Result(
        "vmcu.md",
        ("paper/vmcu.py --into docs/vmcu.md --draw docs/images",),
        quick=(
            Quick(f"paper/vmcu.py --only {COUNTED}"),
            Quick("paper/vmcu.py --only table3 window modulo", programs=EMULATED),
        ),
        needs="gcc-arm-none-eabi and qemu-system-arm; Fig. 8 and Table 3 beside TinyEngine stay without"
        " `--tinyengine DIR`, a checkout of it",
    ),
    Result(
        "mcu-files.md",
        (f"mcu_files.py benchmarks/mcu_files.json {FILES} --seconds 1 --least 20 --into docs/mcu-files.md",),
        needs="the files that benchmarks/mcu_files.json lists in build/results/files, tflite-micro and"
        " ai-edge-litert",
        given=(FILES,),
        installed=(("mcu_files.py", "tflite_micro"), ("mcu_files.py", "ai_edge_litert")),
    ),
    Result(
        "mcu-cores.md",
        (
            f"mcu_cores.py benchmarks/mcu_files.json {FILES} --results {{kept}}/cores.jsonl"
            " --time-limit 36000 --tflm {kept}/tflite-micro --third-party {kept}/third_party"
            " --cmsis {kept}/CMSIS-NN --objects {kept}/objects --into docs/mcu-cores.md",
            f"mcu_fitted.py --folder {FILES} @benchmarks/mcu_fitted_files.txt --into docs/mcu-cores.md",
        ),
        needs="the files and Python modules of mcu-files, the compilers and emulators of all cores;"
        " checkouts of tflite-micro, of what it needs, and of CMSIS-NN in build/results",
        given=(FILES, "{kept}/tflite-micro", "{kept}/third_party", "{kept}/CMSIS-NN"),
        installed=tuple(("mcu_", name) for name in (*EMULATED, *RISCV, "tflite_micro")),
    ),
    Result(
        "segments.md",
        (
            f"mcu_published.py --into docs/segments.md {MODELS}/mcunet_5fps_vww.tflite"
            f" {MODELS}/mcunet_320kb_imagenet.tflite made:mobilenet_v2_msfcnn",
        ),
        needs="gcc-arm-none-eabi and qemu-system-arm; the published files of MCUNet in build/results/models",
        given=(MODELS,),
        installed=tuple(("mcu_", name) for name in EMULATED),
    ),
    Result(
        "segments-rows.md",
        (
            "rows_oracle.py --count 2000 --into docs/segments-rows.md",
            "rows_known.py {kept}/mcu_graphs --into docs/segments-rows.md",
            f"mcu_rows.py {ROW_FILES} --into docs/segments-rows.md",
            f"mcu_anew.py {DETECTORS}/movenet_singlepose_192.tflite --ram 112000 87000 --run"
            " --into docs/segments-rows.md",
        ),
        needs="gcc-arm-none-eabi and qemu-system-arm; graphs as text in build/results/mcu_graphs,"
        " published files in build/results/models and build/results/files",
        given=("{kept}/mcu_graphs", MODELS, FILES),
        installed=tuple(("mcu_", name) for name in EMULATED),
    ),
    Result(
        "nest-networks.md",
        (
            "time_networks.py zoo:mobilenet_v2 zoo:resnet50 {kept}/modern/vit_b16.ts.onnx"
            " {kept}/modern/bert512.dyn23.onnx llama:16 {kept}/modern/unet.dyn.onnx --chips EDGE SERVER"
            " --budgets 1MiB --time-limit 60 --keep {kept}/six_networks.jsonl",
            "time_networks.py --table --keep {kept}/six_networks.jsonl --section 'six networks'"
            " --into docs/nest-networks.md",
            "time_networks.py --campaign {kept}/modern --time-limit 10 --keep {kept}/campaign.jsonl",
            "time_networks.py --table --keep {kept}/campaign.jsonl --into docs/nest-networks.md",
        ),
        needs="exported networks in build/results/modern, an idle core",
        # Rows kept by the commands before: without them the tables of the page would be emptied.
        given=("{kept}/modern", "{kept}/six_networks.jsonl", "{kept}/campaign.jsonl"),
        idle=1,
    ),
    Result(
        "mcu.md",
        (
            *(
                f"mcu_networks.py --core {core} --runs 1 --into docs/mcu.md {MCU_FILES} {MCU_MADE}"
                for core in ("cortex-m4", "cortex-m7")
            ),
            "mcu_builds.py",
        ),
        needs="gcc-arm-none-eabi and qemu-system-arm; the published files of MLPerf Tiny and MCUNet in"
        " build/results/models",
        given=(MODELS,),
        installed=tuple(("mcu_", name) for name in EMULATED),
    ),
    Result(
        "kernels.md",
        (
            f"mcu_shared.py --into docs/kernels.md {MCU_FILES}",
            *(f"mcu_kernels.py --cmsis {{kept}}/CMSIS-NN --core {core} {MCU_FILES}" for core in core_names()),
            "mcu_kernels.py --cmsis {kept}/CMSIS-NN --known",
            "mcu_elements.py --cmsis {kept}/CMSIS-NN --into docs/kernels.md",
        ),
        needs="gcc-arm-none-eabi and qemu-system-arm; a checkout of CMSIS-NN and the published files in"
        " build/results",
        given=(MODELS, "{kept}/CMSIS-NN"),
        installed=tuple(("mcu_", name) for name in EMULATED),
    ),
    Result(
        "cosma.md",
        (
            "paper/cosma.py measure {kept}/cosma.json",
            "paper/cosma.py render {kept}/cosma.json --into docs/cosma.md",
        ),
        quick=(
            Quick("paper/cosma.py render --section arena arena_all belady orders"),
            Quick(
                "paper/cosma.py render --only res* --only fcn* --only s3d --section fig3 plans",
                varies=r"(?<=optimal )(\| [\d.]+ ){2}|\| [\d.]+ (?=\| [\d,]+ \| [\d.]+ \|$)",
            ),
        ),
        needs="pip install 'onchip[docs]'",
        clock=r"[\d,]+ \\\*|no proof in [^|]*",
    ),
    Result(
        "optimus.md",
        ("paper/optimus.py --data {kept}/optimus.json --into docs/optimus.md",),
        quick=(
            Quick("paper/optimus.py --only fig2 fig7 fig14 fig15 fig17 fig19 --networks [avgms]*"),
            Quick("paper/optimus.py --only fig1 fig16 --networks [avs]*"),
            Quick("paper/optimus.py --only fig12"),
            Quick("paper/optimus.py --only larger graphs line"),
        ),
        needs="pip install 'onchip[docs]'",
        clock=r"^\| (?:NASNet|mean) \|.*|[\d,.]+ \\\* \([\d.]+ %\)",
    ),
    Result(
        "branches-figures.md",
        (
            "branches_networks.py measure {kept}/branches.json",
            "branches_networks.py render {kept}/branches.json --into docs/branches-figures.md",
            "branches_growth.py --into docs/branches-figures.md",
        ),
    ),
    Result(
        "peers.md",
        (
            "peers/addresses.py --csv {kept}/minimalloc --minimalloc {kept}/minimalloc-built/minimalloc"
            " --iterations 1000 --into docs/peers.md",
            "peers/nests.py --accelforge {kept}/accelforge/bin/python --into docs/peers.md",
            f"peers/vela_files.py --vela {{kept}}/vela/bin/vela --into docs/peers.md {VELA_FILES}",
            "peers/deeploy_minimalloc.py --deeploy {kept}/Deeploy --programs build/native"
            " --into docs/peers.md",
            "peers/times.py zoo:resnet50 zoo:mobilenet_v2 {kept}/modern/vit_b16.ts.onnx"
            " {kept}/modern/bert512.dyn.onnx --zigzag {kept}/zigzag/bin/python"
            " --scalesim {kept}/scalesim/bin/python --records {kept}/times.jsonl"
            " --into docs/peers.md",
        ),
        needs="the peers' own programs in build/results, executorch and ethos-u-vela",
        given=(
            *("{kept}/minimalloc", "{kept}/minimalloc-built", "{kept}/accelforge", "{kept}/vela", MODELS),
            *("{kept}/Deeploy", "{kept}/zigzag", "{kept}/scalesim", "{kept}/modern"),
        ),
        installed=(("peers/addresses.py", "executorch"), ("peers/addresses.py", "ethosu")),
    ),
    Result(
        "executorch.md",
        (
            "executorch_models.py measure {kept}/executorch.json",
            "executorch_models.py run {kept}/executorch.json",
            "executorch_tables.py {kept}/executorch.json --into docs/executorch.md",
        ),
        needs="an environment with executorch, timm and torchvision",
        installed=tuple(("executorch_", name) for name in ("executorch", "timm", "torchvision")),
    ),
    Result("sizes.md", ("site_packages.py --into docs/sizes.md",)),
    Result(
        "packing.md",
        (
            "packing_fixtures.py {kept}/minimalloc",
            "packing_tilings.py --sides 10000,1000,200 --into docs/packing.md",
        ),
        needs="minimalloc's instances in build/results/minimalloc",
        given=("{kept}/minimalloc",),
    ),
    Result(
        "contest.md",
        (
            "contest.py {kept}/contest --page docs/contest.md",
            "contest.py {kept}/contest --law winner --proof 0 --page docs/contest.md",
            "contest_oracle.py --trees 200 --graphs 1000 --page docs/contest.md",
        ),
        needs="the contest's problems in build/results/contest",
        given=("{kept}/contest",),
    ),
    Result(
        "corun-search.md",
        ("corun_search.py",),
        needs="pip install 'onchip[corun]' for Z3",
        installed=(("corun_search.py", "z3"),),
    ),
    Result(
        "corun-local.md",
        (
            *(f"corun_local.py measure {pair}" for pair in range(3)),
            "corun_local.py table",
            "corun_local_dynamic.py changes",
        ),
        needs="two idle cores, pip install 'onchip[corun]'",
        installed=(("corun_local", "onnxruntime"),),
        idle=2,
        clock=r"^\| (?:googlenet|resnet).*",
    ),
    Result("execution.md", ("execute_zoo.py", "fusion_executed.py")),
    Result("objectives.md", ("objectives.py",)),
    Result("memories.md", ("memories.py 25",)),
    Result("scale.md", ("scale.py --time-limit 20 --operators 100,1000,10000",), idle=1),
    Result(
        "fusion-algorithms.md",
        ("fusion_algorithms.py --into docs/fusion-algorithms.md",),
        quick=(Quick("fusion_algorithms.py --only random orders papers ours"),),
    ),
    Result(
        "fusion-model.md",
        ("fusion_readings.py --into docs/fusion-model.md",),
        quick=(Quick("fusion_readings.py"),),
    ),
    Result("fusion-pricing.md", ("fusion_large.py",)),
    Result(
        "joint.md",
        (
            "joint_graphs.py --into docs/joint.md",
            "joint_networks.py --time-limit 40",
            "joint_as_nests.py --into docs/joint.md",
            "joint_executed.py",
            "joint_floor.py",
        ),
        quick=(Quick("joint_graphs.py"), Quick("joint_floor.py")),
        needs="an idle core for the limits of joint_networks.py and joint_as_nests.py",
        idle=1,
        clock=r"^\| \w+ \| [\w-]+ \|.*\| gap [\d.]+ % \|.*|^\| \w+ \\\* \|.*"
        r"|^\| [a-z:, -]+ \| [\d,]+ \|(?= [a-z]|$)",  # groups as nests, counted
    ),
    Result(
        "real-run.md",
        ("time_real.py --into docs/real-run.md",),
        idle=2,
        needs="gcc and two cores that nothing else uses",
    ),
    Result(
        "placement-ilp.md",
        (
            "ilp_size.py --into docs/placement-ilp.md",
            "ilp_networks.py measure {kept}/ilp.json --start nothing --graph fused attention --seconds 20",
            "ilp_networks.py measure {kept}/ilp.json --start nothing --graph op --seconds 10",
            "ilp_networks.py measure {kept}/ilp.json --start plan --seconds 120",
            "ilp_networks.py measure {kept}/ilp.json --start 'plan, no presolve' --graph fused attention"
            " --seconds 40",
            "ilp_networks.py measure {kept}/ilp.json --start 'plan, no presolve' --graph op --seconds 100"
            " --only deeplabv3* --tensors resident",
            "ilp_networks.py measure {kept}/ilp.json --start scip highs --seconds 40"
            " --graph fused --tensors streamed --at MR",
            "ilp_networks.py render {kept}/ilp.json --into docs/placement-ilp.md --summary docs/cosma.md",
            "ilp_equals_exact.py --order given --weights streamed --workers 1 --time-limit 600 --only darts"
            " pnasnet5large amoebanet_d nasnetalarge --into docs/placement-ilp.md",
        ),
        quick=(Quick("ilp_size.py"),),
        clock=r"no proof in [^|]*",
    ),
)


def filled(command: str) -> str:
    """The command with the folder of what is kept in its place."""
    return command.format(kept=KEPT)


def lacking(result: Result, command: str) -> list[str]:
    """What the command names, others publish and is not there; what it needs and is not installed."""
    words = command.split()
    named = [
        given
        for given in result.given
        if any(word == given or word.startswith(f"{given}/") for word in words)
    ]
    absent = [filled(given) for given in named if not Path(filled(given)).exists()]
    return absent + wanting(name for begins, name in result.installed if command.startswith(begins))


def idle_cores(seconds: float = 1.0) -> float:
    """How many cores nothing used for so long; all where the system does not tell."""

    def ticks() -> list[int]:
        return [int(word) for word in STAT.read_text("ascii").split("\n", 1)[0].split()[1:9]]

    cores = float(os.cpu_count() or 1)
    if not STAT.exists():
        return cores
    before = ticks()
    time.sleep(seconds)
    spent = [late - early for late, early in zip(ticks(), before, strict=True)]
    return cores * (spent[3] + spent[4]) / max(1, sum(spent))


def wanting(names: Iterable[str]) -> list[str]:
    """Return the programs and Python modules that this machine does not have."""
    return [name for name in names if shutil.which(name) is None and find_spec(name) is None]
