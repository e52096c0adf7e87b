"""How often the calls of a command go back up: `scripts/paths.py [--python PYTHON] -- plan zoo:resnet18 ...`.

The packages of a tree have layers (scripts/house.py). A call goes up when a function of a lower layer calls
one of a higher layer: a callback, or an import behind a function. Printed are the distinct pairs of functions
between which that happens, the distinct pairs of packages, and how often the model's file was opened.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import house

TRACED = """
import json, sys, threading
from pathlib import Path
import onchip
ROOT = str(Path(onchip.__file__).parent)
out, model, *command = sys.argv[1:]
pairs, opened = {}, 0

def seen(frame, event, _):
    if event != "call" or not frame.f_code.co_filename.startswith(ROOT):
        return
    caller = frame.f_back
    while caller is not None and not caller.f_code.co_filename.startswith(ROOT):
        caller = caller.f_back
    if caller is None:
        return
    here, there = caller.f_code, frame.f_code
    if here.co_filename != there.co_filename and there.co_name != "<module>":
        key = (here.co_filename, here.co_qualname if hasattr(here, "co_qualname") else here.co_name,
               there.co_filename, there.co_qualname if hasattr(there, "co_qualname") else there.co_name)
        pairs[key] = pairs.get(key, 0) + 1

def audited(event, args):
    global opened
    if event == "open" and model and str(args[0]) == model:
        opened += 1

sys.addaudithook(audited)
from onchip.cli import main
sys.argv = ["onchip", *command]
sys.setprofile(seen)
try:
    main()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    Path(out).write_text(json.dumps([[*key, n] for key, n in pairs.items()] + [opened]))
"""


def upward(python: str, command: list[str]) -> tuple[list[tuple[str, str]], int]:
    """The calls that go up, as caller and callee, and how often the model's file was opened."""
    model = next((word for word in command if Path(word).is_file()), "")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls.json"
        words = [python, "-c", TRACED, str(out), model, *command]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        *calls, opened = json.loads(out.read_text())
    where = subprocess.run(
        [python, "-c", "import onchip; print(onchip.__file__)"], check=True, capture_output=True, text=True
    )
    source = Path(where.stdout.strip()).parents[1]
    known = house.modules(source)
    name = {str(path): module for module, path in known.items()}
    packages = {module for module, path in known.items() if path.name == "__init__.py"}
    depth = house.depths(source)
    found = []
    for caller, calling, callee, called, _ in calls:
        if "onchip" in (name[caller], name[callee]):
            continue  # names are given away when they are first asked for
        here, there = (house.package_of(name[file], packages) for file in (caller, callee))
        if depth.get(there, 0) > depth.get(here, 0):
            found.append((f"{name[caller]}.{calling}", f"{name[callee]}.{called}"))
    return sorted(found), opened


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python beside which `onchip` lies")
    parser.add_argument("--list", action="store_true", help="print the calls, too")
    parser.add_argument("command", nargs="+", help="the words behind `onchip`")
    given = parser.parse_args()
    found, opened = upward(given.python, given.command)
    rooms = {tuple(module.split(".")[1] for module in pair) for pair in found}
    print(f"{len(found)} calls go up, between {len(rooms)} pairs of packages; the model opened: {opened}")
    if given.list:
        for caller, callee in found:
            print(f"  {caller} -> {callee}")


if __name__ == "__main__":
    main()
