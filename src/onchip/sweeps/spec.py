"""The request of a sweep: a TOML file as a frozen `Spec`; errors name the key."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from onchip.base.close_names import did_you_mean
from onchip.base.errors import ChipError, UsageError
from onchip.base.files import read_bytes
from onchip.base.toml_file import parse_toml
from onchip.machines.chip import Chip, chip_of, load_chip
from onchip.machines.chip_parts import keys_of
from onchip.machines.tile_rates import TileRates
from onchip.planners import registry
from onchip.readers.reference import is_reference
from onchip.readers.source import ReadOptions
from onchip.sweeps.budgets import OWN, Budget, parse_budgets
from onchip.sweeps.planners import options_asked
from onchip.sweeps.sram_columns import SramAsked, parse_sram

__all__ = ["Asked", "Machine", "Model", "Spec", "parse_spec", "read_spec"]

Values = tuple[tuple[str, Any], ...]
"""Keys with their values, as the spec states them: the source of a point's labels."""

MOST_VARIANTS = 10_000
"""The most chips, networks or option sets in one sweep."""

CHANNELS = "channel_bytes_per_second"
"""The rate of every channel of a chip with rates of tiles."""

ARRAY = re.compile(r"([0-9]{1,5})x([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Model:
    """One network to read: `name` as in the spec, `model` for the reader, `item` its key."""

    name: str
    model: str
    read: Values
    item: str


@dataclass(frozen=True, slots=True)
class Machine:
    """One chip: `name` as in the spec, and its changed values."""

    name: str
    changed: Values
    chip: Chip


@dataclass(frozen=True, slots=True)
class Asked:
    """One planner with the options that the spec states, and all of them."""

    planner: str
    stated: Values
    options: Any
    home: tuple[str, str] = ("", "")
    """The module of an external planner, and the folder that it is found from."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A sweep: every one of `models` on every one of `machines`, by every one of `asked`, for every budget.

    `seconds` is the limit of one point, None without; `within` is the share of the least DRAM bytes within
    which a point is near them. `sram` asks for the area and the energies of the buffers.
    """

    path: str
    title: str
    models: tuple[Model, ...]
    machines: tuple[Machine, ...]
    asked: tuple[Asked, ...]
    budgets: tuple[Budget, ...]
    seconds: float | None = None
    within: float = 0.1
    sram: SramAsked | None = None

    def __len__(self) -> int:
        return len(self.models) * len(self.machines) * len(self.asked) * len(self.budgets)


def read_spec(path: str | Path) -> Spec:
    """Return the spec in a TOML file; models and chips in it are found from its own folder.

    Raises `UsageError` (`ChipError` for a chip) naming the file and the key.
    """
    content = read_bytes(Path(path), error=UsageError)
    where = str(path)
    table = parse_toml(content, what="a sweep", where=where, error=UsageError)
    return parse_spec(table, where, Path(path).parent)


KEYS = ("title", "networks", "chips", "planners", "budgets", "read", "chip", "limits", "page", "sram")
"""The keys of a spec, besides a section for each planner."""


def parse_spec(table: Mapping[str, Any], where: str, folder: Path = Path()) -> Spec:
    """Return the spec from the table of the file."""
    for key in table:
        if key not in KEYS and registry.section(key) is None:
            _known(key, (*KEYS, *_sections()), where, key)
    title = table.get("title", "")
    if not isinstance(title, str):
        raise UsageError("must be text", where=where, item="title")
    if "networks" not in table:
        raise UsageError("is missing: a list of networks", where=where, item="networks")
    machines = _machines(table, where, folder)
    spec = Spec(
        where,
        title,
        _models(table, where, folder),
        machines,
        _asked(table, where),
        parse_budgets(table.get("budgets", [OWN]), where),
        _seconds(_section(table, "limits", where), where),
        _within(_section(table, "page", where), where),
        parse_sram(table["sram"], where) if "sram" in table else None,
    )
    if any(OWN in (b.low, b.high) for b in spec.budgets):
        for machine in machines:
            if machine.chip.scratchpad_bytes is None:
                raise UsageError(
                    f"chip {machine.name} does not state its scratchpad; list sizes, MR, MH or MP",
                    where=where,
                    item="budgets",
                )
    return spec


def _sections() -> list[str]:
    """Return the names of planners in a spec."""
    return [planner.key for planner in registry.listed()]


def _known(key: str, known: tuple[str, ...] | list[str], where: str, item: str) -> None:
    if key not in known:
        hint = did_you_mean(key, known, otherwise=f"known: {', '.join(known)}", most=2)
        raise UsageError(f"unknown key; {hint}", where=where, item=item)


def _section(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, dict):
        raise UsageError(f"must be a table: [{key}]", where=where, item=key)
    return found


def _texts(table: Mapping[str, Any], key: str, default: list[str], where: str) -> list[str]:
    """Return a list of texts, each once; a single text is a list of one."""
    found = table.get(key, default)
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise UsageError("must be a list of texts", where=where, item=key)
    if not found:
        raise UsageError("is empty", where=where, item=key)
    return list(dict.fromkeys(found))


def _products(
    section: Mapping[str, Any], lists: frozenset[str], where: str, item: str
) -> Iterator[dict[str, Any]]:
    """Yield every combination of the section's values: each list is a choice; in `lists`, a list of lists."""
    choices = []
    for key, value in section.items():
        several = isinstance(value, list) and (
            key not in lists or (bool(value) and all(isinstance(one, list) for one in value))
        )
        if several and not value:
            raise UsageError("is empty", where=where, item=f"{item}.{key}")
        choices.append([(key, one) for one in (value if several else [value])])
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_VARIANTS:
        raise UsageError(f"gives more than {MOST_VARIANTS:,} combinations", where=where, item=item)
    return (dict(combination) for combination in itertools.product(*choices))


def _models(table: Mapping[str, Any], where: str, folder: Path) -> tuple[Model, ...]:
    given = table["networks"]
    given = [given] if isinstance(given, str | dict) else given
    if not isinstance(given, list) or not given:
        raise UsageError("must be a list of networks", where=where, item="networks")
    common = _section(table, "read", where)
    known = [f.name for f in fields(ReadOptions)]
    found: dict[tuple[str, Values], Model] = {}
    for i, one in enumerate(given):
        item = f"networks[{i}]"
        own = dict(one) if isinstance(one, dict) else {"model": one}
        name = own.pop("model", None)
        if not isinstance(name, str) or not name:
            raise UsageError('must be text, or a table {model = "..."}', where=where, item=item)
        for key in own:
            _known(key, known, where, f"{item}.{key}")
        for key in common:
            _known(key, known, where, f"read.{key}")
        for options in _products({**common, **own}, frozenset(), where, item if own else "read"):
            for key, value in options.items():
                if not isinstance(value, str | int | bool):
                    raise UsageError(f"{value!r} is no value", where=where, item=f"{item}.{key}")
            read = tuple(options.items())
            found.setdefault((name, read), Model(name, _found_from(name, folder), read, item))
    return tuple(found.values())


def _found_from(model: str, folder: Path) -> str:
    """Return a path relative to the current folder; other references unchanged."""
    is_path = not model.startswith("zoo:") and not is_reference(model)
    return str(folder / model) if is_path else model


def _machines(table: Mapping[str, Any], where: str, folder: Path) -> tuple[Machine, ...]:
    section = dict(_section(table, "chip", where))
    known = [
        "array",
        CHANNELS,
        *(key for key in keys_of(Chip) if key not in ("name", "description", "memories")),
    ]
    for key in section:
        _known(key, known, where, f"chip.{key}")
    if "array" in section and {"pe_rows", "pe_columns"} & set(section):
        raise UsageError("says what pe_rows and pe_columns say", where=where, item="chip.array")
    found: dict[tuple[str, Values], Machine] = {}
    for name in _texts(table, "chips", ["generic"], where):
        is_path = name.endswith(".toml") or "/" in name
        try:
            base = load_chip(str(folder / name) if is_path else name)
        except ChipError as problem:
            raise UsageError(str(problem), where=where, item="chips") from None
        for changed in _products(section, frozenset(), where, "chip"):
            values = tuple(changed.items())
            found.setdefault((name, values), Machine(name, values, _changed(base, changed, where)))
    return tuple(found.values())


def _changed(chip: Chip, changed: Mapping[str, Any], where: str) -> Chip:
    """Return the chip with other figures.

    A chip that states one multiply-accumulate for each processing element and cycle keeps that ratio with
    another array or clock, unless the spec states another rate.
    """
    stated = {key: value for key, value in chip.figures().items() if value not in (None, ())}
    if chip.memories:
        kept = (asdict(memory) for memory in stated.pop("memories"))
        stated["memory"] = [{k: v for k, v in one.items() if v is not None} for one in kept]
    new, tiles = dict(changed), chip.tiles
    if CHANNELS in new:
        if tiles is None:
            raise UsageError(f"{chip.name} states no rates of tiles", where=where, item=f"chip.{CHANNELS}")
        tiles = _at_rate(tiles, new.pop(CHANNELS), where)
    if "array" in new:
        match = ARRAY.fullmatch(new["array"]) if isinstance(new["array"], str) else None
        if match is None:
            raise UsageError(f'{new["array"]!r} is no array like "16x16"', where=where, item="chip.array")
        del new["array"]
        new["pe_rows"], new["pe_columns"] = int(match[1]), int(match[2])
    made = chip_of(stated | new, f"{where}: chip")
    one_each = _peak_rate(chip)
    if one_each is not None and chip.rates.macs_per_second == one_each and "macs_per_second" not in new:
        made = chip_of(stated | new | {"macs_per_second": _peak_rate(made)}, f"{where}: chip")
    return replace(made, tiles=tiles)


def _at_rate(tiles: TileRates, rate: Any, where: str) -> TileRates:
    """Return rates of tiles at which every channel moves so many bytes a second."""
    if type(rate) is not int:
        raise UsageError(f"{rate!r} is no whole number", where=where, item=f"chip.{CHANNELS}")
    try:
        channels = tuple(replace(channel, bytes_per_second=rate) for channel in tiles.channels)
        return replace(tiles, channels=channels)
    except ValueError as problem:
        raise UsageError(str(problem), where=where, item=f"chip.{CHANNELS}") from None


def _peak_rate(chip: Chip) -> float | None:
    """Return multiply-accumulates in a second, one for each processing element and cycle."""
    if chip.array is None or chip.clock_hertz is None:
        return None
    return chip.array.rows * chip.array.columns * chip.clock_hertz


def _asked(table: Mapping[str, Any], where: str) -> tuple[Asked, ...]:
    planners = _texts(table, "planners", ["plan"], where)
    for name in planners:
        if registry.section(name) is None:
            known = ", ".join(_sections())
            raise UsageError(f"{name!r} is not one of {known}", where=where, item="planners")
    for name in table:
        if name not in KEYS and name not in planners:
            raise UsageError("is not among the planners", where=where, item=name)
    found: dict[tuple[str, Values], Asked] = {}
    for planner in filter(None, map(registry.section, planners)):
        name, home = planner.key, registry.home_of(planner)
        lists = frozenset(f.name for f in fields(planner.options) if isinstance(f.default, tuple))
        for given in _products(_section(table, name, where), lists, where, name):
            values = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in given.items())
            try:
                options = options_asked(planner, given, where, name)
            except TypeError as problem:
                raise UsageError(
                    f"an option has the wrong type ({problem})", where=where, item=name
                ) from None
            found.setdefault((name, values), Asked(name, values, options, home))
    return tuple(found.values())


def _seconds(limits: Mapping[str, Any], where: str) -> float | None:
    for key in limits:
        _known(key, ("seconds_per_point",), where, f"limits.{key}")
    seconds = limits.get("seconds_per_point")
    if seconds is None:
        return None
    if type(seconds) not in (int, float) or not 0 < seconds <= 1e7:
        raise UsageError(f"{seconds!r} is no number of seconds", where=where, item="limits.seconds_per_point")
    return float(seconds)


def _within(page: Mapping[str, Any], where: str) -> float:
    for key in page:
        _known(key, ("within",), where, f"page.{key}")
    within = page.get("within", 0.1)
    if type(within) not in (int, float) or not 0 <= within <= 10:
        raise UsageError(f"{within!r} is no share from 0 to 10", where=where, item="page.within")
    return float(within)
