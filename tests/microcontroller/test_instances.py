"""Instances of a network in memory of the caller's, and several networks in one array."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from native import SANITIZED
from test_project_builds import WARNINGS, run, small_network
from wide_networks import svdfs

import onchip
from onchip.base.errors import NegativeAnswer, UsageError
from onchip.machines.board import load_board
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.made import WideBuilder
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.project.several import SeveralSources, several_files, several_sources
from onchip.microcontroller.project.write import project_files, write_project
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

BOARD = load_board("nucleo-f411re")
ROUNDS = 3
C99, CPP17 = ("gcc", "-std=c99"), ("g++", "-std=c++17", "-xc++")


@cache
def streaming_network() -> Int8Model:
    """A network that keeps 18 bytes from one inference to the next: no whole number of words."""
    b = WideBuilder(3)
    x = b.conv(b.delayed(b.input((1, 3, 3, 3)), 2), 6, (5, 1), padding="VALID")
    return model_of(b.file(b.fully_connected(b.mean(x), 5)), name="stream", where="test")


@cache
def filters() -> Int8Model:
    b = WideBuilder(4)
    return model_of(b.file(*svdfs(b)), name="stream", where="test")


def planned(model: Int8Model, mode: Literal["held", "once"] = "held") -> Plan:
    return planned_for(network_of(model), 1 << 20, SegmentOptions(input=mode), states_of(model)).plan


def variables(folder: Path, *units: str, language: tuple[str, ...] = C99) -> list[str]:
    """The variables that can be written in these units, which compile without a warning."""
    run(*language, *WARNINGS, "-c", *units, where=folder)
    listed = run("nm", *(Path(unit).with_suffix(".o").name for unit in units), where=folder).decode()
    return re.findall(r" [bBdDCsS] (\w+)", listed)


THREADS = """
#include <pthread.h>
#include <string.h>
#include "model.h"
#define ROUNDS {rounds}
static const int8_t given[2][ROUNDS][{input}] = {{ {given} }};
static const int8_t wanted[2][ROUNDS][{output}] = {{ {wanted} }};
static int8_t arenas[2][{big}_ARENA_BYTES] __attribute__((aligned(4)));
{states}
static {name}_context contexts[2];
static int wrong[2];

static void turn(int which, int round)
{{
    memcpy({name}_input(&contexts[which]), given[which][round], {input});
    {name}_invoke(&contexts[which]);
    wrong[which] += memcmp({name}_output(&contexts[which]), wanted[which][round], {output}) != 0;
}}

static void *thread(void *which)
{{
    for (int again = 0; again < 20; ++again) {{
        {init_own}
        for (int i = 0; i < ROUNDS; ++i)
            turn(*(int *)which, i);
    }}
    return 0;
}}

int main(void)
{{
    pthread_t threads[2];
    int which[2] = {{0, 1}};
    for (int i = 0; i < 2; ++i)
        pthread_create(&threads[i], 0, thread, &which[i]);
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], 0);
    {init_both}
    for (int i = 0; i < ROUNDS; ++i) {{ /* in turns, in one thread */
        turn(0, i);
        turn(1, i);
    }}
    return wrong[0] + wrong[1];
}}
"""


@needs_gcc
@pytest.mark.parametrize("model", [small_network, streaming_network], ids=["plain", "streaming"])
def test_two_instances_run_in_threads_and_in_turns(model: object, tmp_path: Path) -> None:
    """Neither sees the other's bytes, nor does the thread sanitizer; no variable can be written."""
    network = model()  # type: ignore[operator]
    sources = sources_of(planned(network), network, reentrant=True)
    write_project(project_files(sources, network, BOARD), tmp_path / "p")
    units = ("model.c", "kernels.c", "weights.c")
    assert variables(tmp_path / "p", *units) == []
    given = [inputs_of(network, ROUNDS, seed) for seed in (1, 2)]
    wanted = []
    for inputs in given:
        session = Session(network)
        wanted.append([np.frombuffer(session.bytes_of(network, x), np.int8) for x in inputs])
    assert bytes(wanted[0][0]) != bytes(wanted[1][0])

    def listed(sets: object) -> str:
        return ", ".join(str(v) for x in np.concatenate(sets).reshape(-1, 1) for v in x)  # type: ignore[call-overload]

    name, big = sources.name, sources.name.upper()
    state = bool(sources.state_bytes)
    words = {
        "rounds": ROUNDS,
        "input": sources.input_bytes,
        "output": sources.output_bytes,
        "given": listed([x.reshape(-1) for one in given for x in one]),
        "wanted": listed([x for one in wanted for x in one]),
        "name": name,
        "big": big,
        "states": f"static int8_t states[2][{big}_STATE_BYTES];" if state else "",
        "init_own": f"{name}_init(&contexts[*(int *)which], arenas[*(int *)which]"
        f"{', states[*(int *)which]' if state else ''});",
        "init_both": f"for (int i = 0; i < 2; ++i) {name}_init(&contexts[i], arenas[{'0' if state else 'i'}]"
        f"{', states[i]' if state else ''});",
    }
    (tmp_path / "p" / "threads.c").write_text(THREADS.format(**words))
    sane = ("-g", "-O1", "-fsanitize=thread", "-Wno-missing-braces")
    run("gcc", "-std=c99", *sane, "-o", "both", "threads.c", *units, "-lpthread", where=tmp_path / "p")
    run("./both", where=tmp_path / "p")


