#!/usr/bin/env python3
"""Trains over more processes than a small machine has cores, also where the leader has many files open: the bits of one process.

usage: many_members.py [--procs N...]
FRAZIL names the program, default build/bin/frazil of this tree. Exit code 0: all held; 1: something did not; 77: the program is not there.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TREE / "tests/findings/support"))
from training import FRAZIL, INPUTS, Failed, Training, one_line, tell  # noqa: E402

FILES = 200  # that somebody else has left open in the leader
STEPS = ("--steps", "3", "--schedules", "1f1b", "--json")


def train(training, procs, files=0):
    """The answer of a training, or what is wrong with it. So many files are open in it from its beginning."""
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(files)]
    flags = ["--procs", str(procs)] if procs > 1 else []
    try:
        made = subprocess.run([FRAZIL, "train", *INPUTS, *flags, *STEPS], cwd=training.folder, pass_fds=opened, capture_output=True,
                              text=True, timeout=300)
    finally:
        for number in opened:
            os.close(number)
    if made.returncode:
        return f"--procs {procs}, {files} files open: exit {made.returncode}: {one_line(made.stderr)}"
    return json.loads(made.stdout)


def check(arguments):
    most = max(arguments.procs)
    with tempfile.TemporaryDirectory() as name:
        training = Training(name)
        made = training.run("profile", *f"--run run.json --devices {most} --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                            "--cluster-out cluster.json --quiet".split())
        if made.returncode:
            raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
        expected = train(training, 1)
        if isinstance(expected, str):
            return expected
        for procs, files in zip(arguments.procs, (0, FILES) * len(arguments.procs)):
            answer = train(training, procs, files)
            if isinstance(answer, str):
                return answer
            if answer["state_hash"] != expected["state_hash"]:
                return f"--procs {procs}, {files} files open: other weights than in one process"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--procs", type=int, nargs="+", default=[16, 8])
    arguments = parser.parse_args()
    seen = f"{arguments.procs} processes have the weights of one"
    return tell("many members", lambda: (seen, check(arguments)))


sys.exit(main())
