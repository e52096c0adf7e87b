#!/bin/sh
# Build _core under the address and undefined-behaviour sanitizers and run the tests of the searches with it.
set -eu
python=.venv/bin/python
target=build/sanitize
rm -rf "$target"
"$python" -m pip install -qq --disable-pip-version-check --no-deps --target "$target" \
    -C cmake.define.ONCHIP_SANITIZE=ON -C build-dir=build/sanitize-tree .
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
# The ILP runs in others' solvers, which do not take Ctrl-C under a sanitizer.
# -S: no .pth files, so that the editable install does not shadow the instrumented one.
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" \
ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
PYTHONPATH="$target:$packages" \
    "$python" -S -m pytest -q -p no:cacheprovider -m "not slow" tests/placement tests/packing tests/fusion/test_fusion_search.py \
    tests/corun/test_pair_search.py tests/corun/test_branch.py tests/corun/test_corun_search.py \
    tests/corun/test_solve.py tests/corun/test_dynamic.py \
    --ignore=tests/placement/ilp
