#!/bin/sh
# Names, in one line each, what this machine lacks to build onchip, with the package that brings it.
python=$1
missing=0
lacks() { echo "onchip: missing $1: $2" >&2; missing=1; }

if ! command -v "$python" >/dev/null 2>&1; then
    lacks "Python 3.11 or newer" "apt-get install python3 (or set PYTHON=/path/to/python3)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    lacks "Python 3.11 or newer ($("$python" --version 2>&1) found)" "set PYTHON=/path/to/python3.11"
else
    "$python" -c 'import venv, ensurepip' 2>/dev/null || lacks "Python's venv" "apt-get install python3-venv"
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
        lacks "Python's headers" "apt-get install python3-dev"
fi
command -v "${CXX:-c++}" >/dev/null 2>&1 || lacks "a C++20 compiler" "apt-get install g++"
exit $missing
