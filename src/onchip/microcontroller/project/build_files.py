"""Files that make a project part of a build: CMake, Arduino, PlatformIO, ESP-IDF, Zephyr, CMSIS-Pack.

All name the same sources, which lie in the folder's root. Nothing is asked for: a build system reads its own
file and leaves the others alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources

from onchip.machines.board import Board
from onchip.microcontroller.project.examples import sketch
from onchip.microcontroller.project.sources import Sources

__all__ = ["SOURCES", "build_files"]

SOURCES = ("model.c", "kernels.c", "weights.c")
HEADERS = ("model.h", "kernels.h", "weights.h", "onchip_dsp.h")
VERSION = "1.0.0"

_FAMILY = {"arm": "arm-none-eabi-", "riscv": "riscv64-unknown-elf-"}


def build_files(
    words: Mapping[str, object],
    board: Board,
    networks: Sequence[Sources],
    files: Mapping[str, str] | None = None,
    *,
    arena: str = "",
) -> dict[str, str]:
    """Return the files by their paths in the project.

    `words` are what templates say of the project (see `project_files`). The project of several networks has
    `files` of its own, and those that are instances may have one `arena` of so many bytes, as C.
    """
    name = str(words["name"])
    core = board.core_type
    code = SOURCES if files is None else tuple(sorted(f for f in files if f.endswith(".c")))
    headers = HEADERS if files is None else tuple(sorted(f for f in files if f.endswith(".h")))
    said = {
        **words,
        "sources": " ".join(code),
        "headers": " ".join(headers),
        "flags": " ".join(core.flags),
        "cross": _FAMILY[core.family],
        "version": VERSION,
    }
    alias = {f"{name}.h": _ALIAS.format(**said)} if files is None and f"{name}.h" not in HEADERS else {}
    every = tuple(dict.fromkeys((f"{name}.h", *headers, *code)))
    folder = resources.files("onchip.microcontroller.project")
    return {
        "LICENSE": (folder / "LICENSE.txt").read_text(encoding="utf-8"),
        **alias,
        "Makefile": _MAKEFILE.format(**said),
        "CMakeLists.txt": _CMAKE.format(**said),
        "library.properties": _ARDUINO.format(**said),
        f"examples/{name}/{name}.ino": sketch(networks, f"{name}.h", arena),
        "library.json": _platformio(name, str(words["model"]), code),
        "idf_component.yml": _ESP_IDF.format(**said),
        "zephyr/module.yml": _ZEPHYR_MODULE.format(**said),
        "zephyr/CMakeLists.txt": _ZEPHYR_CMAKE.format(**said),
        "zephyr/Kconfig": _ZEPHYR_KCONFIG.format(**said),
        f"onchip.{name}.pdsc": _pack(name, str(words["model"]), every),
    }


def _platformio(name: str, model: str, code: Sequence[str]) -> str:
    return (
        json.dumps(
            {
                "name": name,
                "version": VERSION,
                "description": f"Written by onchip from {model}",
                "license": "Apache-2.0",
                "frameworks": "*",
                "platforms": "*",
                "headers": f"{name}.h",
                "build": {"srcDir": ".", "srcFilter": ["-<*>", *(f"+<{s}>" for s in code)]},
            },
            indent=2,
        )
        + "\n"
    )


def _pack(name: str, model: str, code: Sequence[str]) -> str:
    kind = {"h": "header", "c": "source"}
    files = [f'<file category="{kind[file[-1]]}" name="{file}"/>' for file in code]
    lines = "\n        ".join([*files, '<file category="doc" name="README.md"/>'])
    return _PDSC.format(name=name, model=escape(model, quote=True), version=VERSION, files=lines)


_ALIAS = """\
/* {licence}
 * Written by onchip. The model's header under a name of its own. */
#include "model.h"
"""

_MAKEFILE = """\
# {licence}
# Written by onchip. make: the library for a {core}. make example: the same for this machine, with a main.
CROSS ?= {cross}
CORE_FLAGS ?= {flags}
OPTIMISE ?= -O3
WARNINGS ?= -Wall -Wextra
COMMON = -std=c99 $(WARNINGS) -ffunction-sections -fdata-sections
SOURCES = {sources}
HEADERS = {headers}
OBJECTS = $(SOURCES:.c=.o)

lib{name}.a: $(OBJECTS)
\t$(CROSS)ar rcs $@ $(OBJECTS)
\t$(CROSS)size -t $(OBJECTS)

%.o: %.c $(HEADERS)
\t$(CROSS)gcc $(CORE_FLAGS) $(OPTIMISE) $(COMMON) $(CFLAGS) -c -o $@ $<

example: examples/host/main.c $(SOURCES) $(HEADERS)
\t$(CC) $(OPTIMISE) $(COMMON) $(CFLAGS) -I. -o $@ examples/host/main.c $(SOURCES)

clean:
\trm -f *.o *.a example

.PHONY: clean
"""

_CMAKE = """\
# {licence}
# Written by onchip. The library `{name}`; as a project of its own, the example for this machine too.
if(ESP_PLATFORM)
  idf_component_register(SRCS {sources} INCLUDE_DIRS .)
  return()
endif()

cmake_minimum_required(VERSION 3.13)
project({name} C)

add_library({name} STATIC {sources})
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE AND CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options({name} PRIVATE -O3)
endif()

if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR AND NOT CMAKE_CROSSCOMPILING)
  add_executable(example examples/host/main.c)
  target_link_libraries(example PRIVATE {name})
endif()
"""

_ARDUINO = """\
name={name}
version={version}
author=onchip
maintainer=onchip
sentence=Written by onchip from {model}
paragraph=An int8 network in {arena} bytes of RAM, without dynamic memory.
category=Data Processing
url=https://localhost/
architectures=*
includes={name}.h
license=Apache-2.0
"""

_ESP_IDF = """\
# Written by onchip.
version: "{version}"
description: An int8 network in {arena} bytes of RAM, without dynamic memory
license: Apache-2.0
"""

_ZEPHYR_MODULE = """\
# Written by onchip.
name: {name}
build:
  cmake: zephyr
  kconfig: zephyr/Kconfig
"""

_ZEPHYR_CMAKE = """\
# {licence}
# Written by onchip.
if(CONFIG_ONCHIP_{big})
  zephyr_library_named(onchip_{name})
  foreach(source {sources})
    zephyr_library_sources(${{CMAKE_CURRENT_LIST_DIR}}/../${{source}})
  endforeach()
  zephyr_include_directories(${{CMAKE_CURRENT_LIST_DIR}}/..)
endif()
"""

_ZEPHYR_KCONFIG = """\
# {licence}
# Written by onchip.
config ONCHIP_{big}
\tbool "The network {name}: {arena} bytes of RAM for activations"
"""

_PDSC = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- Written by onchip. -->
<package schemaVersion="1.7.7" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"
         xs:noNamespaceSchemaLocation="PACK.xsd">
  <vendor>onchip</vendor>
  <name>{name}</name>
  <description>An int8 network, written by onchip from {model}</description>
  <url>https://localhost/</url>
  <license>LICENSE</license>
  <releases>
    <release version="{version}" date="2026-01-01">First.</release>
  </releases>
  <components>
    <component Cclass="Machine Learning" Cgroup="{name}" Cversion="{version}">
      <description>Kernels, weights and plan of the network</description>
      <files>
        {files}
      </files>
    </component>
  </components>
</package>
"""
