"""How often the calls of a command go back up: `scripts/paths.py [--python PYTHON] -- plan zoo:resnet18 ...`.

The packages of a tree have layers (scripts/house.py). A call goes back up when it enters a package that is
already among its callers, and the package that calls is no higher: a callback, an import behind a function,
or a step along a circle of imports. Printed are the distinct pairs of functions between which that happens,
the distinct pairs of packages, the calls themselves, and how often the model's file was opened.
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
import json, sys
from pathlib import Path
out, model, rooms, *command = sys.argv[1:]
rooms = json.loads(rooms)
pairs, opened = {}, 0

def name(frame):
    return getattr(frame.f_code, "co_qualname", frame.f_code.co_name)

def seen(frame, event, _):
    here = rooms.get(frame.f_code.co_filename)
    if event != "call" or here is None or frame.f_code.co_name == "<module>":
        return
    caller, at = None, frame.f_back
    while at is not None:
        room = rooms.get(at.f_code.co_filename)
        if room is not None and at.f_code.co_name != "<module>":
            if caller is None:
                if room == here:
                    return
                caller = (room, name(at))
            elif room == here:
                key = (*caller, here, name(frame))
                pairs[key] = pairs.get(key, 0) + 1
                return
        at = at.f_back

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


def upward(python: str, command: list[str]) -> tuple[list[tuple[str, str, int]], int]:
    """The calls that go back up, as caller, callee and how often, and how often the file was opened."""
    model = next((word for word in command if Path(word).is_file()), "")
    where = subprocess.run(
        [python, "-c", "import onchip; print(onchip.__file__)"], check=True, capture_output=True, text=True
    )
    source = Path(where.stdout.strip()).parents[1]
    known = house.modules(source)
    packages = {module for module, path in known.items() if path.name == "__init__.py"}
    rooms = {
        str(path): house.package_of(module, packages) for module, path in known.items() if module != "onchip"
    }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls.json"
        words = [python, "-c", TRACED, str(out), model, json.dumps(rooms), *command]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        *calls, opened = json.loads(out.read_text())
    depth = house.depths(source)
    found = [
        (f"{here}: {calling}", f"{there}: {called}", count)
        for here, calling, there, called, count in calls
        if depth.get(there, 0) >= depth.get(here, 0)
    ]
    return sorted(found), opened


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python beside which `onchip` lies")
    parser.add_argument("--list", action="store_true", help="print the calls, too")
    parser.add_argument("command", nargs="+", help="the words behind `onchip`")
    given = parser.parse_args()
    found, opened = upward(given.python, given.command)
    rooms = {(caller.partition(":")[0], callee.partition(":")[0]) for caller, callee, _ in found}
    print(
        f"{sum(count for *_, count in found)} calls go back up, between {len(found)} pairs of functions "
        f"in {len(rooms)} pairs of packages; the model opened: {opened}"
    )
    if given.list:
        for caller, callee, count in found:
            print(f"  {count:5}  {caller} -> {callee}")


if __name__ == "__main__":
    main()
