#!/usr/bin/env python3
# A trace whose steps accumulate four micro-batches is imported as one of four, whatever is not said; another number is refused.
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from kineto_steps import SAMPLES, Trace, shaped  # noqa: E402

FRAZIL = os.path.abspath(os.environ.get("FRAZIL", pathlib.Path(__file__).resolve().parents[2] / "build/bin/frazil"))
WIDTH, FORWARD, BACKWARD = 64, 200, 400  # us


def trace_of(passes, steps=3):
    """Steps of two marked layers that run `passes` micro-batches one after another."""
    trace, data, gradient = Trace(), shaped([SAMPLES, WIDTH], [WIDTH, WIDTH]), shaped([SAMPLES, WIDTH])
    for step in range(steps):
        trace.event("user_annotation", f"ProfilerStep#{step}", 20_000 * (step + 1), 15_000)
        for turn in range(passes):
            at, number = 20_000 * (step + 1) + 3000 * turn, 100 * step + 10 * turn
            for place in (0, 1):
                trace.event("user_annotation", f"layer:{place}", at + 100 + 300 * place, FORWARD)
                trace.event("cpu_op", "aten::linear", at + 110 + 300 * place, FORWARD - 20,
                            **{"Sequence number": number + place, "Fwd thread id": 0}, **data)
            for place in (1, 0):
                begin = at + 1000 + 700 * (1 - place)
                trace.backward("AddmmBackward0", begin, BACKWARD, number + place, **gradient)
                trace.backward("torch::autograd::AccumulateGrad", begin + 450, 50, **shaped([WIDTH, WIDTH]))
    return trace.text()


def find_complaint(folder):
    def imported(passes, *more):
        (folder / "t.json").write_text(trace_of(passes))
        return subprocess.run([FRAZIL, "import", "kineto", "t.json", "--out", "m.json", "--json", *more], cwd=folder, capture_output=True,
                              text=True, timeout=60)

    def times(done):
        return [(layer["forward_ns"], layer["backward_input_ns"], layer["backward_weight_ns"]) for layer in json.loads(done.stdout)["layers"]]

    one, four = imported(1), imported(4)
    if times(one) != times(four):
        return f"a step of four micro-batches gives {times(four)}, one of one {times(one)}"
    if not any("4 micro-batches a step" in note for note in json.loads(four.stdout)["notes"]):
        return "no note tells that there were four"
    for passes, given in ((1, "7"), (4, "1")):
        done = imported(passes, "--micro-batches", given)
        if done.returncode != 2 or f"found --micro-batches {given}, expected {passes}" not in done.stderr:
            return f"--micro-batches {given} of {passes} exits with {done.returncode}: {done.stderr.strip()}"
    return ""


with tempfile.TemporaryDirectory() as name:
    complaint = find_complaint(pathlib.Path(name))
print(complaint or "four micro-batches in a step take a quarter of it each; 7 of 1 and 1 of 4 are refused")
sys.exit(1 if complaint else 0)
