#!/usr/bin/env python3
# Misspelt names are answered with the nearest known name, names count in any case, and PyTorch's names of schedules are taken.
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FRAZIL = os.environ.get("FRAZIL", str(pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))
TABLE = "name,forward_ms,backward_ms,parameter_bytes,activation_bytes\na,1,2,8,8\nb,1,2,8,8\n"
CLUSTER = {
    "format": "frazil.cluster",
    "version": 1,
    "hosts": [{"name": "host", "memory_bytes": 1 << 30}],
    "devices": [{"name": name, "host": "host", "memory_limit_bytes": 1 << 30} for name in ("d0", "d1")],
}
TIMES = "--stages 4 --micro-batches 8 --forward 1ms --backward-input 1ms --backward-weight 1ms --schedule".split()
PLAN = "plan --profile model.json --batch 4".split()
EXPORT = "export --stages 2 --micro-batches 4 --schedule 1f1b --out x.svg --to".split()
MISSPELT = (  # a command, and the name that it is to be answered with
    (["plna"], "plan"),
    (["simluate"], "simulate"),
    ([*PLAN, "--cluster", "cluster.json", "--bacth", "4"], "--batch"),
    (["simulate", *TIMES, "zbh1"], "zb-h1"),
    (["simulate", *TIMES, "ZBVZeroBuble"], "ZBVZeroBubble"),
    ([*PLAN, "--cluster", "cluster.json", "--schedules", "1f1b,gpiep"], "gpipe"),
    ([*PLAN, "--cluster", "cluster.json", "--planner", "pipedraem"], "pipedream"),
    ([*PLAN, "--cluster", "cluster.json", "--reduction", "exatc"], "exact"),
    ([*PLAN, "--cluster", "device_key.json"], "memory_limit_bytes"),
    ([*PLAN, "--cluster", "link_key.json"], "latency_ns"),
    ([*EXPORT, "pytorch-cvs"], "pytorch-csv"),
    (["import", "pipedraem", "x", "--out", "y"], "pipedream"),
    (["reproduce", "sialor"], "sailor"),
)
PYTORCH = {
    "1F1B": "1f1b",
    "Interleaved1F1B": "interleaved-1f1b",
    "GPipe": "gpipe",
    "LoopedBFS": "looped-bfs",
    "InterleavedZeroBubble": "interleaved-zb",
    "ZBV": "zb-v",
    "ZBVZeroBubble": "zb-v",
    "ScheduleZBVZeroBubble": "zb-v",
    "DualPipeV": "dualpipev",
    "interleaved1f1b": "interleaved-1f1b",
}


def run(folder, *arguments):
    return subprocess.run([FRAZIL, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


def write_inputs(folder):
    (folder / "layers.csv").write_text(TABLE)
    (folder / "cluster.json").write_text(json.dumps(CLUSTER))
    text = json.dumps(CLUSTER)
    (folder / "device_key.json").write_text(text.replace("memory_limit_bytes", "memory_limt_bytes"))
    (folder / "link_key.json").write_text(text[:-1] + ', "default_link": {"latncy_ns": 1}}')
    return run(folder, *"import csv layers.csv --out model.json".split())


def find_complaint(folder):
    """What is wrong; empty if nothing is."""
    for arguments, name in MISSPELT:
        ended = run(folder, *arguments)
        said = ended.stderr.strip()
        if ended.returncode != 2 or "did you mean" not in said or name not in said:
            return f"`frazil {' '.join(arguments)}` exits {ended.returncode}: {said}"
    for theirs, ours in PYTORCH.items():
        ended, own = (run(folder, "simulate", *TIMES, name, "--json") for name in (theirs, ours))
        if ended.returncode or ended.stdout != own.stdout:
            return f"--schedule {theirs} is not {ours}: {ended.stderr.strip()}"
    for planner in ("PipeDream", "PipeTransformer", "PIPEDREAM"):
        ended = run(folder, *PLAN, "--cluster", "cluster.json", "--planner", planner)
        if ended.returncode:
            return f"--planner {planner} exits {ended.returncode}: {ended.stderr.strip()}"
    return ""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = write_inputs(folder)
        complaint = made.stderr.strip() if made.returncode else find_complaint(folder)
    print(complaint if complaint else
          f"{len(MISSPELT)} misspelt names are answered with the right one, {len(PYTORCH)} names of PyTorch are taken")
    return 1 if complaint else 0


sys.exit(main())
