#!/usr/bin/env python3
"""A run that is stopped for longer than its deadline goes on; the deadline follows from the prediction; one beyond a year is refused."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
FRAZIL = os.environ.get("FRAZIL", str(TREE / "build/bin/frazil"))
DEADLINE = 1  # seconds
STOPPED = 2.5
STOPS = 3

RUN = {
    "format": "frazil.run",
    "version": 1,
    "model": {"dim": 64, "blocks": 4, "heads": 4},
    "data": {"kind": "synthetic", "train_samples": 512, "test_samples": 16},
    "epochs": 40,
    "batch_size": 32,
    "micro_batch_size": 4,
}


def call(folder, question):
    return subprocess.run([FRAZIL, *question.split()], cwd=folder, capture_output=True, text=True, timeout=300)


def write_run(folder, **more):
    (folder / "run.json").write_text(json.dumps({**RUN, **more}))


def write_plan(folder):
    """Two stages, nearly all layers on the second: the first device waits for it most of the time."""
    made = call(folder, "plan --profile m.json --cluster c.json --batch 32 --micro-batch 4 --out p.json")
    if made.returncode != 0:
        raise SystemExit(f"found no plan: {made.stderr.strip()[:160]}")
    plan = json.loads((folder / "p.json").read_text())
    last = len(json.loads((folder / "m.json").read_text())["layers"]) - 1
    stages = [{"layers": [[0, 0]], "devices": [0]}, {"layers": [[1, last]], "devices": [1]}]
    plan["pipelines"] = [{"stages": stages, "micro_batches": [[0, plan["batch_size"] // plan["micro_batch_size"] - 1]]}]
    plan["schedule"] = {"name": "gpipe"}
    (folder / "p.json").write_text(json.dumps(plan))


def train_stopped(folder):
    """Stops a training again and again, each time for longer than its deadline; returns exit code and complaint."""
    question = "train --run run.json --profile m.json --cluster c.json --plan p.json --quiet"
    with open(folder / "said", "w") as said:
        run = subprocess.Popen([FRAZIL, *question.split()], cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
        for _ in range(STOPS):
            time.sleep(1.5)
            if run.poll() is not None:
                break
            run.send_signal(signal.SIGSTOP)
            time.sleep(STOPPED)
            run.send_signal(signal.SIGCONT)
        stopped = run.poll() is None
        time.sleep(2 * DEADLINE)
        if run.poll() is None:
            run.terminate()
    code = run.wait()
    return code, stopped, (folder / "said").read_text().strip()


def main():
    if not (pathlib.Path(FRAZIL).parent / "frazil-train").exists():
        print(f"found no frazil-train beside {FRAZIL}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_run(folder, deadline_seconds=10**9)
        answer = call(folder, "profile --run run.json --devices 2 --rounds 1 --steps 2 --quiet")
        wrong = []
        if answer.returncode != 2 or "deadline_seconds" not in answer.stderr:
            wrong.append(f"a deadline of 10^9 s: exit code {answer.returncode}: {answer.stderr.strip()[:160]}")
        write_run(folder)
        made = call(
            folder, "profile --run run.json --devices 2 --rounds 1 --steps 2 --quiet --out m.json --cluster-out c.json"
        )
        if made.returncode != 0:
            print(f"profile exits {made.returncode}: {made.stderr.strip()[:160]}")
            return 1
        write_plan(folder)
        for deadline in ({"deadline_seconds": DEADLINE}, {}):
            write_run(folder, epochs=4000, **deadline)
            code, stopped, said = train_stopped(folder)
            # The signal ends the run, at once or after its step.
            if not stopped or code not in (-signal.SIGTERM, 128 + signal.SIGTERM):
                told = deadline or "the predicted deadline"
                wrong.append(f"{STOPS} stops of {STOPPED} s with {told}: exit code {code}: {said[:160]}")
        if wrong:
            print("; ".join(wrong))
            return 1
        print(f"{STOPS} stops of {STOPPED} s were outlived with a deadline of {DEADLINE} s and with the predicted one; 10^9 s are refused")
        return 0


if __name__ == "__main__":
    sys.exit(main())
