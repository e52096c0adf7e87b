"""A schedule file, executed: its networks' models are found again, and cut by its profiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from onchip.base.errors import InputError, UsageError
from onchip.multi_dnn.check import check_stated
from onchip.multi_dnn.local.engines import ENGINES
from onchip.multi_dnn.local.execute import run_schedule
from onchip.multi_dnn.local.outcome import LocalReport
from onchip.multi_dnn.local.pieces import Cut, cut
from onchip.multi_dnn.local.runtime import PATIENCE
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.schedule_file import read_schedule
from onchip.readers import load
from onchip.readers.source import Source

__all__ = ["cut_as_profiled", "run_file"]


def run_file(
    path: Path,
    models: Sequence[str] = (),
    *,
    rounds: int = 10,
    seed: int = 0,
    checked: bool = True,
    patience: float = PATIENCE,
    progress: Callable[[str], None] | None = None,
) -> LocalReport:
    """Execute the schedule in a file `rounds` times on this machine, every output compared.

    `models` are `NETWORK=MODEL`, NETWORK as in the profile or the schedule, or a single MODEL for all;
    others are looked for among the built-in networks. Weights that a model lacks, and inputs, are drawn from
    `seed`. With `checked`, the figures in the file are judged first (`IllegalSchedule`). Raises
    `PlanFormatError` for a file that is no schedule, `UsageError` where a model is missing or the profile
    does not state a group's layers, `InputError` for a model that is not the profiled one, and the errors of
    `run_schedule`.
    """
    stated = read_schedule(path)
    soc = stated.workload.soc
    if not all(name in ENGINES for name in soc.unit_names):
        raise UsageError(
            f"is for {', '.join(soc.unit_names)} of {soc.name}; this machine runs schedules for its own"
            " engines, which onchip corun MODEL MODEL --soc local -o FILE makes",
            where=str(path),
        )
    if checked:
        check_stated(stated)
    workload = stated.workload
    given = _given(models, [name for job in workload.jobs for name in (job.name, job.profile.network)])
    made: dict[tuple[str, tuple[tuple[str, ...], ...]], Cut] = {}
    cuts = {}
    for job in workload.jobs:
        network = job.profile.network
        text = given.get(job.name) or given.get(network) or given.get("") or _built_in(network, job.name)
        key = (text, tuple(group.layers for group in job.profile.groups))
        if key not in made:
            if progress is not None:
                progress(f"reading {text}")
            made[key] = cut_as_profiled(load(text), job.profile, seed)
        cuts[job.name] = made[key]
    return run_schedule(
        workload,
        stated.schedule,
        cuts,
        rounds=rounds,
        input_seed=seed,
        patience=patience,
        progress=progress,
    )


def cut_as_profiled(source: Source, profile: Profile, seed: int = 0) -> Cut:
    """Return the network cut into the profile's groups, by the names of their layers.

    Raises `UsageError` for a profile without layers, `InputError` naming a layer that the model lacks.
    """
    where = f"profile of {profile.network}"
    for group in profile.groups:
        if not group.layers:
            raise UsageError(
                "does not say which layers it consists of", where=where, item=f"group {group.name}"
            )
    ids: dict[str, int] = {}
    for operator in source.network.operators:
        if operator.name in ids:
            raise InputError("is the name of two layers", where=where, item=operator.name)
        ids[operator.name] = operator.id
    for group in profile.groups:
        for layer in group.layers:
            if layer not in ids:
                raise InputError(
                    f"{source.network.name} has no such layer: is it another model, or read otherwise?",
                    where=where,
                    item=f"group {group.name}: {layer}",
                )
    return cut(source, [[ids[layer] for layer in group.layers] for group in profile.groups], seed)


def _given(models: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Return models by the name of a network; under the empty name, one that stands for all."""
    given: dict[str, str] = {}
    for text in models:
        name = next((n for n in names if text.startswith(f"{n}=")), "")
        model = text[len(name) + 1 :] if name else text
        if not name and len(models) > 1:
            known = ", ".join(dict.fromkeys(names))
            raise UsageError(
                f"{text!r} does not say of which network it is: NETWORK=MODEL, NETWORK one of {known}",
                item="--model",
            )
        if name in given:
            raise UsageError(f"two models of {name}", item="--model")
        given[name] = model
    return given


def _built_in(network: str, job: str) -> str:
    from onchip import zoo

    if network.partition("@")[0] not in zoo.names():
        raise UsageError(
            f"{network!r} is no built-in network; say where the model is with --model {job}=MODEL",
            where=f"network {job}",
        )
    return f"zoo:{network}"
