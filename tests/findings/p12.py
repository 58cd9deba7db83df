#!/usr/bin/env python3
# A time line's CSV keeps the order of actions that take no time: every one can be replayed.
"""Simulates random steps with many actions of 0 ns through the verb, reads the order of each device
from the CSV, and replays it by rules of its own: each action starts when the device and its inputs
are ready. A replay must not deadlock, and must give every start and end of the file."""

import csv
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
SEED = int(os.environ.get("SEED", "1"))
CASES = int(os.environ.get("CASES", "300"))
SCHEDULES = ["gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "interleaved", "looped-bfs", "zb-v"]


def replay(rows, stages):
    """Nothing, or what is wrong with the order of the rows."""
    lists, spans = {}, {}
    for device, lane, action, start, end in rows:
        if lane != "compute" or action.endswith("U"):
            continue
        lists.setdefault(device, []).append(action)
        spans[action] = (start, end)
    ends = {}
    free = dict.fromkeys(lists, 0)
    places = dict.fromkeys(lists, 0)

    def inputs(action):
        stage, kind, batch = re.fullmatch(r"(\d+)([FIWB])(\d+)", action).groups()
        stage = int(stage)
        if kind == "F":
            return [f"{stage - 1}F{batch}"] if stage > 0 else []
        if kind == "W" and f"{stage}I{batch}" in spans:
            return [f"{stage}I{batch}"]
        needs = [f"{stage}F{batch}"]
        if stage + 1 < stages:
            needs.append(next(name for name in (f"{stage + 1}I{batch}", f"{stage + 1}B{batch}")
                              if name in spans))
        return needs

    moved = True
    while moved:
        moved = False
        for device, actions in lists.items():
            while places[device] < len(actions):
                action = actions[places[device]]
                needs = inputs(action)
                if any(need not in ends for need in needs):
                    break
                start = max([free[device]] + [ends[need] for need in needs])
                end = start + spans[action][1] - spans[action][0]
                if (start, end) != spans[action]:
                    return f"{action} at {start} instead of {spans[action][0]}"
                ends[action] = free[device] = end
                places[device] += 1
                moved = True
    stuck = [actions[places[device]] for device, actions in lists.items()
             if places[device] < len(actions)]
    return "stuck at " + ", ".join(stuck) if stuck else None


def main():
    draw = random.Random(SEED)
    wrong, refused = [], 0
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name) / "t.csv"
        for case in range(CASES):
            schedule = draw.choice(SCHEDULES)
            devices, batches = draw.randint(2, 4), draw.choice([4, 6, 8, 12])
            chunks = 2 if schedule in ("interleaved", "looped-bfs") else 1
            words = ["--stages", str(devices), "--micro-batches", str(batches), "--schedule", schedule]
            if chunks > 1:
                words += ["--chunks", str(chunks)]
            for flag in ("forward", "backward-input", "backward-weight"):
                words += [f"--{flag}", f"{draw.choice([0, 0, 0, 1, 2, 5])}us"]
            done = subprocess.run([FRAZIL, "simulate", *words, "--out", str(out)],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                refused += 1
                continue
            lines = list(csv.reader(out.read_text().splitlines()[2:]))
            rows = [(int(d), lane, action, int(start), int(end))
                    for d, lane, _, action, start, end in lines]
            stages = 1 + max(int(re.match(r"\d+", action)[0]) for _, lane, action, _, _ in rows
                             if lane == "compute")
            complaint = replay(rows, stages)
            if complaint:
                wrong.append(f"case {case} of seed {SEED} ({' '.join(words)}): {complaint}")
    seen = CASES - refused
    if wrong:
        print(f"{len(wrong)} of {seen} time lines cannot be replayed, as {wrong[0]}")
        return 1
    if seen < CASES // 2:
        print(f"only {seen} of {CASES} steps of seed {SEED} could be simulated")
        return 1
    print(f"{seen} of {seen} time lines of seed {SEED} are replayed from their CSV")
    return 0


sys.exit(main())
