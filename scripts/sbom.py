"""The bill of materials of a wheel, as CycloneDX 1.6 JSON, put into it: `scripts/sbom.py WHEEL ENVIRONMENT`.

It names what the wheel carries (THIRD_PARTY.md) and the packages that pip installed beside it in ENVIRONMENT,
by their installed metadata: name, version, licence; no address, no path, no time. The wheel keeps it where
PEP 770 says, in `*.dist-info/sboms`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

CARRIED = (
    ("torchvision", "BSD-3-Clause", "definitions of structures in onchip/zoo/models"),
    ("torch", "BSD-3-Clause", "definition of a structure in onchip/zoo/models"),
    ("timm", "Apache-2.0", "definitions of structures in onchip/zoo/models"),
    ("nanobind", "BSD-3-Clause", "compiled into onchip/_core"),
    ("robin-map", "MIT", "compiled into onchip/_core"),
)
"""Name, licence, and what of it is in the wheel."""

NOT_OURS = {"onchip", "pip", "setuptools", "wheel"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(found: metadata.PackageMetadata) -> str:
    """The licence that a package states: its expression, else its classifiers, else words of its text."""
    stated = found.get("License-Expression")
    if stated:
        return str(stated)
    classified = [
        c.split(" :: ")[-1] for c in found.get_all("Classifier") or [] if c.startswith("License ::")
    ]
    text = str(found.get("License") or "").strip().splitlines()
    return " AND ".join(classified) or (text[0][:100] if text else "not stated")


def component(distribution: metadata.Distribution) -> dict[str, Any]:
    name, version = normal(distribution.metadata["Name"]), distribution.version
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "licenses": [{"license": {"name": licence(distribution.metadata)}}],
        "scope": "required",
    }


def bill(wheel: Path, environment: Path) -> str:
    """The bill as text, the same for the same wheel and packages."""
    version = wheel.name.split("-")[1]
    (site,) = environment.glob("lib/python3.*/site-packages")
    installed = {
        normal(d.metadata["Name"]): component(d)
        for d in metadata.distributions(path=[str(site)])
        if normal(d.metadata["Name"]) not in NOT_OURS
    }
    carried = [
        {
            "type": "library",
            "bom-ref": f"carried:{name}",
            "name": name,
            "description": what,
            "licenses": [{"license": {"id": id_}}],
        }
        for name, id_, what in CARRIED
    ]
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": f"pkg:pypi/onchip@{version}",
                "name": "onchip",
                "version": version,
                "purl": f"pkg:pypi/onchip@{version}",
                "licenses": [{"expression": "Apache-2.0 AND BSD-3-Clause AND MIT"}],
            }
        },
        "components": [*carried, *(installed[name] for name in sorted(installed))],
    }
    return json.dumps(made, indent=1) + "\n"


def put(wheel: Path, text: str) -> None:
    """Add the bill to the wheel, and to its RECORD."""
    with zipfile.ZipFile(wheel) as packed:
        entries = [(entry, packed.read(entry)) for entry in packed.infolist()]
    (record,) = [entry.filename for entry, _ in entries if entry.filename.endswith(".dist-info/RECORD")]
    name = record.replace("RECORD", "sboms/onchip.cdx.json")
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    line = f"{name},sha256={digest},{len(text.encode())}\n"
    new = wheel.with_suffix(".new")
    with zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry, content in entries:
            if entry.filename == name:
                continue
            if entry.filename == record:
                kept = [row for row in content.decode().splitlines(True) if not row.startswith(f"{name},")]
                packed.writestr(name, text)
                content = "".join([line, *kept]).encode()
            packed.writestr(entry, content)
    new.replace(wheel)


def main() -> None:
    wheel, environment = map(Path, sys.argv[1:3])
    text = bill(wheel, environment)
    put(wheel, text)
    print(f"{wheel.name}: {len(json.loads(text)['components'])} components in its bill of materials")


if __name__ == "__main__":
    main()
