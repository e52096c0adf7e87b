"""Several networks in one project: kernels and the array for activations in common, states apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onchip.base.errors import PlanFormatError
from onchip.machines.board import Board
from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.kernel_language import Function
from onchip.microcontroller.kernel_language.names import c_comment, c_name
from onchip.microcontroller.project.build_files import build_files
from onchip.microcontroller.project.examples import example_c, host_main
from onchip.microcontroller.project.sources import (
    LICENCE,
    MOST_NAME,
    RESERVED,
    Sources,
    Within,
    kernel_files,
    name_of,
    sources_of,
)
from onchip.microcontroller.project.storage import ALIGNMENT
from onchip.plans import Plan

__all__ = ["SeveralSources", "several_files", "several_sources"]


@dataclass(frozen=True, slots=True)
class SeveralSources:
    """The C of several networks that run one behind the other in one array.

    `arena_bytes` hold the activations of whichever runs; the states of all, `state_bytes`, lie before them,
    each in a place of its own. Of `reentrant` networks the caller has both.
    """

    name: str
    networks: tuple[Sources, ...]
    files: Mapping[str, str]
    arena_bytes: int
    state_bytes: int
    reentrant: bool

    @property
    def header(self) -> str:
        return f"{self.name}.h"

    @property
    def extent(self) -> int:
        """The bytes of the array."""
        return self.arena_bytes + self.state_bytes

    @property
    def arena(self) -> str:
        """The bytes of the array in C, where the caller has it; else nothing."""
        return f"{self.name.upper()}_ARENA_BYTES" if self.reentrant else ""

    @property
    def constant_bytes(self) -> int:
        return sum(sum(one.constant_bytes.values()) for one in self.networks)


def several_sources(
    plans: Sequence[Plan],
    models: Sequence[Int8Model],
    shared: Sequence[frozenset[str]],
    *,
    name: str = "networks",
    reader: bool = False,
    forms: Forms = "packed",
    reentrant: bool = False,
) -> SeveralSources:
    """Return the networks as one project in C, by a plan for each; arguments as in `sources_of`.

    The state of a network lies where no other network writes: in front of the array's common part.
    """
    project, names = _names(name, models)
    tries = [
        sources_of(plan, model, some, reader=reader, forms=forms, reentrant=True, within=Within(project, own))
        for plan, model, some, own in zip(plans, models, shared, names, strict=True)
    ]
    states = [-(-one.state_bytes // ALIGNMENT) * ALIGNMENT for one in tries]
    arena, kept = max(one.arena_bytes for one in tries), sum(states)
    made = tries
    if not reentrant:
        places = [Within(project, own, kept, sum(states[:i])) for i, own in enumerate(names)]
        made = [
            sources_of(plan, model, some, reader=reader, forms=forms, within=place)
            for plan, model, some, place in zip(plans, models, shared, places, strict=True)
        ]
    kernels: dict[str, Function] = {}
    for one in made:
        for of, function in one.kernels.items():
            if kernels.setdefault(of, function) != function:
                raise PlanFormatError("has another kernel under the name of one", item=function.name)
    head = f"/* {LICENCE}\n * Written by onchip, of several networks. */\n"
    files = kernel_files(head, project, kernels)
    for one in made:
        files |= one.files
    files[f"{project}.h"] = head + _header(project, names, arena + (0 if reentrant else kept), reentrant)
    if not reentrant:
        files[f"{project}.c"] = head + _ARRAY.format(name=project, big=project.upper())
    return SeveralSources(project, tuple(made), files, arena, kept, reentrant)


def _names(name: str, models: Sequence[Int8Model]) -> tuple[str, list[str]]:
    """Return the project's name and the networks': identifiers, none of which is a file of another."""
    project = c_name(name).lower().strip("_")[:MOST_NAME] or "networks"
    if not project[0].isalpha():
        project = f"networks_{project}"
    own = [name_of(model) for model in models]
    taken = {*RESERVED, f"{project}_kernels"}

    def free(wanted: str) -> str:
        found, n = wanted, 2
        while found in taken or f"{found}_weights" in taken:
            found, n = f"{wanted}_{n}", n + 1
        taken.update({found, f"{found}_weights"})
        return found

    names = [free(one) for one in own]
    return free(project), names


def _header(project: str, names: Sequence[str], size: int, reentrant: bool) -> str:
    big = project.upper()
    of = "the largest of the networks: any of them, one at a time" if reentrant else "all networks"
    rows = [f"#ifndef {big}_H", f"#define {big}_H", "", *(f'#include "{name}.h"' for name in names), ""]
    rows += [f"/* RAM for the activations of {of}. */", f"#define {big}_ARENA_BYTES {size}", ""]
    if not reentrant:
        rows.append(_EXTERN.format(name=project, big=big, alignment=ALIGNMENT))
    return "\n".join([*rows, "#endif", ""])


def several_files(sources: SeveralSources, models: Sequence[Int8Model], board: Board) -> dict[str, str]:
    """Return all files of the project by path."""
    words = {
        "name": sources.name,
        "big": sources.name.upper(),
        "licence": LICENCE,
        "core": board.core,
        "board": c_comment(board.name),
        "model": ", ".join(c_comment(model.name) for model in models),
        "arena": f"{sources.extent:,}",
        "largest": f"{sources.arena_bytes:,}",
        "states": f"{sources.state_bytes:,}",
        "constants": f"{sources.constant_bytes:,}",
        "first": sources.networks[0].name.upper(),
        "files": "\n".join(
            f"- `{one.name}.h`, `{one.name}.c`, `{one.name}_weights.c`: `{c_comment(model.name)}`"
            f" (SHA-256 {model.sha256}), {one.arena_bytes:,} bytes of activations"
            + (f", {one.state_bytes:,} of state" if one.state_bytes else "")
            for one, model in zip(sources.networks, models, strict=True)
        ),
    }
    readme = _README + (_GIVEN if sources.reentrant else _COMMON)
    return {
        **sources.files,
        **build_files(words, board, sources.networks, sources.files, arena=sources.arena),
        "examples/host/main.c": host_main(sources.networks, sources.header, sources.arena),
        "README.md": readme.format(**words) + example_c(sources.networks),
    }


_EXTERN = """\
#ifdef __cplusplus
extern "C" {{
#endif

#ifdef {big}_ARENA_GIVEN
/* Says where {big}_ARENA_BYTES bytes are, aligned to {alignment}: before any other call. */
void {name}_use(void *memory);
extern int8_t *{name}_arena;
#else
extern int8_t {name}_arena[{big}_ARENA_BYTES];
#endif

#ifdef __cplusplus
}}
#endif
"""

_ARRAY = """\
#include "{name}.h"

