"""The results pages, all of them: which script makes which page, and whether the pages still say what
scripts print.

    python benchmarks/results.py --list
    python benchmarks/results.py --quick               # `make bench-quick`: some two minutes
    python benchmarks/results.py [--only PATTERN]      # `make bench`: all, some hours; writes into docs/

`--quick` runs those whose figures are counts and come soon, prints them, and holds every row of their
tables to the page: a row that the page does not have ends it with exit code 1. Times are passed over,
since they are the machine's. The full run puts sections into their pages where a script can (`--into`),
and writes what others print to build/results/. DATA files of two-step scripts are kept there, too:
measured networks are not measured again."""

from __future__ import annotations

import argparse
import fnmatch
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "results"
DECIMAL = r"\d[\d,]*\.\d+"


@dataclass(frozen=True)
class Result:
    """How a page comes about: the commands, one after another.

    `quick` is a command whose table rows must stand on the page as they are, but for what matches `varies`.
    `needs` is what a machine must have beside onchip.
    """

    page: str
    commands: tuple[str, ...]
    quick: str = ""
    varies: str = ""
    needs: str = ""


SIMULATED = "table2 table4 table5 table6 setup rivals layers totals table7 fig1 fig3 fig4 fig5 fig6"
COUNTED = "formulas errata table2 fig7 fig9 fig10"

MCU_FILES = (
    "mcunet_5fps_vww.tflite mcunet_320kb_imagenet.tflite vww_96_int8.tflite pretrainedResnet_quant.tflite"
    " kws_ref_model.tflite ad01_int8.tflite"
)
MCU_MADE = "made:mcunet_vww made:mcunet_320kb made:vww_96 made:resnet8 made:kws made:ad01"

RESULTS = (
    Result(
        "placement-figures.md",
        ("placement_known_values.py --plan", "placement_in_place.py --time-limit 60"),
        quick="placement_known_values.py --plan",
        varies=DECIMAL,
    ),
    Result(
        "simple-method.md",
        ("paper/simple_method.py --into docs/simple-method.md",),
        quick="paper/simple_method.py",
        needs="pip install 'onchip[docs]'",
    ),
    Result("corun.md", ("corun_model.py --into docs/corun.md",), quick="corun_model.py"),
    Result(
        "corun-profiles.md",
        ("corun_profiles.py --into docs/corun-profiles.md",),
        quick="corun_profiles.py",
    ),
    Result(
        "hax-conn.md",
        ("paper/hax_conn.py --into docs/hax-conn.md", "paper/hax_conn_acceptance.py"),
        quick=f"paper/hax_conn.py --only {SIMULATED}",
    ),
    Result(
        "vmcu.md",
        ("paper/vmcu.py --into docs/vmcu.md --draw docs/images",),
        quick=f"paper/vmcu.py --only {COUNTED}",
        needs="gcc-arm-none-eabi and qemu-system-arm; Fig. 8 and Table 3 beside TinyEngine stay without"
        " `--tinyengine DIR`, a checkout of it",
    ),
    Result(
        "mcu.md",
        tuple(
            f"mcu_networks.py --core {core} --runs 1 --into docs/mcu.md {MCU_FILES} {MCU_MADE}"
            for core in ("cortex-m4", "cortex-m7")
        ),
        needs="gcc-arm-none-eabi and qemu-system-arm, the published files of MLPerf Tiny and MCUNet",
    ),
    Result(
        "mcu-files.md",
        ("mcu_files.py benchmarks/mcu_files.json FILES --seconds 4 --into docs/mcu-files.md",),
        needs="the files that benchmarks/mcu_files.json lists, tflite-micro and ai-edge-litert",
    ),
    Result(
        "kernels.md",
        (
            f"mcu_shared.py --into docs/kernels.md {MCU_FILES}",
            f"mcu_kernels.py --cmsis CMSIS-NN {MCU_FILES}",
            "mcu_kernels.py --cmsis CMSIS-NN --known",
        ),
        needs="gcc-arm-none-eabi and qemu-system-arm, a checkout of CMSIS-NN, the published files",
    ),
    Result(
        "cosma.md",
        (
            "paper/cosma.py measure {kept}/cosma.json",
            "paper/cosma.py render {kept}/cosma.json --into docs/cosma.md",
        ),
        quick="paper/cosma.py render --section arena orders",
        needs="pip install 'onchip[docs]'",
    ),
    Result(
        "optimus.md",
        ("paper/optimus.py --data {kept}/optimus.json --into docs/optimus.md",),
        quick="paper/optimus.py --only fig2 fig7 fig14 fig15 fig17 fig19 --networks [avgms]*",
        needs="pip install 'onchip[docs]'",
    ),
    Result(
        "branches-figures.md",
        (
            "branches_networks.py measure {kept}/branches.json",
            "branches_networks.py render {kept}/branches.json --into docs/branches-figures.md",
            "branches_growth.py --into docs/branches-figures.md",
        ),
    ),
    Result("peers.md", ("peers/addresses.py", "peers/nests.py"), needs="the peers' own programs"),
    Result(
        "packing.md", ("packing_fixtures.py", "packing_tilings.py --side 100"), needs="minimalloc's instances"
    ),
    Result(
        "contest.md",
        (
            "contest.py {kept}/contest --page docs/contest.md",
            "contest_oracle.py --kind tree",
            "contest_oracle.py --kind graph",
        ),
        needs="the contest's problems in build/results/contest",
    ),
    Result("corun-search.md", ("corun_search.py",), needs="pip install 'onchip[corun]' for Z3"),
    Result(
        "corun-local.md",
        (
            *(f"corun_local.py measure {pair}" for pair in range(3)),
            "corun_local.py table",
            "corun_local_dynamic.py changes",
        ),
        needs="two idle cores, pip install 'onchip[corun]'",
    ),
    Result("execution.md", ("execute_zoo.py", "fusion_executed.py")),
    Result("objectives.md", ("objectives.py",)),
    Result("memories.md", ("memories.py 25",)),
    Result("scale.md", ("scale.py --time-limit 20 --operators 100,1000,10000",)),
    Result(
        "fusion-algorithms.md",
        ("fusion_algorithms.py --into docs/fusion-algorithms.md",),
        quick="fusion_algorithms.py --only random papers ours",
    ),
    Result(
        "fusion-model.md",
        ("fusion_readings.py --into docs/fusion-model.md",),
        quick="fusion_readings.py",
    ),
    Result("fusion-pricing.md", ("fusion_large.py",)),
    Result(
        "joint.md",
        ("joint_graphs.py", "joint_networks.py", "joint_as_nests.py", "joint_executed.py", "joint_floor.py"),
        quick="joint_floor.py",
        needs="the operator graphs",
    ),
    Result(
        "placement-ilp.md",
        (
            "ilp_size.py --into docs/placement-ilp.md",
            "ilp_networks.py measure {kept}/ilp.json --start nothing --graph fused attention --seconds 20",
            "ilp_networks.py measure {kept}/ilp.json --start nothing --graph op --seconds 10",
            "ilp_networks.py measure {kept}/ilp.json --start plan --seconds 120",
            "ilp_networks.py measure {kept}/ilp.json --start scip highs --seconds 40"
            " --graph fused --tensors streamed --at MR",
            "ilp_networks.py render {kept}/ilp.json --into docs/placement-ilp.md --summary docs/cosma.md",
        ),
        quick="ilp_size.py",
    ),
)


