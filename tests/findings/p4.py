#!/usr/bin/env python3
# plan proposes stages on several devices: of PipeDream's public graphs its plan is never slower than PipeDream's, which has
# such stages, and the bound beside it is one over the space that it names.
"""Imports vgg16 and alexnet (folder PIPEDREAM_GRAPHS, else data/pipedream of the shared folder beside the tree), plans them on 4
and 16 devices as `plan` and as `--planner pipedream` do, on one host and on several, and simulates both plans from their files.
Then plans uneven chains of its own, and prints the CPU time that plans take."""

import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
GRAPHS = pathlib.Path(os.environ.get("PIPEDREAM_GRAPHS", TREE.parent / "shared/data/pipedream"))
SEED = int(os.environ.get("SEED", "4"))
MOST_CPU_SECONDS = 1.5  # of one plan, on a machine that is busy


def run(folder, *words, codes=(0,)):
    done = subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode not in codes:
        raise SystemExit(f"frazil {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def write_cluster(folder, devices, per_host, memory=1 << 44):
    hosts = devices // per_host
    (folder / "cluster.json").write_text(json.dumps(
        {"format": "frazil.cluster", "version": 1, "hosts": [{"name": f"h{i}", "memory_bytes": 0} for i in range(hosts)],
         "devices": [{"name": f"d{i}", "host": f"h{i // per_host}", "memory_limit_bytes": memory} for i in range(devices)],
         "default_link": {"latency_ns": 0, "bandwidth_bytes_per_second": 10**9}}))


def simulate(folder, plan):
    return json.loads(run(folder, "simulate", "--plan", plan, "--profile", "model.json", "--cluster", "cluster.json",
                          "--json"))["makespan_ns"]


def plan(folder, batch, size, wrong, what):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    answer = json.loads(run(folder, "plan", "--profile", "model.json", "--cluster", "cluster.json", "--batch", str(batch),
                            "--micro-batch", size, "--json", "--out", "plan.json"))
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if used > MOST_CPU_SECONDS:
        wrong.append(f"{what}: {used:.2f} CPU s")
    best = answer["feasible"][0]
    if simulate(folder, "plan.json") != best["makespan_ns"]:
        wrong.append(f"{what}: simulate takes another time than plan says")
    if "stage_devices" in best and answer["proven"]:
        wrong.append(f"{what}: says that a plan outside of the searched space is proven")
    for candidate in answer["feasible"]:
        if "stage_devices" not in candidate and candidate["makespan_ns"] < answer["at_least_ns"]:
            wrong.append(f"{what}: a plan of the space takes less than its bound")
    return best, used


def compare_with_pipedream(folder, wrong):
    for model in ("vgg16", "alexnet"):
        run(folder, "import", "pipedream", str(GRAPHS / f"{model}.graph.txt"), "--micro-batch-size", "64", "--out", "model.json")
        for devices, per_host in ((4, 4), (16, 16), (16, 4)):
            for micro_batches in (devices, 4 * devices):
                what = f"{model} on {devices} devices, {per_host} a host, {micro_batches} micro-batches"
                write_cluster(folder, devices, per_host)
                batch = 64 * micro_batches
                best, used = plan(folder, batch, "64", wrong, what)
                run(folder, "plan", "--profile", "model.json", "--cluster", "cluster.json", "--batch", str(batch),
                    "--micro-batch", "64", "--planner", "pipedream", "--out", "pipedream.json")
                theirs = simulate(folder, "pipedream.json")
                print(f"{what}: {best['makespan_ns'] / 1e6:.3f} ms on {best.get('stage_devices', 'one device a stage')}, "
                      f"PipeDream's {theirs / 1e6:.3f} ms, {used:.2f} CPU s")
                if best["makespan_ns"] > theirs:
                    wrong.append(f"{what}: {best['makespan_ns']} ns, PipeDream's plan takes {theirs} ns")


def plan_uneven_chains(folder, wrong):
    """A first layer with most of the work and a last one with most of the parameters ask for shared stages."""
    draw = random.Random(SEED)
    shared = 0
    for case in range(12):
        work = draw.randint(20, 60)
        rows = [("head", work, 2 * work, 1)] + [(f"l{i}", draw.randint(1, 4), draw.randint(2, 8), 1) for i in range(draw.randint(1, 4))]
        rows.append(("tail", 2, 4, draw.randint(400, 900)))
        (folder / "layers.csv").write_text("name,forward_ms,backward_ms,activation_bytes,parameter_MiB\n" + "".join(
            f"{name},{f},{b},1000,{p}\n" for name, f, b, p in rows))
        run(folder, "import", "csv", "layers.csv", "--micro-batch-size", "1", "--out", "model.json")
        write_cluster(folder, draw.choice([4, 5, 8]), 1)
        best, _ = plan(folder, draw.choice([12, 24]), "1", wrong, f"chain {case} of seed {SEED}")
        shared += "stage_devices" in best
    print(f"{shared} of 12 uneven chains (seed {SEED}) have a stage on several devices")
    if shared == 0:
        wrong.append("no uneven chain has a stage on several devices")


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plan_uneven_chains(folder, wrong)
        if GRAPHS.is_dir():
            compare_with_pipedream(folder, wrong)
    if wrong:
        print("; ".join(wrong[:6]))
        return 1
    if not GRAPHS.is_dir():
        print(f"{GRAPHS} is absent")
        return 77
    return 0


sys.exit(main())
