#!/usr/bin/env python3
"""Trains over processes with a cache of the frozen prefix as a user does, in both forms, kills some, and goes on in other numbers of processes.

usage: cached_members.py [--kills N] [--seed N]
FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from process_trials import members_of, wait_for  # noqa: E402
from training import FRAZIL, INPUTS, MODEL, Failed, Training, one_line, tell  # noqa: E402

CHANGES = {"model": {**MODEL, "blocks": 4}, "epochs": 40, "freeze": {"alpha": 0.5, "start_epoch": 3, "interval_epochs": 6}}
ALWAYS = {"kind": "on", "admission": "always"}
FORMS = {
    "host": ALWAYS,
    "disk": {**ALWAYS, "memory_bytes": 20480, "disk_bytes": 1 << 20, "folder": "features"},
    "process": {**ALWAYS, "shared_by": "process"},
}
ASKED = ("found", "found_at_depth_before", "missed")


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself


def stores_of(pids):
    """The inodes of the features in memory that these processes have open."""
    stores = {}
    for pid in pids:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            try:
                if "memfd:frazil-features" in os.readlink(descriptor):
                    stores.setdefault(os.stat(descriptor).st_ino, set()).add(pid)
            except OSError:
                pass
    return stores


def shared_memory():
    return {path.name for path in pathlib.Path("/dev/shm").glob("*frazil*")}


class Runs:
    def __init__(self, folder):
        self.training = Training(folder)
        (self.training.folder / "features").mkdir()
        self.training.write_run("run.json", **CHANGES)
        made = self.training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                                 "--cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        for form, cache in FORMS.items():
            self.training.write_run(f"{form}.json", **CHANGES, cache=cache)

    def inputs(self, form):
        return [f"{form}.json" if word == "run.json" else word for word in INPUTS]

    def train(self, form, *flags):
        done = self.training.train("--json", *flags, inputs=self.inputs(form))
        return answer_of(done.returncode, done.stdout, done.stderr, f"{form} {' '.join(flags)}")

    def begin(self, form, name, *flags):
        """A training that has done its first steps with a cache."""
        command = [FRAZIL, "train", *self.inputs(form), *flags, "--out", name, "--json"]
        process = subprocess.Popen(command, cwd=self.training.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        log = self.training.folder / name / "events.jsonl"
        wait_for(lambda: process.poll() is not None or (log.exists() and '"event":"begun"' in log.read_text()))
        return process, members_of(process.pid)


def answer_of(code, out, err, what):
    if code:
        raise Failed(f"{what}: exit {code}: {one_line(err)}")
    return json.loads(out)


def compare(one, over, form, what):
    """Hits and misses of a run over processes beside those of one process."""
    cache, expected = over["cache"], one["cache"]
    if over["state_hash"] != one["state_hash"]:
        return f"{what}: other weights than in one process"
    for count in ("stored", *ASKED):
        if sum(process[count] for process in cache["processes"]) != cache[count]:
            return f"{what}: {count} of all processes is not their sum"
        if form != "process" and cache[count] != expected[count]:
            return f"{what}: {cache[count]} {count}, expected {expected[count]} as in one process"
    looked_for = sum(cache[count] for count in ASKED)
    if looked_for != cache["micro_batches"] * 4 or looked_for != sum(expected[count] for count in ASKED):
        return f"{what}: found and missed {looked_for} samples, expected {cache['micro_batches'] * 4}"
    caches = len(cache["processes"]) if form == "process" else 1
    if cache["caches"] != caches:
        return f"{what}: {cache['caches']} caches, expected {caches}"
    if form == "process" and not cache["missed"] > expected["missed"]:
        return f"{what}: no sample was in another process"
    return ""


def check_kill(runs, form, number, random_numbers, expected):
    process, members = runs.begin(form, f"kill-{number}", "--procs", "4" if number % 3 else "2", "--checkpoint-every", "5")
    stores = stores_of([process.pid, *members])
    time.sleep(random_numbers.uniform(0, 0.3))
    kill(random_numbers.choice(members or [process.pid]))
    out, err = process.communicate(timeout=120)
    what = f"kill {number} ({form})"
    answer = answer_of(process.returncode, out, err, what)
    if answer["state_hash"] != expected:
        return f"{what}: other weights than without a kill", False
    if form != "process" and members and len([users for users in stores.values() if len(users) == len(members) + 1]) != 1:
        return f"{what}: processes of one host do not share a store: {stores}", False
    if not wait_for(lambda: not [pid for pid in members if pathlib.Path(f"/proc/{pid}").exists()], 2):
        return f"{what}: a process is left", False
    return "", "lost: its process" in err or "lost: their process" in err


def check_resume(runs, expected):
    """All processes are killed; the run goes on in another number of them."""
    for number, (before, procs) in enumerate((("4", "2"), ("2", "4"))):
        process, members = runs.begin("disk", f"all-{number}", "--procs", before, "--checkpoint-every", "5")
        for pid in [process.pid, *members]:
            kill(pid)
        process.communicate()
        if not wait_for(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in members), 2):
            return "a process outlives kill -9 of all"
        again = runs.training.run("train", "--resume", f"all-{number}", "--procs", procs, "--json", "--quiet")
        answer = answer_of(again.returncode, again.stdout, again.stderr, f"--resume --procs {procs}")
        if answer["state_hash"] != expected:
            return f"resumed in {procs} processes: other weights"
        if "resumed_from_step" not in answer or "cache" not in answer:
            return f"resumed in {procs} processes: no step was resumed from, or no cache"
    return ""


def check_hosts(runs, one):
    """Two processes here and two that do not see these, as on another host: each two share a store. Returns what was seen, and a complaint."""
    apart = "unshare --pid --fork --mount-proc".split()
    try:
        can_part = subprocess.run([*apart, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        can_part = False
    if not can_part:
        return "two hosts: skipped, for no process can be set apart here", ""
    told = runs.training.folder / "leader.txt"
    with open(told, "w") as err:
        command = [FRAZIL, "train", *runs.inputs("host"), "--listen", "127.0.0.1:0", "--procs", "4", "--json"]
        leader = subprocess.Popen(command, cwd=runs.training.folder, stdout=subprocess.PIPE, stderr=err, text=True)
        wait_for(lambda: leader.poll() is not None or "listening at" in told.read_text())
        if leader.poll() is not None:
            raise Failed(f"--listen exits {leader.returncode}: {one_line(told.read_text())}")
        address = told.read_text().split("listening at ")[1].split()[0]
        join = f"{FRAZIL} train --join {address}"
        others = [subprocess.Popen(words, cwd=runs.training.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                  for words in (join.split(), [*apart, "sh", "-c", f"{join} & {join}; wait"])]
        out, _ = leader.communicate(timeout=120)
        for other in others:
            other.wait(timeout=20)
    over = answer_of(leader.returncode, out, told.read_text(), "--listen")
    if over["cache"]["caches"] != 2 or len(over["cache"]["processes"]) != 4:
        return "", f"two hosts: {over['cache']['caches']} caches, expected 2"
    over["cache"]["caches"] = 4
    return f"two hosts: {'/'.join(str(over['cache'][count]) for count in ASKED)}", compare(one, over, "process", "two hosts")


def check(arguments):
    random_numbers = random.Random(arguments.seed)
    before = shared_memory()
    seen = []
    with tempfile.TemporaryDirectory() as name:
        runs = Runs(name)
        plain = runs.train("run")
        one = runs.train("host")
        if one["state_hash"] != plain["state_hash"]:
            return "", "a cache in one process changes weights"
        for form in FORMS:
            for procs in ("2", "4"):
                over = runs.train(form, "--procs", procs)
                if complaint := compare(one, over, form, f"{form} --procs {procs}"):
                    return "", complaint
                seen.append(f"{form} {procs}: {'/'.join(str(over['cache'][count]) for count in ASKED)}")
        hosts, complaint = check_hosts(runs, one)
        if complaint:
            return "", complaint
        seen.append(hosts)
        met = 0
        for number in range(arguments.kills):
            complaint, is_met = check_kill(runs, list(FORMS)[number % 3], number, random_numbers, plain["state_hash"])
            if complaint:
                return "", complaint
            met += is_met
        seen.append(f"{met} of {arguments.kills} kills met a run under way")
        if complaint := check_resume(runs, plain["state_hash"]):
            return "", complaint
        left = [path.name for path in (runs.training.folder / "features").iterdir()] + sorted(shared_memory() - before)
        if left:
            return "", f"left behind: {left}"
    return "; ".join(seen), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    return tell(f"cached members, seed {arguments.seed}", lambda: check(arguments))


sys.exit(main())
