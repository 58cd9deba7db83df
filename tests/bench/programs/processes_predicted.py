#!/usr/bin/env python3
"""How well a step over two processes is predicted from a profile of one.

A round, all in one moment of the machine, between two profiles, of which the second is the first one of the next
round:

    frazil profile --probe-links      layers, overheads, links and commit rounds
    frazil train --procs 2 and 1      in an order drawn anew, the same plans, nothing frozen
    frazil simulate --procs 2         the step of each plan over two processes, and --procs 1

The prediction is the mean of those by the two profiles, since machines drift. Reported per plan and number of processes: predicted / measured of the median step, the median over the
rounds with its range, and how many cores other programs kept busy (`others`). One process stands beside
two: what both are off by is not the processes'. The aim is 4 % over two processes.

    tests/bench/programs/processes_predicted.py [--run FILE] [--rounds N] [--steps N] [--bin FOLDER]

Prints a table; --json prints one object with every ratio.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parents[3]
AIM = 0.04
SKIPPED = 10  # first steps: new executors, cold caches
# Flags of frazil plan that lead to the plan.
PLANS = {"two stages": ["--max-replicas", "1"], "two replicas": ["--max-stages", "1"]}


def call(*words):
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr}")
    return done.stdout


def profile(arguments, folder):
    folder.mkdir()
    call(arguments.frazil, "profile", "--run", arguments.run, "--devices", "2", "--probe-links",
         "--rounds", arguments.profile_rounds, "--out", folder / "model.json", "--cluster-out",
         folder / "cluster.json", "--quiet")


def files(folder):
    return ["--profile", folder / "model.json", "--cluster", folder / "cluster.json"]


def make_plan(arguments, folder, name):
    run = json.loads(arguments.run.read_text())
    plan = folder / f"{name.replace(' ', '-')}.json"
    call(arguments.frazil, "plan", *files(folder), "--batch", run["batch_size"], "--micro-batch",
         run["micro_batch_size"], "--schedules", "1f1b", *PLANS[name], "--out", plan)
    return plan


def predict(arguments, folder, plan, processes):
    answer = json.loads(call(arguments.frazil, "simulate", "--plan", plan, *files(folder), "--procs",
                             processes, "--json"))
    return answer["makespan_ns"]


def measure(arguments, folder, plan, processes):
    """Returns the median step of a run in ns, and the cores that other programs kept busy."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        call(arguments.frazil, "train", "--run", arguments.run, *files(folder), "--plan", plan,
             "--procs", processes, "--keep-plan", "--no-freeze", "--steps", arguments.steps, "--out",
             pathlib.Path(out) / "run", "--quiet")
        events = [json.loads(line) for line in
                  (pathlib.Path(out) / "run" / "events.jsonl").read_text().splitlines()]
        trace = json.loads((pathlib.Path(out) / "run" / "trace.jsonl").read_text().splitlines()[0])
    times = [event["time_ns"] for event in events if event.get("kind") == "step"]
    others = trace.get("provenance", {}).get("foreign_cores")
    return statistics.median(times[SKIPPED:]), float(others) if others else 0.0


def measure_round(arguments, before, after, ratios, others):
    """Takes its steps between the profiles in the folders `before`, which is there, and `after`, which it makes."""
    made = {plan: make_plan(arguments, before, plan) for plan in PLANS}
    cases = [(plan, processes) for plan in PLANS for processes in (2, 1)]
    random.shuffle(cases)
    measured = {}
    for plan, processes in cases:
        measured[plan, processes], busy = measure(arguments, before, made[plan], processes)
        others[plan, processes].append(busy)
    profile(arguments, after)
    for plan, processes in cases:
        predicted = statistics.mean(predict(arguments, folder, made[plan], processes) for folder in (before, after))
        ratios[plan, processes].append(predicted / measured[plan, processes])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--run", type=pathlib.Path, default=HERE / "exec/runs/digits.json")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--profile-rounds", type=int, default=12)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE / "build/bin")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.frazil = arguments.bin / "frazil"
    keys = [(plan, processes) for plan in PLANS for processes in (2, 1)]
    ratios = {key: [] for key in keys}
    others = {key: [] for key in keys}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        profile(arguments, folder / "0")
        for done in range(arguments.rounds):
            measure_round(arguments, folder / str(done), folder / str(done + 1), ratios, others)
            print(f"round {done + 1} of {arguments.rounds}", file=sys.stderr)
    if arguments.json:
        print(json.dumps([{"plan": plan, "processes": processes, "predicted_over_measured": values,
                           "others": others[plan, processes]}
                          for (plan, processes), values in ratios.items()]))
        return
    for (plan, processes), values in ratios.items():
        middle = statistics.median(values)
        told = "" if processes == 1 else "  within" if abs(middle - 1) <= AIM else "  not within"
        aim = "" if processes == 1 else f" {100 * AIM:.0f} %"
        print(f"{plan:13} {processes} process{'es' if processes > 1 else '  '}  predicted / measured "
              f"{middle:.3f} ({min(values):.3f} to {max(values):.3f}), others "
              f"{statistics.mean(others[plan, processes]):.2f}{told}{aim}")


if __name__ == "__main__":
    main()
