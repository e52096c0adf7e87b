#!/bin/sh
# Build _core under the address and undefined-behaviour sanitizers and run the tests of the searches with it.
# Arguments go to pytest.
set -eu
python=.venv/bin/python
target=build/sanitize
rm -rf "$target"
"$python" -m pip install -qq --disable-pip-version-check --no-build-isolation --no-deps --no-compile --target "$target" \
    -C cmake.define.ONCHIP_SANITIZE=ON -C build-dir=build/sanitize-tree .
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
# The tests that import a module which uses _core, so that a new search is covered when it and its tests are there.
tests=$("$python" - <<'PYTHON'
import re
from pathlib import Path

uses = re.compile(r"^\s*(from onchip import .*\b_core\b|from onchip\._core import|import onchip\._core)", re.M)
for room in sorted({path.parent for path in Path("src/onchip").rglob("*.py") if uses.search(path.read_text())}):
    name = ".".join(room.relative_to("src").parts)
    modules = "|".join(path.stem for path in room.glob("*.py") if uses.search(path.read_text()))
    wanted = re.compile(rf"from {name}(\.({modules}))? import|from {name} import .*\b({modules})\b|{uses.pattern}", re.M)
    if room.name == "onchip":  # what every process begins with: tests of its own
        print(*(path for path in Path("tests").glob("test_*.py") if path.stem[5:] in modules.split("|")))
    elif room.name not in ("placement", "packing"):  # of these, all
        tests = Path("tests", *room.parts[2:]).glob("test_*.py")
        print(*(path for path in sorted(tests) if wanted.search(path.read_text())))
PYTHON
)
# The ILP runs in others' solvers, which do not take Ctrl-C under a sanitizer.
# -S: no .pth files, so that the editable install does not shadow the instrumented one.
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" \
ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
PYTHONPATH="$target:$packages" \
    "$python" -S -m pytest -q -n 2 -p no:cacheprovider -m "not slow and not thorough" \
    tests/planners/placement tests/planners/packing $tests --ignore=tests/planners/placement/ilp "$@"
