#!/usr/bin/env python3
# The samples of a micro-batch are read from the trace's shapes, else asked for; the documents
# say that layers are medians over steps.
"""Imports small traces with and without shapes through the verb."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from kineto_steps import SAMPLES, trace_of_steps  # noqa: E402

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.path.abspath(os.environ.get("FRAZIL", TREE / "build/bin/frazil"))


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(trace, *more):
            (folder / "trace.json").write_text(trace)
            (folder / "m.json").unlink(missing_ok=True)
            done = subprocess.run([FRAZIL, "import", "kineto", "trace.json", "--out", "m.json", *more],
                                  cwd=folder, capture_output=True, text=True)
            size = None
            if (folder / "m.json").exists():
                profile = json.loads((folder / "m.json").read_text())
                size = profile["layers"][0]["costs"][0]["micro_batch_size"]
            return done, size

        done, size = run(trace_of_steps())
        if done.returncode != 2 or size is not None or "no --micro-batch-size" not in done.stderr:
            wrong.append(f"a trace without shapes ends with {done.returncode}, micro-batch size {size}")
        if done.returncode == 2 and len(done.stderr.strip().splitlines()) != 1:
            wrong.append("the refusal is not one sentence")
        done, size = run(trace_of_steps(shapes=True))
        if size != SAMPLES:
            wrong.append(f"shapes of {SAMPLES} samples are read as {size}")
        done, size = run(trace_of_steps(shapes=True), "--micro-batch-size", "4")
        if size != 4:
            wrong.append(f"--micro-batch-size 4 is read as {size}")
    told = (TREE / "docs/commands.md").read_text()
    if "median over the steps" not in told:
        wrong.append("docs/commands.md does not say that layers are medians over steps")
    if wrong:
        print("; ".join(wrong))
        return 1
    print(f"the trace's {SAMPLES} samples are read from its shapes, and asked for without them")
    return 0


sys.exit(main())
