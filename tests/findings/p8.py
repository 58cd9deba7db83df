#!/usr/bin/env python3
# P8: the menu of schedules says that zb-v is ZB-V in PyTorch's fixed order.
"""Reads the lists of schedules that plan and simulate print."""

import os
import pathlib
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))


def main():
    wrong = []
    for words in (["plan", "--schedules", "help"], ["simulate", "--schedule", "help"]):
        told = subprocess.run([FRAZIL, *words], capture_output=True, text=True, check=True).stdout
        line = next((line for line in told.splitlines() if line.startswith("zb-v ")), "")
        if "PyTorch" not in line or "fixed" not in line:
            wrong.append(f"{' '.join(words)}: `{line.strip()}`")
    if wrong:
        print("P8: zb-v is not said to be PyTorch's fixed order: " + "; ".join(wrong))
        return 1
    print("P8: zb-v is said to be PyTorch's fixed order")
    return 0


sys.exit(main())
