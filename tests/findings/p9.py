#!/usr/bin/env python3
# The bound of a schedule is said to be one over the orders on its stages, and beside it stands what any plan takes.
"""Eight unequal devices and 32 micro-batches: zb-v lies below the bound of 1f1b, and no schedule below that of any plan."""

import json
import os
import pathlib
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
TIMES = {"--forward": "2.1,1.7,1.9,2.0,2.2,1.6,1.8,2.0", "--backward-input": "2.0,1.8,2.0,1.9,2.1,1.7,1.9,2.0",
         "--backward-weight": "1.9,1.6,2.1,1.8,2.3,1.5,1.7,1.9"}


def simulate(schedule, *more):
    words = ["simulate", "--stages", "8", "--micro-batches", "32", "--schedule", schedule, *more]
    for flag, times in TIMES.items():
        words += [flag, ",".join(time + "ms" for time in times.split(","))]
    done = subprocess.run([FRAZIL, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"simulate {schedule} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def main():
    answers = {name: json.loads(simulate(name, "--json")) for name in ("1f1b", "gpipe", "zb-h1", "zb-v", "interleaved-1f1b")}
    wrong = []
    fastest = min(answer["makespan_ns"] for answer in answers.values())
    if fastest >= answers["1f1b"]["lower_bound_makespan_ns"]:
        raise SystemExit("the case shows nothing: no schedule lies below the bound of 1f1b")
    for name, answer in answers.items():
        if answer.get("any_plan_at_least_ns", fastest + 1) > fastest:
            wrong.append(f"{name}: no bound on any plan, or one above {fastest} ns, which a plan takes")
    lines = simulate("1f1b").splitlines()
    if not any(line.startswith("lower bound") and "of any order on these stages" in line for line in lines):
        wrong.append("the bound of 1f1b does not say which orders it is over")
    if not any(line.startswith("any plan") for line in lines):
        wrong.append("no line tells what any plan takes")
    for line in wrong:
        print(line)
    if not wrong:
        print(f"1f1b takes {answers['1f1b']['lower_bound_makespan_ns']} ns or more on its stages, any plan "
              f"{answers['1f1b']['any_plan_at_least_ns']}; the fastest of five takes {fastest}")
    return 1 if wrong else 0


sys.exit(main())
