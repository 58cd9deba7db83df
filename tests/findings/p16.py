#!/usr/bin/env python3
# BERT-32 on 64 devices is planned at least as fast as Piper published, and the same way each time.
"""Converts Piper's file (tests/bench/planner/piper_bert.py states how), plans a batch of 1,920 in mode fast twice, simulates the plan's
file, and prints the processor time of a search."""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))
PIPER = pathlib.Path(os.environ.get("PIPER_DATA", TREE.parent / "shared/data/piper")) / "bert32a100.json"
CONVERT = TREE / "tests/bench/planner/piper_bert.py"
FILES = "--profile bert.json --cluster cluster.json".split()
BATCH = 1920
PUBLISHED = 0.0202006  # seconds a sample
FULLEST = 8 << 30  # bytes of a device


def run(folder, *words):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def plan(folder, out):
    """The answer of a search, and its processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = run(folder, FRAZIL, "plan", *FILES, "--batch", str(BATCH), "--reduction", "fast", "--json", "--out", out)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    if not PIPER.exists():
        print(f"skipped: no {PIPER}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(folder, sys.executable, CONVERT, PIPER, folder)
        first, seconds = plan(folder, "one.json")
        again, _ = plan(folder, "two.json")
        best = json.loads(first)["feasible"][0]
        simulated = json.loads(run(folder, FRAZIL, "simulate", *FILES, "--plan", "one.json", "--json"))
        sample = best["makespan_ns"] / BATCH / 1e9
        wrong = []
        if first != again or (folder / "one.json").read_bytes() != (folder / "two.json").read_bytes():
            wrong.append("two searches answer differently")
        if sample > PUBLISHED:
            wrong.append(f"{best['summary']} takes {sample:.4f} s a sample")
        if simulated["makespan_ns"] != best["makespan_ns"]:
            wrong.append(f"the plan's file takes {simulated['makespan_ns']} ns, the search said {best['makespan_ns']}")
        if len(best["devices"]) != 64 or max(device["memory_peak_bytes"] for device in best["devices"]) > FULLEST:
            wrong.append("a device holds more than 8 GiB")
    print("; ".join(wrong) if wrong else
          f"{best['summary']}: {sample:.4f} s a sample (Piper published {PUBLISHED}), twice the same, in {seconds:.2f} s of processor time")
    return 1 if wrong else 0


sys.exit(main())