#ifdef {big}_ARENA_GIVEN
int8_t *{name}_arena;

void {name}_use(void *memory)
{{
    {name}_arena = (int8_t *)memory;
}}
#else
#ifndef {big}_ARENA_ATTRIBUTE
#define {big}_ARENA_ATTRIBUTE
#endif
int8_t {name}_arena[{big}_ARENA_BYTES] __attribute__((aligned(4))) {big}_ARENA_ATTRIBUTE;
#endif
"""

_README = """\
# {name}

C for {model}, written by onchip for {board} ({core}).

- `{name}.h`: all networks' headers, and how much RAM they take together.
{files}
- `kernels.c`, `onchip_dsp.h`: the kernels of all networks, each once, with the instructions of the core where
  the compiler has them, in plain C on anything else.

Constants take {constants} bytes of flash. CMake, make, Arduino, PlatformIO, ESP-IDF, Zephyr and CMSIS-Pack
each find their file here, as for one network.

"""

_COMMON = """\
The networks run one behind the other in one array of {arena} bytes: the activations of whichever runs,
{largest} bytes for the largest, behind {states} bytes of state, which each network keeps for itself. Read a
network's outputs before you put inputs of another. `{big}_ARENA_ATTRIBUTE` stands at the array;
`{big}_ARENA_GIVEN` leaves it out, and `{name}_use(memory)` takes yours. Each network's constants have an
attribute of their own, as `{first}_WEIGHTS_ATTRIBUTE`.

"""

_GIVEN = """\
Memory belongs to instances, and no variable is written: instances with arrays of their own may run at the
same time. Those that run one behind the other may have one array, {big}_ARENA_BYTES bytes for any of them;
states stay with each instance.

"""
