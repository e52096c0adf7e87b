"""SoCs: the built-in ones, and one clear line for every file that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from onchip.base.errors import ChipError
from onchip.machines.contention import NO_CONTENTION, Contention
from onchip.machines.soc_file import builtin_socs, contention_toml, load_soc, parse_soc


def test_the_three_socs_of_the_paper_have_three_contention_sets_each() -> None:
    found = {soc.name: soc for soc in builtin_socs()}
    assert set(found) == {"local", "orin-agx", "snapdragon-865", "xavier-agx"}
    here = found.pop("local")
    assert here.model() is NO_CONTENTION
    assert here.unit_names == ("onnxruntime", "openvino")
    assert [found[n].nominal_gb_per_second for n in sorted(found)] == [204.8, 34.1, 136.5]
    for soc in found.values():
        assert set(soc.contention) == {"light", "medium", "heavy"}
        assert soc.default_contention == "light"
        assert soc.assumed
        assert "macs" not in soc.unit_names
        assert load_soc(soc.name) == soc


def test_sets_for_another_memory_are_xaviers_scaled_by_the_peak_bandwidth() -> None:
    xavier, orin = load_soc("xavier-agx"), load_soc("orin-agx")
    factor = orin.peak_gb_per_second / xavier.peak_gb_per_second
    assert "contention" in orin.assumed
    ours, theirs = orin.model("heavy"), xavier.model("heavy")
    for unit in (0, 1):
        for asked in (5.0, 30.0, 50.0, 100.0):
            for external in (0.0, 10.0, 50.0, 120.0):
                expected = theirs.slowdown(unit, asked, external)
                assert ours.slowdown(unit, asked * factor, external * factor) == pytest.approx(expected)


def test_xavier_has_the_constants_of_the_authors_for_its_gpu() -> None:
    assert load_soc("xavier-agx").contention["heavy"]["gpu"] == Contention(38.1, 96.2, 4.9, 82.8, 46.6, 1.11)


def test_a_set_that_there_is_not_is_refused_by_name() -> None:
    soc = load_soc("xavier-agx")
    assert soc.model("none") is NO_CONTENTION
    with pytest.raises(ChipError, match="no contention set 'strong'; there are light, medium, heavy, none"):
        soc.model("strong")


HEAD = 'name = "x"\nnominal_gb_per_second = 10\npeak_gb_per_second = 9\n'
UNITS = '[[units]]\nname = "a"\n'
SET = (
    "normal_bw_gb_per_second = 1\nintensive_bw_gb_per_second = 2\nmrmc_percent = 3\n"
    "tbwdc_gb_per_second = 4\ncbp_gb_per_second = 5\nrate_percent_per_gb_per_second = 0.1\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\xff", "is not TOML"),
        ("a = [[", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML"),
        ("name = 1\n" + UNITS, "name: Expected `str`"),
        (HEAD.replace('"x"', '"a b"') + UNITS, "name: "),
        (HEAD, "missing required field `units`"),
        (HEAD + "units = []", "units: "),
        (HEAD + UNITS + UNITS, "units: names a unit twice"),
        (HEAD + UNITS + "speed = 1", "unknown field `speed`"),
        (HEAD.replace("9", "nan") + UNITS, "peak_gb_per_second: Expected"),
        (HEAD.replace("9", "-1") + UNITS, "peak_gb_per_second: Expected"),
        (HEAD.replace("9", "inf") + UNITS, "peak_gb_per_second: Expected"),
        (HEAD + UNITS + "out_ms = nan", "units[0].out_ms: Expected"),
        (HEAD + UNITS + "[contention.s.b]\n" + SET, "contention.s.b: is no unit of the SoC"),
        (HEAD + UNITS + "[contention.s]", "contention.s: must have a table for unit a"),
        (HEAD + UNITS + "[contention.none.a]\n" + SET, "contention.none: is the name of no contention"),
        (HEAD + UNITS + "[contention.s.a]\n" + SET.replace("= 2", "= 0"), "must be at least normal_bw"),
        (HEAD + 'contention_scaled_from = "../x"\n' + UNITS, "names no built-in SoC"),
        (HEAD + 'contention_scaled_from = "x"\n' + UNITS, "is the SoC itself"),
        (HEAD + 'default_contention = "s"\n' + UNITS, "default_contention: must be one of none"),
        (
            HEAD
            + 'contention_scaled_from = "xavier-agx"\n'
            + "".join(f'[[units]]\nname="{n}"\n' for n in "abc"),
            "has 2 units, this SoC has 3",
        ),
    ],
)
def test_a_file_that_is_no_soc_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ChipError) as caught:
        load_soc(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_users_own_soc(tmp_path: Path) -> None:
    soc = parse_soc((HEAD + UNITS + "[contention.mine.a]\n" + SET).encode(), "mine.toml")
    assert soc.contention["mine"]["a"] == Contention(1, 2, 3, 4, 5, 0.1)
    assert soc.model("mine").slowdown(0, 0.5, 9.0) == pytest.approx(100 / 97)


def test_fitted_constants_are_written_as_a_file_has_them() -> None:
    xavier = load_soc("xavier-agx").contention
    units = "".join(f'[[units]]\nname = "{unit}"\n' for unit in ("gpu", "dla"))
    tables = [contention_toml(name, unit, c) for name, rows in xavier.items() for unit, c in rows.items()]
    assert parse_soc((HEAD + units + "\n".join(tables)).encode(), "mine.toml").contention == xavier


def test_unknown_names_list_the_socs_there_are() -> None:
    with pytest.raises(ChipError, match="local, orin-agx, snapdragon-865, xavier-agx"):
        load_soc("jetson")
    with pytest.raises(ChipError, match="no such file"):
        load_soc("./jetson.toml")
