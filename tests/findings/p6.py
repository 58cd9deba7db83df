#!/usr/bin/env python3
# A schedule that was exported as PyTorch's CSV and is imported again with its plan keeps the
# plan's devices, and so its time.
"""Plans with stages on unequal devices in every order go out and in through the verbs. PyTorch's file
has ranks and no devices; ranks are numbered by stages, so the plan beside it tells their devices."""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
LAYERS = ("name,forward_us,backward_input_us,backward_weight_us,activation_bytes,parameter_bytes\n"
          "a,100,100,100,1000000,64\nb,200,200,200,2000000,64\nc,300,300,300,500000,64\n"
          "d,150,100,100,1000000,64\n")


def cluster():
    names = [f"d{i}" for i in range(4)]
    links = [{"from": i, "to": j, "latency_ns": 0,
              "bandwidth_bytes_per_second": 10**9 * (1 + 3 * i + 7 * j)}
             for i in range(4) for j in range(4) if i != j]
    return {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "h", "memory_bytes": 0}],
            "devices": [{"name": n, "host": "h", "memory_limit_bytes": 2**30} for n in names],
            "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": 10**9}, "links": links}


def main():
    wrong, cases = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*words):
            done = subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"frazil {' '.join(words)}: {done.stderr}")
            return done.stdout

        def time_of(plan):
            return json.loads(run("simulate", "--plan", plan, *setting, "--json"))["makespan_ns"]

        setting = ["--profile", "m.json", "--cluster", "cluster.json"]
        (folder / "layers.csv").write_text(LAYERS)
        (folder / "cluster.json").write_text(json.dumps(cluster()))
        run("import", "csv", "layers.csv", "--micro-batch-size", "1", "--out", "m.json")
        run("plan", *setting, "--batch", "6", "--micro-batch", "1", "--schedules", "1f1b",
            "--max-replicas", "1", "--max-stages", "3", "--no-recompute", "--top", "1", "--out", "best.json")
        best = json.loads((folder / "best.json").read_text())
        stages = len(best["pipelines"][0]["stages"])
        for devices in itertools.permutations(range(4), stages):
            for comms in ([], ["--comms"]):
                plan = json.loads(json.dumps(best))
                for stage, device in zip(plan["pipelines"][0]["stages"], devices):
                    stage["devices"] = [device]
                (folder / "plan.json").write_text(json.dumps(plan))
                run("export", "--to", "pytorch-csv", *comms, "--plan", "plan.json", *setting, "--out",
                    "s.csv")
                run("import", "pytorch-csv", "s.csv", "--plan", "plan.json", *setting, "--out",
                    "again.json")
                again = json.loads((folder / "again.json").read_text())
                kept = [stage["devices"] for stage in again["pipelines"][0]["stages"]]
                cases += 1
                if kept != [[device] for device in devices]:
                    wrong.append(f"stages on {list(devices)} come back on {kept}")
                elif time_of("again.json") != time_of("plan.json"):
                    wrong.append(f"stages on {list(devices)} take another time")
    if wrong:
        print(f"{len(wrong)} of {cases} plans change on their way, as {wrong[0]}")
        return 1
    print(f"{cases} of {cases} plans of {stages} stages keep devices and time")
    return 0


sys.exit(main())
