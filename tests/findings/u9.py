#!/usr/bin/env python3
# Output flags make no folder that was not there, nor a file named "-": both are refused with exit code 2, before any work.
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
FILES = "--profile model.json --cluster cluster.json".split()
WHAT_IF = ("simulate --stages 2 --micro-batches 4 --schedule 1f1b --forward 1ms "
           "--backward-input 1ms --backward-weight 1ms").split()
COMMANDS = {  # every flag of planning that names an output; OUT is replaced
    "plan --out": ["plan", *FILES, "--batch", "4", "--out", "OUT"],
    "simulate --out": [*WHAT_IF, "--out", "OUT"],
    "simulate --chrome": [*WHAT_IF, "--chrome", "OUT"],
    "import --out": ["import", "csv", "layers.csv", "--out", "OUT"],
    "export --out": "export --to svg --stages 2 --micro-batches 4 --schedule 1f1b --out OUT".split(),
}


def run(folder, arguments):
    return subprocess.run([FRAZIL, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


def find_complaint(folder, name, arguments, out, wanted):
    """What is wrong with how the command meets the output `out`; empty if nothing is."""
    before = sorted(folder.rglob("*"))
    ended = run(folder, [out if word == "OUT" else word for word in arguments])
    made = [path.name for path in sorted(folder.rglob("*")) if path not in before]
    if made:
        return f"{name} {out} makes {', '.join(made)} and exits {ended.returncode}"
    if ended.returncode != 2 or wanted not in ended.stderr or ended.stdout:
        return f"{name} {out} exits {ended.returncode}: {ended.stderr.strip()}"
    return ""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "layers.csv").write_text(TABLE)
        (folder / "cluster.json").write_text(json.dumps(CLUSTER))
        made = run(folder, "import csv layers.csv --out model.json".split())
        if made.returncode:
            print(f"import csv exits {made.returncode}: {made.stderr.strip()}")
            return 1
        for command, arguments in COMMANDS.items():
            for out, wanted in (("typo/dir/x", "typo/dir"), ("-", "./-")):
                complaint = find_complaint(folder, command, arguments, out, wanted)
                if complaint:
                    print(complaint)
                    return 1
    print(f"{len(COMMANDS)} commands refuse `typo/dir/x` and `-` and leave nothing behind")
    return 0


sys.exit(main())
