"""What onchip carries and installs: licences, the lock file, the bill of materials."""

from __future__ import annotations

import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import lock
import sbom
import wheel_contents

ROOT = Path(__file__).resolve().parents[1]


def test_every_library_behind_the_zoo_is_in_the_list_of_licences() -> None:
    catalogue = tomllib.loads((ROOT / "src/onchip/zoo/catalogue.toml").read_text())
    text = (ROOT / "THIRD_PARTY.md").read_text()
    for name, entry in catalogue.items():
        if entry["library"] != "onchip":
            assert re.search(rf"{entry['library']}\b.* \| {entry['licence']} \|", text), name
            assert entry["library"] in {carried for carried, _, _ in sbom.CARRIED}
    for name, licence, _ in sbom.CARRIED:
        assert re.search(rf"\b{name}\b.* \| {licence} \|", text)


def test_the_lock_names_versions_and_hashes_and_nothing_else() -> None:
    lines = [row for row in (ROOT / "requirements.lock").read_text().splitlines() if not row.startswith("#")]
    rows = [re.fullmatch(r"([a-z0-9-]+)==([A-Za-z0-9.+!]+) --hash=sha256:[0-9a-f]{64}", row) for row in lines]
    assert all(rows)
    names = {row[1] for row in rows if row}
    for requirement in lock.wanted():
        name = re.split(r"[^A-Za-z0-9_.-]", requirement)[0]
        assert re.sub(r"[-_.]+", "-", name).lower() in names, requirement


def test_a_bill_of_materials_goes_into_a_wheel_and_its_record(tmp_path: Path) -> None:
    wheel = tmp_path / "onchip-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("onchip/__init__.py", "")
        packed.writestr(
            "onchip-0.1.0.dist-info/RECORD", "onchip/__init__.py,,\nonchip-0.1.0.dist-info/RECORD,,\n"
        )
    text = sbom.bill(wheel, Path(sys.prefix))
    assert text == sbom.bill(wheel, Path(sys.prefix))
    assert str(ROOT) not in text
    for _ in range(2):  # the same again when it is there
        sbom.put(wheel, text)
        with zipfile.ZipFile(wheel) as packed:
            assert packed.testzip() is None
            assert len(packed.namelist()) == 3
            assert packed.read("onchip-0.1.0.dist-info/sboms/onchip.cdx.json").decode() == text
            record = packed.read("onchip-0.1.0.dist-info/RECORD").decode()
        assert record.count("sboms/onchip.cdx.json,sha256=") == 1


@pytest.mark.parametrize("word", ["file:", "http:", "https:", "--index", "--find-links", "simple/", " /"])
def test_no_address_and_no_path_stand_in_the_lock(word: str) -> None:
    assert word not in (ROOT / "requirements.lock").read_text()


def test_a_wheel_without_its_bill_of_materials_is_found_out(tmp_path: Path) -> None:
    wheel = tmp_path / "onchip-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("onchip-0.1.0.dist-info/RECORD", "onchip-0.1.0.dist-info/RECORD,,\n")
    assert wheel_contents.materials(wheel) == ["0 bills of materials in the wheel"]
    text = sbom.bill(wheel, Path(sys.prefix))
    sbom.put(wheel, text)
    assert wheel_contents.materials(wheel) == []
    sbom.put(wheel, text.replace('"torchvision"', '"other"').replace("compiled into", "file:/x"))
    found = wheel_contents.materials(wheel)
    assert len(found) == 2
    assert "torchvision" in found[0]
