"""How long the command takes to say something cheap, as multiples of the interpreter's own start.

    python benchmarks/startup.py [--rounds 15]

Each row is the least of several runs, taken in turns so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

RUN = "import sys; sys.argv[1:] = {}; from onchip_command import main; main()"
ROWS = {
    "python": "pass",
    "import onchip": "import onchip",
    "import onchip, and what it exports": "from onchip import *",
    "onchip --version": RUN.format(["--version"]),
    "onchip --help": RUN.format(["--help"]),
    "onchip chips": RUN.format(["chips"]),
    "onchip zoo alexnet": RUN.format(["zoo", "alexnet"]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    least = dict.fromkeys(ROWS, float("inf"))
    for _ in range(rounds):
        for name, code in ROWS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
            least[name] = min(least[name], time.perf_counter() - began)
    for name, seconds in least.items():
        print(f"{name:36} {seconds:6.3f} s  {seconds / least['python']:5.1f} x python")


if __name__ == "__main__":
    main()