def run(command: str, *, shown: bool) -> tuple[int, str]:
    """Run a script of this folder; what it prints, shown as it comes if wanted."""
    script, *rest = shlex.split(command.format(kept=KEPT))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / script), *rest],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if shown:
            print(line, end="", flush=True)
    return process.wait(), "".join(lines)


def rows(text: str, varies: str) -> list[str]:
    """The rows of a text's tables, without what may differ from machine to machine."""
    found = [
        line.strip()
        for line in text.splitlines()
        if line.startswith("|") and not re.match(r"[|:\- ]+$", line)
    ]
    return [re.sub(varies, "#", row) if varies else row for row in found]


def missing(result: Result, printed: str) -> list[str]:
    """Rows that were printed and that the page does not have."""
    page = set(rows((ROOT / "docs" / result.page).read_text("utf-8"), result.varies))
    return [row for row in rows(printed, result.varies) if row not in page]


def quick(result: Result) -> bool:
    """Run a result's quick command and hold it to the page; whether both agree."""
    print(f"\n## {result.page}: benchmarks/{result.quick}\n", flush=True)
    code, printed = run(result.quick, shown=True)
    absent = missing(result, printed)
    count = len(rows(printed, result.varies))
    for row in absent[:10]:
        print(f"docs/{result.page} does not have: {row}", file=sys.stderr)
    agree = code == 0 and not absent and count > 0
    print(
        f"{result.page}: {count - len(absent)} of {count} rows stand on the page", file=sys.stderr, flush=True
    )
    return agree


def full(result: Result) -> bool:
    """Run all commands of a result; what is printed, and put into no page, is kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{Path(result.page).stem}.txt"
    printed = []
    for command in result.commands:
        print(f"{result.page}: benchmarks/{command}", file=sys.stderr, flush=True)
        code, text = run(command, shown=False)
        printed.append(text)
        if code:
            print(f"{result.page}: ended with {code}", file=sys.stderr, flush=True)
            return False
    if any(part.strip() for part in printed):
        kept.write_text("\n".join(printed), "utf-8")
        print(f"{result.page}: printed tables are in {kept}", file=sys.stderr, flush=True)
    return True


def table() -> str:
    """The list of docs/results.md."""
    lines = ["| page | made by | quick | needs |", "|---|---|:-:|---|"]
    for r in sorted(RESULTS, key=lambda r: r.page):
        scripts = dict.fromkeys("`" + c.split()[0] + "`" for c in r.commands)
        fast = "yes" if r.quick else ""
        lines.append(f"| [{r.page[:-3]}]({r.page}) | {', '.join(scripts)} | {fast} | {r.needs} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print which script makes which page")
    parser.add_argument("--quick", action="store_true", help="hold the pages to what comes soon")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="of pages, as `corun*`")
    given = parser.parse_args()
    if given.list:
        print(table())
        return
    chosen = [
        r for r in RESULTS if fnmatch.fnmatch(r.page, given.only) or fnmatch.fnmatch(r.page[:-3], given.only)
    ]
    if given.quick:
        chosen = [r for r in chosen if r.quick]
    began = time.perf_counter()
    wrong = [r.page for r in chosen if not (quick(r) if given.quick else full(r))]
    print(
        f"{len(chosen) - len(wrong)} of {len(chosen)} pages as printed, {time.perf_counter() - began:.0f} s",
        file=sys.stderr,
    )
    raise SystemExit(f"not as printed: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
