"""Tries to hurt onchip with files: numbers, names and claims of plans, networks and profiles, one by one.

    python benchmarks/attack.py [numbers] [names] [claims]

`numbers` puts an extreme number into every place of a file that holds one, `names` a hostile text into every
place that holds a text, and `claims` makes of every plan one that claims more than is so, with a digest that
fits. Each file is then read, checked, reported and, as small networks, planned, each time in a process of its
own that gets 10 processor seconds and 2 GiB. Findings are processes that end otherwise than with an answer or
one line, pages that hold the text unescaped, and forged claims that are called proved.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pickle
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import onchip
from mutants.campaign import some_schedule
from mutants.kinds import KINDS
from onchip import check as checking
from onchip.base.errors import InputError, MissingExtra, NegativeAnswer
from onchip.multi_dnn.profile_file import profile_from_json, profile_json
from onchip.multi_dnn.schedule_json import document_digest
from onchip.network import Geometry, Network, OperatorSpec
from onchip.network.json import wire_network
from onchip.plans import claim_digest, from_json, from_text, to_json, to_text

SECONDS, BYTES = 10, 2 << 30
NUMBERS = (0, 1, -1, 2**31, 10**9, 10**12, 10**18 - 1, 2**63, 10**30, 0.5, 1e308)
TEXTS = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "'\"><svg onload=alert(1)>",
    "${alert(1)}{{7*7}}",
    "\x1b]0;owned\x07\x1b[2J",
    "\x9b31m\x85\u202eevil\u2066",
    "*/ int x; /*",
    '??/\n#include "/etc/passwd"',
    "../../../../tmp/owned",
    "=cmd|' /C calc'!A0",
    "a\nb\0c",
    "",
    "x" * 20_000,
)

Leaf = tuple[Any, ...]
Act = Callable[[str], str]


def leaves(data: Any, kinds: tuple[type, ...], at: Leaf = ()) -> Iterator[Leaf]:
    """Where in JSON values of these kinds stand."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, kinds, (*at, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from leaves(value, kinds, (*at, i))
    elif isinstance(data, kinds) and not (isinstance(data, bool) and bool not in kinds):
        yield at


def changed(data: Any, at: Leaf, to: Any) -> Any:
    """A copy with another value at one place."""
    data = copy.deepcopy(data)
    under = data
    for key in at[:-1]:
        under = under[key]
    under[at[-1]] = to
    return data


def signed(text: str) -> str:
    """A plan's or schedule's JSON with a digest that fits what it claims, where it can be read at all."""
    data = json.loads(text)
    if str(data.get("format")).startswith("onchip.schedule"):
        data["result"]["claim_sha256"] = document_digest(data)
        return json.dumps(data)
    try:
        made = from_json(text)
    except InputError:
        return text
    if "claim_sha256" in data["result"]:
        data["result"]["claim_sha256"] = claim_digest(made)
    return json.dumps(data)


def apart(act: Act, content: str) -> tuple[str, float, int]:
    """What comes of an action in a process of its own: words, processor seconds, bytes at most."""
    back, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(back)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        try:
            said = act(content)
        except (InputError, NegativeAnswer, MissingExtra) as no:
            said = "no" if len(str(no)) <= 1500 and str(no).isprintable() else f"FOUND a line of {no!r}"[:200]
        except BaseException as problem:
            said = f"FOUND {type(problem).__name__}: {problem}"[:200]
        os.write(there, pickle.dumps(said))
        os._exit(0)
    os.close(there)
    with os.fdopen(back, "rb") as pipe:
        answer = pipe.read()
    _, status, used = os.wait4(child, 0)
    said = pickle.loads(answer) if answer else f"FOUND an end by status {status}"
    seconds, most = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024
    if not said.startswith("FOUND") and most > BYTES:
        said = f"FOUND {most:,} bytes of memory"
    return said, seconds, most


def of_plan(content: str) -> str:
    """Read, check and show a plan; the page must hold no text of it as markup."""
    made = onchip.Plan.of(from_json(content))
    to_text(made)
    to_json(made)
    made.check()
    return shown(made.report())


def shown(page: str) -> str:
    """Whether a page holds one of the hostile texts as it is."""
    raw = next((t for t in TEXTS[:4] if "<" in t and t in page), None)
    bare = next((c for c in "\x1b\x9b\x07\u202e\u2066" if c in page), None)
    return f"FOUND {raw or bare!r} in the page" if raw or bare else "yes"


def of_text(content: str) -> str:
    """The same for the text form: what was written is read again."""
    made = from_json(content)
    return "yes" if from_text(to_text(made)) == made else "FOUND another plan in the text form"


