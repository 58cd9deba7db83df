#!/usr/bin/env python3
# A cluster of 64 GPUs is one line, a what-if takes a memory limit in bytes and one time for the backward, and errors are JSON under --json.
import json
import os
import pathlib
import subprocess
import sys
import tempfile

FRAZIL = os.environ.get("FRAZIL", str(pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))
PIPELINE = "simulate --stages 4 --micro-batches 8 --forward 1ms --json".split()


def run(folder, *arguments):
    return subprocess.run([FRAZIL, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


def check_cluster(folder):
    ended = run(folder, *"cluster --devices 64 --preset h100-sxm --between infiniband-ndr --out c.json".split())
    if ended.returncode:
        return f"frazil cluster exits {ended.returncode}: {ended.stderr.strip()}"
    cluster = json.loads((folder / "c.json").read_text())
    hosts = {device["host"] for device in cluster["devices"]}
    if (len(cluster["devices"]), len(hosts), len(cluster["links"])) != (64, 8, 64 * 7):
        return f"c.json has {len(cluster['devices'])} devices on {len(hosts)} hosts, {len(cluster['links'])} links"
    if "data sheet" not in cluster["provenance"]["memory"]:
        return "c.json does not say where its memory comes from"
    (folder / "l.csv").write_text("name,forward_ms,backward_ms,activation_bytes\n" + "".join(f"l{i},1,2,8\n" for i in range(8)))
    run(folder, *"import csv l.csv --out m.json".split())
    planned = run(folder, *"plan --profile m.json --cluster c.json --batch 64 --micro-batch 1 --max-replicas 8 --effort 2000".split())
    return f"plan on c.json exits {planned.returncode}: {planned.stderr.strip()}" if planned.returncode else ""


def check_what_if(folder):
    both = run(folder, *PIPELINE, *"--schedule zb-h1 --backward-input 1ms --backward-weight 1ms".split())
    one = run(folder, *PIPELINE, *"--schedule zb-h1 --backward 2ms".split())
    if one.returncode:
        return f"--backward exits {one.returncode}: {one.stderr.strip()}"
    one = json.loads(one.stdout)
    if one["makespan_ns"] != json.loads(both.stdout)["makespan_ns"] or one.get("backward_was_split_by_rule") is not True:
        return "--backward is not I and W of half of it each, or does not say so"
    sizes = "--backward 2ms --activation 3GiB --state 1GiB --memory-limit".split()
    for limit, fits in (("13GiB", True), ("12GiB", False)):
        ended = run(folder, *PIPELINE, "--schedule", "1f1b", *sizes, limit)
        if ended.returncode != (0 if fits else 3):
            return f"--memory-limit {limit} exits {ended.returncode}: {ended.stderr.strip()}"
        answer = json.loads(ended.stdout)
        peaks = [(3 * (4 - device) + 1) << 30 for device in range(4)]  # 1f1b has 4, 3, 2, 1 in flight
        if answer["peak_bytes"] != peaks or answer["fits"] is not fits:
            return f"--memory-limit {limit}: found {answer['peak_bytes']}, fits {answer['fits']}"
    compared = json.loads(run(folder, *PIPELINE, "--compare", *sizes, "13GiB").stdout)["compared"]
    kept = {row["schedule"] for row in compared if "infeasible" not in row}
    if "gpipe" in kept or "1f1b" not in kept:
        return f"--compare within 13GiB keeps {sorted(kept)}"
    return ""


def check_errors(folder):
    (folder / "bad.json").write_text('{\n"format": "frazil.plan",\n"versoin": 1}')
    for arguments, wanted in (
        ("simulate --plan bad.json --profile m.json --cluster c.json --json", {"code": 2, "file": "bad.json", "line": 1}),
        ("plan --json", {"code": 2, "file": "command line", "found": "no --profile"}),
        ("plan --bacth 3 --json", {"code": 2}),
        ("plna --json", {"code": 2, "file": "command line"}),
        ("simulate --stages 4 --micro-batches 5 --schedule dualpipe --forward 1ms --backward-input 1ms,2ms,3ms,4ms "
         "--backward-weight 1ms --json", {"code": 3}),
    ):
        ended = run(folder, *arguments.split())
        try:
            error = json.loads(ended.stdout)["error"]
        except (ValueError, KeyError, TypeError):
            return f"`{arguments}` exits {ended.returncode} with `{ended.stdout.strip()}` on standard output"
        if ended.returncode != wanted["code"] or error["sentence"] != ended.stderr.strip():
            return f"`{arguments}` exits {ended.returncode}, says {error}"
        if any(error.get(key) != value for key, value in wanted.items()):
            return f"`{arguments}` says {error}"
    return ""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        complaints = [check(folder) for check in (check_cluster, check_what_if, check_errors)]
    said = "; ".join(filter(None, complaints))
    print(said if said else "64 GPUs in one line, bytes and --backward in what-ifs, errors as JSON")
    return 1 if said else 0


sys.exit(main())
