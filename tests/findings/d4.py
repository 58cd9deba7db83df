#!/usr/bin/env python3
"""Memory that cannot be had, inside or outside a step, ends a subcommand with exit code 7 and one sentence."""
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.environ.get("FRAZIL", str(TREE / "build/bin/frazil"))
ROOM = 6 << 30  # of addresses, so that the machine's own memory is not touched

DATA = {"kind": "synthetic", "train_samples": 64, "test_samples": 16}
MODEL = {"dim": 16, "blocks": 2, "heads": 2}
# What asks for more: samples before the first step, and weights of a model.
RUNS = {
    "samples": {"model": MODEL, "data": {**DATA, "train_samples": 100_000_000}},
    "weights": {"model": {"dim": 65536, "blocks": 2, "heads": 2}, "data": DATA},
}
QUESTION = "--devices 1 --rounds 1 --steps 2 --quiet"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        said = []
        for what, run in RUNS.items():
            question = {"format": "frazil.run", "version": 1, "epochs": 1, "batch_size": 16, "micro_batch_size": 4, **run}
            (folder / "run.json").write_text(json.dumps(question))
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
            arguments = [FRAZIL, "profile", "--run", "run.json", *QUESTION.split()]
            answer = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, preexec_fn=limit, timeout=300)
            lines = answer.stderr.strip().splitlines()
            sentence = lines[-1] if lines else ""
            said.append(f"{what}: exit code {answer.returncode}, {len(lines)} lines, `{sentence[:140]}`")
            is_one = len(lines) == 1 and not any(word in sentence for word in ("frame #", "Exception raised", "enforce fail"))
            is_one = is_one and re.search(r"a tensor of \d+ bytes \([\d.]+ [KMGT]iB\) cannot be allocated$", sentence) is not None
            if answer.returncode != 7 or not is_one:
                print("; ".join(said))
                return 1
        print("; ".join(said))
        return 0


if __name__ == "__main__":
    sys.exit(main())
