"""What the distributions hold: `scripts/wheel_contents.py SDIST WHEEL`; exit code 1 says what is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

NEEDED = ("onchip/py.typed", "onchip/_core.pyi", "onchip/zoo/catalogue.toml", "onchip/chips/generic.toml")
JUNK = re.compile(r"(^|/)(build|out|__pycache__|\.[^/]*_cache|\.venv|\.hypothesis|\.git)(/|$)|\.(pyc|o|tmp)$")


def main() -> None:
    sdist, wheel = map(Path, sys.argv[1:3])
    with tarfile.open(sdist) as archive:
        source = {name.partition("/")[2] for name in archive.getnames() if not name.endswith("/")} - {""}
    with zipfile.ZipFile(wheel) as packed:
        installed = {name for name in packed.namelist() if not name.endswith("/")}
    ours = subprocess.run(
        ["git", "ls-files", "src"], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    package = {name.removeprefix("src/") for name in ours if name and "/_core/" not in name}
    wrong = [f"junk in the source distribution: {name}" for name in source if JUNK.search(name)]
    wrong += [f"junk in the wheel: {name}" for name in installed if JUNK.search(name)]
    wrong += [f"not in the source distribution: {name}" for name in ours if name and name not in source]
    wrong += [f"not in the wheel: {name}" for name in sorted({*NEEDED, *package} - installed)]
    if not any(re.fullmatch(r"onchip/_core\.[^/]*\.so", name) for name in installed):
        wrong.append("not in the wheel: onchip/_core")
    if "manylinux" not in wheel.name:
        wrong.append(f"{wheel.name} is for this machine only")
    print(f"{sdist.name}: {len(source)} files, {sdist.stat().st_size:,} bytes")
    print(f"{wheel.name}: {len(installed)} files, {wheel.stat().st_size:,} bytes")
    sys.exit("\n".join(wrong[:20]) or 0)


if __name__ == "__main__":
    main()