def several(*, reentrant: bool) -> tuple[list[Int8Model], SeveralSources]:
    """Three networks, two of which have one name and keep bytes."""
    models = [streaming_network(), small_network(), filters()]
    modes: list[Literal["held", "once"]] = ["held", "once", "held"]
    plans = [planned(model, mode) for model, mode in zip(models, modes, strict=True)]
    return models, several_sources(plans, models, [frozenset()] * 3, name="all", reentrant=reentrant)


@needs_gcc
@pytest.mark.parametrize(("reentrant", "language"), [(False, C99), (True, CPP17)], ids=["C99", "C++17"])
def test_networks_share_an_array_and_keep_their_states(
    reentrant: bool, language: tuple[str, ...], tmp_path: Path
) -> None:
    models, sources = several(reentrant=reentrant)
    assert [one.name for one in sources.networks] == ["stream", "tiny", "stream_2"]
    extents = [planned(model).result.extent_bytes for model in models]
    assert sources.arena_bytes <= max(extents)
    assert sources.state_bytes >= sum(len(s.initial) for model in models for s in model.states) > 0
    write_project(several_files(sources, models, BOARD), tmp_path / "p")
    units = [name for name in sources.files if name.endswith(".c")]
    flags = ("-O0", *SANITIZED.split(), "-I.", "-o", "../built")
    run(*language, *WARNINGS, *flags, "examples/host/main.c", *units, where=tmp_path / "p")
    inputs = [inputs_of(model, ROUNDS, seed) for seed, model in enumerate(models)]
    sessions = [Session(model) for model in models]
    wanted = b"".join(
        session.bytes_of(model, x)
        for turn in zip(*inputs, strict=True)
        for session, model, x in zip(sessions, models, turn, strict=True)
    )
    given = b"".join(x.tobytes() for turn in zip(*inputs, strict=True) for x in turn)
    assert run("../built", where=tmp_path / "p", given=given) == wanted
    assert not reentrant or variables(tmp_path / "p", *units) == []
    write_project(several_files(sources, models, BOARD), tmp_path / "p")  # all of it ours, so replaced


@needs_gcc
def test_the_array_of_several_may_be_the_caller_s(tmp_path: Path) -> None:
    models, sources = several(reentrant=False)
    write_project(several_files(sources, models, BOARD), tmp_path / "p")
    left = variables(
        tmp_path / "p", *(n for n in sources.files if n.endswith(".c")), language=(*C99, "-DALL_ARENA_GIVEN")
    )
    assert "all_arena" in left
    size = re.search(r"define ALL_ARENA_BYTES (\d+)", sources.files["all.h"])
    assert size is not None
    assert int(size[1]) == sources.extent


@needs_gcc
@pytest.mark.parametrize("name", ["model", "kernels"])
def test_a_file_s_name_is_no_file_of_the_project(name: str, tmp_path: Path) -> None:
    """`model.tflite` is what most converters write."""
    model = replace(small_network(), name=name)
    write_project(project_files(sources_of(planned(model), model), model, BOARD), tmp_path / "p")
    units = ("examples/host/main.c", "model.c", "kernels.c", "weights.c")
    run(*C99, *WARNINGS, "-fsyntax-only", "-I.", *units, where=tmp_path / "p")
    sketch = next((tmp_path / "p" / "examples").glob("*/*.ino"))
    (header,) = re.findall(r"#include <(.*)>", sketch.read_text())
    assert (tmp_path / "p" / header).is_file()


def test_several_networks_refuse_what_is_for_one() -> None:
    with pytest.raises(UsageError, match="are no networks"):
        onchip.mcu_several([])
    with pytest.raises(NegativeAnswer, match=r"^tiny: infeasible: .* the budget has 182 "):
        onchip.mcu_several([small_network(), streaming_network()], ram=200)
