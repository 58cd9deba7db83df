#!/usr/bin/env python3
# zb-v is said to be PyTorch's fixed order, and zb-v-auto offers the authors', by cost, with spans that are far shorter at m = p.
"""Reads the lists of schedules that plan and simulate print. Simulates both orders at the costs of a GPT: with as many micro-batches
as devices, and in the cells whose bubble the authors' scheduler is known to reach. Plans with zb-v-auto and simulates the file."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
UNIT = "--forward 1ms --backward-input 1ms --backward-weight 1ms".split()
GPT = "--forward 1855us --backward-input 1807us --backward-weight 928us --hop 31us".split()
# Devices, micro-batches -> percent of the span that the authors' scheduler leaves idle, at unit costs and at GPT's.
AUTHORS = {(4, 8): (0.0, 7.1), (8, 16): (0.0, 8.9), (8, 32): (0.0, 4.6), (32, 64): (0.0, 10.2)}
ROWS = "".join(f"l{i},{2 + i % 3},{4 + i % 2},65536,1\n" for i in range(8))
CLUSTER = {"format": "frazil.cluster", "version": 1, "hosts": [{"name": "h", "memory_bytes": 1 << 40}],
           "devices": [{"name": f"d{i}", "host": "h", "memory_limit_bytes": 1 << 40} for i in range(4)],
           "default_link": {"latency_ns": 20000, "bandwidth_bytes_per_second": 10**9}}


def run(*words, folder="."):
    done = subprocess.run([FRAZIL, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"frazil {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def simulate(schedule, devices, micro_batches, costs):
    return json.loads(run("simulate", "--stages", str(devices), "--micro-batches", str(micro_batches), "--schedule", schedule,
                          *costs, "--json"))


def look_at_menus(wrong):
    for words in (["plan", "--schedules", "help"], ["simulate", "--schedule", "help"]):
        told = {line.split()[0]: line for line in run(*words).splitlines() if line.strip()}
        if "PyTorch" not in told.get("zb-v", "") or "fixed" not in told["zb-v"]:
            wrong.append(f"{' '.join(words)} does not say that zb-v is PyTorch's fixed order")
        if "authors" not in told.get("zb-v-auto", ""):
            wrong.append(f"{' '.join(words)} does not offer the authors' order")


def compare(devices, micro_batches, costs, wrong):
    """How much shorter the span of zb-v-auto is, in percent; and its idle part, in percent."""
    fixed, by_cost = (simulate(name, devices, micro_batches, costs) for name in ("zb-v", "zb-v-auto"))
    cell = f"{devices} devices, {micro_batches} micro-batches"
    if by_cost["span_ns"] > fixed["span_ns"]:
        wrong.append(f"{cell}: a longer span than zb-v's")
    if max(by_cost["peak_chunks"]) > 2 * devices:
        wrong.append(f"{cell}: holds {max(by_cost['peak_chunks'])} chunks")
    return 100 - 100 * by_cost["span_ns"] / fixed["span_ns"], 100 * by_cost["bubble_span"]


def plan_with_it(wrong):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "layers.csv").write_text("name,forward_ms,backward_ms,activation_bytes,parameter_MiB\n" + ROWS)
        (folder / "cluster.json").write_text(json.dumps(CLUSTER))
        run("import", "csv", "layers.csv", "--micro-batch-size", "1", "--out", "model.json", folder=folder)
        inputs = "--profile model.json --cluster cluster.json".split()
        words = "--batch 4 --micro-batch 1 --max-replicas 1 --json --noise 0 --top 500".split()
        best = {}
        for plan in json.loads(run("plan", *inputs, *words, "--schedules", "zb-v,zb-v-auto", folder=folder))["feasible"]:
            best.setdefault((plan["schedule"], plan["pp"]), plan["makespan_ns"])
        if best.get(("zb-v-auto", 4), 1) >= best.get(("zb-v", 4), 0):
            wrong.append(f"plan has no faster zb-v-auto on four devices: {best}")
        found = json.loads(run("plan", *inputs, *words, "--schedules", "zb-v-auto", "--out", "plan.json", folder=folder))
        simulated = json.loads(run("simulate", "--plan", "plan.json", *inputs, "--json", folder=folder))
        if simulated["makespan_ns"] != found["feasible"][0]["makespan_ns"]:
            wrong.append("the plan's file does not take the planned time")


def main():
    wrong = []
    look_at_menus(wrong)
    if not wrong:
        saved = {p: compare(p, p, GPT, wrong)[0] for p in (2, 4, 8, 16, 32)}
        if saved[2] < 8 or saved[8] < 12 or saved[32] < 12.5:
            wrong.append(f"m = p saves too little of the span: {saved}")
        for (p, m), published in AUTHORS.items():
            for costs, bubble in zip((UNIT, GPT), published):
                found = compare(p, m, costs, wrong)[1]
                if abs(found - bubble) > 0.051:
                    wrong.append(f"{p} devices, {m} micro-batches: {found:.2f} % of the span idle, not {bubble}")
        plan_with_it(wrong)
    for line in wrong:
        print(line)
    if not wrong:
        print("zb-v is said to be PyTorch's fixed order; zb-v-auto's span is shorter by "
              + ", ".join(f"{percent:.1f} % at p = m = {p}" for p, percent in saved.items()))
    return 1 if wrong else 0


sys.exit(main())
