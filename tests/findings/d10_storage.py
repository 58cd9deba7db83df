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
from training import FRAZIL, Absent, Failed, Training, one_line, tell  # noqa: E402

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
    """Renames of one command after which their folder was not synced."""
    if shutil.which("strace") is None:
        raise Absent("no strace")
    trace = folder / "calls.txt"
    words = WRITERS["import"].replace("OUT", "traced.json").split()
    ended = subprocess.run(["strace", "-f", "-y", "-e", "trace=rename,fsync", "-o", str(trace), FRAZIL, *words],
                           cwd=folder, capture_output=True, text=True)
    if ended.returncode and "ptrace" in ended.stderr:
        raise Absent(f"strace may not trace here: {one_line(ended.stderr[-200:])}")
    if ended.returncode or "rename(" not in trace.read_text():
        raise Failed(f"import under strace exits {ended.returncode} and renames nothing: {one_line(ended.stderr[-200:])}")
    calls = trace.read_text().splitlines()
    renames = [i for i, call in enumerate(calls) if "rename(" in call]
    return [calls[i] for i in renames
            if not any("fsync(" in call and f"<{folder}>" in call for call in calls[i + 1:])]


def check_full(training):
    """Every writer on a full disk, in words and in JSON."""
    for verb, words in WRITERS.items():
        if complaint := complain(training.folder, verb, words, "out", limit_files, 8):
            raise Failed("full storage: " + complaint)
    errors = 0
    for verb, words in WRITERS.items():
        asked = subprocess.run([FRAZIL, *words.replace("OUT", f"json-{verb}").split(), "--json"], cwd=training.folder, capture_output=True,
                               preexec_fn=limit_files, text=True)
        try:
            answer = json.loads(asked.stdout)
        except ValueError:
            raise Failed(f"full storage: {verb} --json says `{one_line(asked.stdout)[-300:]}`") from None
        # What was found before the file could not be written is answered all the same.
        code = answer["error"]["code"] if "error" in answer else asked.returncode
        if code != 8 or asked.returncode != 8:
            raise Failed(f"full storage: {verb} --json exits {asked.returncode} and says {code}")
        errors += "error" in answer
    if errors == 0:
        raise Failed("full storage: no subcommand says in JSON what failed")
    return f"{len(WRITERS)} subcommands exit 8 on a full disk, and {errors} say so in JSON"


def check_forbidden(training):
    """Every writer, and a reader, by a user who may not."""
    if not is_reachable():
        raise Absent("another user cannot start the programs")
    folder = training.folder
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o755 if path.is_dir() else 0o644)
    for verb, words in WRITERS.items():
        if complaint := complain(folder, verb, words, "out-of-nobody", become_nobody, 9):
            raise Failed("no permission: " + complaint)
    (folder / "layers.csv").chmod(0o600)
    if complaint := complain(folder, "import", WRITERS["import"], "new.json", become_nobody, 9):
        raise Failed("an input without permission: " + complaint)
    return f"{len(WRITERS) + 1} exit 9 without permission"


def check_synced(training):
    if unsynced := find_unsynced(training.folder.resolve()):
        raise Failed(f"no sync of the folder after {unsynced[0]}")
    return "folders of new names are synced"


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        (training.folder / "layers.csv").write_text(TABLE)
        made = training.run(*"import csv layers.csv --out chain.json".split())
        if made.returncode:
            raise Failed(f"import exits {made.returncode}: {one_line(made.stderr)}")
        seen, left_out = [], []
        for part in (check_full, check_synced, check_forbidden):
            try:
                seen.append(part(training))
            except Absent as absent:
                left_out.append(str(absent))
        reasons = f"; {len(left_out)} of 3 parts not tried: {', '.join(left_out)}" if left_out else ""
        return "; ".join(seen) + reasons, ""


sys.exit(tell("d10_storage", check))
