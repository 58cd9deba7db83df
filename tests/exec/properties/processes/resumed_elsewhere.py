#!/usr/bin/env python3
"""A training with clipping, dropout, short batches and freezing, stopped in the middle, goes on in another number of processes to the same weights.

FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import FRAZIL, INPUTS, MODEL, Failed, Training, one_line, tell  # noqa: E402

# 60 samples in batches of 16: the last batch of an epoch lacks a micro-batch.
CHANGES = {
    "model": {**MODEL, "dropout": 0.1},
    "data": {"kind": "synthetic", "train_samples": 60, "test_samples": 16, "seed": 3},
    "optimizer": {"clip_norm": 0.5},
    "epochs": 40,
}


def state_of(done):
    if done.returncode:
        raise Failed(f"exit {done.returncode}: {one_line(done.stderr)}")
    return json.loads(done.stdout)["state_hash"]


def stop_in_the_middle(training, name, flags):
    """Trains until some steps are done, and sends SIGTERM."""
    log = training.folder / name / "events.jsonl"
    process = subprocess.Popen([FRAZIL, "train", *INPUTS, *flags, "--out", name, "--checkpoint-every", "7"],
                               cwd=training.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if log.exists() and log.read_text().count('"kind":"step"') > 20:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    if process.returncode != 143:
        raise Failed(f"{name}: exit {process.returncode} after SIGTERM: {one_line(err)}")


def check():
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        training.write_run("run.json", **CHANGES)
        made = training.run("profile", *"--run run.json --devices 4 --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                            "--cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        expected = state_of(training.train("--json"))
        ways = (("2", ("1", "4")), ("1", ("2",)), ("4", ("2",)))
        seen = 0
        for before, later in ways:
            stopped = f"by-{before}"
            stop_in_the_middle(training, stopped, ["--procs", before])
            for after in later:
                copy = f"{stopped}-then-{after}"
                shutil.copytree(training.folder / stopped, training.folder / copy)
                found = state_of(training.run("train", "--resume", copy, "--procs", after, "--json", "--quiet"))
                if found != expected:
                    return "", f"begun by {before} and ended by {after} processes: weights {found}, expected {expected}"
                seen += 1
        return f"{seen} runs stopped and resumed by other numbers of processes end with the weights of one process", ""


sys.exit(tell("resumed elsewhere", check))
