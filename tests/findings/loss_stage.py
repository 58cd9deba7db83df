#!/usr/bin/env python3
# A plan that gives the loss a stage of its own is refused for PyTorch and torchtitan with the remedy, and the remedy works.
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FRAZIL = os.path.abspath(os.environ.get("FRAZIL", pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))
TABLE = "name,forward_ms,backward_ms,activation_KiB,parameter_KiB\n" + "".join(
    f"layer:layers.{i},0.9,1.8,16,2058\n" for i in range(2)) + "layer:loss,0.9,1.8,1,0\n"
CLUSTER = {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "h", "memory_bytes": 0}],
           "devices": [{"name": f"d{i}", "host": "h", "memory_limit_bytes": 2**30} for i in range(3)],
           "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": 10**12}}
FILES = ["--profile", "m.json", "--cluster", "c.json"]


def find_complaint(folder):
    def run(*words):
        return subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True, timeout=60)

    def plan(*more):
        run("import", "csv", "l.csv", "--micro-batch-size", "4", "--out", "m.json", *more)
        return run("plan", *FILES, "--batch", "32", "--micro-batch", "4", "--max-replicas", "1", "--schedules", "zb-h1", "--no-recompute",
                   "--out", "p.json")

    (folder / "l.csv").write_text(TABLE)
    (folder / "c.json").write_text(json.dumps(CLUSTER))
    plan()
    if json.loads((folder / "p.json").read_text())["pipelines"][0]["stages"][-1]["layers"] != [[2, 2]]:
        return "the plan has no stage of the loss alone"
    for form in ("pytorch-csv", "torchtitan"):
        done = run("export", "--to", form, "--out", "x", "--plan", "p.json", *FILES)
        if done.returncode != 3 or "--join-loss" not in done.stderr:
            return f"export --to {form} exits with {done.returncode}: {done.stderr.strip()}"
    done = plan("--join-loss")
    if done.returncode:
        return f"with --join-loss plan exits with {done.returncode}: {done.stderr.strip()}"
    for form in ("pytorch-csv", "torchtitan"):
        done = run("export", "--to", form, "--out", "x", "--plan", "p.json", *FILES)
        if done.returncode:
            return f"with --join-loss export --to {form} exits with {done.returncode}: {done.stderr.strip()}"
    return ""


with tempfile.TemporaryDirectory() as name:
    complaint = find_complaint(pathlib.Path(name))
print(complaint or "both refusals name --join-loss, and with it both exports are written")
sys.exit(1 if complaint else 0)
