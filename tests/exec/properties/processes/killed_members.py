#!/usr/bin/env python3
"""Trains over processes as a user does, kills some of them, and looks at what is left: the same bits as without, one sentence, nobody behind.

usage: killed_members.py [--kills N] [--seed N] [--epochs N] [--transport sockets|gloo]
FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import argparse
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import FRAZIL, INPUTS, Absent, Failed, Training, one_line  # noqa: E402


def members_of(leader):
    """The processes that a training has begun."""
    found = []
    for task in pathlib.Path(f"/proc/{leader}/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            pass
    return sorted(found)


def listeners_of(pids):
    """Addresses at which one of these processes listens."""
    inodes = set()
    for pid in pids:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(descriptor)))
            except OSError:
                pass
    listening = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                listening.append(words[1])
    return listening


def wait_for(holds, seconds=20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.01)
    return holds()


class Trial:
    """A training over processes with one of them killed some time after its first steps."""

    def __init__(self, training, name, flags, delay, victim):
        self.training, self.name = training, name
        self.is_gloo = "gloo" in flags
        self.out = training.folder / name
        self.log = self.out / "events.jsonl"
        command = [FRAZIL, "train", *INPUTS, *flags, "--out", name, "--json"]
        self.process = subprocess.Popen(command, cwd=training.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.members = []
        if not wait_for(lambda: self.has_stepped() or self.process.poll() is not None):
            raise Failed("no step within 20 s")
        time.sleep(delay)
        self.members = members_of(self.process.pid)
        self.listening = listeners_of([self.process.pid, *self.members])
        self.killed = None
        if self.members and victim is not None:
            self.killed = self.members[victim % len(self.members)] if victim >= 0 else self.process.pid
            os.kill(self.killed, signal.SIGKILL)

    def has_stepped(self):
        return self.log.exists() and self.log.read_text().count('"kind":"step"') > 2

    def end(self):
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out, err

    def left_behind(self):
        return [pid for pid in self.members if pathlib.Path(f"/proc/{pid}").exists()]


def check_listening(trial):
    """Own sockets are inherited; Gloo listens, at the loopback."""
    beyond = [address for address in trial.listening if not (trial.is_gloo and address.startswith("0100007F:"))]
    return f"listens at {beyond}, expected nowhere" if beyond else ""


def check_kills(training, expected, arguments, random_numbers):
    """Kills of members, under a plan with replicas and under one with stages alone."""
    undisturbed = 0
    for kill in range(arguments.kills):
        procs = 2 if kill % 2 == 0 else 4
        delay = random_numbers.uniform(0, 0.6)
        name = f"kill-{kill}"
        flags = ["--procs", str(procs), "--transport", arguments.transport, "--checkpoint-every", "5"]
        trial = Trial(training, name, flags, delay, kill)
        code, out, err = trial.end()
        where = f"kill {kill} ({procs} processes, {delay:.3f} s after the first steps)"
        if complaint := check_listening(trial):
            return f"{where}: {complaint}"
        if code != 0:
            return f"{where}: exit {code}: {one_line(err)}"
        if not wait_for(lambda: not trial.left_behind(), 2):
            return f"{where}: processes {trial.left_behind()} are left"
        answer = json.loads(out)
        if answer["state_hash"] != expected["state_hash"]:
            return f"{where}: other weights than without a kill"
        if "lost: its process has ended" not in err and "lost: their process has ended" not in err:
            undisturbed += 1
    if undisturbed == arguments.kills:
        return "no kill met a run under way"
    return ""


def check_leader(training, transport):
    """Members end with their leader, and the run goes on where it was."""
    trial = Trial(training, "leader", ["--procs", "4", "--transport", transport, "--checkpoint-every", "5"], 0.1, -1)
    trial.end()
    if not wait_for(lambda: not trial.left_behind(), 2):
        return f"processes {trial.left_behind()} outlive their leader by 2 s"
    again = training.run("train", "--resume", "leader", "--procs", "4", "--transport", transport, "--json", "--quiet")
    if again.returncode:
        return f"--resume after the leader was killed exits {again.returncode}: {one_line(again.stderr)}"
    return json.loads(again.stdout)


def check(arguments):
    random_numbers = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        made = training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json --cluster-out "
                            "cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        training.write_run("run.json", epochs=arguments.epochs)
        expected = training.train("--json")
        if expected.returncode:
            return f"one process: exit {expected.returncode}: {one_line(expected.stderr)}"
        expected = json.loads(expected.stdout)
        for procs in ("2", "3", "4"):
            over = training.train("--json", "--procs", procs, "--transport", arguments.transport)
            if over.returncode:
                return f"--procs {procs} exits {over.returncode}: {one_line(over.stderr)}"
            if json.loads(over.stdout)["state_hash"] != expected["state_hash"]:
                return f"--procs {procs} gives other weights"
        if complaint := check_kills(training, expected, arguments, random_numbers):
            return complaint
        resumed = check_leader(training, arguments.transport)
        if isinstance(resumed, str):
            return resumed
        if resumed["state_hash"] != expected["state_hash"]:
            return "other weights after the leader was killed and the run resumed"
        many = training.train("--procs", "5")
        if many.returncode != 2 or "procs" not in many.stderr:
            return f"more processes than devices: exit {many.returncode}: {one_line(many.stderr)}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--transport", choices=("sockets", "gloo"), default="sockets")
    arguments = parser.parse_args()
    try:
        complaint = check(arguments)
    except Absent as absent:
        print(f"skipped: {absent}")
        return 77
    except Failed as failed:
        complaint = str(failed)
    if complaint:
        print(f"seed {arguments.seed}: {complaint}")
        return 1
    print(f"{arguments.kills} processes killed, and a leader: every run ended with the weights of an undisturbed one, none left a process")
    return 0


sys.exit(main())
