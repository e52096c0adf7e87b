"""The source of a network's profile: the user's, the paper's, one measured here, or a roofline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.errors import InputError, ProfileError, UsageError
from onchip.base.files import read_bytes
from onchip.machines.soc import SoC
from onchip.multi_dnn.content import kind_of
from onchip.multi_dnn.grouping import MOST_GROUPS
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.profile_file import load_profile
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.network import Network

if TYPE_CHECKING:
    from onchip.readers import Source
    from onchip.readers.shapes import UnknownDimension

__all__ = ["Profiles"]

SYNTHETIC = "synthetic"
MEASURED = "measured"


@dataclass(frozen=True)
class Profiles:
    """The sources of profiles on one SoC.

    `given` are files by the model's name as the user wrote it; `reading` the fields of `ReadOptions`.
    """

    soc: SoC
    given: dict[str, Path]
    synthetic: bool
    most_groups: int
    reading: dict[str, Any]
    measured: bool = False
    """Measure on this machine; always so where the SoC is only engines without known figures."""
    seen: dict[str, Profile] = field(default_factory=dict, compare=False)
    """The profiles measured already, by the model as it was written."""
    lacked: dict[str, list[UnknownDimension | None]] = field(default_factory=dict, compare=False)
    """For each dimension of `--dims`, of every model read why it has none; None where it has one."""

    @classmethod
    def asked(
        cls,
        soc: SoC,
        models: Sequence[str],
        profile: Sequence[str],
        most_groups: int = MOST_GROUPS,
        reading: dict[str, Any] | None = None,
    ) -> Profiles:
        """Return the sources that `--profile` states; raises `UsageError` when it names none of `models`."""
        given: dict[str, Path] = {}
        words: set[str] = set()
        different = list(dict.fromkeys(models))
        for text in profile:
            if text in (SYNTHETIC, MEASURED):
                words.add(text)
                continue
            name = next((m for m in different if text.startswith(f"{m}=")), None)
            if name is None and len(different) == 1 and (Path(text).exists() or "=" not in text):
                name, path = different[0], text
            elif name is None:
                raise UsageError(
                    f"{text!r} does not say of which model it is: MODEL=FILE, MODEL one of"
                    f" {', '.join(different)}",
                    item="--profile",
                )
            else:
                path = text[len(name) + 1 :]
            if name in given:
                raise UsageError(f"two profiles of {name}", item="--profile")
            if not path:
                raise UsageError(f"{text!r} names no file", item="--profile")
            given[name] = Path(path)
        if most_groups < 1:
            raise UsageError(f"{most_groups} is no number of groups from 1 on", item="--most-groups")
        if len(words) > 1:
            raise UsageError("is either synthetic or measured", item="--profile")
        if MEASURED in words and not _is_engines(soc):
            raise UsageError(
                f"measured: units of {soc.name} are no engines of this machine, as those of --soc local are",
                item="--profile",
            )
        measured = MEASURED in words or (not words and _is_engines(soc))
        return cls(soc, given, SYNTHETIC in words, most_groups, reading or {}, measured)

    def of(
        self,
        model: str | Path | Source | Network | Profile,
        progress: Callable[[str], None] | None = None,
    ) -> Profile:
        """Return the profile of a model.

        It is the given one; the file, where the model is a profile (`.csv` or `onchip.profile/1`); a
        measurement, where this machine is the SoC; the paper's Table 2 for `zoo:googlenet` on xavier-agx;
        else a synthetic one. Raises `ProfileError`, `ModelError` or `ChipError` naming the file and the error
        in it, and the errors of measuring.
        """
        if isinstance(model, Profile):
            return self._fits(model, f"profile of {model.network}")
        if isinstance(model, str | Path):
            text = str(model)
            path = self.given.get(text)
            if path is None and _is_profile(Path(text)):
                path = Path(text)
            if path is not None:
                name = "" if path == Path(text) else _short(text)
                read = load_profile(
                    path,
                    network=name,
                    soc=self.soc.name,
                    units=self.soc.unit_names,
                    # The memory's bandwidth does not bound an engine's reads from a core's own caches.
                    nominal_gb_per_second=inf if _is_engines(self.soc) else self.soc.nominal_gb_per_second,
                )
                return self._fits(read, str(path))
            if self.measured:
                if text not in self.seen:
                    self.seen[text] = self._measure(model, progress)
                return self.seen[text]
            if text == "zoo:googlenet" and not self.synthetic and self._is_xavier():
                return googlenet()
            model = self._read(model)
        elif self.measured:
            return self._measure(model, progress)
        network = model if isinstance(model, Network) else model.network
        made = synthetic_profile(network, self.soc, most=self.most_groups)
        return made if isinstance(model, Network) else _in_the_files_names(made, model)

    def _read(self, model: str | Path) -> Source:
        """Read a model; the values of `--dims` are for those networks that have such dimensions."""
        from onchip.readers import ReadOptions, load
        from onchip.readers.shapes import UnknownDimension, parse_dims

        text = self.reading.get("dims", "")
        dims = parse_dims(text) if isinstance(text, str) else {}  # `load` refuses the rest
        mine = dict(dims)
        while True:
            if isinstance(text, str):
                text = ",".join(f"{name}={size}" for name, size in mine.items())
            try:
                source = load(model, ReadOptions(**{**self.reading, "dims": text}))
            except UnknownDimension as problem:
                del mine[problem.dimension]
                self.lacked.setdefault(problem.dimension, []).append(problem)
                continue
            for name in mine:
                self.lacked.setdefault(name, []).append(None)
            return source

    def refuse_unknown(self) -> None:
        """Raise `UnknownDimension` for a dimension of `--dims` that no model has."""
        for why in self.lacked.values():
            if (first := why[0]) is not None and None not in why:
                raise first

    def _measure(
        self, model: str | Path | Source | Network, progress: Callable[[str], None] | None
    ) -> Profile:
        from onchip.multi_dnn.local.measuring import measure

        if isinstance(model, Network):
            raise UsageError("is sizes only: there is nothing to execute and measure", where=model.name)
        source = self._read(model) if isinstance(model, str | Path) else model
        return measure(source, self.soc, most=self.most_groups, progress=progress)

    def _is_xavier(self) -> bool:
        table = googlenet()
        return (self.soc.name, self.soc.unit_names) == (table.soc, table.units)

    def _fits(self, profile: Profile, where: str) -> Profile:
        if profile.units != self.soc.unit_names:
            raise ProfileError(
                f"is for units {', '.join(profile.units)}; SoC {self.soc.name} has"
                f" {', '.join(self.soc.unit_names)}",
                where=where,
                item="units",
            )
        return profile


def _is_engines(soc: SoC) -> bool:
    """Return whether the SoC is this machine: every unit an engine that it has, and no rooflines."""
    from onchip.multi_dnn.local.engines import ENGINES

    return all(unit.name in ENGINES and unit.macs_per_second is None for unit in soc.units)


def _in_the_files_names(profile: Profile, source: Source) -> Profile:
    """Return the profile with TensorRT's ONNX parser's names of layers and tensors, fused nodes included.

    A layer has its node's name; without one, that of its first output behind `node_of_`.
    """
    from onchip.readers.source import Executable

    run, network = source.executable, source.network
    if not isinstance(run, Executable):
        return profile

    def named(group: Group) -> Group:
        ids = [network.operator_id[name] for name in group.layers]
        nodes = [run.model.graph.node[n] for op in ids for n in run.nodes[op]]
        names = tuple(node.name or f"node_of_{node.output[0]}" for node in nodes)
        tensor = network.tensor_id.get(group.output)
        output = group.output if tensor is None else run.value[tensor]
        return replace(group, layers=names, output=output)

    return replace(profile, groups=tuple(named(group) for group in profile.groups))


def _is_profile(path: Path) -> bool:
    """Return whether a model's file is really a profile: by its name, or by its content."""
    if path.suffix.lower() == ".csv":
        return True
    if path.suffix.lower() != ".json":
        return False
    try:
        return kind_of(read_bytes(path)) == "profile"
    except InputError:
        return False


def _short(model: str) -> str:
    """Return a network's name after its model: `zoo:resnet50` is resnet50, `a/b.onnx` is b."""
    return model.removeprefix("zoo:") if model.startswith("zoo:") else Path(model).stem or model
