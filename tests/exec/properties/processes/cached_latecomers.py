#!/usr/bin/env python3
"""Trains over processes with a cache of the frozen prefix while processes come late and are killed: what they read is what one process would have.

usage: cached_latecomers.py [--seed N] [--all]
    late       two processes begin a run with four places, and two more join it
    killed     one of them is killed besides, and another joins in its place
    restarted  four begin a run, whose leader begins new ones in place of those that are lost
Each with one form of a cache, with --all each with each. FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1:
something did not; 77: the program is not there.
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

# A depth is cached for 45 epochs: there is time to come in each, and features of the depth before are found at the first step of the next.
CHANGES = {"model": {**MODEL, "blocks": 4}, "epochs": 180, "freeze": {"alpha": 0.4, "start_epoch": 3, "interval_epochs": 45}}
ALWAYS = {"kind": "on", "admission": "always"}
FORMS = {
    "host": ALWAYS,
    "disk": {**ALWAYS, "memory_bytes": 20480, "disk_bytes": 1 << 20, "folder": "features"},
    "process": {**ALWAYS, "shared_by": "process"},
}
ASKED = ("found", "found_at_depth_before", "missed")
PATIENCE = 120  # of a loaded machine
LONGEST = 4  # times as many epochs, where the machine is too slow for what is to happen in a run


class Ended(Exception):
    """The run was over before all that was to happen in it."""


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


class Runs:
    """The same training with each form of a cache, and in one process what it comes to."""

    def __init__(self, folder, longer):
        self.training = Training(folder)
        changes = {**CHANGES, "epochs": CHANGES["epochs"] * longer}
        changes["freeze"] = {**changes["freeze"], "interval_epochs": changes["freeze"]["interval_epochs"] * longer}
        (self.training.folder / "features").mkdir()
        self.training.write_run("run.json", **changes)
        made = self.training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                                 "--cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        self.even_out()
        for form, cache in FORMS.items():
            self.training.write_run(f"{form}.json", **changes, cache=cache)
        self.plain, self.one = self.train("run"), self.train("host")

    def even_out(self):
        """Makes all layers equally slow, so that whatever was measured plans take all devices that are there."""
        place = self.training.folder / "model.json"
        model = json.loads(place.read_text())
        for layer in model["layers"]:
            for costs in layer["costs"]:
                costs.update({key: 1_000_000 for key, value in costs.items() if key.endswith("_ns") and value > 0})
        place.write_text(json.dumps(model))

    def inputs(self, form):
        return [f"{form}.json" if word == "run.json" else word for word in INPUTS]

    def train(self, form):
        done = self.training.train("--json", inputs=self.inputs(form))
        if done.returncode:
            raise Failed(f"{form} in one process: exit {done.returncode}: {one_line(done.stderr)}")
        return json.loads(done.stdout)


class Leader:
    """A training that leads others."""

    def __init__(self, runs, form, name, *flags):
        self.folder = runs.training.folder
        self.log, self.errors = self.folder / name / "events.jsonl", self.folder / f"{name}.err"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen([FRAZIL, "train", *runs.inputs(form), *flags, "--out", name, "--json"], cwd=self.folder,
                                            stdout=subprocess.PIPE, stderr=errors, text=True)
        self.joined = []

    def wait(self, what, holds):
        wait_for(lambda: holds() or self.process.poll() is not None, PATIENCE)
        if holds():
            return
        if self.process.poll() == 0:
            raise Ended
        raise Failed(f"not within {PATIENCE} s, or the run ended before: {what}: {one_line(self.errors.read_text())}")

    def join(self):
        self.wait("it listened", lambda: "listening at " in self.errors.read_text())
        address = self.errors.read_text().split("listening at ")[1].split()[0]
        self.joined.append(subprocess.Popen([FRAZIL, "train", "--join", address], cwd=self.folder, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL))
        return self.joined[-1]

    def count(self, event):
        return self.log.read_text().count(f'"event":"{event}"') if self.log.exists() else 0

    def let_come(self, count=1):
        came = self.count("came")
        processes = [self.join() for _ in range(count)]
        self.wait(f"{count} came", lambda: self.count("came") >= came + count)
        return processes

    def lose(self, pid):
        recovered = self.count("recovered")
        os.kill(pid, signal.SIGKILL)
        self.wait("it went on after a loss", lambda: self.count("recovered") > recovered)

    def pids(self):
        begun = members_of(self.process.pid) if self.process.poll() is None else []
        return [self.process.pid, *begun, *(process.pid for process in self.joined if process.poll() is None)]

    def end(self):
        out, _ = self.process.communicate(timeout=5 * PATIENCE)
        if self.process.returncode:
            raise Failed(f"exit {self.process.returncode}: {one_line(self.errors.read_text())}")
        return json.loads(out)

    def clean(self):
        for process in [self.process, *self.joined]:
            if process.poll() is None:
                process.kill()
            process.wait()


def compare(runs, over, form, is_disturbed):
    """What a run came to beside one process. A process that is killed takes along what it has not told, and where each has its own, its features."""
    cache, expected = over["cache"], runs.one["cache"]
    if over["state_hash"] != runs.plain["state_hash"]:
        return "other weights than without a cache in one process"
    for count in ("stored", *ASKED):
        if sum(process[count] for process in cache["processes"]) != cache[count]:
            return f"{count} of all processes is not their sum"
    looked_for, missed = sum(cache[count] for count in ASKED), cache["missed"]
    if looked_for != cache["micro_batches"] * 4:
        return f"found and missed {looked_for} samples in {cache['micro_batches']} micro-batches of 4"
    if not is_disturbed and looked_for != sum(expected[count] for count in ASKED):
        return f"found and missed {looked_for} samples, in one process {sum(expected[count] for count in ASKED)}"
    if form == "process":
        return "" if missed > expected["missed"] else "no sample was in another process"
    if not is_disturbed and missed != expected["missed"]:
        return f"missed {missed} samples, in one process {expected['missed']}"
    return ""


def check_shared(leader, form):
    """Processes of one host have one store of memory open, also those that came late."""
    pids = leader.pids()
    if form == "process" or leader.process.poll() is not None:
        return ""
    stores = stores_of(pids)
    return "" if any(len(users) == len(pids) for users in stores.values()) else f"processes of one host do not share a store: {stores}"


def check_joined(runs, form, name, random_numbers, is_disturbed):
    """Two begin, two join at some moment; one of the first or of the late ones is killed, and another joins."""
    leader = Leader(runs, form, name, "--listen", "127.0.0.1:0", "--procs", "2", "--places", "4")
    try:
        leader.join()
        leader.wait("a depth was cached", lambda: leader.count("begun") > 0)
        time.sleep(random_numbers.uniform(0, 0.5))
        late = leader.let_come(2)
        leader.wait("another depth was cached", lambda: leader.count("begun") > 1)
        if complaint := check_shared(leader, form):
            return complaint
        if is_disturbed:
            leader.lose(random_numbers.choice([leader.joined[0], *late]).pid)
            time.sleep(random_numbers.uniform(0, 0.5))
            leader.let_come()
            leader.wait("one more depth was cached", lambda: leader.count("begun") > 2)
            if complaint := check_shared(leader, form):
                return complaint
        return compare(runs, leader.end(), form, is_disturbed)
    finally:
        leader.clean()


def check_restarted(runs, form, name, random_numbers):
    """The leader begins a new process in the place of each that is lost, whose rows, if it had any of its own, are missed."""
    leader = Leader(runs, form, name, "--procs", "4", "--restart-lost")
    try:
        leader.wait("a depth was cached", lambda: leader.count("begun") > 0)
        for _ in range(2):
            came = leader.count("came")
            leader.lose(random_numbers.choice(members_of(leader.process.pid)))
            leader.wait("a new one came", lambda: leader.count("came") > came)
        return compare(runs, leader.end(), form, is_disturbed=True)
    finally:
        leader.clean()


def check_all(folder, longer, random_numbers, takes_all):
    runs = Runs(folder, longer)
    trials = {"late": lambda form, name: check_joined(runs, form, name, random_numbers, False),
              "killed": lambda form, name: check_joined(runs, form, name, random_numbers, True),
              "restarted": lambda form, name: check_restarted(runs, form, name, random_numbers)}
    for number, (what, trial) in enumerate(trials.items()):
        for form in FORMS if takes_all else [["host", "process", "disk"][number]]:
            if complaint := trial(form, f"{form}-{what}"):
                return f"{form}, {what}: {complaint}"
    left = [path.name for path in (runs.training.folder / "features").iterdir()]
    return f"left behind: {left}" if left else ""


def check(arguments):
    longer = 1
    while True:
        try:
            with tempfile.TemporaryDirectory() as folder:
                return check_all(folder, longer, random.Random(arguments.seed), arguments.all)
        except Ended:
            longer *= 2
            if longer > LONGEST:
                raise Failed("runs end before what is to happen in them") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="each trial with each form of a cache")
    arguments = parser.parse_args()
    seen = "late, killed and restarted processes read what one process would have"
    return tell(f"cached latecomers, seed {arguments.seed}", lambda: (seen, check(arguments)))


sys.exit(main())
