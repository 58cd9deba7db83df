#!/usr/bin/env python3
# plan --planner pipedream finds PipeDream's published bottlenecks, of models with unread __getitem__ too, and says what it
# leaves out.
"""Imports PipeDream's public graphs (folder PIPEDREAM_GRAPHS, else data/pipedream of the shared folder beside the tree) through
the verb, plans them as PipeDream does, and compares its bottleneck with what its released optimizer printed. The plan's file is
simulated, and its bottleneck is computed once more from its stages and the graph's file."""

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
GRAPHS = pathlib.Path(os.environ.get("PIPEDREAM_GRAPHS", TREE.parent / "shared/data/pipedream"))
BANDWIDTH = 10**9
# Model, devices, seconds as the released optimizer prints them.
PUBLISHED = [("gnmt", 4, "0.025868"), ("gnmt", 8, "0.019285"), ("gnmt", 16, "0.019285"), ("gnmt_large", 16, "0.058971"),
             ("vgg16", 4, "0.205521"), ("vgg16", 16, "0.056530"), ("resnet50", 8, "0.092012"), ("alexnet", 4, "0.034217")]
MOST_CPU_SECONDS = 60


def run(folder, *words):
    done = subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"frazil {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def seconds(text, key):
    return sum(float(number) for number in re.findall(r"[0-9.e+]+", re.search(key + r"=([^,]*)", text).group(1))) / 1e3


def compute_of_stages(graph, profile, plan):
    """The longest compute of a stage by one of its devices, from the file's times."""
    times = {}
    for line in graph.read_text().splitlines():
        if not line.startswith("\t") and " -- " in line:
            times[line.split(" -- ")[0]] = seconds(line, "forward_compute_time") + seconds(line, "backward_compute_time")
    longest = 0
    for stage in plan["pipelines"][0]["stages"]:
        layers = [layer for first, last in stage["layers"] for layer in range(first, last + 1)]
        compute = sum(times[profile["layers"][layer]["name"].split(" ")[0]] for layer in layers)
        longest = max(longest, compute / len(stage["devices"]))
    return longest


def main():
    if not GRAPHS.is_dir():
        print(f"{GRAPHS} is absent")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model, devices, published in PUBLISHED:
            what = f"{model} on {devices}"
            graph = GRAPHS / f"{model}.graph.txt"
            (folder / "cluster.json").write_text(json.dumps(
                {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "h", "memory_bytes": 0}],
                 "devices": [{"name": f"d{i}", "host": "h", "memory_limit_bytes": 1 << 44} for i in range(devices)],
                 "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": BANDWIDTH}}))
            run(folder, "import", "pipedream", str(graph), "--out", "model.json")
            words = ["plan", "--profile", "model.json", "--cluster", "cluster.json", "--batch", str(4 * devices),
                     "--micro-batch", "1", "--planner", "pipedream", "--out", "plan.json"]
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            try:
                answer = json.loads(run(folder, *words, "--json"))
            except SystemExit as refused:
                wrong.append(f"{what}: {refused}")
                continue
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            if used > MOST_CPU_SECONDS:
                wrong.append(f"{what}: {used:.1f} CPU s")
            found = f"{answer.get('bottleneck_ns', 0) / 1e9:.6f}"
            if found != published:
                wrong.append(f"{what}: {found} s, published {published} s")
            profile = json.loads((folder / "model.json").read_text())
            plan = json.loads((folder / "plan.json").read_text())
            compute = compute_of_stages(graph, profile, plan)
            if compute > float(published) + 1e-6:
                wrong.append(f"{what}: a stage of the plan takes {compute:.6f} s, published {published} s")
            run(folder, "simulate", "--plan", "plan.json", "--profile", "model.json", "--cluster", "cluster.json")
            print(f"{what}: {found} s (published {published} s), {used:.2f} CPU s")
            if model == "gnmt" and devices == 4:
                told = run(folder, *words)
                if published not in told or "__getitem__" not in told:
                    wrong.append("the answer does not name the bottleneck and what is left out")
    if wrong:
        print("; ".join(wrong[:6]))
        return 1
    return 0


sys.exit(main())
