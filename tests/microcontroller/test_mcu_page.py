"""The page of a network on a microcontroller: in the words of its world, every byte of RAM accounted for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import onchip
from onchip.base.errors import MissingTool
from onchip.microcontroller.emulator import toolchain
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.made import Builder
from onchip.microcontroller.network import network_of
from onchip.microcontroller.result.lowering import levers
from onchip.microcontroller.result.microcontroller import Microcontroller, buffers
from onchip.microcontroller.result.ram_steps import ram_steps
from onchip.microcontroller.result.report import html
from onchip.microcontroller.segments import SegmentOptions
from onchip.microcontroller.segments import plan as plan_segments

HOSTILE = "</script><script>document.title='owned'</script>"


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a cross compiler: the page shows what is known without one."""

    def missing(program: str, packages: str) -> str:
        raise MissingTool(program, packages)

    toolchain.find_toolchain.cache_clear()
    monkeypatch.setattr(toolchain, "_find", missing)
    yield
    toolchain.find_toolchain.cache_clear()


def bottleneck() -> Int8Model:
    """A small inverted bottleneck and a classifier, with names as converters write them."""
    b = Builder(1)
    x = b.input((1, 6, 6, 4))
    wide = b.conv(x, 12)
    y = b.add(b.conv(b.depthwise(wide, (3, 3)), 4), x)
    made = model_of(b.file(b.fully_connected(b.mean(y), 5)), name="small", where="small.tflite")
    names = [f"model/block_{t.id}/Relu;model/norm_{t.id}/FusedBatchNormV3" for t in made.tensors]
    return replace(made, tensors=tuple(replace(t, name=n) for t, n in zip(made.tensors, names, strict=True)))


@pytest.fixture(scope="module")
def small() -> Int8Model:
    return bottleneck()


def on_board(model: Int8Model, **options: str) -> Microcontroller:
    return onchip.mcu(model, "nucleo-f411re", **options)


class _Words(HTMLParser):
    """What a reader sees, and whether every element ends where it must."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "link"):  # they have no end
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)


def words_of(page: str) -> str:
    parser = _Words()
    parser.feed(page)
    assert parser.open == []
    return " ".join(" ".join(parser.words).split())


def test_the_page_speaks_of_ram_and_flash_and_never_of_dram(small: Int8Model) -> None:
    made = on_board(small)
    words = words_of(html(made))
    assert not re.search(r"DRAM|feasible|scratchpad|spill|reload", words)
    for expected in (
        "RAM",
        "Flash",
        f"{made.arena_bytes:,}",
        "The peak, and what would lower it",
        "Most RAM: ",
    ):
        assert expected in words
    for layer in small.layers:
        assert layer.name in words
    assert "block_0/Relu" in words
    assert "FusedBatchNorm" not in words


def test_names_from_files_cannot_be_markup(small: Int8Model) -> None:
    hostile = replace(small, name=HOSTILE, source=HOSTILE)
    page = html(on_board(hostile))
    assert HOSTILE not in page
    assert page.count("<script>") == 1


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["held", "once", "again"])
@pytest.mark.parametrize("objective", ["free", "once", "least"])
def test_every_byte_of_every_step_has_a_name(small: Int8Model, mode: str, objective: str) -> None:
    options = SegmentOptions(input=mode, objective=objective)  # type: ignore[arg-type]
    plan = plan_segments(network_of(small), 1 << 20, options)
    steps = ram_steps(plan)
    assert [step.bytes for step in steps] == [step.bytes for step in buffers(plan)]
    assert max(part.end for step in steps for part in step.parts) == plan.result.extent_bytes
    for step in steps:
        assert all(part.bytes > 0 and part.name != "unused" for part in step.parts)


@pytest.mark.thorough
def test_what_would_lower_the_peak_has_fewer_bytes_and_none_is_worse_than_another(small: Int8Model) -> None:
    made = on_board(small)
    found = levers(made, lambda _: None)
    assert found
    assert all(lever.arena_bytes < made.arena_bytes for lever in found)
    by_bytes = sorted(found, key=lambda lever: lever.arena_bytes)
    assert [lever.work for lever in by_bytes] == sorted((lever.work for lever in found), reverse=True)
    for lever in found:  # each is what its options give
        mode, objective = lever.options.split()[1], lever.options.split()[3]
        again = on_board(small, input=mode, objective=objective)
        assert again.arena_bytes == lever.arena_bytes
