"""The HTML page as a browser would take it apart: one file, no address outside it, nothing injected."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from greedy import greedy
from hypothesis import given, settings

from onchip.network import Network, OperatorSpec
from onchip.plans import Plan, bind
from onchip.report import html, timeline
from strategies import hostile_names, hostile_networks


class Page(HTMLParser):
    """Elements with their attributes, and the text of scripts and styles."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.text = ""
        self._open: tuple[str, dict[str, str | None]] | None = None
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.raw.append((*self._open, data))
        else:
            self.text += data

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(tag, tuple(sorted(attrs))) for tag, attrs in self.elements]

    @property
    def data(self) -> Any:
        (text,) = (text for _, attrs, text in self.raw if attrs.get("type") == "application/json")
        return json.loads(text)


def chain(count: int, name: str = "layer") -> Network:
    """`count` operators in a row, every third joined with the one before."""
    tensors = [(f"{name}/t{i}", 1000 + i % 7, "input" if i == 0 else "activation") for i in range(count + 1)]
    operators = [
        OperatorSpec(
            f"{name}/op{i}",
            "Conv",
            [f"{name}/t{j}" for j in ({i, i - 9} if i % 3 == 0 and i > 9 else {i})],
            [f"{name}/t{i + 1}"],
        )
        for i in range(count)
    ]
    return Network.build("chain", tensors, operators, [f"{name}/t{count}"])  # type: ignore[arg-type]


PLAN = greedy(chain(40))


def test_nothing_points_outside_the_file() -> None:
    source = html(PLAN)
    page = Page(source)
    for tag, attrs in page.elements:
        assert tag not in ("iframe", "img", "object", "embed", "base", "form")
        for key in ("src", "href", "action", "srcset", "data", "poster", "background"):
            assert attrs.get(key) in (None, "data:,"), (tag, attrs)
        assert not any(key.startswith("on") or key == "style" for key in attrs)
    code = re.sub(r"^\s*//.*$|; // .*$|'sha256-[^']*'", "", source, flags=re.M)
    assert "//" not in code.replace("file://", "")
    for tag, _, text in page.raw:
        assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", text), tag


def test_the_policy_allows_this_script_and_style_alone() -> None:
    page = Page(html(PLAN))
    (policy,) = (a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (text,) = (x for t, attrs, x in page.raw if t == tag and attrs.get("type") != "application/json")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.thorough
@given(hostile_networks())
@settings(max_examples=30, deadline=None)
def test_hostile_names_change_no_element_and_no_policy(network: Network) -> None:
    tame = Network.build(
        "n",
        [(f"t{t.id}", t.bytes, t.kind) for t in network.tensors],
        [
            OperatorSpec(
                f"o{op.id}",
                "Any",
                [f"t{t}" for t in op.inputs],
                [f"t{t}" for t in op.outputs],
                op.weight_bytes,
                op.workspace,
            )
            for op in network.operators
        ],
        [f"t{t}" for t in network.outputs],
        views=[(f"t{v.tensor}", f"t{v.of}", v.offset) for v in network.views],
        source="s" if network.source else "",
    )

    def shape(n: Network) -> list[tuple[str, tuple[str, ...]]]:
        # The order of equals in a table may follow names: compare the elements as a bag.
        return sorted(Page(html(greedy(n))).shape)

    assert shape(network) == shape(tame)


@given(hostile_names)
@settings(max_examples=30, deadline=None)
def test_a_name_reaches_the_page_as_text(name: str) -> None:
    network = Network.build(
        name,
        [("x", 9, "input"), (name + "y", 9, "activation")],
        [OperatorSpec(name, name, ["x"], [name + "y"])],
        [name + "y"],
    )
    source = html(greedy(network))
    assert "<script>alert" not in source
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00\x1b]", source)
    shown = Page(source).data["tensors"][1][0]
    if (name + "y").isprintable() and len(name) < 200:
        assert shown == name + "y"
    source.encode("utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["short", "cell_stem_0/comb_iter_0_left/separable_conv_3x3/" + "depth" * 12])
def test_a_thousand_operators_stay_under_two_megabytes(name: str) -> None:
    assert len(html(greedy(chain(1000, name))).encode()) < 2_000_000


def test_the_page_holds_what_the_timeline_says() -> None:
    line, data = timeline(PLAN), Page(html(PLAN)).data
    assert [s[6] for s in data["steps"]] == [s.occupancy_bytes for s in line.steps]
    assert sum(s[9] for s in data["steps"]) == PLAN.result.spill_bytes
    assert sum(s[10] for s in data["steps"]) == PLAN.result.reload_bytes
    assert len(data["residencies"]) == len(line.residencies)
    assert (data["budget"], data["extent"]) == (PLAN.budget, PLAN.result.extent_bytes)


def test_figures_and_status_can_be_read_without_the_script() -> None:
    text = Page(html(PLAN)).text
    for n in (PLAN.budget, PLAN.result.peak_bytes, PLAN.result.spill_bytes, PLAN.result.dram_bytes):
        assert f"{n:,}" in text
    assert "feasible" in text
    optimal = Plan(
        PLAN.network,
        PLAN.chip,
        PLAN.budget,
        PLAN.program,
        PLAN.result.__class__(
            "optimal",
            *[getattr(PLAN.result, f) for f in PLAN.result.__dataclass_fields__ if f not in ("status",)],
        ),
    )
    assert "Claimed to be optimal" in Page(html(optimal)).text
    assert "Proven optimal" in Page(html(bind(optimal))).text
