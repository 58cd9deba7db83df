#!/usr/bin/env python3
# The prediction of a measured plan that no fit has seen is no worse than that of a naive loop with three constants, on the
# same plans under the same protocol, whether plans are left out one by one or by the number of their devices.
"""Runs `frazil reproduce sailor` on Sailor's public folder (SAILOR_DATA, else data/sailor of the shared folder beside the tree),
and on a made-up set whose times are those of the loop, with noise: there the loop has to be found. Errors are computed once more
from the plans in the answer."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
DATA = pathlib.Path(os.environ.get("SAILOR_DATA", TREE.parent / "shared/data/sailor"))
SEED = int(os.environ.get("SEED", "17"))


def reproduce(folder):
    done = subprocess.run([FRAZIL, "reproduce", "sailor", "--data", str(folder), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def make_times_of_a_loop(folder, draw):
    """Sets the measured times to 1.1 x (M + S - 1) x the slowest stage + 2 ms a message + 50 ms a step, with 2 % of noise."""
    times = json.loads(next(folder.glob("layer_profiles/*/*/profile.json")).read_text())
    for file in folder.glob("validation/**/*.json"):
        plan = json.loads(file.read_text())
        pipeline = plan["pipeline_list"][0]
        degree = pipeline["tmp_per_stage"][0][0][1]
        rows = times[str(plan["mbs"])][str(degree)]
        slowest = max(sum(sum(rows[str(layer)][:2]) for layer in stage) for stage in pipeline["layers_per_stage"])
        stages = pipeline["num_stages"]
        turns = plan["gbs"] // (plan["mbs"] * pipeline["dp"][0]) + stages - 1
        seconds = 1.1 * turns * slowest + (0.004 * turns if stages > 1 else 0) + 0.05
        plan["real"] = round(seconds * draw.uniform(0.98, 1.02), 6)
        plan.pop("red_grads", None)
        file.write_text(json.dumps(plan))


def judge(title, answer, wrong, expected=None):
    plans = answer["plans"]
    mean = sum(abs(plan["leave_one_out_ns"] / plan["measured_ns"] - 1) for plan in plans) / len(plans)
    loop = next(form for form in answer["forms"] if form["form"] == "plain loop")
    for protocol, own in (("leave_one_out", mean), ("leave_size_out", answer["absolute_error"]["leave_size_out"]["mean"])):
        theirs = loop[protocol]["mean"]
        print(f"{title}, {protocol}: {100 * own:.2f} %, the loop {100 * theirs:.2f} %")
        if own > theirs + 0.0005:
            wrong.append(f"{title}, {protocol}: {100 * own:.2f} %, the loop {100 * theirs:.2f} %")
    forms = [plan["form"] for plan in plans]
    if expected and forms.count(expected) < len(forms):
        wrong.append(f"{title}: the forms are {sorted(set(forms))}, expected {expected} alone")


def main():
    if not DATA.is_dir():
        print(f"{DATA} is absent")
        return 77
    wrong = []
    judge("OPT-350M as measured", reproduce(DATA), wrong)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "sailor"
        shutil.copytree(DATA, folder, copy_function=shutil.copyfile)
        make_times_of_a_loop(folder, random.Random(SEED))
        judge(f"times of a loop (seed {SEED})", reproduce(folder), wrong, "plain loop")
    if wrong:
        print("; ".join(wrong[:5]))
        return 1
    return 0


sys.exit(main())
