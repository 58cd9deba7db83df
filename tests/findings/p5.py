#!/usr/bin/env python3
# An imported PyTorch schedule that lists the I of stage 0 waits there for the gradient, as
# PyTorch's runtime does.
"""Compute-only schedules of three stages with I and W apart on stage 0, in random orders and at
random costs, are imported and simulated through the verbs, and by an oracle here: an action starts
when its rank and its inputs are ready; the I of stage 0 takes no time, its W the measured W."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
SEED = int(os.environ.get("SEED", "1"))
STAGES, BATCHES, DRAWS = 3, 4, 8


def order_of(draw, warm_up):
    """F, I and W of a stage: each I in order once `warm_up` more F have begun, W anywhere later."""
    actions, forwards, inputs, weights = [], 0, 0, []
    while len(actions) < 3 * BATCHES:
        choices = []
        if forwards < BATCHES and forwards <= inputs + warm_up:
            choices.append("F")
        if inputs < forwards and (forwards > inputs + warm_up or forwards == BATCHES):
            choices.append("I")
        if weights:
            choices.append("W")
        kind = draw.choice(choices)
        if kind == "F":
            actions.append(("F", forwards))
            forwards += 1
        elif kind == "I":
            actions.append(("I", inputs))
            weights.append(inputs)
            inputs += 1
        else:
            actions.append(("W", weights.pop(0)))
    return actions


def oracle(rows, cost):
    ends, free, places = {}, [0] * STAGES, [0] * STAGES
    while any(places[s] < len(rows[s]) for s in range(STAGES)):
        moved = False
        for s in range(STAGES):
            while places[s] < len(rows[s]):
                kind, m = rows[s][places[s]]
                if kind == "F":
                    needs = [(s - 1, "F", m)] if s > 0 else []
                elif kind == "I":
                    needs = [(s, "F", m)] + ([(s + 1, "I", m)] if s + 1 < STAGES else [])
                else:
                    needs = [(s, "I", m)]
                if any(need not in ends for need in needs):
                    break
                start = max([free[s]] + [ends[need] for need in needs])
                took = 0 if (s, kind) == (0, "I") else cost[s][kind]
                ends[s, kind, m] = free[s] = start + took
                places[s] += 1
                moved = True
        if not moved:
            raise SystemExit("the drawn schedule deadlocks")
    return 1000 * max(free)


def main():
    draw = random.Random(SEED)
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*words):
            done = subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"frazil {' '.join(words)}: {done.stderr}")
            return done.stdout

        setting = ["--profile", "m.json", "--cluster", "cluster.json"]
        (folder / "cluster.json").write_text(json.dumps(
            {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "h", "memory_bytes": 0}],
             "devices": [{"name": f"d{i}", "host": "h", "memory_limit_bytes": 2**30}
                         for i in range(STAGES)],
             "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": 10**18}}))
        for number in range(DRAWS):
            cost = [{kind: draw.randint(1, 9) for kind in "FIW"} for _ in range(STAGES)]
            rows = [order_of(draw, STAGES - 1 - s) for s in range(STAGES)]
            (folder / "layers.csv").write_text(
                "name,forward_us,backward_input_us,backward_weight_us,activation_bytes,parameter_bytes\n"
                + "".join(f"l{s},{cost[s]['F']},{cost[s]['I']},{cost[s]['W']},0,64\n"
                          for s in range(STAGES)))
            (folder / "s.csv").write_text("".join(
                ",".join(f"{s}{kind}{m}" for kind, m in rows[s]) + "\n" for s in range(STAGES)))
            run("import", "csv", "layers.csv", "--micro-batch-size", "1", "--out", "m.json")
            run("plan", *setting, "--batch", str(BATCHES), "--micro-batch", "1", "--schedules", "gpipe",
                "--max-replicas", "1", "--no-recompute", "--out", "plan.json")
            plan = json.loads((folder / "plan.json").read_text())
            stage = plan["pipelines"][0]["stages"][0]
            plan["pipelines"][0]["stages"] = [dict(stage, layers=[[s, s]], devices=[s])
                                              for s in range(STAGES)]
            (folder / "plan.json").write_text(json.dumps(plan))
            run("import", "pytorch-csv", "s.csv", "--plan", "plan.json", *setting, "--out", "again.json")
            seen = json.loads(run("simulate", "--plan", "again.json", *setting, "--json"))["makespan_ns"]
            expected = oracle(rows, cost)
            if seen != expected:
                wrong.append(f"draw {number} of seed {SEED}: {seen} ns, by PyTorch's rule {expected}")
    if wrong:
        print(f"{len(wrong)} of {DRAWS} schedules do not wait at the I of stage 0: {wrong[0]}")
        return 1
    print(f"{DRAWS} of {DRAWS} schedules of seed {SEED} take PyTorch's time")
    return 0


sys.exit(main())
