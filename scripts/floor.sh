#!/bin/sh
# Quick tests with the oldest versions of the base dependencies that pyproject.toml admits, and with the newest.
set -eu
python=.venv/bin/python
wheel=$(ls build/wheel/onchip-*.whl 2>/dev/null || true)
[ -n "$wheel" ] || { sh scripts/wheel.sh && wheel=$(ls build/wheel/onchip-*.whl); }
# Tests that need no more than the base dependencies.
tests="tests/test_cli.py tests/test_plan_forms.py tests/network/test_network_json.py tests/test_chip.py tests/test_files.py
    tests/test_limits.py tests/planners/packing/test_packing.py tests/planners/placement/test_plan.py
    tests/planners/fusion/test_fuse.py tests/report/test_page.py tests/zoo/test_zoo.py tests/multi_dnn/test_solve.py"
for end in oldest newest; do
    folder=build/floor-$end
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$python" - $end >"$folder/wanted.txt" <<'PYTHON'
import re, sys, tomllib

with open("pyproject.toml", "rb") as file:
    for wanted in tomllib.load(file)["project"]["dependencies"]:
        name, least = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,<[\d.]+)?", wanted).groups()
        # OR-tools' third number is that of a build.
        oldest = f"{name}=={least}.*" if name == "ortools" else f"{name}=={least}" + ".0" * (2 - least.count("."))
        print(oldest if sys.argv[1] == "oldest" else wanted)
PYTHON
    "$folder/bin/python" -m pip --disable-pip-version-check -q install --only-binary :all: \
        -r "$folder/wanted.txt" "$wheel" pytest hypothesis flatbuffers
    "$folder/bin/python" -m pip list --format freeze --disable-pip-version-check |
        grep -i -E '^(jinja2|msgspec|numpy|onnx|ortools|rich|typer)=' | tr '\n' ' '
    echo
    # Warnings of old libraries are not ours to mend.
    "$folder/bin/python" -m pytest -q -p no:cacheprovider -o filterwarnings=default --disable-warnings \
        -m "not slow" $tests
    rm -rf "$folder"
done
