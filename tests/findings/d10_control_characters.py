#!/usr/bin/env python3
# No control character of a name (device, layer, model, plan, subcommand, file) reaches the terminal, in text or in JSON.
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FRAZIL = os.environ.get("FRAZIL", str(pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))
EVIL = "\x1b[31m\u009b7m\x07\x7f"
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def run(folder, *arguments):
    return subprocess.run([FRAZIL, *arguments], cwd=folder, capture_output=True, encoding="utf-8", timeout=60)


def write_inputs(folder):
    (folder / "layers.csv").write_text("name,forward_ms,backward_ms,activation_bytes,parameter_bytes\na,1,2,8,8\nb,1,2,8,8\n")
    made = run(folder, *"import csv layers.csv --out model.json".split())
    if made.returncode:
        sys.exit(f"import csv exits {made.returncode}: {made.stderr.strip()}")
    model = json.loads((folder / "model.json").read_text())
    model["layers"][0]["name"] += EVIL
    model["blocks"][0] += EVIL
    model["model"] += EVIL
    (folder / "model.json").write_text(json.dumps(model))
    devices = [{"name": name + EVIL, "host": "h" + EVIL, "memory_limit_bytes": 1 << 30} for name in ("d0", "d1")]
    cluster = {"format": "frazil.cluster", "version": 1, "devices": devices,
               "hosts": [{"name": "h" + EVIL, "memory_bytes": 1 << 30}]}
    (folder / "cluster.json").write_text(json.dumps(cluster))
    for device in devices:
        device["memory_limit_bytes"] = 1
    (folder / "small.json").write_text(json.dumps(cluster))


def main():
    files = ["--profile", "model.json", "--cluster", "cluster.json"]
    plan = ["plan", *files, "--batch", "4"]
    simulate = ["simulate", "--plan", "plan.json", *files]
    commands = [
        [*plan, "--explain", "--out", "plan.json"], [*plan, "--explain", "--json"], [*plan, "--planner", "uniform"],
        [*plan[:3], "--cluster", "small.json", "--batch", "4", "--explain"],
        [*simulate, "--explain", "--messages"], [*simulate, "--explain", "--json"], [*simulate, "--compare"],
        ["export", "--to", "svg", "--plan", "plan.json", *files, "--out", f"x{EVIL}.svg"],
        ["plan" + EVIL], ["help", "plan" + EVIL], ["plan", "--" + EVIL], ["plan", EVIL], ["import", EVIL],
        ["simulate", "--schedule", EVIL, "--stages", "1", "--micro-batches", "1"],
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder)
        for command in commands:
            ended = run(folder, *command)
            found = CONTROL.search(ended.stdout + ended.stderr)
            if found:
                print(f"{command!r} exits {ended.returncode} and prints {found[0]!r}")
                return 1
            if "--json" in command:
                json.loads(ended.stdout)
    print(f"{len(commands)} commands print no control character of the names they are given")
    return 0


sys.exit(main())
