"""The packer without Python: its C interface, the drop-in for MiniMalloc, the memory planner's template."""

from __future__ import annotations

import csv
import fcntl
import itertools
import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from onchip.planners.packing import Buffer, minimise

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
LLVM = Path("/usr/lib/llvm-19")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("g++") is None, reason="no compiler"),
]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the library and the programs, under the sanitizers; test processes share it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "native"
    with (shared / "native.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            given = [f"-DCMAKE_CXX_FLAGS_RELEASE=-O0 {' '.join(WARNINGS)}", "-DONCHIP_SANITIZE=ON"]
            given += [
                "-DCMAKE_UNITY_BUILD=ON",
                "-DCMAKE_UNITY_BUILD_BATCH_SIZE=4",
            ]  # headers are read less often
            subprocess.run(["cmake", "-S", NATIVE, "-B", folder, *given], check=True, capture_output=True)
            wanted = ["--target", "minimalloc", "pack_example", "-j2"]
            subprocess.run(["cmake", "--build", folder, *wanted], check=True, capture_output=True)
            (folder / "built").touch()
    return folder


@dataclass(frozen=True)
class Row:
    """A row of a table: live range, size, alignment, and gaps as (begin, end, low, high)."""

    lower: int
    upper: int
    size: int
    alignment: int = 1
    gaps: tuple[tuple[int, int, int, int], ...] = ()

    def at(self, time: int) -> tuple[int, int] | None:
        """Return the bytes of itself that are live at a time."""
        if not self.lower <= time < self.upper:
            return None
        for begin, end, low, high in self.gaps:
            if begin <= time < end:
                return (low, high) if low < high else None
        return 0, self.size


def clearance(below: Row, above: Row) -> int | None:
    """Return how far the offset of one is above the other's at least: MiniMalloc's rule for a pair."""
    times = range(min(below.lower, above.lower), max(below.upper, above.upper))
    both = [(x, y) for t in times if (x := below.at(t)) and (y := above.at(t))]
    return max((x[1] - y[0] for x, y in both), default=None)


def sound(rows: list[Row], offsets: tuple[int, ...] | list[int], capacity: int) -> bool:
    """Return whether offsets are valid by MiniMalloc's rules."""
    for row, at in zip(rows, offsets, strict=True):
        if at < 0 or at + row.size > capacity or at % row.alignment:
            return False
    for (i, x), (j, y) in itertools.combinations(enumerate(rows), 2):
        forward, backward = clearance(x, y), clearance(y, x)
        if forward is None or backward is None:
            continue
        if offsets[i] + forward > offsets[j] and offsets[j] + backward > offsets[i]:
            return False
    return True


def by_force(rows: list[Row], capacity: int) -> bool:
    places = [range(0, capacity - row.size + 1, row.alignment) for row in rows]
    return any(sound(rows, offsets, capacity) for offsets in itertools.product(*places))


def random_row(rng: random.Random) -> Row:
    lower, size = rng.randrange(5), rng.randrange(1, 5)
    upper = lower + rng.randrange(1, 6)
    gaps: tuple[tuple[int, int, int, int], ...] = ()
    if upper - lower > 2 and rng.random() < 0.6:
        low = rng.randrange(size + 1)
        gaps = ((lower + 1, lower + 2, low, rng.randrange(low, size + 1)),)
    return Row(lower, upper, size, rng.choice((1, 1, 1, 2)), gaps)


def table(rows: list[Row]) -> str:
    lines = ["id,lower,upper,size,alignment,hint,gaps"]
    for i, row in enumerate(rows):
        gaps = " ".join(f"{b}-{e}@{low}:{high}" if low < high else f"{b}-{e}" for b, e, low, high in row.gaps)
        lines.append(f"b{i},{row.lower},{row.upper},{row.size},{row.alignment},-1,{gaps}")
    return "\n".join(lines) + "\n"


def run(build: Path, source: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [build / "minimalloc", f"--input={source}", *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_drop_in_agrees_with_force(build: Path, tmp_path: Path) -> None:
    rng = random.Random(7)
    answers, windows = [0, 0], 0
    for case in range(60):
        rows = [random_row(rng) for _ in range(4)]
        capacity = rng.randrange(4, 9)
        source, made = tmp_path / f"{case}.csv", tmp_path / f"{case}.out.csv"
        source.write_text(table(rows))
        done = run(build, source, f"--capacity={capacity}", "--output", str(made), "-validate")
        possible = by_force(rows, capacity)
        assert done.returncode == (0 if possible else 1), (rows, capacity, done.stderr)
        answers[possible] += 1
        windows += any(low < high for row in rows for *_, low, high in row.gaps)
        assert made.exists() == possible
        if possible:
            lines = list(csv.reader(made.read_text().splitlines()))
            assert lines[0][-1] == "offset"
            assert [line[0] for line in lines[1:]] == [f"b{i}" for i in range(len(rows))]
            assert sound(rows, [int(line[-1]) for line in lines[1:]], capacity)
            assert "Validation PASS, height" in done.stderr
    assert min(*answers, windows) > 10


def test_the_least_capacity_is_found(build: Path, tmp_path: Path) -> None:
    rng = random.Random(3)
    for case in range(8):
        rows = [random_row(rng) for _ in range(4)]
        least = next(c for c in range(1, 40) if by_force(rows, c))
        source, made = tmp_path / f"{case}.csv", tmp_path / "made.csv"
        source.write_text(table(rows))
        assert run(build, source, "--capacity=100", "--minimize_capacity", f"--output={made}").returncode == 0
        ends = [
            int(line["offset"]) + int(line["size"]) for line in csv.DictReader(made.read_text().splitlines())
        ]
        assert max(ends) == least
        assert run(build, source, f"--capacity={least - 1}", "--minimize_capacity").returncode == 1


def test_the_help_names_every_flag_that_counts(build: Path, tmp_path: Path) -> None:
    done = run(build, tmp_path / "none.csv", "--help")
    assert done.returncode == 0
    for flag in ("input", "output", "capacity", "timeout", "minimize_capacity", "validate", "print_solution"):
        assert f"--{flag} " in done.stdout


@pytest.mark.parametrize(
    ("text", "flags", "says"),
    [
        ("id,lower,upper,size\na,0,2,4\n", ("--capacity=4",), None),
        ("size,buffer,start,end\n4,a b,0,1\n", ("--capacity", "4", "--nocanonical_only"), None),
        ("id,lower,upper,size\n", ("--capacity=0",), None),
        ("id,lower,upper,size\na,0,2,4\n\nnonsense\n", ("-capacity=4", "--timeout=1.5m"), None),
        ("id,lower,upper,size,other\na,0,2,0,x\n", ("--timeout=inf", "--check_dominance=false"), None),
        ("id,lower,upper,size\na,0,2,4\n", (), "NOT_FOUND"),
        ("id,lower,upper,size,offset\na,0,2,4,-1\n", ("--capacity=9",), "NOT_FOUND"),
        ("id,lower,upper\na,0,2\n", ("--capacity=4",), "A required column is missing"),
        ("id,lower,upper,size\r\na,0,2,4\r\n", ("--capacity=4",), "A required column is missing"),
        ("id,lower,upper,size,size\na,0,2,4,4\n", ("--capacity=4",), "Duplicate column names"),
        ("id,lower,upper,size\na,0,2,4,5\n", ("--capacity=4",), "Too many fields"),
        ("id,lower,upper,size\na,0,2,x\n", ("--capacity=4",), "Improperly formed integer"),
        ("id,lower,upper,size\na,0,2,99999999999999999999\n", (), "Improperly formed integer"),
        ("id,lower,upper,size,alignment\na,0,2,4,\n", ("--capacity=4",), "Improperly formed alignment"),
        ("id,lower,upper,size,gaps\na,0,9,4,1_2\n", ("--capacity=4",), "Improperly formed gap"),
        ("id,lower,upper,size\na,2,2,4\n", ("--capacity=4",), "empty live range"),
        ("id,lower,upper,size\na,0,2,4\n", ("--capacity=4", "--timeout=3"), "Illegal value"),
        ("id,lower,upper,size\na,0,2,4\n", ("--capacity=4", "--gravity"), "Unknown command line flag"),
        ("id,lower,upper,size\na,0,2,4\n", ("--capacity",), "Missing the value"),
    ],
)
def test_tables_and_flags(
    build: Path, tmp_path: Path, text: str, flags: tuple[str, ...], says: str | None
) -> None:
    source, made = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(text, newline="")
    done = run(build, source, f"--output={made}", *flags)
    assert done.returncode == (0 if says is None else 1)
    assert made.exists() == (says is None)
    assert done.stdout == ""
    if says is not None:
        assert says in done.stderr


def test_a_missing_file_is_named(build: Path, tmp_path: Path) -> None:
    done = run(build, tmp_path / "none.csv", "--capacity=4")
    assert done.returncode == 1
    assert "none.csv failed" in done.stderr


def test_the_example_is_c99_and_the_header_cpp17(build: Path) -> None:
    include = f"-I{NATIVE / 'include'}"
    source = NATIVE / "examples" / "pack.c"
    subprocess.run(["gcc", "-std=c99", *WARNINGS, include, "-fsyntax-only", source], check=True)
    subprocess.run(["g++", "-std=c++17", "-xc++", *WARNINGS, include, "-fsyntax-only", source], check=True)
    done = subprocess.run([build / "pack_example"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "5120 bytes, the least"


@pytest.mark.parametrize("containers", ["standard", "LLVM"])
def test_the_memory_planner_is_exact(build: Path, containers: str) -> None:
    if containers == "LLVM" and not LLVM.exists():
        pytest.skip("llvm-19-dev is not installed")
    program = build / f"planner_{containers}"
    source = Path(__file__).with_name("planner_check.cpp")
    flags = ["-std=c++17", "-O0", *WARNINGS, "-fsanitize=address,undefined", f"-I{NATIVE / 'include'}"]
    more = []
    if containers == "LLVM":
        flags += ["-DWITH_LLVM", "-isystem", str(LLVM / "include")]
        more = [f"-L{LLVM / 'lib'}", "-lLLVM-19"]
    subprocess.run(["g++", *flags, source, build / "libonchip.a", "-o", program, *more], check=True)
    rng = random.Random(1)
    for _ in range(15):
        rows = [
            (rng.randrange(1, 90), 2 ** rng.randrange(4), t := rng.randrange(12), t + rng.randrange(1, 7))
            for _ in range(10)
        ]
        text = "\n".join(" ".join(map(str, row)) for row in [*rows, (0, 1, 0, 4), (5, 1, 3, 3)])
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
        offsets = [int(word) for word in done.stdout.split()]
        assert offsets[-2:] == [0, 0]
        buffers = [Buffer(first, end, size, alignment) for size, alignment, first, end in rows]
        least = minimise(buffers)
        assert least.optimal
        assert max(at + b.size for at, b in zip(offsets, buffers, strict=False)) == least.bytes
        named = [Row(b.lower, b.upper, b.size, b.alignment) for b in buffers]
        assert sound(named, offsets[:-2], least.bytes)
