"""Files of public repositories on every emulated core, beside TensorFlow Lite Micro on the same core.

    .venv/bin/python benchmarks/mcu_cores.py LIST.json FOLDER --results FILE.jsonl [--time-limit 3600]
        [--cores cortex-m4,...] [--most-macs 50e6] [--tflm ... --cmsis ... --third-party ...] [--only TEXT]
        [--only-bytes] [--only-arena] [--into docs/mcu-cores.md]

LIST and FOLDER are those of `mcu_files`. Each file is planned once, as by `onchip mcu`, linked for each core
with no more stack than it needs, and run there on three inputs behind the guard; every output byte is
compared with the reference, which is compared with TensorFlow Lite Micro in `mcu_files`. With the checkouts
that `mcu_tflm` takes, TensorFlow Lite Micro runs the first of the inputs on the same core, from the same
compiler, and its outputs are compared, too; with `--only-arena` it allocates its tensors and runs nothing.
Each result is appended to FILE as soon as it is there; what FILE has is not run again. Without `--time-limit`
the tables are printed from FILE alone, or those of `--sections`. Exit code 1 if any byte was wrong or a ratio
of instructions is above its line.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path

from mcu_core_runs import Result, arena_of, files_of, only_bytes, ours, skips_scales, theirs
from mcu_core_tables import Results, Tables
from mcu_tflm import Peer, absolute
from page_marks import write

from onchip.machines.cores import core_names


class Campaign:
    """The results in a file, and what is still to be run."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.results: Results = {}
        if asked.results.exists():
            for line in asked.results.read_text().splitlines():
                row = json.loads(line)
                self.results[row["file"], row["core"]] = row

    def run(self) -> None:
        """Run what is missing, least work first, until the time is over."""
        asked, end = self.asked, time.monotonic() + self.asked.time_limit
        chosen = [e for e in json.loads(asked.list.read_text()) if asked.only in e["path"]]
        files = sorted(files_of(chosen, asked.folder), key=lambda file: file.work)
        for file in files:
            for core in asked.cores.split(","):
                row = self.results.get((file.key, core))
                if self.done(row) or file.work > asked.most_macs:
                    continue
                if time.monotonic() > end:
                    return
                with tempfile.TemporaryDirectory() as folder:
                    if row is None or not (asked.only_arena or "instructions" in row):
                        made = (only_bytes if asked.only_bytes or asked.only_arena else ours)(
                            file, core, Path(folder)
                        )
                        row = {"file": file.key, "core": core, **made}
                if asked.tflm and "left" not in row:
                    optimise = "-O1" if asked.only_arena else "-O3"
                    objects = asked.objects / optimise
                    objects.mkdir(parents=True, exist_ok=True)
                    peer = Peer(asked.tflm, asked.third_party, asked.cmsis, core, objects, optimise)
                    with tempfile.TemporaryDirectory() as folder:
                        if asked.only_arena:
                            row = {**row, "arena": arena_of(file, peer, Path(folder))}
                        else:
                            row["tflm"] = theirs(file, peer, Path(folder))
                            if "arena" in row["tflm"]:
                                row["arena"] = {"bytes": row["tflm"]["arena"]}
                    row["skips"] = skips_scales(file.model)
                self.results[file.key, core] = row
                with asked.results.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(json.dumps(row), file=sys.stderr, flush=True)

    def done(self, row: Result | None) -> bool:
        """Tell whether a result has all that is asked for."""
        if row is None or "left" in row:
            return row is not None
        if self.asked.only_arena:
            return "arena" in row
        return self.asked.only_bytes or ("instructions" in row and ("tflm" in row or not self.asked.tflm))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("list", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--time-limit", type=float, default=0.0)
    parser.add_argument("--cores", default=",".join(core_names()))
    parser.add_argument("--most-macs", type=float, default=math.inf, help="leave out files of more work")
    parser.add_argument("--only", default="", help="files with this text in their paths")
    parser.add_argument(
        "--only-bytes",
        action="store_true",
        help="compare bytes and count no instructions: several times faster",
    )
    parser.add_argument(
        "--only-arena",
        action="store_true",
        help="beside --tflm: allocate its tensors and run nothing; adds to what ran with --only-bytes",
    )
    parser.add_argument("--tflm", type=absolute, help="a checkout of tflite-micro")
    parser.add_argument("--third-party", type=absolute, help="a folder with flatbuffers, gemmlowp, ruy")
    parser.add_argument("--cmsis", type=absolute, help="a checkout of CMSIS-NN")
    parser.add_argument("--objects", type=Path, help="a folder that keeps what is compiled of them")
    parser.add_argument(
        "--sections",
        default="cores,bytes,ram,ram across scales,beside,above,left out",
        help="tables to print; `not run`, too",
    )
    parser.add_argument("--into", type=Path)
    asked = parser.parse_args()
    if asked.tflm and asked.only_bytes:
        parser.error("--tflm is beside counted instructions, --only-bytes counts none")
    if asked.tflm and not (asked.third_party and asked.cmsis and asked.objects):
        parser.error("--tflm needs --third-party, --cmsis and --objects")
    campaign = Campaign(asked)
    if asked.time_limit:
        campaign.run()
    tables = Tables(campaign.results, asked.list, asked.folder)
    sections = {
        "cores": tables.summary,
        "bytes": tables.bytes_compared,
        "ram": tables.ram,
        "ram across scales": tables.across,
        "beside": tables.matrix,
        "above": tables.above,
        "left out": tables.left,
        "not run": tables.not_run,
    }
    write({name: sections[name] for name in asked.sections.split(",")}, asked.into)
    return 0 if tables.good else 1


if __name__ == "__main__":
    sys.exit(main())
