"""What the distributions hold: `scripts/wheel_contents.py SDIST WHEEL`; exit code 1 says what is wrong.

With `--materials` the wheel must hold its bill of materials, too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

NEEDED = (
    "onchip/py.typed",
    "onchip/_core.pyi",
    "onchip/zoo/catalogue.toml",
    "onchip/machines/chips/generic.toml",
)
CARRIED = {"nanobind", "robin-map", "timm", "torch", "torchvision"}
BASE = {"jinja2", "msgspec", "numpy", "onnx", "ortools", "rich", "typer"}
JUNK = re.compile(r"(^|/)(build|out|__pycache__|\.[^/]*_cache|\.venv|\.hypothesis|\.git)(/|$)|\.(pyc|o|tmp)$")


def materials(wheel: Path) -> list[str]:
    """What is wrong with the wheel's bill of materials."""
    with zipfile.ZipFile(wheel) as packed:
        found = [name for name in packed.namelist() if name.endswith(".dist-info/sboms/onchip.cdx.json")]
        if len(found) != 1:
            return [f"{len(found)} bills of materials in the wheel"]
        text = packed.read(found[0]).decode()
        record = next(name for name in packed.namelist() if name.endswith(".dist-info/RECORD"))
        listed = packed.read(record).decode()
    names = {component["name"] for component in json.loads(text)["components"]}
    wrong = [f"not in the bill of materials: {name}" for name in sorted(CARRIED | BASE) if name not in names]
    if found[0] not in listed:
        wrong.append("the bill of materials is not in RECORD")
    if re.search(r"file:|https?://(?!cyclonedx\.org)|\.\./|/home/|/tmp/", text):
        wrong.append("the bill of materials names an address or a path")
    return wrong


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
    for name in ("LICENSE", "THIRD_PARTY.md"):
        if not any(
            re.fullmatch(rf"onchip-[^/]*\.dist-info/licenses/{re.escape(name)}", entry) for entry in installed
        ):
            wrong.append(f"not in the wheel: {name}")
    if "--materials" in sys.argv:
        wrong += materials(wheel)
    if "manylinux" not in wheel.name:
        wrong.append(f"{wheel.name} is for this machine only")
    print(f"{sdist.name}: {len(source)} files, {sdist.stat().st_size:,} bytes")
    print(f"{wheel.name}: {len(installed)} files, {wheel.stat().st_size:,} bytes")
    sys.exit("\n".join(wrong[:20]) or 0)


if __name__ == "__main__":
    main()
