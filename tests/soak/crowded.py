#!/usr/bin/env python3
# A training over processes, on cores that four times as many busy programs want, takes no process for lost.
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "support"))
from campaign import Campaign, Counted  # noqa: E402
from training import Failed, Training, one_line, stop  # noqa: E402

SECONDS = 600
CROWD = 4  # busy programs for each core
PROCESSES = 4


def count(events, name):
    return sum(event.get("event") == name for event in events)


def do_all(campaign, folder):
    training = Training(folder)
    made = training.run("profile", *f"--run run.json --devices {PROCESSES} --rounds 1 --steps 2 --memory-limit 1GiB --out model.json "
                        "--cluster-out cluster.json --quiet".split())
    if made.returncode:
        raise Failed(f"profile exits {made.returncode}: {one_line(made.stderr)}")
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(CROWD * len(os.sched_getaffinity(0)))]
    try:
        process = training.start("--procs", str(PROCESSES), "--out", "crowded")
        time.sleep(campaign.count)
        code, _, err = stop(process)
    finally:
        for program in busy:
            program.kill()
            program.wait()
    log = folder / "crowded" / "events.jsonl"
    events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    lost, steps = count(events, "lost"), sum(event.get("kind") == "step" for event in events)
    if code != 130:
        print(f"crowded: exit {code}, expected 130: {one_line(err)}")
    bad = lost + (code != 130) + (steps == 0)
    return Counted(campaign.count if steps else 0, f"seconds of a training in {PROCESSES} processes beside {len(busy)} busy programs: {steps} "
                   f"steps, {lost} processes taken for lost, {count(events, 'suspected')} suspected for a while", bad)


sys.exit(Campaign("crowded", SECONDS, __doc__).run(do_all))
