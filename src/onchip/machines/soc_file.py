"""SoCs as TOML: the built-in ones and a user's own."""

from __future__ import annotations

from dataclasses import astuple
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec

from onchip.base.close_names import did_you_mean
from onchip.base.errors import ChipError
from onchip.base.files import read_bytes
from onchip.base.toml_file import parse_toml
from onchip.machines.contention import Contention
from onchip.machines.soc import SoC, Unit

__all__ = ["builtin_socs", "contention_toml", "load_soc", "parse_soc"]

_Positive = Annotated[float, msgspec.Meta(gt=0, lt=1e18)]
_Amount = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class _Wire(msgspec.Struct, forbid_unknown_fields=True):
    pass


class _Unit(_Wire):
    name: _Name
    description: str = ""
    macs_per_second: _Positive | None = None
    gb_per_second: _Positive | None = None
    out_ms: _Amount = 0.0
    out_gb_per_second: _Positive | None = None
    in_ms: _Amount = 0.0
    in_gb_per_second: _Positive | None = None
    unsupported: tuple[str, ...] = ()
    busy_watts: _Amount | None = None
    idle_watts: _Amount | None = None


class _Contention(_Wire):
    normal_bw_gb_per_second: _Amount
    intensive_bw_gb_per_second: _Amount
    mrmc_percent: _Amount
    tbwdc_gb_per_second: _Amount
    cbp_gb_per_second: _Amount
    rate_percent_per_gb_per_second: _Amount


class _SoC(_Wire):
    name: _Name
    nominal_gb_per_second: _Positive
    peak_gb_per_second: _Positive
    units: Annotated[tuple[_Unit, ...], msgspec.Meta(min_length=1, max_length=16)]
    description: str = ""
    contention: dict[_Name, dict[str, _Contention]] = {}
    contention_scaled_from: str | None = None
    default_contention: str = "none"
    assumed: tuple[str, ...] = ()


def builtin_socs() -> tuple[SoC, ...]:
    """Return the SoCs that come with onchip, by name."""
    folder = resources.files("onchip.machines") / "socs"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(parse_soc(file.read_bytes(), file.name) for file in files)


def load_soc(name_or_path: str | Path) -> SoC:
    """Return a built-in SoC by name, or a user's own by the path of its TOML file.

    Raises `ChipError` naming the file and key for anything missing, unknown, of the wrong type or out of
    range.
    """
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return parse_soc(read_bytes(Path(text), error=ChipError), text)
    known = builtin_socs()
    for soc in known:
        if soc.name == text:
            return soc
    hint = did_you_mean(text, (soc.name for soc in known))
    names = ", ".join(soc.name for soc in known)
    raise ChipError(
        f"no such SoC; {hint and hint + '? '}there are {names} (see `onchip socs`), or give the path of a"
        " .toml file",
        where=text,
    )


def contention_toml(name: str, unit: str, constants: Contention) -> str:
    """Return the table of one unit's constants in the set `name`, to be put into a SoC's file."""
    rows = zip(msgspec.structs.fields(_Contention), astuple(constants), strict=True)
    return "\n".join(
        [f"[contention.{name}.{unit}]", *(f"{row.name} = {value:.6g}" for row, value in rows), ""]
    )


def parse_soc(content: bytes, where: str) -> SoC:
    """Return the SoC in a TOML file's bytes; `where` names the file in errors."""
    table = parse_toml(content, what="a SoC", where=where, error=ChipError)
    try:
        wire = msgspec.convert(table, _SoC)
    except (msgspec.ValidationError, OverflowError) as problem:
        reason, _, at = str(problem).partition(" - at `$")
        raise ChipError(reason, where=where, item=at.rstrip("`").lstrip(".") or None) from None
    if wire.peak_gb_per_second > wire.nominal_gb_per_second:
        raise ChipError("is above nominal_gb_per_second", where=where, item="peak_gb_per_second")
    names = [unit.name for unit in wire.units]
    if len(set(names)) < len(names):
        raise ChipError("names a unit twice", where=where, item="units")
    sets = {
        name: {unit: _constants(row, names, where, f"contention.{name}.{unit}") for unit, row in rows.items()}
        for name, rows in wire.contention.items()
    }
    for name, rows in sets.items():
        missing = [unit for unit in names if unit not in rows]
        if missing or name == "none":
            reason = f"must have a table for unit {missing[0]}" if missing else "is the name of no contention"
            raise ChipError(reason, where=where, item=f"contention.{name}")
    if wire.contention_scaled_from is not None:
        sets = {**_scaled(wire, where), **sets}
    if wire.default_contention not in (*sets, "none"):
        raise ChipError(
            f"must be one of {', '.join((*sets, 'none'))}", where=where, item="default_contention"
        )
    return SoC(
        wire.name,
        tuple(Unit(**msgspec.structs.asdict(unit)) for unit in wire.units),
        wire.nominal_gb_per_second,
        wire.peak_gb_per_second,
        sets,
        wire.default_contention,
        wire.assumed,
        wire.description,
    )


def _constants(row: _Contention, units: list[str], where: str, item: str) -> Contention:
    if item.rpartition(".")[2] not in units:
        raise ChipError(f"is no unit of the SoC; it has {', '.join(units)}", where=where, item=item)
    if row.intensive_bw_gb_per_second < row.normal_bw_gb_per_second:
        raise ChipError("must be at least normal_bw", where=where, item=f"{item}.intensive_bw_gb_per_second")
    return Contention(*msgspec.structs.astuple(row))


def _scaled(wire: _SoC, where: str) -> dict[str, dict[str, Contention]]:
    """Return the sets of a built-in SoC, unit by unit in order, for this one's peak bandwidth."""
    item = "contention_scaled_from"
    if wire.contention_scaled_from == wire.name:
        raise ChipError("is the SoC itself", where=where, item=item)
    folder = resources.files("onchip.machines") / "socs"
    path = next((p for p in folder.iterdir() if p.name == f"{wire.contention_scaled_from}.toml"), None)
    if path is None:
        raise ChipError("names no built-in SoC", where=where, item=item)
    origin = parse_soc(path.read_bytes(), path.name)
    if len(origin.units) < len(wire.units):
        raise ChipError(
            f"has {len(origin.units)} units, this SoC has {len(wire.units)}", where=where, item=item
        )
    factor = wire.peak_gb_per_second / origin.peak_gb_per_second
    pairs = list(zip((u.name for u in wire.units), origin.unit_names, strict=False))
    return {
        name: {unit: rows[other].scaled(factor) for unit, other in pairs}
        for name, rows in origin.contention.items()
    }
