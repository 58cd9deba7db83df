"""What the verbs that run a model read: small run configurations, and a profile, clusters and plans for them.

The profile is made by `frazil profile`, and its times are replaced by fixed ones.
"""

import json
import shutil
import sys

from foreign_files import make_trace
from model_files import MIB
from plan_files import SCHEDULES, find_model, make_other_plans, make_scheduled_plan
from trainer_commands import BAD_RUNS
from training_runs import HIERARCHY, TINY, list_runs

BATCH, MICRO_BATCH = 32, 8
TIGHT = 600_000  # bytes: on one device it fits only with its first layers frozen


def find_demo_run(source):
    found = sorted(source.glob("*/runs/digits.json"))
    if not found:
        sys.exit(f"answers: found no runs/digits.json in the folders of {source}")
    return json.loads(found[0].read_text())


def make_run(demo, changes):
    """The demo's run, but small, and what a run has in its place."""
    small = {
        "model": TINY,
        "optimizer": {"kind": "adamw", "learning_rate": 0.002},
        "epochs": 1, "batch_size": BATCH, "micro_batch_size": MICRO_BATCH,
        "freeze": {"policy": {"kind": "none"}},
    }
    return {**demo, **small, **changes}


def write_configurations(inputs, source):
    demo = find_demo_run(source)
    inputs.write("tiny.json", make_run(demo, {}))
    inputs.write("hierarchy.json", make_run(demo, HIERARCHY))
    inputs.write("broken-run.json", '{"format": "frazil.run",\n "version": 1,\n "model": ')
    for name, changes in BAD_RUNS.items():
        inputs.write(f"bad-{name}.json", make_run(demo, changes))
    for run in list_runs():
        inputs.write(f"run-{run.name}.json", make_run(demo, run.changes))
    masks = [(0, "11111"), (2, "00111"), (4, "01111"), (5, "11111")]
    inputs.write("tiny-freeze.jsonl", make_trace(5, 6, masks, BATCH))


def set_times(value, path=()):
    """The same profile or cluster with times that are made here: another for each place."""
    if isinstance(value, list):
        return [set_times(item, (*path, number)) for number, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    made = {key: set_times(item, (*path, key)) for key, item in value.items()}
    size = value.get("micro_batch_size", 1)
    place = path[1] if path[:1] == ("layers",) else 0
    for number, key in enumerate(key for key in made if key.endswith("_ns")):
        made[key] = (20_011 + 3_001 * (place * 5 % 7) + 1_009 * number) * size // 2
    fixed = {"bandwidth_bytes_per_second": 2_000_000_000, "time_ppm": 1_000_000, "provenance": {}}
    return {**made, **{key: fixed[key] for key in made if key in fixed}}


def profile_run(inputs, name):
    """Bytes as they are profiled, times of our own."""
    short = "--devices 2 --memory-limit 64MiB --rounds 1 --steps 2 --quiet"
    inputs.make(f"profile --run {name}.json {short} --out {name}-model.json --cluster-out duo.json")
    for file in (f"{name}-model.json", "duo.json"):
        inputs.write(file, set_times(json.loads(inputs.read(file))))


def write_profiles(inputs, profiles):
    """Profiles of what trains, from the folder `profiles`, where those that are missing are put."""
    for name in ("tiny", "hierarchy"):
        kept = [profiles / f"{name}-model.json", profiles / "duo.json"]
        if not all(file.exists() for file in kept):
            profile_run(inputs, name)
            profiles.mkdir(parents=True, exist_ok=True)
            for file in kept:
                shutil.copy(inputs.path(file.name), file)
        for file in kept:
            shutil.copy(file, inputs.path(file.name))


def write_clusters(inputs):
    """Clusters of so many devices like the first profiled one."""
    duo = json.loads(inputs.read("duo.json"))
    sizes = [("duo", 2, 64 * MIB), ("quad", 4, 64 * MIB), ("duo-tight", 2, TIGHT), ("duo-narrow", 2, 100_000)]
    for name, count, memory in sizes:
        like = {**duo["devices"][0], "memory_limit_bytes": memory}
        devices = [{**like, "name": f"device{d}"} for d in range(count)]
        inputs.write(f"{name}.json", {**duo, "devices": devices, "links": []})


def write_tiny_plans(inputs):
    layers = len(json.loads(inputs.read("tiny-model.json"))["layers"])
    flags = f"--batch {BATCH} --micro-batch {MICRO_BATCH}"
    tiny = find_model(inputs, "tiny-model.json", "duo.json", flags, layers)
    mask = "1" * (TINY["blocks"] + 2)
    plans = make_other_plans(tiny, BATCH, MICRO_BATCH, mask=mask)
    for name in SCHEDULES:
        plans[name] = make_scheduled_plan(name, tiny, 2, BATCH, MICRO_BATCH, mask=mask)
    plans["masked"] = {**plans["1f1b"], "mask": "0" + mask[1:]}
    plans["small-batch"] = make_scheduled_plan("1f1b", tiny, 2, 16, MICRO_BATCH, mask=mask)
    for name, plan in plans.items():
        inputs.write(f"tiny-{name}.json", plan)


def write_tiny(inputs, source, profiles):
    write_configurations(inputs, source)
    write_profiles(inputs, profiles)
    write_clusters(inputs)
    write_tiny_plans(inputs)
