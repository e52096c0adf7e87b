"""Plans, pages and data are the same for every hash seed of the interpreter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = [
    ("fuse", "zoo:squeezenet1_0", "--budget", "64KiB"),
    ("fuse", "zoo:alexnet", "--chip", "optimus", "--search", "algorithm1"),
    ("plan", "zoo:densenet121", "--budget", "MR", "--no-fuse"),
    ("plan", "zoo:squeezenet1_0", "--budget", "256KiB", "--fuse"),
    ("branches", "zoo:inception_v3"),
]
SEEDS = ("0", "4242")
TIMES = re.compile(r'"seconds": ?[0-9.e+-]+|"claim_sha256": ?"[0-9a-f]*"|[0-9][0-9.,]* m?s\b')


@pytest.mark.thorough
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_hash_seed_gives_the_same(call: tuple[str, ...], tmp_path: Path) -> None:
    running, made = [], []
    for seed in SEEDS:
        folder = tmp_path / seed
        folder.mkdir()
        command = [sys.executable, "-m", "onchip.cli", *call, "--json", "-o", "plan.json"]
        running.append(
            subprocess.Popen(
                [*command, "--report", "page.html"],
                cwd=folder,
                env={**os.environ, "PYTHONHASHSEED": seed},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    for seed, process in zip(SEEDS, running, strict=True):
        out, _ = process.communicate()
        assert process.returncode == 0
        texts = (out, *((tmp_path / seed / name).read_text() for name in ("plan.json", "page.html")))
        made.append([TIMES.sub("", text) for text in texts])
    for name, texts in zip(("data", "plan", "page"), zip(*made, strict=True), strict=True):
        assert len(set(texts)) == 1, name