def of_network(fuse: bool) -> Act:
    """Plan a network in a file within a tenth of a second of search."""

    def act(content: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.json"
            path.write_text(content, "utf-8", "surrogatepass")
            made = onchip.plan(path, budget=30_000, fuse=fuse, time_limit=0.1)
            made.check()
            return shown(made.report())

    return act


def of_claim(content: str) -> str:
    """A claim that was made up must not be called proved; what the checker derives needs no claim."""
    made = onchip.Plan.of(from_json(content))
    made.check()
    worth = checking.standing(made)
    page = made.report()
    if worth == "proved" or (worth == "claimed" and "Proven" in page):
        return f"FOUND a forged claim called {worth}"
    return worth


def of_schedule(content: str) -> str:
    """Judge a schedule and show it."""
    from onchip.multi_dnn.judged import judged_file
    from onchip.multi_dnn.report import html

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.json"
        path.write_text(content, "utf-8", "surrogatepass")
        return shown(html(judged_file(path)))


def of_profile(content: str) -> str:
    """Read a profile, and write it again."""
    made = profile_from_json(content.encode("utf-8", "surrogatepass"), "profile")
    return "yes" if profile_json(made) else "no"


def files(seed: int) -> dict[str, tuple[str, list[tuple[str, Act]]]]:
    """A small file of every kind, and what is done with it."""
    found: dict[str, tuple[str, list[tuple[str, Act]]]] = {}
    for kind, how in KINDS.items():
        made = how.make(Random(seed)).plan
        found[kind] = (to_json(made), [("shown", of_plan), ("as text", of_text)])
    layer = Geometry("conv", (1, 8, 16, 16), (1, 8, 16, 16), (3, 3), (1, 1), (1, 1, 1, 1))
    sizes = (("x", "input"), ("a", "activation"), ("b", "activation"))
    network = Network.build(
        "net",
        [(name, 2048, kind) for name, kind in sizes],  # type: ignore[misc]
        [OperatorSpec(f"conv {o}", "Conv", (i,), (o,), 576, geometry=layer) for i, o in ("xa", "ab")],
        ["b"],
    )
    written = msgspec.json.encode(wire_network(network)).decode()
    found["network"] = (written, [("planned", of_network(False)), ("fused", of_network(True))])
    document = some_schedule(Random(seed))
    found["schedule"] = (json.dumps(document), [("judged", of_schedule)])
    profile = next(iter(document["profiles"].values()))
    found["profile"] = (json.dumps(profile), [("read", of_profile)])
    return found


def attempts(attack: str, text: str) -> Iterator[tuple[str, str]]:
    """Changed files, each with words for the change."""
    data = json.loads(text)
    if attack == "claims":
        for edit in forged(data):
            yield edit, signed(json.dumps(edit_of(data, edit)))
        return
    kinds, values = ((int, float), NUMBERS) if attack == "numbers" else ((str,), TEXTS)
    for at in leaves(data, kinds):
        for value in values:
            name = f"{'.'.join(map(str, at))} = {str(value)[:40]!r}"
            yield name, signed(json.dumps(changed(data, at, value)))
    if attack == "names":
        # A name that stands everywhere changed keeps the file sound.
        for old in sorted({v for at in leaves(data, (str,)) if len(v := value_at(data, at)) < 40}):
            for value in TEXTS:
                yield f"{old!r} = {value[:40]!r}", signed(json.dumps(renamed(data, old, value)))


def value_at(data: Any, at: Leaf) -> Any:
    for key in at:
        data = data[key]
    return data


def renamed(data: Any, old: str, new: str) -> Any:
    """The same with one text everywhere another, keys too."""
    if isinstance(data, dict):
        return {new if k == old else k: renamed(v, old, new) for k, v in data.items()}
    if isinstance(data, list):
        return [renamed(v, old, new) for v in data]
    return new if data == old else data


def forged(data: Any) -> Iterator[str]:
    """What a liar would write: `key=JSON`, of the options where it begins with a colon."""
    goals = {
        "traffic": "traffic_bytes lower_bound_bytes",
        "peak": "extent_bytes peak_lower_bound_bytes",
        "dram": "dram_bytes dram_lower_bound_bytes",
        "latency": "latency_picoseconds latency_lower_bound_picoseconds",
        "energy": "energy_picojoules energy_lower_bound_picojoules",
        "memory": "memory_picoseconds memory_lower_bound_picoseconds",
    }
    for goal, keys in goals.items():
        figure, bound = keys.split()
        if figure in data["result"]:
            for planner in ("placement", "joint", "fusion", "memories", "segments", "none"):
                for space in ("", "all plans whatsoever", data["result"].get("space", "")):
                    yield json.dumps([goal, bound, data["result"][figure], planner, space])


def edit_of(data: Any, edit: str) -> Any:
    goal, bound, figure, planner, space = json.loads(edit)
    made = copy.deepcopy(data)
    made["options"] = {**made.get("options", {}), "objective": goal, "planner": planner}
    more = {"status": "optimal", bound: figure, "space": space, "version": "1", "claim_sha256": "0"}
    made["result"].update(more)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help="numbers, names, claims")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="kinds of files")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (4 * BYTES, 4 * BYTES))
    sources, found = files(asked.seed), []
    print("| attack | file | files | accepted | refused | most seconds | most MB | findings |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for attack in asked.attacks or ("numbers", "names", "claims"):
        for kind, (text, acts) in sources.items():
            if (asked.only and kind not in asked.only) or (attack == "claims" and kind not in KINDS):
                continue
            for _, act in acts:  # what all need is imported here and once
                act(text)
            counts: Counter[str] = Counter()
            worst = (0.0, 0)
            for name, content in attempts(attack, text):
                for what, act in [("claimed", of_claim)] if attack == "claims" else acts:
                    said, seconds, most = apart(act, content)
                    counts["no" if said == "no" else "found" if said.startswith("FOUND") else "yes"] += 1
                    worst = max(worst[0], seconds), max(worst[1], most)
                    if said.startswith("FOUND"):
                        found.append(f"{attack} {kind} {what}: {name[:150]}: {said.removeprefix('FOUND ')}")
            print(
                f"| {attack} | {kind} | {counts.total():,} | {counts['yes']:,} | {counts['no']:,}"
                f" | {worst[0]:.1f} | {worst[1] / 1e6:,.0f} | {counts['found']} |",
                flush=True,
            )
    for line in found:
        print(line.encode("unicode_escape").decode(), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
