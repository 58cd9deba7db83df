#!/usr/bin/env python3
# Imported memory counts the optimizer's state and measured activations; what is a bound, a rule
# or a default stands in the profile, and plan and simulate repeat it: a plan "fits if ...".
"""Imports small traces with and without recorded memory through the verbs."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from kineto_steps import CLUSTER, KEPT, PARAMETERS, trace_of_steps  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))


def main():
    wrong = []

    def check(holds, what):
        if not holds:
            wrong.append(what)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*words):
            done = subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True)
            return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}"

        def imported(trace, *more):
            (folder / "trace.json").write_text(trace)
            (folder / "m.json").unlink(missing_ok=True)
            run("import", "kineto", "trace.json", "--out", "m.json", "--micro-batch-size", "8", *more)
            if not (folder / "m.json").exists():
                return {"layers": [], "doubts": []}
            return json.loads((folder / "m.json").read_text())

        def states(profile):
            return [layer.get("optimizer_state_bytes") for layer in profile["layers"]]

        def stashes(profile):
            return [layer["costs"][0]["stash_bytes"] for layer in profile["layers"]]

        def doubted(profile):
            return {doubt["fact"]: doubt["kind"] for doubt in profile.get("doubts", [])}

        (folder / "cluster.json").write_text(json.dumps(CLUSTER))
        whole = imported(trace_of_steps(shapes=True, memory=True))
        check(states(whole) == [2 * PARAMETERS] * 2, f"AdamW's state is {states(whole)}")
        check(stashes(whole) == KEPT, f"measured activations {KEPT} are read as {stashes(whole)}")
        check("stash_bytes" not in doubted(whole), "measured activations are in doubt")
        for optimizer, tensors in (("adam", 2), ("sgd-momentum", 1), ("sgd", 0)):
            named = imported(trace_of_steps(shapes=True, memory=True), "--optimizer", optimizer)
            check(states(named) == [tensors * PARAMETERS] * 2,
                  f"--optimizer {optimizer} gives {states(named)}")
            check(not doubted(named), f"with --optimizer {optimizer} in doubt: {doubted(named)}")
        plain = imported(trace_of_steps(shapes=True, optimizer="SGD"))
        check(doubted(plain) == {"optimizer_state_bytes": "lower-bound", "stash_bytes": "lower-bound"},
              f"of a trace without memory in doubt: {doubted(plain)}")
        words = ["--profile", "m.json", "--cluster", "cluster.json"]
        plan = run("plan", *words, "--batch", "16", "--out", "plan.json")
        condition = "if optimizer state and saved activations take no more than the profile says"
        check(f"fit {condition}" in plan, "plan does not say `fit if`")
        check("note: saved activations are a lower bound" in plan, "plan repeats no doubt")
        simulated = run("simulate", "--plan", "plan.json", *words)
        check(f"fits {condition}" in simulated, "simulate does not say `fits if`")
        for verb, answer in (("plan", run("plan", *words, "--batch", "16", "--json")),
                             ("simulate", run("simulate", "--plan", "plan.json", *words, "--json"))):
            told = json.loads(answer) if answer.startswith("{") else {}
            check(len(told.get("doubts", [])) == 2 and "fits_if" in told,
                  f"the JSON of {verb} has no doubts")
        page = run("export", "--to", "html", "--plan", "plan.json", *words, "--out", "step.html")
        check((folder / "step.html").exists()
              and "a lower bound" in (folder / "step.html").read_text(),
              f"a picture's page repeats no doubt {page[:60]}")
        (folder / "old.json").write_text(json.dumps(
            {key: value for key, value in plain.items() if key != "doubts"}))
        old = run("plan", "--profile", "old.json", "--cluster", "cluster.json", "--batch", "16")
        check("fit" in old and "fit if" not in old, "a profile without doubts is not read as before")
    if wrong:
        print("; ".join(wrong))
        return 1
    print("optimizer state and measured activations are imported; plan, simulate and pictures "
          "repeat what is in doubt")
    return 0


sys.exit(main())
