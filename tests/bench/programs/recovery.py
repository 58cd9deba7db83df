#!/usr/bin/env python3
"""How soon a training goes on after one of its processes was killed: Frazil over processes, and stock PyTorch that torchrun starts again.

usage: recovery.py [--kills N] [--seed N] [--only NAME,...] [--python PYTHON] [--data FOLDER]

Each try trains, kills one process with SIGKILL (or stops it with SIGSTOP) at a random moment and looks at the log of
steps, every 0.5 ms. Time runs from the kill:
    told    until the sentence that tells of the loss is on stderr
    goes on until the first step is logged that had not been logged before the kill
Samples that are done again, because their steps are not in the checkpoint that the training goes on from, are counted.

    replicas     two replicas in two processes; the other one goes on with what it holds
    four         four replicas in four processes
    stopped      two replicas, one process gets SIGSTOP
    checkpoint   two stages in two processes: the layers of one are gone, new processes begin at the newest checkpoint
    large        the same of a model whose checkpoint has 128 MB, every 10 steps
    torchrun     stock PyTorch, two replicas (DDP over Gloo), `torchrun --max-restarts`, checkpoints as often

The model is the default one of a run configuration (6 blocks of width 64, AdamW, batches of 32); PyTorch's has the same
sizes. The large one has 6 blocks of width 384, and batches of 4. Of runs that go on from a checkpoint it is also told
    step    until the first step is logged after it, which is mostly one that is done again

Beside the times stands how many cores other programs kept busy.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TREE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from process_trials import members_of  # noqa: E402
from training import FRAZIL, one_line  # noqa: E402

EVERY = 50  # steps from checkpoint to checkpoint, on both sides
BATCH = 32
LARGE = {"model": {"blocks": 6, "dim": 384, "heads": 6}, "batch_size": 4, "micro_batch_size": 1}
LARGE_EVERY = 10
LOOK = 0.0005
PATIENCE = 300


def busy_cores(before, after):
    """Cores that anything kept busy between two looks at /proc/stat."""
    idle, total = (after[3] + after[4]) - (before[3] + before[4]), sum(after) - sum(before)
    return os.cpu_count() * (1 - idle / total) if total else 0


def look_at_cores():
    return [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]


class Try:
    """A training under way."""

    def __init__(self, command, folder, log, pattern, environment=None):
        self.pattern, self.log, self.told = re.compile(pattern), pathlib.Path(log), None
        self.said = []
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(environment or {})}, start_new_session=True)
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            if self.told is None and (" lost: " in line or "Failed" in line or "failed" in line):
                self.told = time.monotonic()

    def steps(self):
        return [int(number) for number in self.pattern.findall(self.log.read_text())] if self.log.exists() else []

    def wait_for(self, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError(f"no more steps: {one_line(' '.join(self.said[-3:]))}")
            time.sleep(LOOK)

    def lose(self, victim, number, every=EVERY, batch=BATCH):
        """Returns seconds until told, until a step is done, until it goes on, and samples done again."""
        before = self.steps()
        begin = time.monotonic()
        os.kill(victim, number)
        # What was on its way to the log when the kill came is no step after it.
        time.sleep(0.002)
        highest = max(self.steps())
        count = len(before)
        # Frazil takes steps that are done again out of its log.
        least, first = count, None
        while max(steps := self.steps(), default=0) <= highest:
            least = min(least, len(steps))
            if first is None and least < len(steps):
                first = time.monotonic()
            self.wait_for(lambda: len(self.steps()) != len(steps))
        end = time.monotonic()
        again = sum(1 for step in self.steps()[count:] if step in set(before))
        if any("newest checkpoint" in line for line in self.said):
            again = (highest + 1) % every
        return (self.told or end) - begin, (first or end) - begin, end - begin, again * batch

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()


class Frazil:
    def __init__(self, folder, data):
        self.folder = folder
        (folder / "run.json").write_text(json.dumps({"format": "frazil.run", "version": 1, "epochs": 10000,
                                                     "data": {"kind": "digits", **({"path": data} if data else {})}}))
        for devices in (2, 4):
            self.do("profile", *f"--run run.json --devices {devices} --rounds 2 --memory-limit 1GiB --out model.json "
                    f"--cluster-out cluster-{devices}.json --quiet".split())
        self.plan("model.json", BATCH, "stages.json")

    def plan(self, profile, batch, stages):
        self.do("plan", *f"--profile {profile} --cluster cluster-2.json --batch {batch} --max-replicas 1 --schedules 1f1b --out {stages}".split())

    def make_large(self, data):
        (self.folder / "large.json").write_text(json.dumps({"format": "frazil.run", "version": 1, "epochs": 10000, **LARGE,
                                                            "data": {"kind": "digits", **({"path": data} if data else {})}}))
        self.do("profile", *"--run large.json --devices 2 --rounds 1 --memory-limit 4GiB --out large-model.json --cluster-out cluster-2.json "
                "--quiet".split())
        self.plan("large-model.json", LARGE["batch_size"], "large-stages.json")

    def do(self, *words):
        done = subprocess.run([FRAZIL, *words], cwd=self.folder, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{words[0]} exits {done.returncode}: {one_line(done.stderr)}")

    def start(self, name, procs, *flags, run="run.json", profile="model.json", every=EVERY):
        command = [FRAZIL, "train", "--run", run, "--profile", profile, "--cluster", f"cluster-{procs}.json", "--procs",
                   str(procs), "--out", name, "--checkpoint-every", str(every), "--no-freeze", "--quiet", *flags]
        return Try(command, self.folder, self.folder / name / "events.jsonl", r'"step":(\d+),"kind":"step"')

    def try_large(self, name, draws):
        trial = self.start(name, 2, "--plan", "large-stages.json", run="large.json", profile="large-model.json", every=LARGE_EVERY)
        try:
            trial.wait_for(lambda: len(trial.steps()) > 2 * LARGE_EVERY + 2)
            time.sleep(draws.uniform(0, 1))
            return trial.lose(draws.choice(members_of(trial.process.pid)), signal.SIGKILL, LARGE_EVERY, LARGE["batch_size"])
        finally:
            trial.end()
            shutil.rmtree(self.folder / name)

    def try_once(self, kind, name, draws):
        if kind == "large":
            return self.try_large(name, draws)
        trial = self.start(name, 4 if kind == "four" else 2, *(["--plan", "stages.json"] if kind == "checkpoint" else []))
        try:
            trial.wait_for(lambda: len(trial.steps()) > 2 * EVERY + 10)
            time.sleep(draws.uniform(0, 0.3))
            return trial.lose(draws.choice(members_of(trial.process.pid)), signal.SIGSTOP if kind == "stopped" else signal.SIGKILL)
        finally:
            trial.end()


def try_torchrun(python, folder, name, draws):
    place = folder / name
    place.mkdir()
    log = place / "log"
    command = [python, "-m", "torch.distributed.run", "--nnodes=1", "--nproc-per-node=2", "--max-restarts=50", "--monitor-interval=0.1",
               "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", str(TREE / "tests/bench/programs/elastic_worker.py"), str(log),
               str(place / "checkpoint"), str(EVERY), "1000000"]
    trial = Try(command, place, log, r"step (\d+)", {"OMP_NUM_THREADS": "1"})
    try:
        trial.wait_for(lambda: len(trial.steps()) > 2 * EVERY + 10)
        time.sleep(draws.uniform(0, 0.3))
        return trial.lose(int(re.findall(r"rank 1 pid (\d+)", log.read_text())[-1]), signal.SIGKILL)
    finally:
        trial.end()


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="replicas,four,stopped,checkpoint,large,torchrun")
    parser.add_argument("--python", default=str(TREE / ".deps/torch-python/python"), help="one that imports torch")
    parser.add_argument("--data", default="", help="the digits, default: the shipped ones")
    given = parser.parse_args()
    draws = random.Random(given.seed)
    print(f"seed {given.seed}, {given.kills} tries each; ms: median, 99th percentile")
    with tempfile.TemporaryDirectory(prefix="recovery-") as name:
        folder = pathlib.Path(name)
        frazil = Frazil(folder, given.data)
        for kind in given.only.split(","):
            if kind == "large":
                frazil.make_large(given.data)
            told, first, gone_on, again, before = [], [], [], [], look_at_cores()
            for number in range(given.kills):
                label = f"{kind}-{number}"
                one = try_torchrun(given.python, folder, label, draws) if kind == "torchrun" else frazil.try_once(kind, label, draws)
                for values, value in zip((told, first, gone_on, again), one):
                    values.append(value)
            cores = busy_cores(before, look_at_cores())
            print(f"{kind:11} told {1e3 * statistics.median(told):9.1f} {1e3 * percentile(told, 0.99):9.1f}   step "
                  f"{1e3 * statistics.median(first):9.1f} {1e3 * percentile(first, 0.99):9.1f}   goes on "
                  f"{1e3 * statistics.median(gone_on):9.1f} {1e3 * percentile(gone_on, 0.99):9.1f}   samples done again "
                  f"{statistics.mean(again):6.0f}   ({cores:.1f} cores busy)", flush=True)
    return 0


sys.exit(main())
