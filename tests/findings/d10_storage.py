#!/usr/bin/env python3
# Full storage exits with code 8 and a missing permission with 9, whatever subcommand writes; the folder of a new name is synced.
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from training import FRAZIL, Failed, Training, one_line, tell  # noqa: E402

NOBODY = 65534
TABLE = "name,forward_ms,backward_ms,parameter_bytes,activation_bytes\na,1,2,8,8\nb,1,2,8,8\n"
WRITERS = {  # a command of each folder that writes files; OUT is replaced
    "plan": "plan --profile chain.json --cluster cluster.json --batch 4 --out OUT",
    "simulate": ("simulate --stages 2 --micro-batches 4 --schedule 1f1b --forward 1ms --backward-input 1ms "
                 "--backward-weight 1ms --chrome OUT"),
    "import": "import csv layers.csv --out OUT",
    "export": "export --to svg --stages 2 --micro-batches 4 --schedule 1f1b --out OUT",
    "profile": "profile --run run.json --devices 2 --rounds 1 --steps 2 --out OUT --quiet",
    "train": "train --run run.json --profile model.json --cluster cluster.json --steps 3 --quiet --out OUT",
}


def limit_files():
    """Files of no byte stand for a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def become_nobody():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def is_reachable():
    """Whether the programs can be started by a user who is not root."""
    try:
        ended = subprocess.run([FRAZIL, "--version"], preexec_fn=become_nobody, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return ended.returncode == 0


def complain(folder, verb, words, out, limit, code):
    command = [FRAZIL, *(out if word == "OUT" else word for word in words.split())]
    ended = subprocess.run(command, cwd=folder, preexec_fn=limit, capture_output=True, text=True, timeout=300)
    lines = [line for line in ended.stderr.splitlines() if line.startswith(f"frazil {verb}: ")]
    if ended.returncode != code or not any('the error "' in line for line in lines):
        return f"{verb} exits {ended.returncode}, expected {code}: {one_line(ended.stderr[-200:])}"
    return ""


def find_unsynced(folder):
    """Renames of one command after which their folder was not synced; None where no one can look."""
    if shutil.which("strace") is None:
        return None
    trace = folder / "calls.txt"
    words = WRITERS["import"].replace("OUT", "traced.json").split()
    ended = subprocess.run(["strace", "-f", "-y", "-e", "trace=rename,fsync", "-o", str(trace), FRAZIL, *words],
                           cwd=folder, capture_output=True, text=True)
    if ended.returncode or not trace.exists() or "rename(" not in trace.read_text():
        return None
    calls = trace.read_text().splitlines()
    renames = [i for i, call in enumerate(calls) if "rename(" in call]
    return [calls[i] for i in renames
            if not any("fsync(" in call and f"<{folder}>" in call for call in calls[i + 1:])]


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        folder = training.folder.resolve()
        (folder / "layers.csv").write_text(TABLE)
        made = training.run(*"import csv layers.csv --out chain.json".split())
        if made.returncode:
            raise Failed(f"import exits {made.returncode}: {one_line(made.stderr)}")
        for verb, words in WRITERS.items():
            if complaint := complain(folder, verb, words, "out", limit_files, 8):
                return "", "full storage: " + complaint
        refused = 0
        if is_reachable():
            folder.chmod(0o755)
            for path in folder.iterdir():
                path.chmod(0o755 if path.is_dir() else 0o644)
            for verb, words in WRITERS.items():
                if complaint := complain(folder, verb, words, "out-of-nobody", become_nobody, 9):
                    return "", "no permission: " + complaint
                refused += 1
            (folder / "layers.csv").chmod(0o600)
            if complaint := complain(folder, "import", WRITERS["import"], "new.json", become_nobody, 9):
                return "", "an input without permission: " + complaint
        asked = subprocess.run([FRAZIL, *WRITERS["import"].split(), "--json"], cwd=folder, capture_output=True,
                               preexec_fn=limit_files, text=True)
        if '"error"' in asked.stdout and json.loads(asked.stdout)["error"]["code"] != 8:
            return "", f"JSON says {asked.stdout}"
        unsynced = find_unsynced(folder)
        if unsynced:
            return "", f"no sync of the folder after {unsynced[0]}"
        synced = "not looked at" if unsynced is None else "synced"
        return f"{len(WRITERS)} subcommands exit 8, {refused} exit 9; folders of new names: {synced}", ""


sys.exit(tell("d10_storage", check))
