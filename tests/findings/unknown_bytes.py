#!/usr/bin/env python3
# Where a trace tells no bytes, memory peaks are lower bounds, the count of plans that fit has its condition.
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from kineto_steps import CLUSTER, trace_of_steps  # noqa: E402

FRAZIL = os.path.abspath(os.environ.get("FRAZIL", pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))


def find_complaint(folder):
    def run(line):
        return subprocess.run([FRAZIL, *line.split()], cwd=folder, capture_output=True, text=True, timeout=60).stdout

    (folder / "t.json").write_text(trace_of_steps())
    (folder / "c.json").write_text(json.dumps(CLUSTER))
    run("import kineto t.json --micro-batch-size 8 --out m.json")
    planned = run("plan --profile m.json --cluster c.json --batch 32 --out p.json")
    row = planned.splitlines()[1]
    if ">= " not in row:
        return f"the memory of a row is no bound: {row}"
    counted = [line for line in planned.splitlines() if " plans fit on " in line]
    if not counted or " if " not in counted[0]:
        return f"plans fit without a condition: {counted}"
    simulated = run("simulate --plan p.json --profile m.json --cluster c.json")
    if ">= " not in simulated:
        return "simulate tells memory peaks without a sign"
    return ""


with tempfile.TemporaryDirectory() as name:
    complaint = find_complaint(pathlib.Path(name))
print(complaint or "peaks are lower bounds, and plans fit under a condition")
sys.exit(1 if complaint else 0)
